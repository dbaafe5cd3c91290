/*
 * LAPI_Address_init, LAPI_Address_init64, LAPI_Address, LAPI_Addr_set and
 * LAPI_Addr_get: address CASE
 */
#include "../common/ltest.h"

enum { ROUNDS = 300 };

/* Any pointer-sized value is exchanged, NULL and all ones as well. */
static uint64_t value_of(int task, int round) {
    switch ((task + round) % 5) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return (uint64_t)(task + 1);
    default:
        return t_seed((uint64_t)task, (uint64_t)round, 1);
    }
}

static void exchange(void) {
    int round, task;
    void **table = malloc(sizeof *table * (size_t)(t_tasks + 1));
    lapi_long_t *table64 = malloc(sizeof *table64 * (size_t)(t_tasks + 1));
    CHECK(table != NULL && table64 != NULL);
    for (round = 0; round < ROUNDS; round++) {
        memset(table, 0x5a, sizeof *table * (size_t)(t_tasks + 1));
        memset(table64, 0x5a, sizeof *table64 * (size_t)(t_tasks + 1));
        OK(LAPI_Address_init(t_hndl, (void *)value_of(t_me, round), table));
        OK(LAPI_Address_init64(t_hndl, value_of(t_me, round + 7), table64));
        for (task = 0; task < t_tasks; task++) {
            CHECK_EQ((uintptr_t)table[task], value_of(task, round));
            CHECK_EQ(table64[task], value_of(task, round + 7));
        }
        CHECK_EQ((uintptr_t)table[t_tasks], 0x5a5a5a5a5a5a5a5a);
        CHECK_EQ(table64[t_tasks], 0x5a5a5a5a5a5a5a5a);
    }
}

/* Between exchanges every task is in a different state: some are early, some are busy, data
 * is under way. */
static void uneven(void) {
    static unsigned char from[50000], to[16][50000];
    void **tos = t_addresses(to);
    uint64_t random = t_seed((uint64_t)t_me, 5, 5);
    int round, task;
    void *table[16];
    CHECK(t_tasks <= 16);
    for (round = 0; round < ROUNDS / 3; round++) {
        uint tgt = (uint)t_below(&random, (uint64_t)t_tasks);
        if (t_below(&random, 8) == 0) usleep(1000);
        OK(LAPI_Put(t_hndl, tgt, t_below(&random, sizeof from), (char *)tos[tgt] + t_me * (long)sizeof from, from, NULL,
                    NULL, NULL));
        OK(LAPI_Address_init(t_hndl, (void *)value_of(t_me, round), table));
        for (task = 0; task < t_tasks; task++) CHECK_EQ((uintptr_t)table[task], value_of(task, round));
        if (round % 3 == 0) t_fence();
    }
}

static void *some_function(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                           void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return NULL;
}

static void table(void) {
    int size = t_query(LOC_ADDRTBL_SZ), i;
    void *found;
    ulong number = 0;
    t_set(ERROR_CHK, 1);
    CHECK_FOR(size > 1, "LOC_ADDRTBL_SZ is %d", size);
    for (i = 1; i < size; i++) {
        found = &found;
        OK(LAPI_Addr_get(t_hndl, &found, i));
        CHECK_PTR(found, NULL); /* never set */
    }
    for (i = 1; i < size; i++) OK(LAPI_Addr_set(t_hndl, (char *)(void *)some_function + i, i));
    for (i = 1; i < size; i++) {
        OK(LAPI_Addr_get(t_hndl, &found, i));
        CHECK_PTR(found, (char *)(void *)some_function + i);
    }
    OK(LAPI_Addr_set(t_hndl, (void *)some_function, 1)); /* again */
    OK(LAPI_Addr_get(t_hndl, &found, 1));
    CHECK_PTR(found, (void *)some_function);
    OK(LAPI_Addr_set(t_hndl, NULL, 2));
    OK(LAPI_Addr_get(t_hndl, &found, 2));
    CHECK_PTR(found, NULL);
    RETURNS(LAPI_Addr_set(t_hndl, (void *)some_function, 0), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_set(t_hndl, (void *)some_function, -1), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_set(t_hndl, (void *)some_function, size), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_get(t_hndl, &found, 0), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_get(t_hndl, &found, -5), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_get(t_hndl, &found, size), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_get(t_hndl, NULL, 1), LAPI_ERR_RET_PTR_NULL);

    OK(LAPI_Address(&size, &number));
    CHECK_EQ(number, (uintptr_t)&size);
    OK(LAPI_Address((void *)some_function, &number));
    CHECK_EQ(number, (uintptr_t)some_function);
    RETURNS(LAPI_Address(NULL, &number), LAPI_ERR_ORG_ADDR_NULL);
    RETURNS(LAPI_Address(&size, NULL), LAPI_ERR_TGT_ADDR_NULL);
}

/* Old programs pass addresses of their own as remote ones: poe and the wrappers see to it that
 * they agree. */
static int global;

static void sameness(void) {
    int task;
    void **functions = t_addresses((void *)some_function), **globals = t_addresses(&global);
    void **library = t_addresses((void *)LAPI_Init);
    for (task = 0; task < t_tasks; task++) {
        CHECK_PTR(functions[task], (void *)some_function);
        CHECK_PTR(globals[task], &global);
        CHECK_PTR(library[task], (void *)LAPI_Init);
    }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "exchange") == 0) exchange();
    else if (strcmp(which, "uneven") == 0) uneven();
    else if (strcmp(which, "table") == 0) table();
    else if (strcmp(which, "sameness") == 0) sameness();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

/*
 * A long run needs no more memory than a short one: steady ROUNDS
 *
 * Each round has a hundred operations of every kind under way, then none. The resources of a task
 * after the first fifth of the rounds are compared with those after all of them.
 */
#include "../common/ltest.h"

enum { BATCH = 100 };

static char area[70000];
static int variable;
static volatile int handled;

static void completed(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    *comp_h = completed;
    *uinfo = NULL;
    if (ret->msg_len % 2) ret->ret_flags = LAPI_LOCAL_STATE;
    return area;
}

static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
    fclose(file);
    CHECK(kib > 0);
    return kib;
}

int main(int argc, char **argv) {
    lapi_cntr_t org, cmpl;
    void **areas, **variables, **handlers;
    int round, rounds, i, one = 1, prev;
    long early = 0, late, slack = 8 * 1024;
    CHECK(argc == 2);
    rounds = atoi(argv[1]);
    t_init();
    /* The receive buffers of a network are a fixed number, of which each takes memory when it is
     * used for the first time. */
    if (t_tasks > 1 && t_query(QUERY_SHM_NUM_TASKS) < t_tasks) slack += 16 * 1024;
    areas = t_addresses(area);
    variables = t_addresses(&variable);
    handlers = t_addresses((void *)arrived);
    bzero(&org, sizeof org);
    bzero(&cmpl, sizeof cmpl);
    for (round = 0; round < rounds; round++) {
        for (i = 0; i < BATCH; i++) {
            uint tgt = (uint)((t_me + i) % t_tasks);
            ulong len = i == 0 ? sizeof area : (ulong)(i * 3);
            OK(LAPI_Put(t_hndl, tgt, len, areas[tgt], area, NULL, &org, &cmpl));
            OK(LAPI_Get(t_hndl, tgt, len, areas[tgt], area, NULL, &org));
            OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], &i, sizeof i, area, len, NULL, &org, &cmpl));
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, tgt, variables[tgt], &one, &prev, &org));
        }
        t_wait_exact(&org, 4 * BATCH);
        t_wait_exact(&cmpl, 2 * BATCH);
        if (round == rounds / 5) early = resident_kib();
    }
    late = resident_kib();
    t_fence();
    CHECK_EQ(handled, rounds * BATCH);
    CHECK_FOR(late < early + slack, "%ld KiB after %d rounds, %ld KiB after %d", early, rounds / 5, late, rounds);
    t_done();
    return 0;
}

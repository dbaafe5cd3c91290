/*
 * LAPI_Fence and LAPI_Gfence: fence CASE ROUNDS
 *
 *   put       after LAPI_Fence the data of puts is at every target
 *   am        that of active messages too, whether or not their completion handlers have returned
 *   get       after LAPI_Fence the data of gets and read-modify-writes has arrived
 *   gfence    no task leaves LAPI_Gfence before all have entered it, and all data is in place
 *   late      the same, and one task after the other comes so late that the others sleep
 *   mixed     LAPI_Gfence with everything under way
 */
#include "../common/ltest.h"

enum { LARGE = 400000, COUNT = 6 };

static const ulong lens[COUNT] = {8, 100, 3000, 0, 70000, LARGE};
static unsigned char out[COUNT][LARGE], in[16][COUNT][LARGE];
static void **ins, **outs, **handlers, **check_handlers;
static volatile int checked, finished;
static int slow;

static unsigned char *place(void *base, int src, int i) {
    return (unsigned char *)base + ((size_t)src * COUNT + (size_t)i) * LARGE;
}
static uint64_t seed_of(int src, int round, int i) { return t_seed((uint64_t)src, (uint64_t)round, (uint64_t)i); }

/* A message sent after the fence checks the data sent before it. */
static void *look(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                  void **uinfo) {
    int round = *(int *)uhdr, i;
    (void)hndl, (void)uhdr_len, (void)uinfo;
    for (i = 0; i < COUNT; i++)
        CHECK_FOR(t_differs(in[ret->src][i], lens[i], seed_of(ret->src, round, i)) < 0,
                  "round %d: %lu bytes from task %d are not there after its LAPI_Fence", round, lens[i], ret->src);
    __atomic_fetch_add(&checked, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return NULL;
}

static void ask_to_look(int round) {
    int tgt;
    for (tgt = 0; tgt < t_tasks; tgt++)
        OK(LAPI_Amsend(t_hndl, (uint)tgt, check_handlers[tgt], &round, sizeof round, NULL, 0, NULL, NULL, NULL));
    t_probe_until(&checked, (round + 1) * t_tasks);
    t_fence();
}

static void fill(int round) {
    int i;
    for (i = 0; i < COUNT; i++) t_fill(out[i], lens[i], seed_of(t_me, round, i));
}

static void put(int rounds) {
    int round, tgt, i;
    for (round = 0; round < rounds; round++) {
        fill(round);
        for (tgt = 0; tgt < t_tasks; tgt++)
            for (i = 0; i < COUNT; i++)
                OK(LAPI_Put(t_hndl, (uint)tgt, lens[i], place(ins[tgt], t_me, i), out[i], NULL, NULL, NULL));
        OK(LAPI_Fence(t_hndl));
        ask_to_look(round);
    }
}

static void dawdle(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    usleep(2000);
    __atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr_len;
    *comp_h = slow ? dawdle : NULL;
    *uinfo = NULL;
    return in[ret->src][*(int *)uhdr];
}

static void am(int rounds) {
    static lapi_cntr_t cmpl_cntr;
    int round, tgt, i;
    slow = 1;
    t_fence();
    for (round = 0; round < rounds; round++) {
        fill(round);
        for (tgt = 0; tgt < t_tasks; tgt++)
            for (i = 0; i < COUNT; i++)
                OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], &i, sizeof i, out[i], lens[i], NULL, NULL,
                               &cmpl_cntr));
        OK(LAPI_Fence(t_hndl));
        ask_to_look(round);
    }
    t_wait_exact(&cmpl_cntr, rounds * t_tasks * COUNT);
    t_fence();
    CHECK_EQ(finished, rounds * t_tasks * COUNT);
}

static void get(int rounds) {
    static int variable;
    void **variables = t_addresses(&variable);
    int round, tgt, i, one = 1;
    fill(77);
    t_fence();
    for (round = 0; round < rounds; round++) {
        int prev[16];
        memset(in, 0, sizeof in[0] * (size_t)t_tasks);
        for (tgt = 0; tgt < t_tasks; tgt++) {
            prev[tgt] = -1;
            for (i = 0; i < COUNT; i++)
                OK(LAPI_Get(t_hndl, (uint)tgt, lens[i], (unsigned char *)outs[tgt] + i * LARGE, in[tgt][i], NULL, NULL));
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)tgt, variables[tgt], &one, &prev[tgt], NULL));
        }
        OK(LAPI_Fence(t_hndl));
        for (tgt = 0; tgt < t_tasks; tgt++) {
            CHECK_FOR(prev[tgt] >= round && prev[tgt] < rounds * t_tasks, "round %d: task %d handed out %d", round, tgt,
                      prev[tgt]);
            for (i = 0; i < COUNT; i++)
                CHECK_FOR(t_differs(in[tgt][i], lens[i], seed_of(tgt, 77, i)) < 0,
                          "round %d: %lu bytes of task %d are not here after LAPI_Fence", round, lens[i], tgt);
        }
    }
    t_fence();
    CHECK_EQ(variable, rounds * t_tasks);
}

static void gfence(int rounds, int late) {
    static volatile int entered[16];
    void **entereds = t_addresses((void *)entered);
    int round, tgt;
    for (round = 1; round <= rounds; round++) {
        /* Without a fence in between, a task may be a round ahead of another one, and not more. */
        for (tgt = 0; tgt < t_tasks; tgt++)
            OK(LAPI_Put(t_hndl, (uint)tgt, sizeof round, (int *)entereds[tgt] + t_me, &round, NULL, NULL, NULL));
        if (late && round % t_tasks == t_me) usleep(20000);
        t_fence();
        for (tgt = 0; tgt < t_tasks; tgt++) {
            int now = entered[tgt];
            CHECK_FOR(now == round || now == round + 1, "after LAPI_Gfence %d task %d is in round %d", round, tgt, now);
        }
    }
}

static void mixed(int rounds) {
    int round, tgt, i, one = 1, prev[16];
    static int variable;
    void **variables = t_addresses(&variable);
    for (round = 0; round < rounds; round++) {
        fill(round);
        t_fence();
        for (tgt = 0; tgt < t_tasks; tgt++) {
            for (i = 0; i < COUNT; i++)
                if ((round + i) % 2)
                    OK(LAPI_Put(t_hndl, (uint)tgt, lens[i], place(ins[tgt], t_me, i), out[i], NULL, NULL, NULL));
                else
                    OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], &i, sizeof i, out[i], lens[i], NULL, NULL, NULL));
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)tgt, variables[tgt], &one, &prev[tgt], NULL));
        }
        t_fence();
        CHECK_EQ(variable, (round + 1) * t_tasks);
        for (tgt = 0; tgt < t_tasks; tgt++) {
            CHECK_FOR(prev[tgt] / t_tasks == round, "round %d: task %d handed out %d", round, tgt, prev[tgt]);
            for (i = 0; i < COUNT; i++)
                CHECK_FOR(t_differs(in[tgt][i], lens[i], seed_of(tgt, round, i)) < 0,
                          "round %d: %lu bytes of task %d are not here after LAPI_Gfence", round, lens[i], tgt);
        }
        t_fence();
    }
}

int main(int argc, char **argv) {
    const char *which = argc == 3 ? argv[1] : "";
    int rounds = argc == 3 ? t_rounds(atoi(argv[2])) : 0;
    t_init();
    CHECK(t_tasks <= 16);
    ins = t_addresses(in);
    outs = t_addresses(out);
    handlers = t_addresses((void *)arrived);
    check_handlers = t_addresses((void *)look);
    if (strcmp(which, "put") == 0) put(rounds);
    else if (strcmp(which, "am") == 0) am(rounds);
    else if (strcmp(which, "get") == 0) get(rounds);
    else if (strcmp(which, "gfence") == 0) gfence(rounds, 0);
    else if (strcmp(which, "late") == 0) gfence(rounds, 1);
    else if (strcmp(which, "mixed") == 0) mixed(rounds);
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

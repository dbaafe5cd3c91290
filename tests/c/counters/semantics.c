/*
 * What the counter calls mean, with 1 task or more: semantics CASE
 */
#include "../common/ltest.h"

static lapi_cntr_t fixed[1000]; /* as old programs have them: static, never set */

/* LAPI_Setcntr, LAPI_Getcntr and LAPI_Waitcntr on counters that no operation uses. */
static void local(void) {
    lapi_cntr_t cntr;
    int left, i;
    memset(&cntr, 0, sizeof cntr);
    CHECK_EQ(t_value(&cntr), 0);
    for (i = -3; i < 1000; i += 17) {
        OK(LAPI_Setcntr(t_hndl, &cntr, i));
        CHECK_EQ(t_value(&cntr), i);
        CHECK_EQ(cntr.cntr, i);
    }
    OK(LAPI_Setcntr(t_hndl, &cntr, 5));
    left = 77;
    OK(LAPI_Waitcntr(t_hndl, &cntr, 3, &left)); /* the value after 3 have been taken off */
    CHECK_EQ(left, 2);
    CHECK_EQ(t_value(&cntr), 2);
    OK(LAPI_Waitcntr(t_hndl, &cntr, 2, NULL));
    CHECK_EQ(cntr.cntr, 0);
    OK(LAPI_Waitcntr(t_hndl, &cntr, 0, &left));
    CHECK_EQ(left, 0);
    OK(LAPI_Setcntr(t_hndl, &cntr, 0x7fffffff));
    OK(LAPI_Waitcntr(t_hndl, &cntr, 0x7fffffff, &left));
    CHECK_EQ(left, 0);
    for (i = 0; i < 1000; i++) {
        CHECK_EQ(t_value(&fixed[i]), 0);
        OK(LAPI_Setcntr(t_hndl, &fixed[i], i));
    }
    for (i = 0; i < 1000; i++) {
        OK(LAPI_Waitcntr(t_hndl, &fixed[i], i, &left));
        CHECK_EQ(left, 0);
    }
}

/* A counter of its own for each of a thousand operations, each at 1 in the end. */
static void many(void) {
    static unsigned char bytes[1000], here[1000];
    void **theirs = t_addresses(bytes), **counters = t_addresses(fixed);
    static lapi_cntr_t cmpl[1000];
    uint tgt = (uint)((t_me + 1) % t_tasks);
    int i;
    for (i = 0; i < 1000; i++) here[i] = (unsigned char)(i * 3 + t_me);
    t_fence();
    for (i = 0; i < 1000; i++)
        OK(LAPI_Put(t_hndl, tgt, 1, (char *)theirs[tgt] + i, here + i, (lapi_cntr_t *)counters[tgt] + i, NULL, &cmpl[i]));
    for (i = 999; i >= 0; i--) t_wait_exact(&cmpl[i], 1);
    for (i = 0; i < 1000; i++) t_wait_exact(&fixed[i], 1);
    for (i = 0; i < 1000; i++) CHECK_EQ(bytes[i], (unsigned char)(i * 3 + (t_me + t_tasks - 1) % t_tasks));
    t_fence();
    for (i = 0; i < 1000; i++) CHECK_EQ(fixed[i].cntr | cmpl[i].cntr, 0);
}

/* One counter in all allowed roles: both local counters of a put; within one task the
 * target's as well. */
static void shared(void) {
    static lapi_cntr_t cntr;
    static char from[300], to[300];
    void **tos = t_addresses(to), **cntrs = t_addresses(&cntr);
    int i, distance;
    for (distance = 0; distance < t_tasks; distance++) {
        uint tgt = (uint)((t_me + distance) % t_tasks);
        for (i = 0; i < 50; i++)
            OK(LAPI_Put(t_hndl, tgt, sizeof from, tos[tgt], from, NULL, &cntr, &cntr));
        t_wait_exact(&cntr, 100);
    }
    for (i = 0; i < 50; i++)
        OK(LAPI_Put(t_hndl, (uint)t_me, sizeof from, to, from, &cntr, &cntr, &cntr));
    t_wait_exact(&cntr, 150);
    for (i = 0; i < 50; i++)
        OK(LAPI_Get(t_hndl, (uint)t_me, sizeof from, from, to, &cntr, &cntr));
    t_wait_exact(&cntr, 100);
    t_fence();
    for (i = 0; i < t_tasks; i++) OK(LAPI_Put(t_hndl, (uint)i, 1, tos[i], from, cntrs[i], &cntr, NULL));
    t_wait_exact(&cntr, 2 * t_tasks);
    t_fence();
    CHECK_EQ(t_value(&cntr), 0);
}

/* A counter that is waited for in portions, and one that starts below zero. */
static void portions(void) {
    static lapi_cntr_t cntr, below;
    static char to;
    void **tos = t_addresses(&to), **cntrs = t_addresses(&cntr), **belows = t_addresses(&below);
    uint tgt = (uint)((t_me + 1) % t_tasks);
    int i, taken, left = 0;
    OK(LAPI_Setcntr(t_hndl, &below, -7));
    t_fence();
    for (i = 0; i < 300; i++) OK(LAPI_Put(t_hndl, tgt, 1, tos[tgt], &to, cntrs[tgt], NULL, NULL));
    for (i = 0; i < 10; i++) OK(LAPI_Put(t_hndl, tgt, 0, NULL, NULL, belows[tgt], NULL, NULL));
    for (taken = 0; taken < 300; taken += 3) {
        left = t_wait(&cntr, 3);
        CHECK_FOR(left >= 0 && left <= 297 - taken, "%d are left after %d were taken off", left, taken + 3);
    }
    CHECK_EQ(left, 0);
    t_wait_exact(&below, 3);
}

/* No data is moved, NULL addresses are allowed, every counter is incremented, also
 * within one task. */
static void *nowhere(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uinfo;
    CHECK_EQ(*uhdr_len, 0);
    CHECK_EQ(*msg_len, 0);
    *comp_h = NULL;
    return NULL;
}

static void nothing(int checked) {
    static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
    void **cntrs = t_addresses(&tgt_cntr), **handlers = t_addresses((void *)nowhere);
    int distance, i;
    t_set(ERROR_CHK, checked);
    for (distance = 0; distance < t_tasks; distance++) {
        uint tgt = (uint)((t_me + distance) % t_tasks);
        lapi_xfer_t xfer;
        for (i = 0; i < 100; i++) {
            OK(LAPI_Put(t_hndl, tgt, 0, NULL, NULL, cntrs[tgt], &org_cntr, &cmpl_cntr));
            OK(LAPI_Put(t_hndl, tgt, 0, NULL, NULL, NULL, NULL, NULL));
            OK(LAPI_Get(t_hndl, tgt, 0, NULL, NULL, cntrs[tgt], &org_cntr));
            OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], NULL, 0, NULL, 0, cntrs[tgt], &org_cntr, &cmpl_cntr));
            bzero(&xfer, sizeof xfer);
            xfer.Put.Xfer_type = LAPI_PUT_XFER;
            xfer.Put.tgt = tgt;
            xfer.Put.tgt_cntr = t_long(cntrs[tgt]);
            xfer.Put.org_cntr = &org_cntr;
            xfer.Put.cmpl_cntr = &cmpl_cntr;
            OK(LAPI_Xfer(t_hndl, &xfer));
        }
        t_wait_exact(&org_cntr, 400);
        t_wait_exact(&cmpl_cntr, 300);
        t_wait_exact(&tgt_cntr, 400);
        t_fence();
    }
}

/* LAPI_Probe with LAPI_Getcntr, LAPI_Probe with a look at the counter itself, in both modes. */
static void probing(void) {
    static lapi_cntr_t tgt_cntr;
    static long long number, from;
    void **numbers = t_addresses(&number), **cntrs = t_addresses(&tgt_cntr);
    uint tgt = (uint)((t_me + 1) % t_tasks);
    int i, value;
    for (i = 0; i < 400; i++) {
        if (i % 100 == 0) t_set(INTERRUPT_SET, i / 100 % 2);
        from = i + 1;
        OK(LAPI_Put(t_hndl, tgt, sizeof from, numbers[tgt], &from, cntrs[tgt], NULL, NULL));
        if (i % 2)
            while (*(volatile int *)&tgt_cntr.cntr < 1) OK(LAPI_Probe(t_hndl));
        else
            do {
                OK(LAPI_Probe(t_hndl));
                OK(LAPI_Getcntr(t_hndl, &tgt_cntr, &value));
            } while (value < 1);
        CHECK_EQ(number, i + 1);
        OK(LAPI_Setcntr(t_hndl, &tgt_cntr, 0));
        t_fence();
    }
}

static lapi_cntr_t per_thread[4];
static void **per_threads;

static void *waiter(void *arg) {
    long me = (long)arg;
    uint tgt = (uint)((t_me + 1) % t_tasks);
    int i;
    for (i = 0; i < 200; i++) {
        OK(LAPI_Put(t_hndl, tgt, 0, NULL, NULL, (lapi_cntr_t *)per_threads[tgt] + me, NULL, NULL));
        OK(LAPI_Waitcntr(t_hndl, &per_thread[me], 1, NULL));
    }
    return NULL;
}

/* Threads that wait each for its own counter do not hold each other up. */
static void threads(void) {
    pthread_t tids[4];
    long i;
    per_threads = t_addresses(per_thread);
    for (i = 0; i < 4; i++) CHECK_EQ(pthread_create(&tids[i], NULL, waiter, (void *)i), 0);
    for (i = 0; i < 4; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
    t_fence();
    for (i = 0; i < 4; i++) CHECK_EQ(t_value(&per_thread[i]), 0);
}

/* --- wakes --- */

static lapi_cntr_t awaited;

static void *sets(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                  void **uinfo) {
    (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    OK(LAPI_Setcntr(*hndl, &awaited, 1));
    *comp_h = NULL;
    return NULL;
}

static void *sleeper(void *arg) {
    int left = -1;
    (void)arg;
    OK(LAPI_Waitcntr(t_hndl, &awaited, 1, &left));
    CHECK_EQ(left, 0);
    return NULL;
}

/* A thread that sleeps in LAPI_Waitcntr is woken by whatever another thread of the same task does
 * to the counter. */
static void wakes(void) {
    static int variable, one = 1;
    pthread_t tid;
    int i;
    for (i = 0; i < 40; i++) {
        if (i % 10 == 0) t_set(INTERRUPT_SET, i / 10 % 2);
        CHECK_EQ(pthread_create(&tid, NULL, sleeper, NULL), 0);
        usleep(i % 4 ? 20000 : 0); /* asleep, or on its way */
        switch (i % 5) {
        case 0:
            OK(LAPI_Setcntr(t_hndl, &awaited, 1));
            break;
        case 1:
            OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &awaited, NULL, NULL));
            break;
        case 2:
            OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)sets, NULL, 0, NULL, 0, NULL, NULL, NULL));
            break;
        case 3:
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)t_me, &variable, &one, NULL, &awaited));
            break;
        default:
            OK(LAPI_Get(t_hndl, (uint)t_me, sizeof one, &variable, &variable, &awaited, NULL));
        }
        CHECK_EQ(pthread_join(tid, NULL), 0);
    }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "local") == 0) local();
    else if (strcmp(which, "many") == 0) many();
    else if (strcmp(which, "shared") == 0) shared();
    else if (strcmp(which, "portions") == 0) portions();
    else if (strcmp(which, "nothing") == 0) nothing(0);
    else if (strcmp(which, "nothing-checked") == 0) nothing(1);
    else if (strcmp(which, "probing") == 0) probing();
    else if (strcmp(which, "threads") == 0) threads();
    else if (strcmp(which, "wakes") == 0) wakes();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

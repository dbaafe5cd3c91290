/*
 * A task dies, the others continue: survive CASE VICTIM DELAY
 *
 * Run with "poe -on_death continue". Task VICTIM ends, and the others do something
 * with it meanwhile:
 *
 *   idle        it dies while no operation with it is under way
 *   stay        as idle; the others call LAPI_Probe without end
 *   origin      it dies while it puts large messages to all tasks, contiguous ones and strided ones
 *   target      it dies while all tasks put large messages to it, and get some from it
 *   deaf        it computes without interrupts, so that packets to it find no room, and dies
 *   header      it dies in a header handler
 *   completion  it dies in a completion handler
 *   gfence      it dies while all are in LAPI_Gfence, again and again
 *   exchange    it dies while all are in LAPI_Address_init, again and again
 *   counter     it dies while the others wait for a counter that only it would increment; their error handlers set it
 *   term        it dies somewhere around its LAPI_Term
 *   flush       as deaf; the others call LAPI_Term at once, while it dies
 *   exit        it exits with status 0, without LAPI_Term
 *   init        it dies around LAPI_Init, for which the last task comes late
 *
 * It dies after DELAY microseconds unless the case determines the time. In each survivor its
 * operations with it end, and LAPI reports the death once; the survivor communicates with the
 * others, checks what it receives, and checks that collective calls fail in all of them.
 */
#include "../common/ltest.h"

#include <pthread.h>
#include <signal.h>

enum { LARGE = 1 << 20, SLOT = 300000, MOST = 8, ROUNDS = 6, MANY = 3000 };

static int victim, delay, survivors;
static unsigned char big[LARGE], from[SLOT], slots[MOST][SLOT], messages[MOST][SLOT];
static int variable, counts[MOST];
static lapi_cntr_t met[2], came, done, never;
static void **bigs, **slots_of, **variables, **mets, **cames, **counts_of, **deadly, **plain;

/* ---- what LAPI reports to survivors ---- */

static volatile int losses, rescue;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*type, INT_ERR);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, victim);
    if (rescue) OK(LAPI_Setcntr(t_hndl, &never, 1));
    __atomic_fetch_add(&losses, 1, __ATOMIC_RELEASE);
}

static int was_reported(void) { return __atomic_load_n(&losses, __ATOMIC_ACQUIRE); }

static volatile int accepted, reported, refused;

static void sent(lapi_handle_t *hndl, void *completed, lapi_sh_info_t *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(info->src, (uint)victim);
    CHECK_FOR(info->reason == 0 || info->reason == LAPI_ERR_NO_CONNECTIVITY, "reason %u", info->reason);
    /* A read-modify-write is not complete before the reply. */
    if (completed != NULL && info->reason == 0) CHECK(*(int *)completed != -1);
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELEASE);
}

static void started(int code) {
    if (code == LAPI_SUCCESS)
        accepted++;
    else {
        CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
        refused = 1;
    }
}

/* ---- dying ---- */

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static void *die_later(void *nothing) {
    (void)nothing;
    usleep((useconds_t)delay);
    die();
    return NULL;
}

static void die_in_a_while(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, die_later, NULL), 0);
}

static void deadly_completion(lapi_handle_t *hndl, void *uinfo) {
    (void)hndl, (void)uinfo;
    die();
}

static void *deadly_header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                           void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    if (*(int *)uhdr == 0) die();
    *comp_h = deadly_completion;
    *uinfo = NULL;
    return NULL;
}

static void *plain_header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                          void **uinfo) {
    (void)hndl, (void)uhdr_len, (void)msg_len;
    *comp_h = NULL;
    *uinfo = NULL;
    return messages[*(int *)uhdr];
}

/* ---- strided messages ---- */

/* Four blocks, which are half of the first `len` bytes of the memory. */
static void stride(lapi_vec_t *vec, void **info, void *base, ulong len) {
    bzero(vec, sizeof *vec);
    vec->vec_type = LAPI_GEN_STRIDED_XFER;
    vec->num_vecs = 4;
    vec->info = info;
    info[0] = base;
    info[1] = (void *)(len / 8);
    info[2] = (void *)(len / 4);
}

static int put_strided(int tgt, ulong len, scompl_hndlr_t *handler, lapi_cntr_t *cmpl_cntr) {
    void *here[3], *there[3];
    lapi_vec_t org, target;
    lapi_xfer_t xfer;
    stride(&org, here, big, len);
    stride(&target, there, bigs[tgt], len);
    bzero(&xfer, sizeof xfer);
    xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
    xfer.Putv.flags = USE_TGT_VEC_TYPE;
    xfer.Putv.tgt = (uint)tgt;
    xfer.Putv.org_vec = &org;
    xfer.Putv.tgt_vec = &target;
    xfer.Putv.shdlr = handler;
    xfer.Putv.cmpl_cntr = cmpl_cntr;
    return LAPI_Xfer(t_hndl, &xfer);
}

static int get_strided(int tgt, ulong len) {
    void *here[3], *there[3];
    lapi_vec_t org, target;
    stride(&org, here, big, len);
    stride(&target, there, bigs[tgt], len);
    return LAPI_Getv(t_hndl, (uint)tgt, &target, &org, NULL, NULL);
}

/* ---- the operations of a survivor with the victim ---- */

static void want_everything(ulong len) {
    static int previous[MOST];
    lapi_xfer_t xfer;
    int which = accepted % MOST, one = 1;
    bzero(&xfer, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.tgt = (uint)victim;
    xfer.Put.tgt_addr = t_long(bigs[victim]);
    xfer.Put.org_addr = big;
    xfer.Put.len = len;
    xfer.Put.shdlr = sent;
    xfer.Put.cmpl_cntr = &never;
    started(LAPI_Xfer(t_hndl, &xfer));
    bzero(&xfer, sizeof xfer);
    xfer.Am.Xfer_type = LAPI_AM_XFER;
    xfer.Am.tgt = (uint)victim;
    xfer.Am.hdr_hdl = t_long(plain[victim]);
    xfer.Am.uhdr_len = sizeof t_me;
    xfer.Am.uhdr = &t_me;
    xfer.Am.udata = big;
    xfer.Am.udata_len = len < SLOT ? len : SLOT;
    xfer.Am.shdlr = sent;
    started(LAPI_Xfer(t_hndl, &xfer));
    previous[which] = -1;
    bzero(&xfer, sizeof xfer);
    xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
    xfer.Rmw.op = FETCH_AND_ADD;
    xfer.Rmw.tgt = (uint)victim;
    xfer.Rmw.size = 32;
    xfer.Rmw.tgt_var = t_long(variables[victim]);
    xfer.Rmw.in_val = &one;
    xfer.Rmw.prev_tgt_val = &previous[which];
    xfer.Rmw.shdlr = sent;
    xfer.Rmw.sinfo = &previous[which];
    started(LAPI_Xfer(t_hndl, &xfer));
    if (LAPI_Get(t_hndl, (uint)victim, len, bigs[victim], from, NULL, &never) != LAPI_SUCCESS) refused = 1;
    started(put_strided(victim, len, sent, &never));
    if (get_strided(victim, len) != LAPI_SUCCESS) refused = 1;
}

/* Until the death of the victim is known: operations under way end, and no new one can begin. */
static void see_it_gone(ulong len) {
    while (!was_reported() && !refused) {
        want_everything(len < SLOT ? len : SLOT);
        OK(LAPI_Fence(t_hndl));
    }
    OK(LAPI_Fence(t_hndl));
    while (__atomic_load_n(&reported, __ATOMIC_ACQUIRE) < accepted) OK(LAPI_Probe(t_hndl));
    CHECK_EQ(reported, accepted);
    RETURNS(LAPI_Put(t_hndl, (uint)victim, 8, bigs[victim], big, NULL, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    RETURNS(LAPI_Get(t_hndl, (uint)victim, 8, bigs[victim], from, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    RETURNS(LAPI_Amsend(t_hndl, (uint)victim, plain[victim], &t_me, sizeof t_me, NULL, 0, NULL, NULL, NULL),
            LAPI_ERR_NO_CONNECTIVITY);
}

/* ---- among survivors ---- */

static int other_survivor(int task) { return task != t_me && task != victim; }

static void meet(void) {
    static int turn;
    int task;
    for (task = 0; task < t_tasks; task++)
        if (other_survivor(task))
            OK(LAPI_Put(t_hndl, (uint)task, 0, NULL, NULL, (lapi_cntr_t *)mets[task] + turn % 2, NULL, NULL));
    t_wait_exact(&met[turn % 2], survivors - 1);
    turn++;
}

static void work_together(void) {
    static unsigned char back[SLOT];
    int round, task;
    for (round = 0; round < ROUNDS; round++) {
        ulong len = round % 2 ? SLOT : 100;
        for (task = 0; task < t_tasks; task++) {
            int one = 1, previous = -1;
            if (!other_survivor(task)) continue;
            t_fill(from, len, t_seed((uint64_t)t_me, (uint64_t)task, (uint64_t)round));
            OK(LAPI_Put(t_hndl, (uint)task, len, (char *)slots_of[task] + t_me * SLOT, from, cames[task], NULL, &done));
            OK(LAPI_Amsend(t_hndl, (uint)task, plain[task], &t_me, sizeof t_me, from, len, cames[task], NULL, &done));
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)task, variables[task], &one, &previous, &done));
            t_wait_exact(&done, 3);
            CHECK(previous >= round * (survivors - 1) && previous < (round + 1) * (survivors - 1));
            OK(LAPI_Get(t_hndl, (uint)task, len, (char *)slots_of[task] + t_me * SLOT, back, NULL, &done));
            t_wait_exact(&done, 1);
            CHECK_FILLED(back, len, t_seed((uint64_t)t_me, (uint64_t)task, (uint64_t)round));
        }
        t_wait_exact(&came, 2 * (survivors - 1));
        meet();
        for (task = 0; task < t_tasks; task++) {
            if (!other_survivor(task)) continue;
            CHECK_FILLED(slots[task], len, t_seed((uint64_t)task, (uint64_t)t_me, (uint64_t)round));
            CHECK_FILLED(messages[task], len, t_seed((uint64_t)task, (uint64_t)t_me, (uint64_t)round));
        }
        CHECK_EQ(variable, (round + 1) * (survivors - 1));
        OK(LAPI_Fence(t_hndl));
        meet();
    }
}

/* ---- collective calls ---- */

static int calls, failed;

static void call_together(int exchange) {
    void *table[MOST];
    int code, task;
    if (exchange) {
        void *mine = (void *)(uintptr_t)(1000 * (calls + 1) + t_me);
        code = LAPI_Address_init(t_hndl, mine, table);
        if (code == LAPI_SUCCESS)
            for (task = 0; task < t_tasks; task++)
                CHECK_PTR(table[task], (void *)(uintptr_t)(1000 * (calls + 1) + task));
    } else {
        code = LAPI_Gfence(t_hndl);
    }
    calls++;
    if (code == LAPI_SUCCESS) {
        CHECK_FOR(!failed, "collective call %d has ended well without task %d", calls, victim);
        return;
    }
    CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
    failed = 1;
}

/* All call as often as the one that has called most, and some times more. */
static void catch_up_collectives(void) {
    int task, most = calls;
    counts[t_me] = calls;
    for (task = 0; task < t_tasks; task++)
        if (other_survivor(task))
            OK(LAPI_Put(t_hndl, (uint)task, sizeof(int), (int *)counts_of[task] + t_me, &calls, cames[task], NULL, NULL));
    t_wait_exact(&came, survivors - 1);
    for (task = 0; task < t_tasks; task++)
        if (task != victim && counts[task] > most) most = counts[task];
    while (calls < most + 4) {
        call_together(calls % 2);
        CHECK_FOR(failed, "collective call %d has ended well without task %d", calls, victim);
    }
}

/* ---- the cases ---- */

static void be_the_victim(const char *which) {
    int task;
    if (strcmp(which, "exit") == 0) exit(0);
    if (strcmp(which, "header") != 0 && strcmp(which, "completion") != 0) die_in_a_while();
    if (strcmp(which, "origin") == 0) {
        for (;;) {
            for (task = 0; task < t_tasks; task++)
                if (task != t_me) {
                    OK(LAPI_Put(t_hndl, (uint)task, LARGE, bigs[task], big, NULL, NULL, &done));
                    OK(put_strided(task, LARGE, NULL, &done));
                }
            t_wait(&done, 2 * (t_tasks - 1));
        }
    }
    if (strcmp(which, "gfence") == 0 || strcmp(which, "exchange") == 0)
        for (;;) call_together(*which == 'e');
    if (strcmp(which, "term") == 0) {
        usleep((useconds_t)(delay - delay / 50));
        LAPI_Term(t_hndl);
    } else if (strcmp(which, "deaf") != 0 && strcmp(which, "flush") != 0) {
        t_wait(&never, 1);
    }
    for (;;) pause();
}

static void be_a_survivor(const char *which) {
    ulong len = 1000;
    int i;
    if (strcmp(which, "stay") == 0)
        for (;;) OK(LAPI_Probe(t_hndl));
    if (strcmp(which, "target") == 0) len = LARGE;
    if (strcmp(which, "header") == 0 || strcmp(which, "completion") == 0) {
        int how = *which == 'c';
        started(LAPI_Amsend(t_hndl, (uint)victim, deadly[victim], &how, sizeof how, NULL, 0, NULL, NULL, &never));
        accepted = refused = 0;
    }
    if (strcmp(which, "deaf") == 0 || strcmp(which, "flush") == 0)
        for (i = 0; i < MANY && !was_reported() && !refused; i++)
            if (LAPI_Put(t_hndl, (uint)victim, 1000, bigs[victim], big, NULL, NULL, &never) != LAPI_SUCCESS) refused = 1;
    if (strcmp(which, "flush") == 0) {
        OK(LAPI_Term(t_hndl));
        t_pass();
        return;
    }
    if (strcmp(which, "counter") == 0) {
        rescue = 1;
        want_everything(len);
        while (!was_reported() && !refused) {
            if (LAPI_Get(t_hndl, (uint)victim, 8, bigs[victim], from, NULL, &never) != LAPI_SUCCESS) refused = 1;
            OK(LAPI_Waitcntr(t_hndl, &never, 1, NULL));
        }
    }
    if (strcmp(which, "exit") == 0) work_together();
    if (strcmp(which, "gfence") == 0 || strcmp(which, "exchange") == 0)
        while (!failed) call_together(*which == 'e');
    see_it_gone(len);
    if (strcmp(which, "exit") != 0) work_together();
    catch_up_collectives();
    meet();
    /* For a task that has called LAPI_Term a survivor may only get the return code of a call. The
     * report of any other death can be on its way in another thread of the library when calls
     * fail already. */
    if (strcmp(which, "term") != 0)
        while (!was_reported()) OK(LAPI_Probe(t_hndl));
    if (was_reported() != 0) CHECK_EQ(was_reported(), 1);
    OK(LAPI_Term(t_hndl));
    t_pass();
}

static void init_without_the_victim(lapi_info_t *info) {
    const char *child = getenv("MP_CHILD"), *procs = getenv("MP_PROCS");
    CHECK(child != NULL && procs != NULL);
    t_me = atoi(child);
    if (t_me == victim && delay == 0) die();
    if (t_me == victim) die_in_a_while();
    if (t_me == atoi(procs) - 1) usleep((useconds_t)(2 * delay));
    OK(LAPI_Init(&t_hndl, info));
    if (t_me == victim)
        for (;;) pause();
    RETURNS(LAPI_Gfence(t_hndl), LAPI_ERR_NO_CONNECTIVITY);
    OK(LAPI_Term(t_hndl));
    t_pass();
}

int main(int argc, char **argv) {
    lapi_info_t info;
    CHECK(argc == 4);
    victim = atoi(argv[2]);
    delay = atoi(argv[3]);
    bzero(&info, sizeof info);
    info.err_hndlr = error_handler;
    if (strcmp(argv[1], "init") == 0) {
        init_without_the_victim(&info);
        return 0;
    }
    t_init_with(&info);
    CHECK(t_tasks <= MOST && victim < t_tasks);
    survivors = t_tasks - 1;
    bigs = t_addresses(big);
    slots_of = t_addresses(slots);
    variables = t_addresses(&variable);
    mets = t_addresses(met);
    cames = t_addresses(&came);
    counts_of = t_addresses(counts);
    deadly = t_addresses((void *)deadly_header);
    plain = t_addresses((void *)plain_header);
    if (t_me == victim && (strcmp(argv[1], "deaf") == 0 || strcmp(argv[1], "flush") == 0)) t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me == victim) be_the_victim(argv[1]);
    be_a_survivor(argv[1]);
    return 0;
}

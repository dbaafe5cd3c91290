/*
 * INTERRUPT_SET at any time, and the two calls that poll: storm CASE [SEED]
 *
 *   storm SEED   the mode changes all the time, by several threads and by every kind of handler, while all tasks send
 *                everything to each other and now compute, now poll, now wait; nothing is lost, and the last mode holds
 *   bits         every bit of LAPI_Msgpoll's status
 *   poll         LAPI_Msgpoll and LAPI_Probe in handlers, in completion handlers, and with a count of 0
 */
#include "../common/ltest.h"

#include <limits.h>
#include <sched.h>

static uint64_t seed;
static volatile int stop;
static volatile int headers, completions, inlines, sents;
static unsigned char area[8][40000];
static lapi_cntr_t tgt_cntr;
static long long sum;
static void **handlers, **areas, **tgt_cntrs, **sums;

static int next_task(void) { return (t_me + 1) % t_tasks; }

static void mode_by(uint64_t number) { OK(LAPI_Senv(t_hndl, INTERRUPT_SET, (int)(number / 3 % 2))); }

/* --- storm --- */

static void completed(lapi_handle_t *hndl, void *info) {
    if ((uintptr_t)info % 7 == 0) mode_by((uintptr_t)info);
    if ((uintptr_t)info % 31 == 0) OK(LAPI_Probe(*hndl));
    __atomic_fetch_add(&completions, 1, __ATOMIC_RELEASE);
}

static void completed_inline(lapi_handle_t *hndl, void *info) {
    (void)hndl;
    if ((uintptr_t)info % 5 == 0) mode_by((uintptr_t)info);
    __atomic_fetch_add(&inlines, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                     void **uinfo) {
    int number = ((int *)uhdr)[0];
    (void)hndl, (void)uhdr_len;
    /* The manual has header handlers call nothing; a program that does so still works. */
    if (number % 11 == 0) mode_by((uint64_t)number);
    *comp_h = number % 4 == 3 ? completed_inline : completed;
    ret->ret_flags = number % 4 == 3 ? LAPI_LOCAL_STATE : LAPI_NORMAL;
    *uinfo = (void *)(uintptr_t)number;
    __atomic_fetch_add(&headers, 1, __ATOMIC_RELEASE);
    return ret->msg_len ? area[7] : NULL;
}

static void sent(lapi_handle_t *hndl, void *info, lapi_sh_info_t *done) {
    (void)hndl, (void)done;
    if ((uintptr_t)info % 13 == 0) mode_by((uintptr_t)info);
    __atomic_fetch_add(&sents, 1, __ATOMIC_RELEASE);
}

static void *toggler(void *arg) {
    uint64_t random = t_seed(seed, (uint64_t)t_me, (uint64_t)(uintptr_t)arg + 50);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        mode_by(t_random(&random));
        if (t_below(&random, 4) == 0) usleep((useconds_t)t_below(&random, 600));
        else sched_yield();
    }
    return NULL;
}

static void compute(uint64_t steps) {
    static volatile double x = 1;
    while (steps-- > 0) x = x * 1.0000001 + 1e-9;
}

/* Waits for what was counted: computing, polling or in a call. None of them may miss an event. */
static void reach(volatile int *counted, int value, uint64_t how) {
    lapi_msg_info_t poll;
    while (__atomic_load_n(counted, __ATOMIC_ACQUIRE) < value) {
        if (how % 3 == 0) OK(LAPI_Probe(t_hndl));
        else if (how % 3 == 1) OK(LAPI_Msgpoll(t_hndl, 50, &poll));
        else compute(100), OK(LAPI_Getcntr(t_hndl, &tgt_cntr, &(int){0}));
    }
}

static void storm(void) {
    enum { OPS = 1200, BATCH = 40 };
    static unsigned char from[40000], back[40000];
    pthread_t togglers[2];
    uint64_t random = t_seed(seed, (uint64_t)t_me, 1);
    lapi_cntr_t done;
    long long one = 1, before;
    uintptr_t number;
    int i, messages = 0, others = 0, task, mode;
    bzero(&done, sizeof done);
    for (number = 0; number < 2; number++)
        CHECK_EQ(pthread_create(&togglers[number], NULL, toggler, (void *)number), 0);
    for (i = 0; i < OPS; i++) {
        int tgt = (int)t_below(&random, (uint64_t)t_tasks), uhdr[2] = {i, 0};
        ulong len = t_below(&random, t_below(&random, 10) == 0 ? sizeof from : 150);
        if (i % 3 == 0) {
            lapi_xfer_t xfer;
            bzero(&xfer, sizeof xfer);
            xfer.Am.Xfer_type = LAPI_AM_XFER;
            xfer.Am.tgt = (uint)next_task();
            xfer.Am.hdr_hdl = t_long(handlers[next_task()]);
            xfer.Am.uhdr = uhdr;
            xfer.Am.uhdr_len = sizeof uhdr;
            xfer.Am.udata = from;
            xfer.Am.udata_len = len;
            xfer.Am.shdlr = sent;
            xfer.Am.sinfo = (void *)(uintptr_t)i;
            xfer.Am.tgt_cntr = t_long(tgt_cntrs[next_task()]);
            xfer.Am.cmpl_cntr = &done;
            OK(LAPI_Xfer(t_hndl, &xfer));
            messages++;
        } else if (i % 3 == 1) {
            t_fill(from, len, (uint64_t)i);
            OK(LAPI_Put(t_hndl, (uint)tgt, len, (char *)areas[tgt] + t_me * 40000, from, NULL, NULL, &done));
            OK(LAPI_Fence(t_hndl));
            OK(LAPI_Get(t_hndl, (uint)tgt, len, (char *)areas[tgt] + t_me * 40000, back, NULL, &done));
            others += 2;
            if (i % 2) {
                t_wait_exact(&done, messages + others);
                messages = others = 0;
                CHECK_FILLED(back, len, (uint64_t)i);
            }
        } else {
            OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)tgt, sums[tgt], &one, &before, &done));
            others++;
        }
        if (i % BATCH == BATCH - 1) {
            if (t_below(&random, 2)) compute(t_below(&random, 20000));
            t_wait_exact(&done, messages + others);
            messages = others = 0;
        }
    }
    reach(&headers, OPS / 3, t_random(&random));
    reach(&completions, OPS / 4, t_random(&random));
    reach(&inlines, OPS / 12, t_random(&random));
    reach(&sents, OPS / 3, t_random(&random));
    t_wait_exact(&tgt_cntr, OPS / 3);
    stop = 1;
    for (number = 0; number < 2; number++) CHECK_EQ(pthread_join(togglers[number], NULL), 0);
    t_fence();
    CHECK_EQ(headers, OPS / 3);
    CHECK_EQ(completions, OPS / 4);
    CHECK_EQ(inlines, OPS / 12);
    CHECK_EQ(sents, OPS / 3);
    for (task = 0, before = 0; task < t_tasks; task++) {
        long long there = 0;
        OK(LAPI_Get(t_hndl, (uint)task, sizeof there, sums[task], &there, NULL, &done));
        t_wait_exact(&done, 1);
        before += there;
    }
    CHECK_EQ(before, (long long)t_tasks * (OPS / 3));
    t_fence();
    /* Each mode, set last, holds: with interrupts on no task needs to make a call. */
    for (mode = 1; mode >= 0; mode--) {
        int before_it = headers, uhdr[2] = {4, 0};
        t_set(INTERRUPT_SET, mode);
        t_fence();
        OK(LAPI_Amsend(t_hndl, (uint)next_task(), handlers[next_task()], uhdr, sizeof uhdr, NULL, 0, NULL, NULL, NULL));
        while (mode && __atomic_load_n(&headers, __ATOMIC_ACQUIRE) == before_it) compute(1000);
        if (mode) while (completions < OPS / 4 + 1) compute(1000);
        t_fence();
    }
}

/* --- bits --- */

static unsigned long polls;

static lapi_msg_state_t poll(uint count) {
    lapi_msg_info_t info;
    memset(&info, 0xff, sizeof info);
    polls++;
    OK(LAPI_Msgpoll(t_hndl, count, &info));
    return info.status;
}

/* Completions not reported yet, until there are no new ones. */
static lapi_msg_state_t drain(void) {
    lapi_msg_state_t all = 0, now;
    while (((now = poll(200)) & LAPI_BOTH_COMPLETE) != 0) all |= now;
    CHECK_EQ(now, LAPI_DISP_CNTR);
    return all;
}

static lapi_cntr_t never;

static void *in_waitcntr(void *arg) {
    (void)arg;
    OK(LAPI_Waitcntr(t_hndl, &never, 1, NULL));
    return NULL;
}

static void *in_msgpoll(void *arg) {
    lapi_msg_info_t info;
    (void)arg;
    do OK(LAPI_Msgpoll(t_hndl, 100000, &info));
    while (!stop);
    return NULL;
}

static lapi_cntr_t go;
static void **gos;

/* Notifies another task that this one has left the fence: completions during a fence are
 * not reported. */
static void notify(int task) { OK(LAPI_Put(t_hndl, (uint)task, 0, NULL, NULL, gos[task], NULL, NULL)); }

/* Waits for these bits, some of which may be set already, and for no others than those
 * allowed with them. */
static void expect(lapi_msg_state_t all, lapi_msg_state_t wanted, lapi_msg_state_t also) {
    while ((all & wanted) != wanted) {
        all |= poll(10000);
        CHECK_FOR((all & ~(wanted | also | LAPI_DISP_CNTR)) == 0, "the status is %#x", (unsigned)all);
    }
}

static void bits(void) {
    static unsigned char large[1 << 20];
    static lapi_cntr_t done, flag;
    void **flags = t_addresses(&flag), **larges = t_addresses(large);
    pthread_t tid;
    lapi_msg_state_t now;
    int tgt = next_task(), mode;
    lapi_msg_info_t info;
    gos = t_addresses(&go);
    RETURNS(LAPI_Msgpoll(t_hndl, 1, NULL), LAPI_ERR_MSG_INFO_NULL);
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        t_fence();
        drain();
        /* Nothing: the count is over, as often as one asks; without any round too. */
        CHECK_EQ(poll(100), LAPI_DISP_CNTR);
        CHECK_EQ(poll(1), LAPI_DISP_CNTR);
        CHECK_EQ(poll(0), LAPI_DISP_CNTR);
        t_fence();
        if (t_tasks > 1) {
            /* One sends, the other receives, and has requested it. */
            if (t_me == 0) {
                t_wait_exact(&go, 1);
                OK(LAPI_Put(t_hndl, 1, sizeof large, larges[1], large, flags[1], NULL, NULL));
                /* LAPI_Waitcntr leaves what it has received to LAPI_Msgpoll. */
                expect(0, LAPI_SEND_COMPLETE, LAPI_RECV_COMPLETE);
            } else if (t_me == 1) {
                notify(0);
                expect(0, LAPI_RECV_COMPLETE, LAPI_SEND_COMPLETE);
            }
            t_fence();
            drain();
            t_fence();
            /* A get is received at its origin, and sent at its target. */
            if (t_me == 0) {
                OK(LAPI_Get(t_hndl, 1, 100, larges[1], large, flags[1], &done));
                expect(0, LAPI_RECV_COMPLETE, 0);
                OK(LAPI_Waitcntr(t_hndl, &done, 1, NULL));
            }
            t_fence();
            drain();
            t_fence();
        }
        /* Both. */
        notify((t_me + t_tasks - 1) % t_tasks);
        now = 0;
        while (__atomic_load_n(&go.cntr, __ATOMIC_ACQUIRE) < 1) now |= poll(10);
        OK(LAPI_Setcntr(t_hndl, &go, 0));
        OK(LAPI_Put(t_hndl, (uint)tgt, 10, areas[tgt], area[0], flags[tgt], NULL, NULL));
        expect(now & LAPI_BOTH_COMPLETE, LAPI_BOTH_COMPLETE, 0);
        t_fence();
        drain();
        t_fence();
        /* Completions in a handler in interrupt mode, or in a call that does not report them, are
         * reported by the next call, with a count of 0 as well. */
        if (t_tasks > 1) {
            if (t_me == 0) {
                t_wait_exact(&go, 1);
                usleep(20000);
                OK(LAPI_Put(t_hndl, 1, 10, areas[1], area[0], flags[1], NULL, &done));
                OK(LAPI_Waitcntr(t_hndl, &done, 1, NULL));
            } else if (t_me == 1) {
                int before = flag.cntr;
                notify(0);
                while (__atomic_load_n(&flag.cntr, __ATOMIC_ACQUIRE) == before)
                    if (!mode) OK(LAPI_Probe(t_hndl));
                CHECK_EQ(poll(0) & ~(lapi_msg_state_t)LAPI_SEND_COMPLETE, LAPI_RECV_COMPLETE);
                CHECK_EQ(poll(0), LAPI_DISP_CNTR);
            }
            t_fence();
        }
        drain();
        t_fence();
        /* Another thread polls already. */
        CHECK_EQ(pthread_create(&tid, NULL, in_waitcntr, NULL), 0);
        do now = poll(10);
        while (!(now & LAPI_POLLING_NET));
        CHECK_EQ(now & LAPI_BOTH_COMPLETE, 0);
        OK(LAPI_Setcntr(t_hndl, &never, 1));
        CHECK_EQ(pthread_join(tid, NULL), 0);
        CHECK_EQ(poll(10) & LAPI_POLLING_NET, 0);
        stop = 0;
        CHECK_EQ(pthread_create(&tid, NULL, in_msgpoll, NULL), 0);
        while (!(poll(10) & LAPI_POLLING_NET)) sched_yield();
        stop = 1;
        CHECK_EQ(pthread_join(tid, NULL), 0);
        CHECK_EQ(poll(10) & LAPI_POLLING_NET, 0);
        OK(LAPI_Setcntr(t_hndl, &flag, 0));
        t_fence();
    }
    RETURNS(LAPI_Msgpoll(LAPI_VOID_HANDLE, 1, &info), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Probe(LAPI_VOID_HANDLE), LAPI_ERR_HNDL_INVALID);
}

/* --- poll --- */

static volatile int asked, seen;

static void asking(lapi_handle_t *hndl, void *inline_too) {
    lapi_msg_info_t info;
    /* Where the dispatcher already runs no progress is possible: the call returns at once,
     * whatever the count. */
    OK(LAPI_Msgpoll(*hndl, inline_too ? UINT_MAX : 20, &info));
    CHECK((info.status & (LAPI_BOTH_COMPLETE | LAPI_DISP_CNTR)) != 0);
    OK(LAPI_Msgpoll(*hndl, 0, &info));
    OK(LAPI_Probe(*hndl));
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
}

/* Polls in a completion handler until another message has arrived; others may arrive with it. */
static void until_seen(lapi_handle_t *hndl, void *info) {
    lapi_msg_info_t state;
    (void)info;
    while (!__atomic_load_n(&seen, __ATOMIC_ACQUIRE)) OK(LAPI_Msgpoll(*hndl, 1000, &state));
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
}

static void *asks(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                  void **uinfo) {
    int how = ((int *)uhdr)[0];
    (void)hndl, (void)uhdr_len;
    *uinfo = how == 1 ? (void *)1 : NULL;
    *comp_h = how == 2 ? until_seen : how == 3 ? NULL : asking;
    ret->ret_flags = how == 1 ? LAPI_LOCAL_STATE : LAPI_NORMAL;
    if (how == 3) __atomic_fetch_add(&seen, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void polling(void) {
    void **askers = t_addresses((void *)asks);
    int how, mode, tgt = next_task();
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        asked = seen = 0;
        t_fence();
        for (how = 0; how < 4; how++) {
            int uhdr[2] = {how, 0};
            OK(LAPI_Amsend(t_hndl, (uint)tgt, askers[tgt], uhdr, sizeof uhdr, NULL, 0, NULL, NULL, NULL));
        }
        t_probe_until(&asked, 3);
        t_fence();
    }
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    t_init();
    CHECK(t_tasks <= 7);
    handlers = t_addresses((void *)arrived);
    areas = t_addresses(area);
    tgt_cntrs = t_addresses(&tgt_cntr);
    sums = t_addresses(&sum);
    if (strcmp(which, "storm") == 0 && argc == 3) seed = (uint64_t)atoi(argv[2]), storm();
    else if (strcmp(which, "bits") == 0) bits();
    else if (strcmp(which, "poll") == 0) polling();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

/*
 * Interrupt mode and polling mode: interrupt CASE [FILE]
 *
 *   on       operations complete at a target that computes and makes no call
 *   off FILE handlers run only inside calls; FILE shows the target, outside LAPI, that a message
 *            has been sent
 *   toggle   INTERRUPT_SET on and off while messages arrive
 *   asleep   waiting tasks are woken by each of many single messages, in both modes
 *   idle     a task that waits for two seconds uses hardly any processor time
 *   both     what two tasks have started progresses while neither of them makes a call
 *   own      operations of a task with itself progress while it makes no call
 *   signals  calls are interrupted by signals all the time
 */
#include "../common/ltest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

static volatile int flag, handled, completed;
static int variable;
static unsigned char area[300000];
static lapi_cntr_t tgt_cntr;
static void **flags, **areas, **variables, **handlers, **tgt_cntrs;

static void completion(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
    *comp_h = completion;
    *uinfo = NULL;
    return *msg_len ? area : NULL;
}

static void on(void) {
    static unsigned char from[sizeof area], back[sizeof area];
    static const ulong lens[] = {8, 5000, sizeof area};
    lapi_cntr_t done;
    int i, one = 1, prev = -1;
    volatile double x = 1;
    bzero(&done, sizeof done);
    t_set(INTERRUPT_SET, 1);
    t_fence();
    if (t_me == 0) {
        for (i = 0; i < 3; i++) {
            t_fill(from, lens[i], (uint64_t)i);
            OK(LAPI_Put(t_hndl, 1, lens[i], areas[1], from, NULL, NULL, &done));
            t_wait_exact(&done, 1);
            OK(LAPI_Get(t_hndl, 1, lens[i], areas[1], back, NULL, &done));
            t_wait_exact(&done, 1);
            CHECK_FILLED(back, lens[i], (uint64_t)i);
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, 1, variables[1], &one, &prev, &done));
            t_wait_exact(&done, 1);
            CHECK_EQ(prev, i);
            /* The completion counter follows the handlers at the target. */
            OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, from, lens[i], NULL, NULL, &done));
            t_wait_exact(&done, 1);
        }
        OK(LAPI_Fence(t_hndl));
        /* Only now the other task may stop computing. */
        OK(LAPI_Put(t_hndl, 1, sizeof one, flags[1], &one, NULL, NULL, &done));
        t_wait_exact(&done, 1);
    } else if (t_me == 1) {
        while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) x = x * 1.0000001 + 1e-9;
        CHECK_EQ(variable, 3);
        CHECK_EQ(handled, 3);
        CHECK_EQ(completed, 3);
        CHECK_FILLED(area, sizeof area, 2);
    }
    t_fence();
}

static void make(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static void await(const char *path) {
    while (access(path, F_OK) != 0) usleep(1000);
    unlink(path);
}

static void off(const char *path) {
    char ready[4096];
    snprintf(ready, sizeof ready, "%s-ready", path);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me == 0) {
        char byte = 1;
        await(ready); /* until then the handler could run in the other one's fence */
        OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, &byte, 1, NULL, NULL, NULL));
        OK(LAPI_Probe(t_hndl));
        make(path);
    } else if (t_me == 1) {
        int i;
        make(ready);
        await(path);
        for (i = 0; i < 30; i++) {
            usleep(10000);
            CHECK_EQ(handled, 0);
            CHECK_EQ(completed, 0);
        }
        t_probe_until(&completed, 1);
        CHECK_EQ(handled, 1);
    }
    t_fence();
}

static void toggle(void) {
    enum { MESSAGES = 3000 };
    lapi_cntr_t done;
    int i;
    bzero(&done, sizeof done);
    for (i = 0; i < MESSAGES; i++) {
        uint tgt = (uint)((t_me + i) % t_tasks);
        OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], NULL, 0, area, (ulong)(i % 50), tgt_cntrs[tgt], NULL, &done));
        if (i % 5 == 0) t_set(INTERRUPT_SET, i / 5 % 2);
        if (i % 100 == 99) t_wait_exact(&done, 100);
    }
    t_wait_exact(&tgt_cntr, MESSAGES);
    t_probe_until(&completed, MESSAGES);
    t_fence();
    CHECK_EQ(handled, MESSAGES);
    handled = completed = 0;
    /* The mode that was set last holds: with interrupts, no task needs to make a call. */
    t_set(INTERRUPT_SET, 0);
    t_set(INTERRUPT_SET, 1);
    t_fence();
    on();
}

static void asleep(void) {
    enum { MESSAGES = 40 };
    int i, mode, origin = t_tasks - 1;
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        t_fence();
        for (i = 0; i < MESSAGES; i++) {
            int tgt;
            if (t_me == origin) {
                usleep(i % 4 ? 3000 : 30000);
                for (tgt = 0; tgt < t_tasks; tgt++)
                    OK(LAPI_Put(t_hndl, (uint)tgt, (ulong)(i * 1000), areas[tgt], area, tgt_cntrs[tgt], NULL, NULL));
            }
            OK(LAPI_Waitcntr(t_hndl, &tgt_cntr, 1, NULL));
        }
        t_fence();
        CHECK_EQ(t_value(&tgt_cntr), 0);
    }
}

static double processor_seconds(void) {
    struct rusage used;
    CHECK_EQ(getrusage(RUSAGE_SELF, &used), 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void idle(void) {
    int mode;
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        t_fence();
        if (t_me == 0) {
            struct timespec pause = {2, 0};
            int tgt;
            nanosleep(&pause, NULL);
            for (tgt = 1; tgt < t_tasks; tgt++)
                OK(LAPI_Put(t_hndl, (uint)tgt, 0, NULL, NULL, tgt_cntrs[tgt], NULL, NULL));
        } else {
            double before = processor_seconds(), used;
            t_wait_exact(&tgt_cntr, 1);
            used = processor_seconds() - before;
            CHECK_FOR(used < 0.5, "waiting for 2 s has used %.2f s of processor time (INTERRUPT_SET %d)", used, mode);
        }
        t_fence();
    }
}

/* --- both --- */

static volatile double sink = 1;

/* By now every idle thread of LAPI sleeps. */
static void settle(void) { usleep(30000); }

/* Computes, and makes no call, until an int has a value. */
static void compute_until(volatile int *at, int value) {
    while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < value) sink = sink * 1.0000001 + 1e-9;
}

static void both(void) {
    enum { MANY = 20000, LARGE = 8 << 20 };
    static unsigned char from[LARGE], to[LARGE];
    static lapi_cntr_t org_cntr, cmpl_cntr;
    static int step;
    void **tos = t_addresses(to), **froms = t_addresses(from);
    lapi_xfer_t xfer;
    int i;
    t_set(INTERRUPT_SET, 1);
    t_fill(from, LARGE, (uint64_t)t_me);
    t_fence();
    if (t_me == 0) {
        compute_until(&handled, MANY);
        step = 1;
        OK(LAPI_Put(t_hndl, 1, sizeof step, flags[1], &step, NULL, NULL, NULL));
        compute_until(&tgt_cntr.cntr, 1);
        CHECK_FILLED(to, LARGE, 1);
        /* A get from a task that computes, for which no thread of this task waits in a call. */
        bzero(&xfer, sizeof xfer);
        xfer.Get.Xfer_type = LAPI_GET_XFER;
        xfer.Get.flags = LAPI_NOT_USE_BULK_XFER;
        xfer.Get.tgt = 1;
        xfer.Get.tgt_addr = t_long(froms[1]) + 1;
        xfer.Get.org_addr = to;
        xfer.Get.len = LARGE - 1;
        xfer.Get.org_cntr = &org_cntr;
        memset(to, 0, LARGE);
        settle();
        OK(LAPI_Xfer(t_hndl, &xfer));
        compute_until(&org_cntr.cntr, 1);
        t_fill(from, LARGE, 1);
        CHECK_EQ(memcmp(to, from + 1, LARGE - 1), 0);
        OK(LAPI_Setcntr(t_hndl, &org_cntr, 0));
        step = 2;
        OK(LAPI_Put(t_hndl, 1, sizeof step, flags[1], &step, NULL, NULL, NULL));
    } else if (t_me == 1) {
        /* More than fits anywhere: what waits here for room has to go out while this
         * task computes. */
        settle();
        for (i = 0; i < MANY; i++)
            OK(LAPI_Amsend(t_hndl, 0, handlers[0], NULL, 0, from, 100, NULL, NULL, i < MANY / 2 ? NULL : &cmpl_cntr));
        compute_until(&flag, 1);
        settle();
        bzero(&xfer, sizeof xfer);
        xfer.Put.Xfer_type = LAPI_PUT_XFER;
        xfer.Put.flags = LAPI_NOT_USE_BULK_XFER;
        xfer.Put.tgt = 0;
        xfer.Put.tgt_addr = t_long(tos[0]);
        xfer.Put.org_addr = from;
        xfer.Put.len = LARGE;
        xfer.Put.tgt_cntr = t_long(tgt_cntrs[0]);
        OK(LAPI_Xfer(t_hndl, &xfer));
        compute_until(&flag, 2);
        compute_until(&cmpl_cntr.cntr, MANY - MANY / 2);
    }
    t_fence();
}

/* --- own --- */

enum { CHAIN = 500 };
static volatile int links, refused;

static void next_link(lapi_handle_t *hndl, void *info) {
    (void)info;
    if (__atomic_add_fetch(&links, 1, __ATOMIC_ACQ_REL) < CHAIN)
        OK(LAPI_Amsend(*hndl, (uint)t_me, handlers[t_me], NULL, 0, NULL, 0, NULL, NULL, NULL));
}

static void *link_arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                          compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    *comp_h = next_link;
    if (ret->msg_len == 0) ret->ret_flags = LAPI_SEND_REPLY;
    return area;
}

static void *refusing(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    *comp_h = NULL;
    if (__atomic_add_fetch(&refused, 1, __ATOMIC_ACQ_REL) % 6 != 0) ret->ctl_flags = LAPI_DROP_PKT;
    return area;
}

static void own(void) {
    void **refusings = t_addresses((void *)refusing);
    int other = (t_me + 1) % t_tasks;
    handlers = t_addresses((void *)link_arrived);
    t_set(INTERRUPT_SET, 1);
    t_fence();
    settle();
    /* Each message is sent by the handler of the one before. */
    OK(LAPI_Amsend(t_hndl, (uint)t_me, handlers[t_me], NULL, 0, NULL, 0, NULL, NULL, NULL));
    compute_until(&links, CHAIN);
    /* A message that is refused five times, from the task itself and from another one. */
    settle();
    OK(LAPI_Amsend(t_hndl, (uint)t_me, refusings[t_me], NULL, 0, area, 100, NULL, NULL, NULL));
    compute_until(&refused, 6);
    t_fence();
    settle();
    OK(LAPI_Amsend(t_hndl, (uint)other, refusings[other], NULL, 0, area, 100, NULL, NULL, NULL));
    compute_until(&refused, 12);
    t_fence();
    CHECK_EQ(links, CHAIN);
    CHECK_EQ(refused, 12);
}

/* --- signals --- */

static volatile sig_atomic_t signals;

static void tick(int number) {
    (void)number;
    signals++;
}

static void disturbed(void) {
    struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    lapi_cntr_t done;
    int i;
    bzero(&done, sizeof done);
    bzero(&action, sizeof action);
    action.sa_handler = tick; /* without SA_RESTART */
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    for (i = 0; i < 300; i++) {
        uint tgt = (uint)((t_me + i) % t_tasks);
        ulong len = i % 3 ? (ulong)(i * 7) : sizeof area;
        OK(LAPI_Put(t_hndl, tgt, len, areas[tgt], area, tgt_cntrs[tgt], NULL, &done));
        OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], NULL, 0, area, len, NULL, NULL, &done));
        t_wait_exact(&done, 2);
        if (i % 50 == 0) t_fence();
    }
    t_wait_exact(&tgt_cntr, 300);
    while (signals < 100) OK(LAPI_Probe(t_hndl));
    t_fence();
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    t_init();
    flags = t_addresses((void *)&flag);
    areas = t_addresses(area);
    variables = t_addresses(&variable);
    handlers = t_addresses((void *)arrived);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "on") == 0) on();
    else if (strcmp(which, "off") == 0 && argc == 3) off(argv[2]);
    else if (strcmp(which, "toggle") == 0) toggle();
    else if (strcmp(which, "asleep") == 0) asleep();
    else if (strcmp(which, "idle") == 0) idle();
    else if (strcmp(which, "both") == 0) both();
    else if (strcmp(which, "own") == 0) own();
    else if (strcmp(which, "signals") == 0) disturbed();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

/*
 * The threads that run handlers: handlers CASE [ARGUMENT]
 *
 *   where          which handler runs in which thread; what those threads have blocked
 *   together N     N completion handlers run at the same time when there are N threads for them
 *   order          with one thread they run one after the other, in order
 *   limits         numbers of completion handler threads below 1 and above the maximum
 */
#include "../common/ltest.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

static int next_task(void) { return (t_me + 1) % t_tasks; }

/* --- where --- */

static volatile int handled, completed, in_user, in_interrupt, faults;
static unsigned char *guarded;

static void thread_name(char *name) { CHECK_EQ(pthread_getname_np(pthread_self(), name, 16), 0); }

static void check_signals(void) {
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t now;
    int number;
    size_t i;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    for (i = 0; i < sizeof open / sizeof *open; i++) {
        CHECK_EQ(sigismember(&now, open[i]), 0);
        sigaddset(&now, open[i]);
    }
    for (number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP)
            CHECK_FOR(sigismember(&now, number) == 1, "signal %d is not blocked", number);
}

static void completion(lapi_handle_t *hndl, void *info) {
    char name[16];
    (void)hndl, (void)info;
    thread_name(name);
    CHECK_FOR(strncmp(name, "lapi-compl-", 11) == 0, "a completion handler runs in the thread \"%s\"", name);
    check_signals();
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    char name[16];
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    thread_name(name);
    if (strcmp(name, "lapi-intr") == 0) {
        check_signals();
        in_interrupt++;
    } else in_user += strncmp(name, "lapi-", 5) != 0;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
    *comp_h = completion;
    *uinfo = NULL;
    return NULL;
}

/* The program's memory may be such that touching it calls a handler of the program. */
static void faulted(int number, siginfo_t *info, void *context) {
    (void)context;
    if (number != SIGSEGV || (unsigned char *)info->si_addr != guarded) _exit(T_FAILED);
    if (mprotect(guarded, 4096, PROT_READ | PROT_WRITE) != 0) _exit(T_FAILED);
    faults++;
}

static void where(void) {
    void **handlers = t_addresses((void *)arrived), **guardeds;
    struct sigaction action, before;
    lapi_cntr_t done;
    int tgt = next_task(), count = 0;
    bzero(&done, sizeof done);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    while (count < 20) {
        OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], NULL, 0, NULL, 0, NULL, NULL, NULL));
        t_probe_until(&completed, ++count);
    }
    t_fence();
    CHECK_EQ(in_user, 20);
    CHECK_EQ(in_interrupt, 0);
    t_set(INTERRUPT_SET, 1);
    t_fence();
    while (count < 40) {
        usleep(count % 4 == 0 ? 20000 : 200); /* the notifier is armed by then, or is not */
        OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], NULL, 0, NULL, 0, NULL, NULL, NULL));
        count++;
        while (__atomic_load_n(&completed, __ATOMIC_ACQUIRE) < count) usleep(200);
    }
    if (t_tasks > 1) CHECK_FOR(in_interrupt > 0, "no header handler has run in lapi-intr");
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guarded != MAP_FAILED);
    guardeds = t_addresses(guarded);
    bzero(&action, sizeof action);
    action.sa_sigaction = faulted;
    action.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGSEGV, &action, &before), 0);
    t_fence();
    if (t_tasks > 1) usleep(20000);
    OK(LAPI_Put(t_hndl, (uint)tgt, sizeof done, guardeds[tgt], &done, NULL, NULL, &done));
    while (__atomic_load_n(&done.cntr, __ATOMIC_ACQUIRE) < 1) usleep(200);
    t_fence();
    CHECK_EQ(faults, 1);
    CHECK_EQ(sigaction(SIGSEGV, &before, NULL), 0);
}

/* --- together, order, limits --- */

static volatile int present, wanted, sequence, overlap, arrivals;

static void meeting(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    __atomic_fetch_add(&present, 1, __ATOMIC_ACQ_REL);
    /* Each waits for all the others: one thread alone would wait here for ever. */
    while (__atomic_load_n(&present, __ATOMIC_ACQUIRE) < wanted) usleep(100);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void in_order(lapi_handle_t *hndl, void *info) {
    (void)hndl;
    if (__atomic_fetch_add(&present, 1, __ATOMIC_ACQ_REL) != 0) overlap = 1;
    CHECK_EQ((int)(intptr_t)info, sequence);
    sequence++;
    if (sequence % 50 == 0) usleep(1000);
    __atomic_fetch_sub(&present, 1, __ATOMIC_ACQ_REL);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static compl_hndlr_t *chosen;

/* Messages may arrive in another order than they were sent in: completion handlers run in the order
 * of header handlers. */
static void *choose(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = chosen;
    *uinfo = (void *)(intptr_t)arrivals++;
    return NULL;
}

static void send_numbers(int count) {
    void **handlers = t_addresses((void *)choose);
    int i, tgt = next_task();
    for (i = 0; i < count; i++) {
        int uhdr[2] = {i, 0};
        OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], uhdr, sizeof uhdr, NULL, 0, NULL, NULL, NULL));
    }
    t_probe_until(&completed, count);
    t_fence();
}

static void with_threads(int count) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.num_compl_hndlr_thr = count;
    t_init_with(&info);
}

static void together(int count) {
    with_threads(count);
    chosen = meeting;
    wanted = count;
    send_numbers(count);
    present = completed = 0;
    t_fence();
    send_numbers(count);
    t_done();
}

static void order(void) {
    with_threads(1);
    chosen = in_order;
    t_fence();
    send_numbers(1000);
    CHECK_EQ(overlap, 0);
    CHECK_EQ(sequence, 1000);
    t_done();
}

static void limits(void) {
    static const int numbers[] = {-1, INT_MIN, 0, 100000, INT_MAX};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        with_threads(numbers[i]);
        chosen = meeting;
        wanted = numbers[i] > 1 ? 16 : 1;
        present = completed = 0;
        t_fence();
        send_numbers(wanted);
        OK(LAPI_Term(t_hndl));
    }
    t_pass();
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(which, "where") == 0) {
        t_init();
        where();
        t_done();
    } else if (strcmp(which, "together") == 0 && argc == 3) together(atoi(argv[2]));
    else if (strcmp(which, "order") == 0) order();
    else if (strcmp(which, "limits") == 0) limits();
    else T_FAIL("there is no case \"%s\"", which);
    return 0;
}

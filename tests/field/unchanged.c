/*
 * What a program has set before LAPI_Init is the same after it, and after LAPI_Term:
 * unchanged own|default
 *
 * own: the program has handlers and a stack for them. default: it has none. Also a library: for
 * Java, for Python, and for a program that opens it. Returns 0 if nothing has changed.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <lapi.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static void own(int number) {
    (void)number;
}

static void set_own(void) {
    static char stack[1 << 16];
    struct sigaction action = {.sa_handler = own, .sa_flags = SA_ONSTACK};
    stack_t own_stack = {.ss_sp = stack, .ss_size = sizeof stack};
    sigset_t mask;
    for (int n = 1; n < 65; n++) sigaction(n, &action, NULL);
    sigaltstack(&own_stack, NULL);
    sigemptyset(&mask), sigaddset(&mask, SIGALRM), sigaddset(&mask, SIGRTMIN + 3);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    fesetround(FE_UPWARD), feenableexcept(FE_DIVBYZERO);
    umask(027), setlocale(LC_ALL, "C.UTF-8");
}

static char *state(void) {
    char *text = NULL, folder[4096];
    size_t size;
    FILE *to = open_memstream(&text, &size);
    sigset_t mask;
    stack_t stack;
    unsigned mxcsr;
    unsigned short x87;
    mode_t mode = umask(0);
    cpu_set_t processors;
    for (int n = 1; n < 65; n++) {
        struct sigaction now;
        if (sigaction(n, NULL, &now)) continue;
        fprintf(to, "signal %d: %p flags %x mask", n, (void *)now.sa_handler, now.sa_flags);
        for (int other = 1; other < 65; other++) fprintf(to, "%d", sigismember(&now.sa_mask, other));
        fprintf(to, "\n");
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask), umask(mode), sigaltstack(NULL, &stack);
    fprintf(to, "blocked: ");
    for (int n = 1; n < 65; n++) fprintf(to, "%d", sigismember(&mask, n));
    fprintf(to, "\nstack for handlers: %p %zu %x\n", stack.ss_sp, stack.ss_size, stack.ss_flags);
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    __asm__("fnstcw %0" : "=m"(x87));
    fprintf(to, "mxcsr %x, x87 %x\numask %o\nlocale %s\n", mxcsr & ~0x3f, x87, mode, setlocale(LC_ALL, NULL));
    fprintf(to, "folder %s\n", getcwd(folder, sizeof folder));
    for (int n = 0; n < RLIM_NLIMITS; n++) {
        struct rlimit limit;
        if (n != RLIMIT_NOFILE && !getrlimit(n, &limit)) fprintf(to, "limit %d: %lx %lx\n", n, limit.rlim_cur, limit.rlim_max);
    }
    for (char **variable = environ; variable && *variable; variable++) fprintf(to, "%s\n", *variable);
    memset(folder, 0, sizeof folder), prctl(PR_GET_NAME, folder);
    fprintf(to, "name %s, dumpable %d, slack %d\n", folder, prctl(PR_GET_DUMPABLE), prctl(PR_GET_TIMERSLACK));
    fprintf(to, "nice %d, schedule %d, group %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), getpgrp());
    sched_getaffinity(0, sizeof processors, &processors);
    fprintf(to, "processors %d\n", CPU_COUNT(&processors));
    for (int n = 0; n < 3; n++) fprintf(to, "descriptor %d: %x %x\n", n, fcntl(n, F_GETFD), fcntl(n, F_GETFL));
    for (int n = 0; n < 3; n++) {
        struct itimerval timer;
        getitimer(n, &timer);
        fprintf(to, "timer %d: %ld\n", n, timer.it_interval.tv_usec);
    }
    fclose(to);
    return text;
}

static int compare(char *before, const char *when) {
    char *now = state();
    int changes = 0;
    while (*before || *now) {
        size_t was = strcspn(before, "\n"), is = strcspn(now, "\n");
        if (was != is || memcmp(before, now, was)) {
            fprintf(stderr, "%s: \"%.*s\" is now \"%.*s\"\n", when, (int)was, before, (int)is, now);
            changes++;
        }
        before += was + (before[was] != 0), now += is + (now[is] != 0);
    }
    return changes;
}

int unchanged(void) {
    lapi_handle_t handle;
    lapi_info_t info;
    int me, tasks, one, changes;
    char *before = state();
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&handle, &info)) return 100;
    changes = compare(before, "after LAPI_Init");
    LAPI_Qenv(handle, TASK_ID, &me), LAPI_Qenv(handle, NUM_TASKS, &tasks);
    void *addresses[64];
    LAPI_Address_init(handle, &one, addresses);
    LAPI_Put(handle, (me + 1) % tasks, sizeof me, addresses[(me + 1) % tasks], &me, NULL, NULL, NULL);
    LAPI_Gfence(handle);
    if (one != (me + tasks - 1) % tasks) return 101;
    changes += compare(before, "after the calls");
    if (LAPI_Term(handle)) return 102;
    return changes + compare(before, "after LAPI_Term");
}

int Java_Unchanged_unchanged(void *environment, void *class) {
    (void)environment, (void)class;
    return unchanged();
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "own")) set_own();
    return unchanged() != 0;
}

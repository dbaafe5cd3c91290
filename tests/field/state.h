/*
 * What of a process a library must leave alone, as a text, and what has changed of it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

/*
 * Whether another thread has this descriptor for a moment: a Java machine looks at the limits of
 * its control group now and then.
 */
static int is_passing(int number) {
    char name[64], leads_to[4096] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", number);
    return readlink(name, leads_to, sizeof leads_to - 1) < 0 || strncmp(leads_to, "/sys/", 5) == 0 ||
           strncmp(leads_to, "/proc/", 6) == 0;
}

/*
 * The descriptors that were open when this was first asked for; LAPI may open others. Those
 * of poe are LAPI's.
 */
static void descriptors(FILE *to) {
    const char *job = getenv("LAPI_JOB_FD"), *report = getenv("LAPI_REPORT_FD");
    static int all[1024], count = -1;
    if (count < 0) {
        DIR *folder = opendir("/proc/self/fd");
        struct dirent *entry;
        for (count = 0; folder && (entry = readdir(folder));) {
            int number = atoi(entry->d_name);
            if (*entry->d_name == '.' || number == dirfd(folder)) continue;
            if ((job && number == atoi(job)) || (report && number == atoi(report))) continue;
            if (count < 1024 && !is_passing(number)) all[count++] = number;
        }
        closedir(folder);
    }
    for (int n = 0; n < count; n++) {
        char name[64], leads_to[4096] = "nowhere";
        snprintf(name, sizeof name, "/proc/self/fd/%d", all[n]);
        if (readlink(name, leads_to, sizeof leads_to - 1) < 0) strcpy(leads_to, "nowhere");
        int flags = fcntl(all[n], F_GETFD), mode = fcntl(all[n], F_GETFL);
        fprintf(to, "descriptor %d: %s %x %x\n", all[n], leads_to, flags, mode);
    }
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
    descriptors(to);
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

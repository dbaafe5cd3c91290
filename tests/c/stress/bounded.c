/*
 * What a sender or a target keeps has a bound, however long one sends faster than the other takes:
 * bounded MODE SECONDS MIB
 *
 *   silent   task 0 sends to task 1, which computes with interrupts off
 *   slow     the completion handlers of task 1 take longer than task 0 to send
 *   refused  the header handler of task 1 refuses every message
 *   mutual   both tasks do as task 0 of `slow`, and each completion handler waits for a reply of the other task
 *   memory   task 0 sends to task 1, which computes, until there is no memory left
 *   little   the same with messages of one packet
 *
 * Task 0 sends for SECONDS. Neither task may need more than MIB above what it needed before. Then
 * everything arrives.
 */
#include "../common/ltest.h"

#include <sys/resource.h>
#include <time.h>

enum { LONGEST = 1 << 20, BUFFER = 16 * 1024, ROUND_TRIPS = 3000 };

static char area[LONGEST], data[LONGEST];
static volatile int begun, ended, refuse;
static void **areas;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* A line of /proc/self/status, in KiB. */
static long status(const char *name) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) kib = atol(line + strlen(name) + 1);
    fclose(file);
    CHECK_FOR(kib > 0, "%s in /proc/self/status", name);
    return kib;
}

static void pause_us(long us) {
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static void slow(lapi_handle_t *hndl, void *buffer) {
    (void)hndl;
    pause_us(300);
    free(buffer);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static void asks(lapi_handle_t *hndl, void *buffer) {
    lapi_cntr_t org;
    int there;
    OK(LAPI_Setcntr(*hndl, &org, 0));
    OK(LAPI_Get(*hndl, (uint)(1 - t_me), sizeof there, areas[1 - t_me], &there, NULL, &org));
    OK(LAPI_Waitcntr(*hndl, &org, 1, NULL));
    free(buffer);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                     void **uinfo) {
    char mode;
    char *buffer;
    (void)hndl, (void)uhdr_len;
    memcpy(&mode, uhdr, 1);
    if (refuse) {
        ret->ctl_flags = LAPI_DROP_PKT;
        return NULL;
    }
    begun++;
    *comp_h = NULL;
    *uinfo = NULL;
    if (mode != 's' && mode != 'm') return area;
    /* The program's own memory is bounded with the number of its handlers. */
    buffer = malloc(BUFFER);
    CHECK(buffer != NULL);
    memset(buffer, 1, BUFFER);
    *comp_h = mode == 's' ? slow : asks;
    *uinfo = buffer;
    return buffer;
}

/* Sends one message; returns 1 for an active message, 0 for a put. */
static int send_one(char mode, long number, void *handler, lapi_cntr_t *org, lapi_cntr_t *cmpl) {
    static const ulong lengths[] = {8, 100, 120, 2000, 60000, LONGEST};
    char uhdr[8] = {0};
    uhdr[0] = mode;
    if (mode == 'q') {
        ulong len = lengths[number % 6];
        OK(LAPI_Put(t_hndl, (uint)(1 - t_me), len, areas[1 - t_me], data, NULL, org, cmpl));
        return 0;
    }
    OK(LAPI_Amsend(t_hndl, (uint)(1 - t_me), handler, uhdr, sizeof uhdr, data, 64, NULL, org, cmpl));
    return 1;
}

static void announce(long count) {
    lapi_cntr_t cmpl;
    OK(LAPI_Setcntr(t_hndl, &cmpl, 0));
    OK(LAPI_Put(t_hndl, (uint)(1 - t_me), sizeof count, areas[1 - t_me], &count, NULL, NULL, &cmpl));
    OK(LAPI_Waitcntr(t_hndl, &cmpl, 1, NULL));
}

/* As many messages as there is memory for: the call that finds none says so, and
 * nothing is lost. */
static void until_memory_ends(double seconds, ulong len) {
    struct rlimit before, limit;
    lapi_cntr_t org;
    int code = LAPI_SUCCESS, sent = 0;
    t_set(INTERRUPT_SET, 0);
    OK(LAPI_Setcntr(t_hndl, &org, 0));
    t_fence();
    if (t_me == 1) pause_us((long)(seconds * 1e6));
    if (t_me == 0) {
        CHECK(getrlimit(RLIMIT_AS, &before) == 0);
        limit = before;
        limit.rlim_cur = (rlim_t)(status("VmSize:") + 8 * 1024) * 1024;
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        while (sent < 50000) {
            code = LAPI_Put(t_hndl, 1, len, areas[1], data, NULL, &org, NULL);
            if (code != LAPI_SUCCESS) break;
            sent++;
        }
        CHECK(setrlimit(RLIMIT_AS, &before) == 0);
        CHECK_EQ(code, LAPI_ERR_MEMORY_EXHAUSTED);
        CHECK_FOR(sent > 10, "%d messages", sent);
        t_wait_exact(&org, sent);
    }
    t_fence();
    t_done();
}

int main(int argc, char **argv) {
    lapi_cntr_t org, cmpl;
    void **handlers;
    char mode;
    double seconds, until;
    long sent = 0, messages = 0, before, bound, peak;
    CHECK(argc == 4);
    mode = strcmp(argv[1], "silent") == 0 ? 'q' : argv[1][0];
    if (strcmp(argv[1], "memory") == 0 || strcmp(argv[1], "little") == 0) mode = 'x';
    seconds = atof(argv[2]);
    bound = atol(argv[3]) * 1024;
    t_init();
    CHECK_EQ(t_tasks, 2);
    areas = t_addresses(area);
    handlers = t_addresses((void *)arrived);
    memset(area, 0, sizeof area);
    memset(data, 1, sizeof data);
    if (mode == 'x') {
        until_memory_ends(seconds, argv[1][0] == 'm' ? 60000 : 1000);
        return 0;
    }
    OK(LAPI_Setcntr(t_hndl, &org, 0));
    OK(LAPI_Setcntr(t_hndl, &cmpl, 0));
    refuse = mode == 'r' && t_me == 1;
    if (mode == 'q') t_set(INTERRUPT_SET, 0);
    t_fence();
    before = status("VmRSS:");
    until = now() + seconds;
    if (mode == 'm') {
        for (messages = 0; messages < ROUND_TRIPS; messages++) send_one(mode, messages, handlers[1 - t_me], &org, NULL);
        sent = messages;
        while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < ROUND_TRIPS) OK(LAPI_Probe(t_hndl));
    } else if (t_me == 0) {
        for (; now() < until; sent++) messages += send_one(mode, sent, handlers[1], &org, mode == 'q' ? NULL : &cmpl);
        peak = status("VmHWM:");
        CHECK_FOR(peak - before < bound, "task 0 needs %ld KiB more after %ld messages; at most %ld", peak - before, sent,
                  bound);
    } else if (mode == 'q') {
        pause_us((long)((seconds + 0.2) * 1e6));
    } else {
        while (now() < until + 0.2) {
            OK(LAPI_Probe(t_hndl));
            if (mode == 'r') pause_us(100);
        }
        refuse = 0;
    }
    t_wait_exact(&org, (int)sent);
    if (t_me == 0 && mode != 'q' && mode != 'm') {
        t_wait_exact(&cmpl, (int)sent);
        announce(messages);
    }
    t_fence();
    if (t_me == 1 && (mode == 's' || mode == 'r')) {
        memcpy(&messages, area, sizeof messages);
        CHECK_FOR(messages > 0 && (long)begun == messages, "%d messages have arrived of %ld", begun, messages);
    }
    peak = status("VmHWM:");
    CHECK_FOR(peak - before < bound, "task %d needs %ld KiB more; at most %ld", t_me, peak - before, bound);
    t_done();
    return 0;
}

/*
 * What calls do for progress: polling CASE [CALL]
 *
 *   served CALL   in polling mode a task that makes this one call again and again is sent a message, and handles it
 *   stops         LAPI_Gfence does not handle a message that was sent after it: the task can still register the handler
 *   yields        where there are more tasks than processors, polling calls give the processor away when nothing comes
 *   alone         where there are not, they never do
 *   undisturbed   while a program polls, no thread of the library wakes for deadlines that the program itself keeps
 */
#include "../common/ltest.h"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int handled;
static long yields;

/* In place of the C library's, for the library as well: counts. */
int sched_yield(void) {
    __atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
    return 0;
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return NULL;
}

static void *ignored(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return NULL;
}

static long cell;
static void **cells, *others;

static void call(const char *name) {
    static lapi_cntr_t cntr;
    lapi_msg_info_t info;
    int value;
    if (strcmp(name, "LAPI_Fence") == 0) OK(LAPI_Fence(t_hndl));
    else if (strcmp(name, "LAPI_Waitcntr") == 0) OK(LAPI_Waitcntr(t_hndl, &cntr, 0, &value));
    else if (strcmp(name, "LAPI_Setcntr") == 0) OK(LAPI_Setcntr(t_hndl, &cntr, 0));
    else if (strcmp(name, "LAPI_Getcntr") == 0) OK(LAPI_Getcntr(t_hndl, &cntr, &value));
    else if (strcmp(name, "LAPI_Qenv") == 0) OK(LAPI_Qenv(t_hndl, TASK_ID, &value));
    else if (strcmp(name, "LAPI_Senv") == 0) OK(LAPI_Senv(t_hndl, ERROR_CHK, 1));
    else if (strcmp(name, "LAPI_Probe") == 0) OK(LAPI_Probe(t_hndl));
    else if (strcmp(name, "LAPI_Msgpoll") == 0) OK(LAPI_Msgpoll(t_hndl, 1, &info));
    else if (strcmp(name, "LAPI_Put") == 0) {
        OK(LAPI_Put(t_hndl, 1, sizeof cell, cells[1], &cell, NULL, NULL, NULL));
        usleep(50); /* the target makes room: no put waits, so that this is not why messages are looked for */
    } else if (strcmp(name, "LAPI_Amsend") == 0) {
        OK(LAPI_Amsend(t_hndl, 1, others, NULL, 0, NULL, 0, NULL, NULL, NULL));
        usleep(50);
    } else T_FAIL("there is no call \"%s\"", name);
}

static void served(const char *name) {
    void **handlers = t_addresses((void *)arrived);
    int round;
    cells = t_addresses(&cell);
    others = t_addresses((void *)ignored)[1];
    t_set(INTERRUPT_SET, 0);
    for (round = 0; round < 3; round++) {
        t_fence();
        if (t_me == 1) {
            usleep(20000); /* the other one is in its loop */
            OK(LAPI_Amsend(t_hndl, 0, handlers[0], NULL, 0, NULL, 0, NULL, NULL, NULL));
        } else if (t_me == 0) {
            while (handled <= round) call(name);
        }
    }
    t_fence();
}

static void stops(void) {
    int round, tgt;
    t_set(INTERRUPT_SET, 0);
    for (round = 1; round < 200; round++) {
        OK(LAPI_Gfence(t_hndl));
        /* Only now: a message for this index that was handled in the fence would have found
         * no handler. */
        OK(LAPI_Addr_set(t_hndl, (void *)arrived, round));
        CHECK_EQ(handled, 0);
        for (tgt = 0; tgt < t_tasks; tgt++)
            if (tgt != t_me) {
                lapi_xfer_t xfer;
                memset(&xfer, 0, sizeof xfer);
                xfer.Am.Xfer_type = LAPI_AM_XFER;
                xfer.Am.hdr_hdl = (lapi_long_t)round;
                xfer.Am.tgt = (uint)tgt;
                OK(LAPI_Xfer(t_hndl, &xfer));
            }
        t_probe_until(&handled, t_tasks - 1);
        handled = 0;
    }
    t_fence();
}

static long counted(const char *name) {
    int i;
    long before = __atomic_load_n(&yields, __ATOMIC_RELAXED);
    for (i = 0; i < 10000; i++) call(name);
    return __atomic_load_n(&yields, __ATOMIC_RELAXED) - before;
}

/* How often threads of this process but the calling one have slept. */
static long sleeps_of_others(void) {
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    long sum = 0, own = syscall(SYS_gettid);
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks)) != NULL) {
        char path[300], line[200];
        FILE *status;
        long count;
        if (atol(entry->d_name) == 0 || atol(entry->d_name) == own) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        status = fopen(path, "r");
        if (status == NULL) continue;
        while (fgets(line, sizeof line, status) != NULL) {
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1) sum += count;
        }
        fclose(status);
    }
    closedir(tasks);
    return sum;
}

static double seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void undisturbed(void) {
    static lapi_cntr_t tgt;
    static long long word;
    void **tgts = t_addresses(&tgt), **words = t_addresses(&word);
    double start, passed;
    long before, sleeps;
    int round, value;
    t_set(INTERRUPT_SET, 0);
    t_fence();
    before = sleeps_of_others();
    start = seconds();
    for (round = 0; round < 50000; round++) {
        if (t_me == 1) OK(LAPI_Waitcntr(t_hndl, &tgt, 1, &value));
        OK(LAPI_Put(t_hndl, 1 - t_me, sizeof word, words[1 - t_me], &word, tgts[1 - t_me], NULL, NULL));
        if (t_me == 0) OK(LAPI_Waitcntr(t_hndl, &tgt, 1, &value));
    }
    passed = seconds() - start;
    sleeps = sleeps_of_others() - before;
    t_fence();
    /* Once in a millisecond a thread looks whether the program polls, and may have to sleep for the
     * lock as well. */
    CHECK_FOR((double)sleeps < 20 + 2500 * passed, "%ld sleeps in %g seconds", sleeps, passed);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    static const char *const calls[] = {"LAPI_Probe", "LAPI_Msgpoll", "LAPI_Getcntr"};
    int i, crowded = strcmp(which, "yields") == 0;
    t_init();
    if (strcmp(which, "served") == 0 && argc == 3) served(argv[2]);
    else if (strcmp(which, "stops") == 0) stops();
    else if (strcmp(which, "undisturbed") == 0) undisturbed();
    else if (crowded || strcmp(which, "alone") == 0)
        for (i = 0; i < 3; i++) {
            long found;
            t_set(INTERRUPT_SET, 0);
            found = counted(calls[i]);
            CHECK_FOR(crowded ? found > 5000 : found == 0, "%s: %ld yields", calls[i], found);
        }
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

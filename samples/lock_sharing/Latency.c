/*
 * Lock sharing: how long a small message takes, with a lock of the program's own and with LAPI's.
 *
 * The two tasks of a pair send each other a message in turn. The header handler counts what
 * has arrived, in a record that a program with several threads would have to guard. It is
 * measured in two ways:
 *
 *   without   the record has a mutex of its own. It must be free whenever LAPI is called, because a handler that takes it
 *             may run inside of any call: so every look at the record takes it and releases it again.
 *   with      the record is guarded by the lock that LAPI has anyway. It is taken once, before the first message. Calls
 *             of LAPI find it taken, and header handlers run with it: no lock is taken or released on the way.
 *
 *     mpcc_r Latency.c -o Latency
 *     poe ./Latency -procs 2
 *     poe ./Latency 20000 10 -procs 2        20000 round trips, 10 times
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lapi.h>

#define COUNT_HANDLER 1 /* its index for LAPI_Addr_set */
#define PATIENCE 1000   /* polls without success before the processor is yielded */

/* What has arrived, and the lock that guards it. */
static struct {
    long arrived;
    int shared; /* LAPI's lock */
    pthread_mutex_t own;
} record = {0, 0, PTHREAD_MUTEX_INITIALIZER};

/* Ends the task, with LAPI's own words, when a call has failed. */
static void check(int rc, const char *call)
{
    char text[LAPI_MAX_ERR_STRING];

    if (rc != LAPI_SUCCESS) {
        LAPI_Msg_string(rc, text);
        fprintf(stderr, "%s: %s\n", call, text);
        exit(EXIT_FAILURE);
    }
}

/* The functions of the lock return numbers of errno. */
static void check_lock(int rc, const char *function)
{
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", function, strerror(rc));
        exit(EXIT_FAILURE);
    }
}

static double microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/* The header handler. LAPI calls it with its lock held, so with the shared lock there is nothing
 * to be done. */
static void *count(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *info,
                   compl_hndlr_t **handler, void **parameter)
{
    (void)hndl, (void)uhdr, (void)uhdr_len;
    if (!record.shared)
        pthread_mutex_lock(&record.own);
    record.arrived++;
    if (!record.shared)
        pthread_mutex_unlock(&record.own);
    info->ctl_flags = LAPI_BURY_MSG;
    *handler = NULL;
    *parameter = NULL;
    return NULL;
}

static long arrived(void)
{
    long number;

    if (record.shared)
        return record.arrived; /* this thread holds the lock */
    pthread_mutex_lock(&record.own);
    number = record.arrived;
    pthread_mutex_unlock(&record.own);
    return number;
}

/* Polls until this many messages have arrived. Each call polls the network once, so that the cost
 * of the locks shows. */
static void await(lapi_handle_t hndl, long number)
{
    lapi_msg_info_t info;
    int looks;

    for (looks = 1; arrived() < number; looks++) {
        check(LAPI_Msgpoll(hndl, 1, &info), "LAPI_Msgpoll");
        if (looks % PATIENCE == 0)
            sched_yield();
    }
}

/* The time of a message one way, in microseconds: half of that of a message and its reply. */
static double measure(lapi_handle_t hndl, int me, long round_trips, lapi_thread_func_t *lock)
{
    lapi_xfer_t message;
    double begin, end;
    long i;

    memset(&message, 0, sizeof message);
    message.Am.Xfer_type = LAPI_AM_XFER;
    message.Am.tgt = me ^ 1;
    message.Am.hdr_hdl = COUNT_HANDLER;

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    record.arrived = 0;
    record.shared = lock != NULL;
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (lock != NULL)
        check_lock(lock->mutex_lock(hndl), "mutex_lock");

    begin = microseconds();
    for (i = 1; i <= round_trips; i++) {
        if (me % 2 == 0)
            check(LAPI_Xfer(hndl, &message), "LAPI_Xfer");
        await(hndl, i);
        if (me % 2 != 0)
            check(LAPI_Xfer(hndl, &message), "LAPI_Xfer");
    }
    end = microseconds();

    /* A collective call may be made with the lock as well. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (lock != NULL)
        check_lock(lock->mutex_unlock(hndl), "mutex_unlock");
    return (end - begin) / (2.0 * round_trips);
}

int main(int argc, char **argv)
{
    long round_trips = argc > 1 ? atol(argv[1]) : 2000;
    int times = argc > 2 ? atoi(argv[2]) : 3;
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_util_t util;
    int me, tasks, i, sharing, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Latency needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }
    /* Messages are looked for by polling: the thread of interrupt mode is not wanted. */
    check(LAPI_Senv(hndl, INTERRUPT_SET, 0), "LAPI_Senv");
    check(LAPI_Addr_set(hndl, (void *)count, COUNT_HANDLER), "LAPI_Addr_set");

    /* A library that does not share its lock says so here. */
    memset(&util, 0, sizeof util);
    util.Util_type = LAPI_GET_THREAD_FUNC;
    sharing = LAPI_Util(hndl, &util) == LAPI_SUCCESS;
    printf("task %d: this library %s its lock\n", me, sharing ? "shares" : "DOES NOT SHARE");

    for (i = 0; i < times; i++) {
        double own = measure(hndl, me, round_trips, NULL), shared = 0;

        right = right && record.arrived == round_trips;
        if (sharing) {
            shared = measure(hndl, me, round_trips, &util.ThreadFunc);
            right = right && record.arrived == round_trips;
        }
        if (me % 2 == 0)
            printf("task %d: one way without sharing %.3f us, with sharing %.3f us\n", me, own, shared);
    }
    printf("task %d: %s\n", me, right ? "every message was counted" : "MESSAGES ARE MISSING");

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    return right && sharing ? EXIT_SUCCESS : EXIT_FAILURE;
}

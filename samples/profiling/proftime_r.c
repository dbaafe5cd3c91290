/*
 * A profiling layer that adds up the time spent in LAPI_Xfer and in LAPI_Msgpoll, and prints
 * both at LAPI_Term.
 *
 * Several threads may call at the same time: sums are added to atomically. The time of a handler
 * that runs inside of LAPI_Msgpoll counts as the call's.
 */
#define _POSIX_C_SOURCE 200809L
#include <lapi.h>
#include <stdio.h>
#include <time.h>

static long long xfer_calls, xfer_ns, poll_ns;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void add(long long *sum, long long more)
{
    __atomic_add_fetch(sum, more, __ATOMIC_RELAXED);
}

int LAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info)
{
    /* The time of an earlier handle is reported already. */
    xfer_calls = xfer_ns = poll_ns = 0;
    return PLAPI_Init(hndl, lapi_info);
}

int LAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t *xfer_cmd)
{
    long long begin = now();
    int code = PLAPI_Xfer(hndl, xfer_cmd);
    add(&xfer_ns, now() - begin);
    add(&xfer_calls, 1);
    return code;
}

int LAPI_Msgpoll(lapi_handle_t hndl, uint cnt, lapi_msg_info_t *info)
{
    long long begin = now();
    int code = PLAPI_Msgpoll(hndl, cnt, info);
    add(&poll_ns, now() - begin);
    return code;
}

int LAPI_Term(lapi_handle_t hndl)
{
    int me;

    if (PLAPI_Qenv(hndl, TASK_ID, &me) == LAPI_SUCCESS) {
        printf("task %d: profiling layer: %lld calls of LAPI_Xfer took %.3f us\n", me, xfer_calls, xfer_ns / 1e3);
        printf("task %d: profiling layer: LAPI_Msgpoll took %.3f us\n", me, poll_ns / 1e3);
        fflush(stdout);
    }
    return PLAPI_Term(hndl);
}

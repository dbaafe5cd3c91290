/*
 * What the programs about the shared lock have in common: the functions of
 * LAPI_GET_THREAD_FUNC for t_hndl.
 */
#ifndef LOCKS_H
#define LOCKS_H

#include "../common/ltest.h"

#include <errno.h>
#include <time.h>

static lapi_thread_func_t lk;

static void get_functions(void) {
    lapi_util_t util;
    memset(&util, 0xee, sizeof util);
    util.Util_type = LAPI_GET_THREAD_FUNC;
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(util.Util_type, LAPI_GET_THREAD_FUNC);
    lk = util.ThreadFunc;
}

static inline pthread_t owner(void) {
    pthread_t tid = 0;
    CHECK_EQ(lk.mutex_getowner(t_hndl, &tid), 0);
    return tid;
}

/* Whether this thread holds the lock. */
static inline int mine(void) { return pthread_equal(owner(), pthread_self()) != 0; }

static inline void acquire(void) {
    CHECK_EQ(lk.mutex_lock(t_hndl), 0);
    CHECK(mine());
}

static inline void release(void) {
    CHECK(mine());
    CHECK_EQ(lk.mutex_unlock(t_hndl), 0);
    CHECK(!mine());
}

/* Waits until no thread holds the lock: LAPI's own threads take it occasionally. */
static inline void until_free(void) {
    while (owner() != LAPI_NULL_THREAD_ID) usleep(50);
}

static inline void wait_on(lapi_cond_t *cond) {
    CHECK_EQ(lk.cond_wait(t_hndl, cond), 0);
    CHECK(mine());
}

static inline void signal_one(lapi_cond_t *cond) { CHECK_EQ(lk.cond_signal(t_hndl, cond), 0); }

static inline pthread_t start(void *(*run)(void *), void *arg) {
    pthread_t tid;
    CHECK_EQ(pthread_create(&tid, NULL, run, arg), 0);
    return tid;
}

static inline void join(pthread_t tid) { CHECK_EQ(pthread_join(tid, NULL), 0); }

/* CLOCK_REALTIME, this number of nanoseconds from now. */
static inline struct timespec from_now(long long nanoseconds) {
    struct timespec at;
    long long all;
    CHECK_EQ(clock_gettime(CLOCK_REALTIME, &at), 0);
    all = at.tv_sec * 1000000000ll + at.tv_nsec + nanoseconds;
    at.tv_sec = all / 1000000000;
    at.tv_nsec = all % 1000000000;
    return at;
}

#endif

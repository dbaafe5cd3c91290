/*
 * The return codes of the functions of LAPI_GET_THREAD_FUNC: codes CASE
 *
 *   single    one thread: every code of every function, wrong handles, conditions and times
 *   threads   others than the owner; threads that wait for the lock and for conditions
 *   turns     a thread that never releases the lock lets others have it by every kind of call that does not wait
 */
#include "locks.h"

static lapi_cond_t cond;

/* --- single --- */

static void wrong_handles(void) {
    const lapi_handle_t wrong[] = {0, t_hndl + 1, t_hndl + 16, LAPI_VOID_HANDLE, 0xdeadbeef};
    struct timespec soon = from_now(1000000);
    pthread_t tid;
    lapi_util_t util;
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lapi_handle_t h = wrong[i];
        CHECK_EQ(lk.mutex_lock(h), EINVAL);
        CHECK_EQ(lk.mutex_trylock(h), EINVAL);
        CHECK_EQ(lk.mutex_unlock(h), EINVAL);
        CHECK_EQ(lk.mutex_getowner(h, &tid), EINVAL);
        CHECK_EQ(lk.cond_wait(h, &cond), EINVAL);
        CHECK_EQ(lk.cond_timedwait(h, &cond, &soon), EINVAL);
        CHECK_EQ(lk.cond_signal(h, &cond), EINVAL);
        CHECK_EQ(lk.cond_init(h, &cond), EINVAL);
        CHECK_EQ(lk.cond_destroy(h, &cond), EINVAL);
        bzero(&util, sizeof util);
        util.Util_type = LAPI_GET_THREAD_FUNC;
        RETURNS(LAPI_Util(h, &util), LAPI_ERR_HNDL_INVALID);
        CHECK(util.ThreadFunc.mutex_lock == NULL);
    }
}

static void the_lock(void) {
    int i;
    for (i = 0; i < 3; i++) {
        until_free();
        CHECK_EQ(lk.mutex_lock(t_hndl), 0);
        CHECK(mine());
        CHECK_EQ(lk.mutex_lock(t_hndl), EDEADLK);
        CHECK_EQ(lk.mutex_trylock(t_hndl), EBUSY);
        CHECK(mine());
        OK(LAPI_Probe(t_hndl));
        CHECK(mine());
        CHECK_EQ(lk.mutex_unlock(t_hndl), 0);
        CHECK(!mine());
        CHECK_EQ(lk.mutex_unlock(t_hndl), EPERM);
        while (lk.mutex_trylock(t_hndl) != 0) usleep(50);
        CHECK(mine());
        CHECK_EQ(lk.mutex_unlock(t_hndl), 0);
    }
    CHECK_EQ(lk.mutex_getowner(t_hndl, NULL), EINVAL);
}

/* Waits with a time limit that runs out, and looks whether it has. */
static void runs_out(struct timespec until) {
    struct timespec now;
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &until), ETIMEDOUT);
    CHECK(mine());
    now = from_now(0);
    CHECK(now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
}

static void conditions(void) {
    struct timespec soon = from_now(20000000), wrong = soon, past = {-5, 0}, epoch = {0, 0};
    CHECK_EQ(lk.cond_init(t_hndl, NULL), EINVAL);
    CHECK_EQ(lk.cond_destroy(t_hndl, NULL), EINVAL);
    CHECK_EQ(lk.cond_signal(t_hndl, NULL), EINVAL);
    CHECK_EQ(lk.cond_init(t_hndl, &cond), 0);
    CHECK_EQ(lk.cond_signal(t_hndl, &cond), 0); /* no thread waits, and none holds the lock */
    CHECK_EQ(lk.cond_wait(t_hndl, &cond), EPERM);
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &soon), EPERM);
    acquire();
    CHECK_EQ(lk.cond_wait(t_hndl, NULL), EINVAL);
    CHECK_EQ(lk.cond_timedwait(t_hndl, NULL, &soon), EINVAL);
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, NULL), EINVAL);
    wrong.tv_nsec = 1000000000;
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &wrong), EINVAL);
    wrong.tv_nsec = -1;
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &wrong), EINVAL);
    CHECK(mine());
    CHECK_EQ(lk.cond_signal(t_hndl, &cond), 0);
    runs_out(past);
    runs_out(epoch);
    runs_out(from_now(0));
    runs_out(from_now(20000000));
    release();
    CHECK_EQ(lk.cond_destroy(t_hndl, &cond), 0);
}

static void single(void) {
    get_functions();
    the_lock();
    conditions();
    wrong_handles();
    /* A thread that holds the lock may request the functions. */
    acquire();
    get_functions();
    release();
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 5000 };

static long shared; /* guarded by the lock */
static pthread_t main_thread;

static void *stranger(void *arg) {
    (void)arg;
    CHECK(pthread_equal(owner(), main_thread));
    CHECK_EQ(lk.mutex_trylock(t_hndl), EBUSY);
    CHECK_EQ(lk.mutex_unlock(t_hndl), EPERM);
    CHECK_EQ(lk.cond_wait(t_hndl, &cond), EPERM);
    CHECK(pthread_equal(owner(), main_thread));
    return NULL;
}

static void *adder(void *arg) {
    long i;
    (void)arg;
    for (i = 0; i < ROUNDS; i++) {
        volatile long *at = &shared;
        long before;
        CHECK_EQ(lk.mutex_lock(t_hndl), 0);
        before = *at;
        if (i % 8 == 0) CHECK(mine());
        *at = before + 1;
        if (i % 64 == 0) OK(LAPI_Probe(t_hndl));
        CHECK_EQ(lk.mutex_unlock(t_hndl), 0);
    }
    return NULL;
}

static int waiting, woken, signals;
static lapi_cond_t arrived;

static void *waiter(void *arg) {
    acquire();
    waiting++;
    signal_one(&arrived);
    wait_on(arg);
    CHECK(woken < signals); /* no more than one for each signal */
    woken++;
    signal_one(&arrived);
    release();
    return NULL;
}

/* Three threads wait for a condition; each signal wakes one. */
static void by_turns(lapi_cond_t *which) {
    pthread_t tids[3];
    int i;
    waiting = woken = signals = 0;
    for (i = 0; i < 3; i++) tids[i] = start(waiter, which);
    acquire();
    while (waiting < 3) wait_on(&arrived);
    CHECK_EQ(lk.cond_destroy(t_hndl, which), EBUSY);
    for (i = 0; i < 3; i++) {
        CHECK_EQ(woken, i);
        signals++;
        signal_one(which);
        CHECK_EQ(woken, i); /* the lock is still ours */
        while (woken == i) wait_on(&arrived);
    }
    release();
    for (i = 0; i < 3; i++) join(tids[i]);
    CHECK_EQ(lk.cond_destroy(t_hndl, which), 0);
}

static void *in_time(void *arg) {
    struct timespec until = from_now(3600 * 1000000000ll);
    acquire();
    waiting++;
    signal_one(&arrived);
    CHECK_EQ(lk.cond_timedwait(t_hndl, arg, &until), 0);
    CHECK(mine());
    release();
    return NULL;
}

static void threads(void) {
    static lapi_cond_t zeroed, set_up, initialised = {PTHREAD_COND_INITIALIZER};
    pthread_t tids[THREADS];
    int i;
    get_functions();
    main_thread = pthread_self();
    acquire();
    join(start(stranger, NULL));
    /* They arrive while the lock is held, and get it when it is free. */
    for (i = 0; i < THREADS; i++) tids[i] = start(adder, NULL);
    usleep(1000);
    CHECK_EQ(shared, 0);
    release();
    for (i = 0; i < THREADS; i++) join(tids[i]);
    CHECK_EQ(shared, (long)THREADS * ROUNDS);

    memset(&set_up, 0xee, sizeof set_up);
    CHECK_EQ(lk.cond_init(t_hndl, &set_up), 0);
    for (i = 0; i < 20; i++) {
        by_turns(&zeroed);
        by_turns(&set_up);
        by_turns(&initialised);
    }
    for (i = 0; i < 20; i++) {
        waiting = 0;
        tids[0] = start(in_time, &zeroed);
        acquire();
        while (waiting == 0) wait_on(&arrived);
        signal_one(&zeroed);
        release();
        join(tids[0]);
    }
}

/* --- turns --- */

enum { TURNS = 50 };

static long taken; /* guarded by the lock */
static int over;

static void *taker(void *arg) {
    (void)arg;
    for (;;) {
        acquire();
        taken++;
        if (over) break;
        release();
    }
    release();
    return NULL;
}

static void completed(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    acquire();
    taken++;
    release();
}

static void *arrival(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = completed;
    *uinfo = NULL;
    return NULL;
}

/* One call with the task itself as target, of each kind in turn. */
static void call(int kind) {
    static long long here, there;
    static lapi_cntr_t cntr;
    uint me = (uint)t_me;
    long long one = 1;
    lapi_msg_info_t info;
    int value;
    switch (kind) {
        case 0: OK(LAPI_Put(t_hndl, me, 8, &there, &here, NULL, NULL, NULL)); break;
        case 1: OK(LAPI_Get(t_hndl, me, 8, &there, &here, NULL, NULL)); break;
        case 2: OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, me, &there, &one, NULL, NULL)); break;
        case 3: OK(LAPI_Probe(t_hndl)); break;
        case 4: OK(LAPI_Msgpoll(t_hndl, 1, &info)); break;
        case 5: OK(LAPI_Getcntr(t_hndl, &cntr, &value)); break;
        case 6: OK(LAPI_Qenv(t_hndl, NUM_TASKS, &value)); break;
        default: T_FAIL("there is no call %d", kind);
    }
}

static void turns(void) {
    pthread_t tid;
    int kind;
    get_functions();
    acquire();
    for (kind = 0; kind <= 6; kind++) {
        /* Another thread of the program, */
        over = 0;
        taken = 0;
        tid = start(taker, NULL);
        while (taken < TURNS) {
            call(kind);
            CHECK(mine());
        }
        over = 1;
        for (taken = 0; taken == 0;) call(kind);
        join(tid);
        /* and one of LAPI's. */
        taken = 0;
        OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)arrival, NULL, 0, NULL, 0, NULL, NULL, NULL));
        while (taken == 0) call(kind);
        CHECK(mine());
    }
    release();
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "single") == 0) single();
    else if (strcmp(which, "threads") == 0) threads();
    else if (strcmp(which, "turns") == 0) turns();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

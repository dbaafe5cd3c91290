/*
 * The end of a handle whose lock is shared: ends CASE
 *
 *   held      LAPI_Term by the thread that holds the lock; the functions afterwards, and those of the next handle
 *   waiters   threads that wait for the lock and for conditions when the thread that holds it calls LAPI_Term
 *   inside    a thread that holds the lock is in a call that waits when another one calls LAPI_Term
 *   handler   LAPI_Term in a header handler, while the program holds the lock in a call that waits and others wait for it
 *   complete  LAPI_Term in a completion handler that holds the lock
 *   fork      in a child the functions return EINVAL, and the parent's lock still works
 */
#include "locks.h"

#include <sys/wait.h>

static lapi_cond_t cond;
static lapi_cntr_t never;
static volatile int ready;

static void say_ready(void) { __atomic_fetch_add(&ready, 1, __ATOMIC_RELEASE); }

static void until_ready(int count) {
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < count) usleep(100);
}

/* Every function, of a handle that has been ended. */
static void all_refuse(void) {
    struct timespec soon = from_now(1000000);
    pthread_t tid;
    CHECK_EQ(lk.mutex_lock(t_hndl), EINVAL);
    CHECK_EQ(lk.mutex_trylock(t_hndl), EINVAL);
    CHECK_EQ(lk.mutex_unlock(t_hndl), EINVAL);
    CHECK_EQ(lk.mutex_getowner(t_hndl, &tid), EINVAL);
    CHECK_EQ(lk.cond_wait(t_hndl, &cond), EINVAL);
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &soon), EINVAL);
    CHECK_EQ(lk.cond_signal(t_hndl, &cond), EINVAL);
    CHECK_EQ(lk.cond_init(t_hndl, &cond), EINVAL);
    CHECK_EQ(lk.cond_destroy(t_hndl, &cond), EINVAL);
}

/* The handle is ended; the same instance again is as good as new. */
static void begin_again(void) {
    all_refuse();
    t_init();
    get_functions();
    acquire();
    t_fence();
    CHECK(mine());
    release();
    t_fence();
    OK(LAPI_Term(t_hndl));
    all_refuse();
}

static void held(void) {
    int i;
    for (i = 0; i < 3; i++) {
        t_init();
        get_functions();
        acquire();
        t_fence();
        OK(LAPI_Term(t_hndl));
        begin_again();
    }
}

/* Takes the lock as often as it gets it: LAPI_Term also releases it while it waits for
 * operations under way. */
static void *for_the_lock(void *arg) {
    int code;
    (void)arg;
    say_ready();
    while ((code = lk.mutex_lock(t_hndl)) == 0) {
        CHECK(mine());
        CHECK_EQ(lk.mutex_unlock(t_hndl), 0);
    }
    CHECK_EQ(code, EINVAL);
    return NULL;
}

static void *for_the_lock_in_vain(void *arg) {
    (void)arg;
    say_ready();
    CHECK_EQ(lk.mutex_lock(t_hndl), EINVAL);
    return NULL;
}

static void *for_a_condition(void *arg) {
    (void)arg;
    acquire();
    say_ready();
    CHECK_EQ(lk.cond_wait(t_hndl, &cond), EINVAL);
    CHECK_EQ(lk.mutex_unlock(t_hndl), EINVAL);
    return NULL;
}

static void *for_some_time(void *arg) {
    struct timespec until = from_now(3600 * 1000000000ll);
    (void)arg;
    acquire();
    say_ready();
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &until), EINVAL);
    return NULL;
}

static void waiters(void) {
    pthread_t tids[6];
    int round, i;
    for (round = 0; round < 5; round++) {
        t_init();
        get_functions();
        ready = 0;
        for (i = 0; i < 4; i++) tids[i] = start(i % 2 ? for_a_condition : for_some_time, NULL);
        until_ready(4);
        acquire();
        CHECK_EQ(lk.cond_destroy(t_hndl, &cond), EBUSY); /* they have let the lock go, so they wait */
        for (i = 4; i < 6; i++) tids[i] = start(for_the_lock, NULL);
        until_ready(6);
        usleep(round * 2000); /* from entering the call to asleep */
        OK(LAPI_Term(t_hndl));
        for (i = 0; i < 6; i++) join(tids[i]);
        begin_again();
    }
}

static void *waits_inside(void *arg) {
    (void)arg;
    acquire();
    say_ready();
    RETURNS(LAPI_Waitcntr(t_hndl, &never, 1, NULL), LAPI_ERR_HNDL_INVALID);
    CHECK_EQ(lk.mutex_unlock(t_hndl), EINVAL); /* its hold has ended with the handle */
    return NULL;
}

static void inside(void) {
    pthread_t tids[3];
    int round, i;
    for (round = 0; round < 5; round++) {
        t_init();
        get_functions();
        ready = 0;
        for (i = 0; i < 3; i++) tids[i] = start(waits_inside, NULL);
        until_ready(3);
        acquire(); /* they are in the call, or would still hold it */
        release();
        usleep(round * 2000);
        OK(LAPI_Term(t_hndl));
        for (i = 0; i < 3; i++) join(tids[i]);
        begin_again();
    }
}

static void *ending(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)uhdr, (void)uhdr_len, (void)msg_len;
    CHECK(mine());
    *comp_h = NULL;
    *uinfo = NULL;
    OK(LAPI_Term(*hndl));
    CHECK_EQ(lk.mutex_lock(t_hndl), EINVAL);
    return NULL;
}

static void handler(void) {
    pthread_t tids[3];
    int round, i;
    for (round = 0; round < 5; round++) {
        t_init();
        get_functions();
        ready = 0;
        tids[0] = start(for_a_condition, NULL);
        tids[1] = start(for_some_time, NULL);
        until_ready(2);
        acquire();
        CHECK_EQ(lk.cond_destroy(t_hndl, &cond), EBUSY);
        tids[2] = start(for_the_lock_in_vain, NULL);
        until_ready(3);
        usleep(round * 2000);
        /* The first call for which this thread lets the lock go: the handler runs before. */
        LAPI_Amsend(t_hndl, (uint)t_me, (void *)ending, NULL, 0, NULL, 0, NULL, NULL, NULL);
        RETURNS(LAPI_Waitcntr(t_hndl, &never, 1, NULL), LAPI_ERR_HNDL_INVALID);
        CHECK_EQ(lk.mutex_unlock(t_hndl), EINVAL);
        for (i = 0; i < 3; i++) join(tids[i]);
        begin_again();
    }
}

static void end_there(lapi_handle_t *hndl, void *info) {
    (void)info;
    acquire();
    OK(LAPI_Term(*hndl));
    all_refuse();
    say_ready();
}

static void *to_end_there(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                          void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = end_there;
    *uinfo = NULL;
    return NULL;
}

static void complete(void) {
    int round;
    for (round = 0; round < 5; round++) {
        t_init();
        get_functions();
        ready = 0;
        t_fence();
        acquire();
        OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)to_end_there, NULL, 0, NULL, 0, NULL, NULL, NULL));
        RETURNS(LAPI_Waitcntr(t_hndl, &never, 1, NULL), LAPI_ERR_HNDL_INVALID);
        until_ready(1);
        begin_again();
    }
}

static void forked(void) {
    int status = -1;
    pid_t child;
    t_init();
    get_functions();
    acquire();
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        all_refuse();
        _exit(42);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 42, "the child's status is %#x", status);
    CHECK(mine());
    t_fence();
    release();
    OK(LAPI_Term(t_hndl));
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    if (strcmp(which, "held") == 0) held();
    else if (strcmp(which, "waiters") == 0) waiters();
    else if (strcmp(which, "inside") == 0) inside();
    else if (strcmp(which, "handler") == 0) handler();
    else if (strcmp(which, "complete") == 0) complete();
    else if (strcmp(which, "fork") == 0) forked();
    else T_FAIL("there is no case \"%s\"", which);
    t_pass();
    return 0;
}

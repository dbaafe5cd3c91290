/*
 * Jobs that hang, each in its own way, for reports of which task waits for which: hang CASE [FILE]
 *
 *   counter   task 0 waits for a put that is never made, the others are outside of LAPI
 *   gfence    the last task computes, the others are in LAPI_Gfence
 *   full      task 0 calls LAPI_Fence for packets that have found no room at task 1, which makes no call
 *   half      task 1 waits for a message of which task 0 has sent a part only, and then makes no call
 *   blocked   a completion handler in task 1 does not return; task 0 waits for it
 *   stuck     a header handler in task 1 does not return; task 0 waits for it
 *   circle    the completion handlers of two tasks wait for each other
 *   own       the program has a handler for SIGUSR2, which prints "OWN"; task 0 waits for a put that is never made
 *   reaps     the program waits for any child, and says when one ends; task 0 waits as in "counter"
 *   closed    all descriptors from 3 on were closed before LAPI_Init, and are FILE now; task 0 waits as in "counter"
 *   again     task 0 waits for a put that task 1 makes when FILE is there, then for another one that is never made
 *   init      task 0 is in LAPI_Init, which task 1 does not call
 *   work      all tasks make calls and pauses until FILE is there, and end well
 *   life      (one task) whose the signal is before and after LAPI_Init and LAPI_Term, and in a child of fork
 *
 * Each task prints "TASK PID" when it is about to hang.
 */
#include "../common/ltest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LARGE = 16 << 20, MANY = 2000 };

static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr, never;
static unsigned char from[LARGE], to[LARGE];

static void ready(void) {
    printf("%d %d\n", t_me, (int)getpid());
    fflush(stdout);
}

static void outside(void) {
    for (;;) pause();
}

static int there(const char *file) {
    struct stat found;
    return stat(file, &found) == 0;
}

static void blocks(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    outside();
}

static void calls_back(lapi_handle_t *hndl, void *info) {
    /* Waits for a message that the other task can complete only after its own handler
     * has returned. */
    lapi_cntr_t done;
    bzero(&done, sizeof done);
    OK(LAPI_Amsend(*hndl, 1 - t_me, info, NULL, 0, NULL, 0, NULL, NULL, &done));
    OK(LAPI_Waitcntr(*hndl, &done, 1, NULL));
}

static void *takes(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                   void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return to;
}

static void *to_block(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = blocks;
    return NULL;
}

static void *to_call_back(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                          compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = calls_back;
    *uinfo = (void *)to_call_back;
    return NULL;
}

static void *sticks(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)comp_h, (void)uinfo;
    outside();
    return NULL;
}

/* Sends a message for this handler to task 1, and waits for its completion; task 1 waits for
 * something else. */
static void send_to_one(void *handler) {
    static lapi_cntr_t go;
    void **handlers = t_addresses(handler), **gos = t_addresses(&go);
    t_fence();
    if (t_me == 1) {
        /* Only now: the handler may never return, and this task would not return from the fence. */
        ready();
        OK(LAPI_Put(t_hndl, 0, 0, NULL, NULL, gos[0], NULL, NULL));
    }
    if (t_me == 0) {
        OK(LAPI_Waitcntr(t_hndl, &go, 1, NULL));
        ready();
        OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, NULL, 0, NULL, NULL, &cmpl_cntr));
        OK(LAPI_Waitcntr(t_hndl, &cmpl_cntr, 1, NULL));
    }
    OK(LAPI_Waitcntr(t_hndl, &never, 1, NULL));
}

static void says_own(int sig) {
    (void)sig;
    if (write(STDOUT_FILENO, "OWN\n", 4) < 0) _exit(1);
}

static void full(void) {
    void **tos = t_addresses(to), **processes = t_processes();
    int i;
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me != 0) t_leaves();
    else t_until_outside(processes[1]);
    ready();
    if (t_me != 0) outside();
    for (i = 0; i < MANY; i++) OK(LAPI_Put(t_hndl, 1, 500, tos[1], from, NULL, NULL, NULL));
    OK(LAPI_Put(t_hndl, 1, LARGE, tos[1], from, NULL, NULL, NULL));
    OK(LAPI_Fence(t_hndl));
}

static void half(void) {
    void **handlers = t_addresses((void *)takes), **cntrs = t_addresses(&tgt_cntr);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me == 0) {
        OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, from, LARGE, cntrs[1], NULL, NULL));
        ready();
        outside();
    }
    ready();
    OK(LAPI_Waitcntr(t_hndl, &tgt_cntr, 1, NULL));
}

static void again(const char *file) {
    void **cntrs = t_addresses(&tgt_cntr), **tos = t_addresses(to);
    t_fence();
    ready();
    if (t_me == 0) {
        OK(LAPI_Waitcntr(t_hndl, &tgt_cntr, 1, NULL));
        printf("MOVED\n");
        fflush(stdout);
        OK(LAPI_Waitcntr(t_hndl, &tgt_cntr, 1, NULL));
    }
    while (!there(file)) usleep(20000);
    OK(LAPI_Put(t_hndl, 0, 8, tos[0], from, cntrs[0], NULL, NULL));
    outside();
}

static void close_all(const char *file) {
    int fd, own;
    for (fd = 3; fd < 1024; fd++) close(fd);
    own = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(own >= 0);
    while ((fd = dup(own)) < 200) CHECK(fd > 0);
}

/* --- life --- */

static int is_default(void) {
    struct sigaction now;
    CHECK_EQ(sigaction(SIGUSR2, NULL, &now), 0);
    return now.sa_handler == SIG_DFL;
}

static void end_child(int expected) {
    int status = 0;
    CHECK(wait(&status) > 0);
    CHECK(expected ? WIFSIGNALED(status) && WTERMSIG(status) == expected
                   : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void life(void) {
    lapi_handle_t second;
    lapi_info_t info;
    struct sigaction own;
    bzero(&info, sizeof info);
    CHECK(is_default());
    t_init();
    CHECK(!is_default());
    OK(LAPI_Init(&second, &info));
    OK(LAPI_Term(second));
    CHECK(!is_default());
    raise(SIGUSR2); /* reports, and ends no task */
    /* A child has no context, and the signal has its default action. */
    if (fork() == 0) {
        CHECK(is_default());
        raise(SIGUSR2);
        _exit(0);
    }
    end_child(SIGUSR2);
    /* It may have a LAPI of its own. */
    if (fork() == 0) {
        t_init();
        CHECK_EQ(t_tasks, 1);
        CHECK(!is_default());
        raise(SIGUSR2);
        OK(LAPI_Term(t_hndl));
        raise(SIGUSR2);
        _exit(0);
    }
    end_child(0);
    OK(LAPI_Term(t_hndl));
    /* The signal may come late: it does not end a task that has called LAPI_Term. */
    raise(SIGUSR2);
    t_init();
    raise(SIGUSR2);
    /* LAPI_Term keeps a handler that the program has set meanwhile. */
    bzero(&own, sizeof own);
    own.sa_handler = says_own;
    CHECK_EQ(sigaction(SIGUSR2, &own, NULL), 0);
    OK(LAPI_Term(t_hndl));
    CHECK(!is_default());
    raise(SIGUSR2);
    t_pass();
}

static void tells(int number) {
    static const char text[] = "a child has ended\n";
    (void)number;
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) _exit(1);
}

/* A program that looks after all its children: it has none. */
static void *reaper(void *argument) {
    (void)argument;
    for (;; usleep(1000)) {
        if (waitpid(-1, NULL, 0) > 0) tells(SIGCHLD);
    }
    return NULL;
}

static void reaps(void) {
    pthread_t thread;
    signal(SIGCHLD, tells);
    CHECK_EQ(pthread_create(&thread, NULL, reaper, NULL), 0);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";
    if (strcmp(which, "life") == 0) {
        life();
        return 0;
    }
    if (strcmp(which, "init") == 0) {
        printf("%s %d\n", getenv("MP_CHILD"), (int)getpid());
        fflush(stdout);
        if (strcmp(getenv("MP_CHILD"), "1") == 0) outside();
    }
    if (strcmp(which, "closed") == 0) close_all(file);
    if (strcmp(which, "reaps") == 0) reaps();
    if (strcmp(which, "own") == 0) signal(SIGUSR2, says_own);
    t_init();
    t_fence();
    if (strcmp(which, "gfence") == 0) {
        volatile unsigned long count = 0;
        ready();
        while (t_me == t_tasks - 1) count++;
        t_fence();
    }
    if (strcmp(which, "full") == 0) full();
    if (strcmp(which, "half") == 0) half();
    if (strcmp(which, "blocked") == 0) send_to_one((void *)to_block);
    if (strcmp(which, "stuck") == 0) send_to_one((void *)sticks);
    if (strcmp(which, "again") == 0) again(file);
    if (strcmp(which, "circle") == 0) {
        void **handlers = t_addresses((void *)to_call_back);
        t_fence();
        ready();
        OK(LAPI_Amsend(t_hndl, 1 - t_me, handlers[1 - t_me], NULL, 0, NULL, 0, NULL, NULL, &cmpl_cntr));
        OK(LAPI_Waitcntr(t_hndl, &cmpl_cntr, 1, NULL));
    }
    ready();
    if (strcmp(which, "work") == 0) {
        while (!there(file)) {
            OK(LAPI_Probe(t_hndl));
            usleep(1000);
        }
        t_done();
        return 0;
    }
    if (t_me != 0) outside();
    OK(LAPI_Waitcntr(t_hndl, &never, 1, NULL));
    T_FAIL("case \"%s\" does not hang", which);
    return 0;
}

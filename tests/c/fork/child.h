/* Children of a task: how they begin, what they do with LAPI, and how they end. */
#ifndef CHILD_H
#define CHILD_H

#include "../common/ltest.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* The child must end with this status, and soon. */
static void ended(pid_t child, int status) {
    int got = -1, tries;
    pid_t found = 0;
    for (tries = 0; tries < 20000 && found == 0; tries++) {
        found = waitpid(child, &got, WNOHANG);
        if (found == 0) usleep(1000);
        if (found < 0 && errno == EINTR) found = 0;
    }
    if (found == 0) {
        char where[64] = "?", path[64];
        FILE *file;
        snprintf(path, sizeof path, "/proc/%d/wchan", (int)child);
        file = fopen(path, "r");
        if (file != NULL) {
            if (fgets(where, sizeof where, file) == NULL) strcpy(where, "?");
            fclose(file);
        }
        kill(child, SIGABRT);
        T_FAIL("the child %d does not end; it is in %s", (int)child, where);
    }
    CHECK_EQ(found, child);
    CHECK_FOR(WIFEXITED(got) && WEXITSTATUS(got) == status, "the child's status is %#x, not %d", got, status);
}

static pid_t forked(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    return child;
}

/* One put to every task, and their replies; may run in one thread at a time. */
static void exchange(lapi_handle_t h, int me, int tasks, int number) {
    unsigned char here[8][64], text[64], expected[64];
    void *table[8];
    lapi_cntr_t done;
    int task;
    bzero(&done, sizeof done);
    CHECK(tasks <= 8);
    OK(LAPI_Address_init(h, here, table));
    t_fill(text, sizeof text, t_seed((uint64_t)me, (uint64_t)number, 7));
    for (task = 0; task < tasks; task++)
        OK(LAPI_Put(h, (uint)task, sizeof text, (char *)table[task] + me * 64, text, NULL, NULL, &done));
    OK(LAPI_Waitcntr(h, &done, tasks, NULL));
    OK(LAPI_Gfence(h));
    for (task = 0; task < tasks; task++) {
        t_fill(expected, sizeof expected, t_seed((uint64_t)task, (uint64_t)number, 7));
        CHECK(memcmp(here[task], expected, sizeof expected) == 0);
    }
    OK(LAPI_Gfence(h));
}

/* A child joins a job of `tasks` tasks as task `task`, exchanges data in `rounds` rounds, and
 * leaves the job. */
static void life(const char *partition, int task, int tasks, int rounds) {
    lapi_handle_t h;
    lapi_info_t info;
    char text[16];
    int me = -1, i;
    snprintf(text, sizeof text, "%d", task);
    setenv("MP_CHILD", text, 1);
    snprintf(text, sizeof text, "%d", tasks);
    setenv("MP_PROCS", text, 1);
    setenv("MP_PARTITION", partition, 1);
    unsetenv("MP_COMMON_TASKS");
    bzero(&info, sizeof info);
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Qenv(h, TASK_ID, &me));
    CHECK_EQ(me, task);
    for (i = 0; i < rounds; i++) exchange(h, task, tasks, i);
    OK(LAPI_Term(h));
}

#endif

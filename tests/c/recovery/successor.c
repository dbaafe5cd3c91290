/*
 * Task 1 dies and is restarted. Task 2, which had no contact with it, communicates with the new
 * process first, and purges and resumes task 1 then. The new process, which knows nothing of that,
 * purges no task. successor CASE
 *
 *   quiet    the new process waits for nothing from task 2
 *   waits    it does: this ends with an error
 *   fences   it has entered LAPI_Gfence, which continues
 *
 * Started by hand. Task 0, which notices the death and starts the new task 1 with the word "again"
 * behind its arguments, also passes on how far the others are. Addresses are those of variables:
 * the same in each process of this program.
 */
#include "../common/ltest.h"

#include <signal.h>
#include <sys/wait.h>

enum { LARGE = 300000, SMALL = 64 };

static unsigned char from[LARGE], into[LARGE], spare[SMALL];
static lapi_cntr_t step, landed, cmpl, got, lost;
static volatile int dead, reports;
static int again, waits, fences;

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*task, t_me);
    if (t_me == 0) {
        CHECK_EQ(*src, 1);
        dead = 1;
    } else {
        CHECK(t_me == 1 && again && waits);
        CHECK_EQ(*src, 2);
        reports++;
    }
}

static void tell(uint task) { OK(LAPI_Put(t_hndl, task, 0, NULL, NULL, &step, NULL, NULL)); }

static void start_again(char **argv) {
    char *arguments[4] = {argv[0], argv[1], "again", NULL};
    if (fork() == 0) {
        setenv("MP_CHILD", "1", 1);
        execv("/proc/self/exe", arguments);
        _exit(T_FAILED);
    }
}

/* Data from task 2 to task 1, and back: task 1 sends when that of task 2 has come. */
static void exchange(uint64_t seed) {
    uint other = (uint)(3 - t_me);
    if (t_me == 1) t_wait_exact(&landed, 1);
    t_fill(from, LARGE, seed);
    OK(LAPI_Put(t_hndl, other, LARGE, into, from, &landed, NULL, &cmpl));
    t_wait_exact(&cmpl, 1);
    if (t_me == 2) t_wait_exact(&landed, 1);
    CHECK_FILLED(into, LARGE, seed);
    OK(LAPI_Get(t_hndl, other, LARGE, from, into, NULL, &got));
    t_wait_exact(&got, 1);
    CHECK_FILLED(into, LARGE, seed);
    OK(LAPI_Fence(t_hndl));
}

/* With the first task 1 until it dies, then with the second. */
static void task_0(char **argv) {
    OK(LAPI_Put(t_hndl, 1, SMALL, into, from, NULL, NULL, &cmpl));
    t_wait_exact(&cmpl, 1);
    tell(1);
    while (!dead) {
        if (LAPI_Put(t_hndl, 1, SMALL, into, from, NULL, NULL, NULL) != LAPI_SUCCESS) usleep(1000);
        LAPI_Fence(t_hndl);
    }
    OK(LAPI_Purge_totask(t_hndl, 1));
    start_again(argv);
    OK(LAPI_Resume_totask(t_hndl, 1));
    OK(LAPI_Put(t_hndl, 1, SMALL, into, from, NULL, NULL, &cmpl));
    t_wait_exact(&cmpl, 1);
    tell(2);
    t_wait_exact(&step, 1); /* task 2 has purged and resumed task 1 */
    tell(1);
}

static void task_1(void) {
    if (!again) {
        t_wait_exact(&step, 1);
        kill(getpid(), SIGKILL);
    }
    exchange(1);
    tell(2);
    if (fences) t_fence();
    else t_wait_exact(&step, 1);
    if (waits) {
        OK(LAPI_Get(t_hndl, 2, SMALL, from, spare, NULL, &lost));
        /* The new connection may be made before: the data comes then. */
        while (reports == 0 && t_value(&lost) == 0) LAPI_Fence(t_hndl);
    }
    exchange(2);
    CHECK(reports <= 1);
}

static void task_2(void) {
    t_wait_exact(&step, 1);
    exchange(1);
    t_wait_exact(&step, 1);
    /* It learns of the death. */
    if (fences) usleep(300000);
    OK(LAPI_Purge_totask(t_hndl, 1));
    OK(LAPI_Resume_totask(t_hndl, 1));
    tell(0);
    if (fences) t_fence();
    exchange(2);
}

int main(int argc, char **argv) {
    lapi_info_t info;
    CHECK(argc == 2 || argc == 3);
    waits = strcmp(argv[1], "waits") == 0;
    fences = strcmp(argv[1], "fences") == 0;
    again = argc == 3;
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
    CHECK_EQ(t_tasks, 3);
    if (t_me == 0) task_0(argv);
    else if (t_me == 1) task_1();
    else task_2();
    if (t_me == 0 && fences) t_fence();
    t_done();
    if (t_me == 0)
        while (wait(NULL) > 0) continue;
    return 0;
}

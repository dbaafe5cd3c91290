/*
 * Task 1 dies and is restarted several times, and the others continue with it each
 * time. restart TIMES
 *
 * Started by hand or by a launcher that continues a job without a task. Task 0 starts the new task
 * 1, with its own environment and the word "again" and a number behind its arguments. Addresses are
 * those of variables: the same in each process of this program.
 */
#include "../common/ltest.h"

#include <signal.h>
#include <sys/wait.h>

enum { LARGE = 1 << 20, MOST = 16 };

static unsigned char from[LARGE], into[MOST][LARGE];
static lapi_cntr_t hello[MOST], reply, got, cmpl, rmw;
static int number;
static volatile int dead, greeted = -1;

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, 1);
    dead = 1;
}

static void *greeting(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl, (void)uhdr_len, (void)msg_len;
    greeted = *(int *)uhdr;
    *comp_h = NULL;
    *uinfo = NULL;
    return into[1];
}

/* Task 1, for the time with this number. */
static void victim(int time, int times) {
    int task, one = 1, before, note[2];
    for (task = 0; task < t_tasks; task++) {
        if (task == 1) continue;
        t_wait_exact(&hello[task], 1);
        CHECK_FILLED(into[task], LARGE, (uint64_t)(time * MOST + task));
        OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)task, &number, &one, &before, &rmw));
        t_wait_exact(&rmw, 1);
        CHECK_EQ(before, time);
        OK(LAPI_Get(t_hndl, (uint)task, LARGE, from, into[task], NULL, &got));
        t_wait_exact(&got, 1);
        CHECK_FILLED(into[task], LARGE, (uint64_t)(time * MOST + task));
        t_fill(into[task], LARGE, (uint64_t)time);
        note[0] = note[1] = time;
        OK(LAPI_Amsend(t_hndl, (uint)task, (void *)greeting, note, sizeof note, into[task], LARGE, &reply, NULL,
                       &cmpl));
        t_wait_exact(&cmpl, 1);
    }
    t_fence(); /* all tasks, the new one among them */
    if (time == times) return;
    for (;;) {
        for (task = 0; task < t_tasks; task++)
            if (task != 1) OK(LAPI_Put(t_hndl, (uint)task, LARGE, into[1], from, NULL, NULL, NULL));
        if (getpid() % 3 == time % 3) kill(getpid(), SIGKILL);
        time++;
    }
}

static void start_again(char **argv, int time) {
    char text[16];
    char *arguments[5] = {argv[0], argv[1], "again", text, NULL};
    snprintf(text, sizeof text, "%d", time);
    if (fork() == 0) {
        setenv("MP_CHILD", "1", 1);
        execv("/proc/self/exe", arguments);
        _exit(T_FAILED);
    }
}

static void survivor(char **argv, int times) {
    int time;
    for (time = 0; time <= times; time++) {
        t_fill(from, LARGE, (uint64_t)(time * MOST + t_me));
        OK(LAPI_Put(t_hndl, 1, LARGE, into[t_me], from, &hello[t_me], NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        t_wait_exact(&reply, 1);
        CHECK_EQ(greeted, time);
        CHECK_FILLED(into[1], LARGE, (uint64_t)time);
        CHECK_EQ(number, time + 1);
        t_fence();
        if (time == times) return;
        /* Its death shows when something waits for it. */
        while (!dead) {
            if (LAPI_Put(t_hndl, 1, LARGE, into[t_me], from, NULL, NULL, NULL) != LAPI_SUCCESS) usleep(1000);
            LAPI_Fence(t_hndl);
        }
        dead = 0;
        OK(LAPI_Purge_totask(t_hndl, 1));
        RETURNS(LAPI_Put(t_hndl, 1, 0, NULL, NULL, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
        OK(LAPI_Setcntr(t_hndl, &cmpl, 0));
        if (t_me == 0) start_again(argv, time + 1);
        OK(LAPI_Resume_totask(t_hndl, 1));
    }
}

int main(int argc, char **argv) {
    int times = argc >= 2 ? atoi(argv[1]) : -1, again = argc == 4 ? atoi(argv[3]) : 0;
    lapi_info_t info;
    CHECK(times >= 0);
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
    CHECK(t_tasks >= 2 && t_tasks <= MOST);
    if (again == 0) t_fence();
    if (t_me == 1) victim(again, times);
    else survivor(argv, times);
    t_done();
    if (t_me == 0)
        while (wait(NULL) > 0) continue;
    return 0;
}

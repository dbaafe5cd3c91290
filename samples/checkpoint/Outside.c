/*
 * A checkpointer from outside saves a task, while the other tasks go on.
 *
 * The tasks are a ring, and pass a number on. The script checkpoint.sh sends SIGUSR1 to the last
 * task. That one leaves the job at the end of its step, and says so by a file; then the script runs
 * the checkpointer, and sends SIGUSR2: to this process or, if the checkpointer has ended it and
 * restored it from the image, to that one, which is the same. The task comes back, and the tasks
 * stop soon.
 *
 *     mpcc_r Outside.c -o Outside
 *     poe ./Outside -procs 2
 *     ./checkpoint.sh CHECKPOINTER [ARGUMENT...]      in another shell
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lapi.h>
#include <lapi_checkpoint.h>

/* What a task puts into the next one. */
struct message {
    long step;
    long last; /* the step after which all stop; 0 as long as it is not known */
};

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

/* Writes the number of this process into a file, which is complete as soon as it is there. */
static void say(const char *file)
{
    FILE *stream = fopen("Outside.new", "w");

    if (stream == NULL || fprintf(stream, "%d\n", (int)getpid()) < 0 || fclose(stream) != 0
        || rename("Outside.new", file) != 0) {
        perror(file);
        exit(EXIT_FAILURE);
    }
}

static void be_saved(lapi_handle_t hndl, int me, const sigset_t *back)
{
    int signal;

    check(lapi_checkpoint_before(hndl), "lapi_checkpoint_before");
    say("Outside.away");
    /* The image is made here. No other task reads or writes this process meanwhile. */
    sigwait(back, &signal);
    check(lapi_checkpoint_after(hndl), "lapi_checkpoint_after");
    printf("task %d: is back\n", me);
}

int main(void)
{
    static const struct timespec soon = {0, 1000000}, now = {0, 0};
    struct message mine = {0, 0};
    sigset_t leaves, back, both;
    int me, tasks;
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_cntr_t sent, *arrived;
    struct message *got;
    void **places, **counters;

    /* In all threads, those of LAPI too: the signals wait until the program asks for them. */
    sigemptyset(&leaves);
    sigaddset(&leaves, SIGUSR1);
    sigemptyset(&back);
    sigaddset(&back, SIGUSR2);
    both = leaves;
    sigaddset(&both, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, NULL);

    memset(&info, 0, sizeof info);
    memset(&sent, 0, sizeof sent);
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    places = malloc(sizeof *places * (size_t)tasks);
    counters = malloc(sizeof *counters * (size_t)tasks);
    /* For the step in which the next task is, and as many as this one can be ahead of it. */
    got = calloc((size_t)tasks, sizeof *got);
    arrived = calloc((size_t)tasks, sizeof *arrived);
    if (places == NULL || counters == NULL || got == NULL || arrived == NULL)
        exit(EXIT_FAILURE);
    check(LAPI_Address_init(hndl, got, places), "LAPI_Address_init");
    check(LAPI_Address_init(hndl, arrived, counters), "LAPI_Address_init");
    if (me == tasks - 1)
        say("Outside.pid");

    do {
        int next = (me + 1) % tasks, slot = (int)(mine.step % tasks);

        check(LAPI_Put(hndl, (uint)next, sizeof mine, (struct message *)places[next] + slot, &mine,
                       (lapi_cntr_t *)counters[next] + slot, &sent, NULL),
              "LAPI_Put");
        check(LAPI_Waitcntr(hndl, &sent, 1, NULL), "LAPI_Waitcntr");
        check(LAPI_Waitcntr(hndl, &arrived[slot], 1, NULL), "LAPI_Waitcntr");
        if (got[slot].step != mine.step) {
            fprintf(stderr, "task %d: got step %ld in step %ld\n", me, got[slot].step, mine.step);
            exit(EXIT_FAILURE);
        }
        if (mine.last == 0)
            mine.last = got[slot].last;
        mine.step++;
        if (me == tasks - 1 && mine.last == 0 && sigtimedwait(&leaves, NULL, &now) == SIGUSR1) {
            be_saved(hndl, me, &back);
            /* All know it before they have got there. */
            mine.last = mine.step + tasks + 1;
        }
        nanosleep(&soon, NULL);
    } while (mine.last == 0 || mine.step < mine.last);
    printf("task %d: has taken all steps\n", me);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    return EXIT_SUCCESS;
}

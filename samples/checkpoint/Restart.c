/*
 * A task saves its data, ends, and is started again, while the other tasks go on.
 *
 * The tasks are a ring. In each step every task puts a number into the next one, and adds the
 * number that it gets itself. After step 4 the last task leaves the job, writes its data into a
 * file, and ends with status 75. The script again.sh starts the program once more: that process
 * reads the file, takes the place of the former one, and takes the next steps. What the others have
 * put meanwhile waits for it.
 *
 *     mpcc_r Restart.c -o Restart
 *     poe ./again.sh ./Restart -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>
#include <lapi_checkpoint.h>

#define STEPS 8
#define LEAVES_AFTER 4
#define AGAIN 75

/*
 * What is saved: also the numbers that have arrived, and the counters. All processes of this
 * program have it at the same address, because mpcc_r links programs that are not moved; so no
 * addresses need to be exchanged, which a task that comes back could not do alone.
 *
 * Each step has a place and a counter of its own: a task can be ahead of the next one by as many
 * steps as the ring has other tasks, and what it puts may land in any order.
 */
static struct {
    int step;
    long sum;
    long got[STEPS];
    lapi_cntr_t arrived[STEPS];
} state;

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

/* Reads the state from the file, or writes it. */
static int transfer(const char *file, int writes)
{
    FILE *stream = fopen(file, writes ? "w" : "r");
    size_t done;

    if (stream == NULL)
        return 0;
    done = writes ? fwrite(&state, sizeof state, 1, stream) : fread(&state, sizeof state, 1, stream);
    return fclose(stream) == 0 && done == 1;
}

/* The other tasks learn nothing of it: what they send from now on waits. */
static void leave(lapi_handle_t hndl, int me, const char *file)
{
    check(lapi_checkpoint_before(hndl), "lapi_checkpoint_before");
    if (!transfer(file, 1)) {
        perror(file);
        exit(EXIT_FAILURE);
    }
    printf("task %d: leaves after step %d\n", me, state.step);
    exit(AGAIN);
}

int main(void)
{
    const char *number = getenv("MP_CHILD");
    char file[64];
    int me, tasks, comes_back;
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_cntr_t sent;

    /* Before LAPI_Init: what the others have put may arrive in it. */
    snprintf(file, sizeof file, "Restart.state.%s", number != NULL ? number : "0");
    comes_back = transfer(file, 0);
    remove(file);

    memset(&info, 0, sizeof info);
    memset(&sent, 0, sizeof sent);
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (comes_back)
        printf("task %d: comes back with the sum %ld\n", me, state.sum);

    while (state.step < STEPS) {
        int step = state.step, next = (me + 1) % tasks;
        long mine = 10 * (me + 1) + step;

        check(LAPI_Put(hndl, (uint)next, sizeof mine, &state.got[step], &mine, &state.arrived[step],
                       &sent, NULL),
              "LAPI_Put");
        check(LAPI_Waitcntr(hndl, &sent, 1, NULL), "LAPI_Waitcntr");
        check(LAPI_Waitcntr(hndl, &state.arrived[step], 1, NULL), "LAPI_Waitcntr");
        state.sum += state.got[step];
        state.step++;
        if (state.step == LEAVES_AFTER && me == tasks - 1 && !comes_back)
            leave(hndl, me, file);
    }
    printf("task %d: the sum of %d steps is %ld\n", me, STEPS, state.sum);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    return EXIT_SUCCESS;
}

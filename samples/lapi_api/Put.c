/*
 * LAPI_Put: each even task writes into the memory of the odd task after it.
 *
 * The target takes no part in the transfer. It learns from its target counter that the data is
 * there, and it is the origin that names this counter: by its address at the target.
 *
 *     mpcc_r Put.c -o Put
 *     poe ./Put -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define CELLS 10

static double board[CELLS];
static lapi_cntr_t written;

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

/* A table with one entry from each task: what it has given as `mine`. */
static void **exchange(lapi_handle_t hndl, int tasks, void *mine)
{
    void **table = malloc(tasks * sizeof *table);

    if (table == NULL) {
        perror("malloc");
        exit(EXIT_FAILURE);
    }
    check(LAPI_Address_init(hndl, mine, table), "LAPI_Address_init");
    return table;
}

/* What cell i of a task's board is to become. */
static double cell_for(int task, int i)
{
    return task + i / 16.0;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **boards, **counters;
    double values[CELLS];
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Put needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    /* What can be written to must be ready before another task has its address. */
    for (int i = 0; i < CELLS; i++)
        board[i] = -1.0;
    check(LAPI_Setcntr(hndl, &written, 0), "LAPI_Setcntr");
    boards = exchange(hndl, tasks, board);
    counters = exchange(hndl, tasks, &written);

    if (me % 2 == 0) {
        int target = me + 1;

        for (int i = 0; i < CELLS; i++)
            values[i] = cell_for(target, i);
        check(LAPI_Put(hndl, target, sizeof values, boards[target], values, counters[target], NULL, NULL),
              "LAPI_Put");
        printf("task %d: has put %d numbers into task %d\n", me, CELLS, target);
    } else {
        int left;

        check(LAPI_Waitcntr(hndl, &written, 1, &left), "LAPI_Waitcntr");
        printf("task %d: target counter after the wait: %d; the board is", me, left);
        for (int i = 0; i < CELLS; i++) {
            printf(" %.4f", board[i]);
            right = right && board[i] == cell_for(me, i);
        }
        printf("\ntask %d: the board is %s\n", me, right ? "as it was put" : "WRONG");
    }

    /* `values` must stay until the put is over; the fence sees to that. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(boards);
    free(counters);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * A grid whose rows are spread over the tasks: in each step a task puts its
 * first and last row into the memory of its neighbours, waits for theirs, and
 * replaces each point by the mean of those around it. A plane stays as it is by
 * that, so that the result can be checked. The last task has twice as many rows
 * as the others, which wait for it: a profile says so.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 1024
#define ROWS 128
#define STEPS 1000

/* Row 0 is the upper neighbour's, the one after the task's own the lower's. */
static double grid[2 * ROWS + 2][COLUMNS], next[2 * ROWS + 2][COLUMNS];

static void check(int code, const char *call)
{
    char text[LAPI_MAX_ERR_STRING];
    if (code == LAPI_SUCCESS) return;
    LAPI_Msg_string(code, text);
    fprintf(stderr, "%s: %s\n", call, text);
    exit(1);
}

#define CHECK(call) check(call, #call)

/* The height of the plane in a row of this task. */
static double height(int me, int row, int column)
{
    return me * ROWS + row + column;
}

static void step(int rows)
{
    for (int row = 1; row <= rows; row++)
        for (int column = 1; column < COLUMNS - 1; column++)
            next[row][column] = 0.25 * (grid[row - 1][column] + grid[row + 1][column]
                                        + grid[row][column - 1] + grid[row][column + 1]);
    for (int row = 1; row <= rows; row++)
        memcpy(grid[row] + 1, next[row] + 1, (COLUMNS - 2) * sizeof(double));
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_cntr_t arrived, sent;
    int me, tasks;

    memset(&info, 0, sizeof info);
    CHECK(LAPI_Init(&hndl, &info));
    CHECK(LAPI_Qenv(hndl, TASK_ID, &me));
    CHECK(LAPI_Qenv(hndl, NUM_TASKS, &tasks));
    CHECK(LAPI_Setcntr(hndl, &arrived, 0));
    CHECK(LAPI_Setcntr(hndl, &sent, 0));

    int rows = me == tasks - 1 ? 2 * ROWS : ROWS;
    int upper = me > 0, lower = me < tasks - 1;
    void **above = calloc(tasks, sizeof *above), **below = calloc(tasks, sizeof *below);
    void **counters = calloc(tasks, sizeof *counters);
    CHECK(LAPI_Address_init(hndl, grid[0], above));
    CHECK(LAPI_Address_init(hndl, grid[rows + 1], below));
    CHECK(LAPI_Address_init(hndl, &arrived, counters));
    /* The edges of the whole grid have no neighbour, and never change. */
    for (int row = upper; row <= rows + !lower; row++)
        for (int column = 0; column < COLUMNS; column++) grid[row][column] = height(me, row, column);
    CHECK(LAPI_Gfence(hndl));

    for (int turn = 0; turn < STEPS; turn++) {
        if (upper)
            CHECK(LAPI_Put(hndl, me - 1, sizeof grid[0], below[me - 1], grid[1],
                           counters[me - 1], &sent, NULL));
        if (lower)
            CHECK(LAPI_Put(hndl, me + 1, sizeof grid[0], above[me + 1], grid[rows],
                           counters[me + 1], &sent, NULL));
        CHECK(LAPI_Waitcntr(hndl, &arrived, upper + lower, NULL));
        CHECK(LAPI_Waitcntr(hndl, &sent, upper + lower, NULL));
        step(rows);
        /* The neighbours have used what they got: it may be replaced. */
        CHECK(LAPI_Gfence(hndl));
    }

    int wrong = 0;
    for (int row = 1; row <= rows; row++)
        for (int column = 0; column < COLUMNS; column++) wrong += grid[row][column] != height(me, row, column);
    printf("task %d: %d points are wrong after %d steps of %d rows\n", me, wrong, STEPS, rows);
    CHECK(LAPI_Gfence(hndl));
    CHECK(LAPI_Term(hndl));
    free(above), free(below), free(counters);
    return wrong != 0;
}

/* put.c: each task writes a number into the memory of the next one. */
#include "check.h"

static double edge;        /* the neighbour writes here */
static lapi_cntr_t filled; /* and LAPI counts here that it has written */

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info = {0};
    int me, tasks, next;
    double mine;

    CHECK(LAPI_Init(&hndl, &info));
    CHECK(LAPI_Qenv(hndl, TASK_ID, &me));
    CHECK(LAPI_Qenv(hndl, NUM_TASKS, &tasks));

    /* A task that writes into another one's memory needs its address there: all tasks
     * exchange theirs. */
    void **edges = malloc(tasks * sizeof *edges);
    void **counters = malloc(tasks * sizeof *counters);
    CHECK(LAPI_Setcntr(hndl, &filled, 0));
    CHECK(LAPI_Address_init(hndl, &edge, edges));
    CHECK(LAPI_Address_init(hndl, &filled, counters));

    next = (me + 1) % tasks;
    mine = 100 + me;
    CHECK(LAPI_Put(hndl, next, sizeof mine, edges[next], &mine, counters[next], NULL, NULL));

    /* Waits until the counter is 1, and subtracts 1. */
    CHECK(LAPI_Waitcntr(hndl, &filled, 1, NULL));
    printf("task %d: my neighbour has written %.0f\n", me, edge);

    CHECK(LAPI_Gfence(hndl));
    CHECK(LAPI_Term(hndl));
    return 0;
}

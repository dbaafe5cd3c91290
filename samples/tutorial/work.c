/* work.c: tasks draw pieces of work from one counter until none is left. */
#include "check.h"

enum { PIECES = 20 };

static int next_piece, done; /* those of task 0 count */

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info = {0};
    lapi_cntr_t replied;
    int me, tasks, piece, before, one = 1, drawn = 0;

    CHECK(LAPI_Init(&hndl, &info));
    CHECK(LAPI_Qenv(hndl, TASK_ID, &me));
    CHECK(LAPI_Qenv(hndl, NUM_TASKS, &tasks));
    CHECK(LAPI_Setcntr(hndl, &replied, 0));

    void **counters = malloc(tasks * sizeof *counters);
    void **sums = malloc(tasks * sizeof *sums);
    CHECK(LAPI_Address_init(hndl, &next_piece, counters));
    CHECK(LAPI_Address_init(hndl, &done, sums));

    for (;;) {
        /* Adds 1 in task 0, and returns what was there before: no two tasks get the same number. */
        CHECK(LAPI_Rmw(hndl, FETCH_AND_ADD, 0, counters[0], &one, &piece, &replied));
        CHECK(LAPI_Waitcntr(hndl, &replied, 1, NULL));
        if (piece >= PIECES)
            break;
        drawn++; /* here the work would be done */
    }
    CHECK(LAPI_Rmw(hndl, FETCH_AND_ADD, 0, sums[0], &drawn, &before, &replied));
    CHECK(LAPI_Waitcntr(hndl, &replied, 1, NULL));

    /* After the fence everybody's sum is there. */
    CHECK(LAPI_Gfence(hndl));
    if (me == 0)
        printf("task 0: %d of %d pieces are done\n", done, PIECES);
    CHECK(LAPI_Term(hndl));
    return 0;
}

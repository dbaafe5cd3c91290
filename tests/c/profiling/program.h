/*
 * A program that makes 3 puts of 40 bytes each and 2 fences, and checks what has arrived. With
 * OWN_WRAPPERS it has the wrappers itself.
 */
#ifdef OWN_WRAPPERS
#define WHERE "executable"
#include "wrappers.h"
#else
#include <lapi.h>
#include <stdio.h>
#endif

#include <stdlib.h>

static int board[30], values[30];
static lapi_cntr_t arrived, sent;

static void must(int code)
{
    if (code != LAPI_SUCCESS) {
        fprintf(stderr, "a call has returned %d\n", code);
        exit(199);
    }
}

int main(void)
{
    lapi_info_t info;
    lapi_handle_t hndl;
    int me, tasks, left;

    memset(&info, 0, sizeof info);
    must(LAPI_Init(&hndl, &info));
    must(LAPI_Qenv(hndl, TASK_ID, &me));
    must(LAPI_Qenv(hndl, NUM_TASKS, &tasks));
    for (int i = 0; i < 30; i++)
        values[i] = 100 * me + i;
    must(LAPI_Gfence(hndl));
    for (int i = 0; i < 3; i++)
        must(LAPI_Put(hndl, (uint)((me + 1) % tasks), 40, board + 10 * i, values + 10 * i, &arrived, &sent, NULL));
    must(LAPI_Waitcntr(hndl, &arrived, 3, &left));
    for (int i = 0; i < 30; i++) {
        if (board[i] != 100 * ((me + tasks - 1) % tasks) + i) {
            fprintf(stderr, "element %d is %d\n", i, board[i]);
            exit(199);
        }
    }
    must(LAPI_Gfence(hndl));
    must(LAPI_Term(hndl));
    printf("PASS %d\n", me);
    return 0;
}

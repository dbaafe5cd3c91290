/*
 * Sends ten puts to the next task by LAPI_Xfer and polls by LAPI_Msgpoll until those of the task
 * before have come. How long both have taken is printed by the profiling layer in libproftime_r.so.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>

#define PUTS 10
#define COUNT 512

static double board[COUNT], values[COUNT];
static lapi_cntr_t arrived;

static void must(int code, const char *call)
{
    if (code != LAPI_SUCCESS) {
        char text[LAPI_MAX_ERR_STRING];
        LAPI_Msg_string(code, text);
        fprintf(stderr, "%s: %d: %s\n", call, code, text);
        exit(1);
    }
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_xfer_t xfer;
    lapi_msg_info_t found;
    void **boards, **counters;
    int me, tasks, next, before, here = 0;

    bzero(&info, sizeof info);
    must(LAPI_Init(&hndl, &info), "LAPI_Init");
    must(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    must(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    next = (me + 1) % tasks;
    before = (me + tasks - 1) % tasks;

    boards = malloc(tasks * sizeof *boards);
    counters = malloc(tasks * sizeof *counters);
    must(LAPI_Address_init(hndl, board, boards), "LAPI_Address_init");
    must(LAPI_Address_init(hndl, &arrived, counters), "LAPI_Address_init");
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000.0 * me + i;

    for (int i = 0; i < PUTS; i++) {
        bzero(&xfer, sizeof xfer);
        xfer.Put.Xfer_type = LAPI_PUT_XFER;
        xfer.Put.tgt = (uint)next;
        xfer.Put.tgt_addr = (lapi_long_t)(ulong)boards[next];
        xfer.Put.org_addr = values;
        xfer.Put.len = sizeof values;
        xfer.Put.tgt_cntr = (lapi_long_t)(ulong)counters[next];
        must(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");
    }
    while (here < PUTS) {
        must(LAPI_Msgpoll(hndl, 1000, &found), "LAPI_Msgpoll");
        must(LAPI_Getcntr(hndl, &arrived, &here), "LAPI_Getcntr");
    }
    for (int i = 0; i < COUNT; i++) {
        if (board[i] != 1000.0 * before + i) {
            fprintf(stderr, "task %d: value %d is %g\n", me, i, board[i]);
            exit(1);
        }
    }
    printf("task %d: all %d puts have come, and the values are right\n", me, here);
    fflush(stdout);

    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    must(LAPI_Term(hndl), "LAPI_Term");
    free(boards);
    free(counters);
    return 0;
}

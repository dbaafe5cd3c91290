/*
 * The smallest program: begins and ends. All lines except its own come from the profiling layer in
 * libmyprof_r.so, which this source does not mention.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>

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
    int me, tasks;

    bzero(&info, sizeof info);
    must(LAPI_Init(&hndl, &info), "LAPI_Init");
    must(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    must(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    printf("task %d: the program knows nothing of the layer\n", me);
    fflush(stdout);
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    must(LAPI_Term(hndl), "LAPI_Term");
    return 0;
}

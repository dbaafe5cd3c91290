/* hello.c: a job, and which task of it this one is. */
#include "check.h"

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info = {0};
    int me, tasks;

    CHECK(LAPI_Init(&hndl, &info));
    CHECK(LAPI_Qenv(hndl, TASK_ID, &me));
    CHECK(LAPI_Qenv(hndl, NUM_TASKS, &tasks));
    printf("task %d of %d\n", me, tasks);
    CHECK(LAPI_Term(hndl));
    return 0;
}

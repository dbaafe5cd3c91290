/*
 * A library that opens LAPI in its constructor, and closes it in its destructor: the loader's lock
 * is held in both.
 */
#include <lapi.h>
#include <stdlib.h>
#include <string.h>

static lapi_handle_t handle;
static int me, tasks, arrived;

__attribute__((constructor)) static void opened(void) {
    lapi_info_t info;
    void *addresses[64];
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&handle, &info)) abort();
    LAPI_Qenv(handle, TASK_ID, &me), LAPI_Qenv(handle, NUM_TASKS, &tasks);
    LAPI_Address_init(handle, &arrived, addresses);
    LAPI_Put(handle, (me + 1) % tasks, sizeof me, addresses[(me + 1) % tasks], &me, NULL, NULL, NULL);
    LAPI_Gfence(handle);
    if (arrived != (me + tasks - 1) % tasks) abort();
}

__attribute__((destructor)) static void closed(void) {
    LAPI_Gfence(handle);
    if (LAPI_Term(handle)) abort();
}

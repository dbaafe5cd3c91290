/* Task 0 puts 1,000 bytes into task 1: what LAPI_Term then reports with MP_INFOLEVEL 3. */
#include <lapi.h>
#include <string.h>

static char data[1000];
static lapi_cntr_t complete;

int main(void) {
    lapi_handle_t hndl;
    lapi_info_t info;
    int me, tasks;
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&hndl, &info) != LAPI_SUCCESS) return 1;
    LAPI_Qenv(hndl, TASK_ID, &me);
    LAPI_Qenv(hndl, NUM_TASKS, &tasks);
    if (tasks != 2) return 2;
    LAPI_Setcntr(hndl, &complete, 0);
    LAPI_Gfence(hndl);
    if (me == 0) {
        LAPI_Put(hndl, 1, sizeof data, data, data, NULL, NULL, &complete);
        LAPI_Waitcntr(hndl, &complete, 1, NULL);
    }
    LAPI_Gfence(hndl);
    return LAPI_Term(hndl) != LAPI_SUCCESS;
}

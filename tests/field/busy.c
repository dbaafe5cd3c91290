/* Each task puts to the next one for ever; the last of three does nothing but serve. */
#include <lapi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char here[4096], there[4096];

int main(void)
{
    lapi_handle_t h;
    lapi_info_t info;
    lapi_cntr_t done;
    int me, tasks;
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&h, &info) != LAPI_SUCCESS) return 1;
    LAPI_Qenv(h, TASK_ID, &me);
    LAPI_Qenv(h, NUM_TASKS, &tasks);
    LAPI_Setcntr(h, &done, 0);
    LAPI_Gfence(h);
    printf("READY\n");
    fflush(stdout);
    for (;;) {
        if (me == 2) {
            sleep(1);
            continue;
        }
        LAPI_Put(h, (me + 1) % tasks, sizeof here, there, here, NULL, NULL, &done);
        LAPI_Waitcntr(h, &done, 1, NULL);
        usleep(1000);
    }
}

/*
 * A library whose constructor opens LAPI and waits: the loader's lock is held all the time. The
 * handlers of what the tasks send each other run in threads of LAPI's, which must not need it.
 *
 * Then all but the last task wait in a barrier, to which that one does not come. With FAULT in the
 * environment a handler in the last task reads what is not there.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lapi_handle_t handle;
static int me, tasks;
static lapi_cntr_t handled;

static void completes(lapi_handle_t *context, void *where) {
    int value;
    if (LAPI_Getcntr(*context, &handled, &value)) abort();
    if (where) value = *(volatile int *)where; /* fault */
    if (LAPI_Setcntr(*context, &handled, value + 1)) abort();
}

static void *arrives(lapi_handle_t *context, void *header, uint *length, ulong *bytes,
                     compl_hndlr_t **completion, void **where) {
    (void)context, (void)header, (void)length, (void)bytes;
    *completion = completes;
    *where = getenv("FAULT") && me == tasks - 1 ? (void *)0x40 : NULL;
    return NULL;
}

__attribute__((constructor)) static void waits(void) {
    lapi_info_t info;
    void *handlers[64], *counters[64];
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&handle, &info)) abort();
    LAPI_Qenv(handle, TASK_ID, &me), LAPI_Qenv(handle, NUM_TASKS, &tasks);
    LAPI_Setcntr(handle, &handled, 0);
    LAPI_Address_init(handle, (void *)arrives, handlers);
    int next = (me + 1) % tasks, value = 0;
    if (LAPI_Amsend(handle, next, handlers[next], NULL, 0, NULL, 0, NULL, NULL, NULL)) abort();
    while (!value) {
        LAPI_Probe(handle);
        LAPI_Getcntr(handle, &handled, &value);
    }
    LAPI_Address_init(handle, &handled, counters);
    puts("READY"), fflush(stdout);
    while (me == tasks - 1) pause(); /* also after a signal for a report */
    LAPI_Gfence(handle); /* here */
}

/* A job that hangs: all tasks but the last are in LAPI_Gfence, and the last never enters it: it
 * sleeps, or is in a header handler. */
#include <lapi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *never(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *len, compl_hndlr_t **done, void **info)
{
    printf("READY\n");
    fflush(stdout);
    for (;;) sleep(1);
}

int main(int argc, char **argv)
{
    lapi_handle_t h;
    lapi_info_t info;
    int me, tasks, in_handler = argc > 1 && strcmp(argv[1], "handler") == 0;
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&h, &info) != LAPI_SUCCESS) return 1;
    LAPI_Qenv(h, TASK_ID, &me);
    LAPI_Qenv(h, NUM_TASKS, &tasks);
    LAPI_Gfence(h);
    if (me == tasks - 1) {
        if (!in_handler) printf("READY\n");
        fflush(stdout);
        while (in_handler) LAPI_Probe(h);
        for (;;) sleep(1);
    }
    if (in_handler) LAPI_Amsend(h, tasks - 1, (void *)never, NULL, 0, NULL, 0, NULL, NULL, NULL);
    printf("READY\n");
    fflush(stdout);
    LAPI_Gfence(h); /* here */
    return LAPI_Term(h);
}

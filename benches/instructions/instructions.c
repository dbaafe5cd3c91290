/*
 * instructions: one call, many times, for counting instructions under callgrind.
 *
 *     instructions put|amsend|self|probe CALLS
 *
 * Task 0 calls measured(), in which each iteration is one call of 8 bytes to task 1 (self: to itself, with the wait for its
 * origin counter; probe: LAPI_Probe, when nothing has arrived). Task 1 polls. run.sh counts what measured() costs.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lapi_handle_t hndl;
static long long cell, value;
static lapi_cntr_t done;
static int tasks, me;

static void check(int rc, const char *what)
{
    char text[LAPI_MAX_ERR_STRING];
    if (rc == LAPI_SUCCESS)
        return;
    LAPI_Msg_string(rc, text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static void *header_handler(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                            void **user_info)
{
    (void)h, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = NULL;
    *user_info = NULL;
    return &cell;
}

__attribute__((noinline)) void measured(const char *what, int calls)
{
    int i, left;
    if (!strcmp(what, "put"))
        for (i = 0; i < calls; i++)
            check(LAPI_Put(hndl, 1, sizeof value, &cell, &value, NULL, NULL, NULL), "LAPI_Put");
    else if (!strcmp(what, "amsend"))
        for (i = 0; i < calls; i++)
            check(LAPI_Amsend(hndl, 1, (void *)1, NULL, 0, &value, sizeof value, NULL, NULL, NULL), "LAPI_Amsend");
    else if (!strcmp(what, "probe"))
        for (i = 0; i < calls; i++)
            check(LAPI_Probe(hndl), "LAPI_Probe");
    else
        for (i = 0; i < calls; i++) {
            check(LAPI_Put(hndl, me, sizeof value, &cell, &value, NULL, &done, NULL), "LAPI_Put");
            check(LAPI_Waitcntr(hndl, &done, 1, &left), "LAPI_Waitcntr");
        }
}

int main(int argc, char **argv)
{
    lapi_info_t info;
    int calls = argc > 2 ? atoi(argv[2]) : 0;
    if (calls < 1) {
        fprintf(stderr, "usage: instructions put|amsend|self|probe CALLS\n");
        return 2;
    }
    memset(&info, 0, sizeof info);
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    check(LAPI_Senv(hndl, INTERRUPT_SET, 0), "LAPI_Senv");
    check(LAPI_Addr_set(hndl, (void *)header_handler, 1), "LAPI_Addr_set");
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me == 0) {
        measured(argv[1], 100);
        check(LAPI_Fence(hndl), "LAPI_Fence");
        measured(argv[1], calls);
    }
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    return 0;
}

/*
 * LAPI_Xfer with LAPI_AM_XFER: what lapi_api/Am.c does by LAPI_Amsend.
 *
 * Here the header handler goes by an index: every task keeps its own handler under the same number,
 * so that no task needs an address of another.
 *
 *     mpcc_r Am_xfer.c -o Am_xfer
 *     poe ./Am_xfer -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define GREETING_HANDLER 1
#define ROOM 64

static char greeting[ROOM];

/* Ends the task, with LAPI's own words, when a call has failed. */
static void check(int rc, const char *call)
{
    char text[LAPI_MAX_ERR_STRING];

    if (rc != LAPI_SUCCESS) {
        LAPI_Msg_string(rc, text);
        fprintf(stderr, "%s: %s\n", call, text);
        exit(EXIT_FAILURE);
    }
}

/* The completion handler: the whole greeting is there. */
static void show_greeting(lapi_handle_t *hndl, void *unused)
{
    int me;

    (void)unused;
    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: \"%s\"\n", me, greeting);
}

/* The header handler: gives the greeting its place, and refuses what does not fit by
 * dropping the data. */
static void *receive_greeting(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                              compl_hndlr_t **completion, void **completion_param)
{
    (void)hndl, (void)uhdr, (void)uhdr_len;
    *completion = show_greeting;
    *completion_param = NULL;
    if (*msg_len > sizeof greeting) {
        ((lapi_return_info_t *)msg_len)->ctl_flags = LAPI_BURY_MSG;
        return NULL;
    }
    return greeting;
}

/* Sends a greeting, and waits until the target's completion handler is done. */
static void greet(lapi_handle_t hndl, int me, int target)
{
    char text[ROOM];
    lapi_cntr_t handled;
    lapi_xfer_t xfer;
    int left;

    snprintf(text, sizeof text, "greetings to task %d from task %d", target, me);
    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");

    /* What stays 0: no flags, no user header, no send completion handler, no target and no
     * origin counter. */
    memset(&xfer, 0, sizeof xfer);
    xfer.Am.Xfer_type = LAPI_AM_XFER;
    xfer.Am.tgt = target;
    xfer.Am.hdr_hdl = GREETING_HANDLER;
    xfer.Am.udata = text;
    xfer.Am.udata_len = strlen(text) + 1;
    xfer.Am.cmpl_cntr = &handled;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");

    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: task %d has handled the greeting; completion counter after the wait: %d\n", me, target,
           left);
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    char expected[ROOM];
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Am_xfer needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    /* A message to an index that its target has not set yet would find no handler:
     * hence the fence. */
    check(LAPI_Addr_set(hndl, (void *)receive_greeting, GREETING_HANDLER), "LAPI_Addr_set");
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 == 0)
        greet(hndl, me, me + 1);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        snprintf(expected, sizeof expected, "greetings to task %d from task %d", me, me - 1);
        right = strcmp(greeting, expected) == 0;
        printf("task %d: the greeting is %s\n", me, right ? "as it was sent" : "WRONG");
    }
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

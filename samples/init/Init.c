/*
 * LAPI_Init and LAPI_Term: one handle, then none, then two at a time.
 *
 * The first handle comes with an error handler of the program's own. When it is terminated it means
 * nothing any more, and LAPI can be initialised again: here twice, as instances 1 and 2, each with
 * its own handle.
 *
 *     mpcc_r Init.c -o Init
 *     poe ./Init -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

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

/*
 * The error handler: called for what goes wrong after the call that has started it, such as a peer
 * that has died. Without one, LAPI ends the job. This one prints its arguments and ends the task;
 * had it returned, LAPI would continue.
 */
static void report_error(lapi_handle_t *hndl, int *code, lapi_err_t *kind, int *task, int *other)
{
    static const char *const kinds[] = {
        [GET_ERR] = "get",           [PUT_ERR] = "put",      [RMW_ERR] = "read-modify-write",
        [AM_ERR] = "active message", [INT_ERR] = "internal", [TMR_ERR] = "timer",
    };
    char text[LAPI_MAX_ERR_STRING];

    (void)hndl;
    LAPI_Msg_string(*code, text);
    fprintf(stderr, "task %d: error handler: %s error with task %d: %s\n", *task, kinds[*kind], *other,
            text);
    exit(EXIT_FAILURE);
}

/* A new handle. `instance` is 1 to 16, or 0 for the next that is free; the error handler
 * may be NULL. */
static lapi_handle_t start(uint instance, LAPI_err_hndlr *on_error)
{
    lapi_handle_t hndl;
    lapi_info_t info;

    /* Fields that are not used must be 0, also those that a later release may add a meaning to. */
    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    info.instance_no = instance;
    info.err_hndlr = on_error;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    return hndl;
}

/* The other tasks may still need this one: all tasks call the fence first, and then leave. */
static void stop(lapi_handle_t hndl)
{
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
}

static void introduce(lapi_handle_t hndl, const char *name)
{
    int me, tasks;

    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    printf("task %d: %s: the job has %d task%s\n", me, name, tasks, tasks == 1 ? "" : "s");
}

int main(void)
{
    lapi_handle_t first, second, third;
    char text[LAPI_MAX_ERR_STRING];
    int me, rc;

    first = start(0, report_error);
    introduce(first, "first handle, with an error handler");
    check(LAPI_Qenv(first, TASK_ID, &me), "LAPI_Qenv");
    stop(first);

    rc = LAPI_Gfence(first);
    LAPI_Msg_string(rc, text);
    printf("task %d: the first handle after LAPI_Term: %s\n", me,
           rc == LAPI_ERR_HNDL_INVALID ? "LAPI_ERR_HNDL_INVALID, as it should be" : text);
    if (rc != LAPI_ERR_HNDL_INVALID)
        return EXIT_FAILURE;

    second = start(1, NULL);
    third = start(2, NULL);
    introduce(second, "second handle, instance 1");
    introduce(third, "third handle, instance 2");
    if (second == third) {
        fprintf(stderr, "two live handles are the same\n");
        return EXIT_FAILURE;
    }

    /* What happens on one handle does not touch the other. */
    stop(second);
    check(LAPI_Gfence(third), "LAPI_Gfence");
    printf("task %d: the third handle works on without the second\n", me);
    stop(third);
    printf("task %d: all handles are terminated\n", me);
    return EXIT_SUCCESS;
}

/*
 * LAPI_Xfer with LAPI_PUT_XFER: what lapi_api/Put.c does by LAPI_Put, with every form
 * of notification.
 *
 * A send completion handler, which only LAPI_Xfer has, and the origin counter show that the origin
 * may change its data; the target counter shows the target that the data has arrived, and the
 * completion counter shows this to the origin.
 *
 *     mpcc_r Put_xfer.c -o Put_xfer
 *     poe ./Put_xfer -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define SQUARES 4096

static long table[SQUARES];
static lapi_cntr_t table_full;

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

static long square_for(int task, int i)
{
    return (long)(task + i) * (task + i);
}

/* The send completion handler. It runs inside LAPI, on whichever thread is there: short,
 * without output. */
static void note_sent(lapi_handle_t *hndl, void *parameter, lapi_sh_info_t *info)
{
    int *reason = parameter;

    (void)hndl;
    *reason = info->reason;
}

/* Puts the squares, and overwrites them as soon as they may be. */
static int put_squares(lapi_handle_t hndl, int me, int target, lapi_long_t table_there,
                       lapi_long_t full_there)
{
    static long squares[SQUARES];
    lapi_cntr_t reusable, delivered;
    lapi_xfer_t xfer;
    int reason = -1, sent, left;

    for (int i = 0; i < SQUARES; i++)
        squares[i] = square_for(target, i);
    check(LAPI_Setcntr(hndl, &reusable, 0), "LAPI_Setcntr");
    check(LAPI_Setcntr(hndl, &delivered, 0), "LAPI_Setcntr");

    memset(&xfer, 0, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.flags = 0;
    xfer.Put.tgt = target;
    xfer.Put.tgt_addr = table_there;
    xfer.Put.org_addr = squares;
    xfer.Put.len = sizeof squares;
    xfer.Put.shdlr = note_sent;
    xfer.Put.sinfo = &reason;
    xfer.Put.tgt_cntr = full_there;
    xfer.Put.org_cntr = &reusable;
    xfer.Put.cmpl_cntr = &delivered;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");

    check(LAPI_Waitcntr(hndl, &reusable, 1, &left), "LAPI_Waitcntr");
    printf("task %d: origin counter after the wait: %d\n", me, left);
    memset(squares, 0, sizeof squares);

    check(LAPI_Waitcntr(hndl, &delivered, 1, &left), "LAPI_Waitcntr");
    printf("task %d: completion counter after the wait: %d\n", me, left);
    sent = reason == LAPI_SUCCESS;
    printf("task %d: the send completion handler was %s\n", me, sent ? "called with LAPI_SUCCESS" : "NOT CALLED");
    return sent;
}

/* Waits until the table is full, and looks at it. */
static int read_squares(lapi_handle_t hndl, int me)
{
    int left, right = 1;

    check(LAPI_Waitcntr(hndl, &table_full, 1, &left), "LAPI_Waitcntr");
    for (int i = 0; i < SQUARES; i++)
        right = right && table[i] == square_for(me, i);
    printf("task %d: target counter after the wait: %d; %d squares, the last %ld\n", me, left, SQUARES,
           table[SQUARES - 1]);
    printf("task %d: the squares are %s\n", me, right ? "right" : "WRONG");
    return right;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_long_t *tables, *counters;
    int me, tasks, right;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Put_xfer needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    check(LAPI_Setcntr(hndl, &table_full, 0), "LAPI_Setcntr");
    tables = malloc(tasks * sizeof *tables);
    counters = malloc(tasks * sizeof *counters);
    if (tables == NULL || counters == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init64(hndl, (ulong)table, tables), "LAPI_Address_init64");
    check(LAPI_Address_init64(hndl, (ulong)&table_full, counters), "LAPI_Address_init64");

    if (me % 2 == 0)
        right = put_squares(hndl, me, me + 1, tables[me + 1], counters[me + 1]);
    else
        right = read_squares(hndl, me);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(tables);
    free(counters);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * A DGSP, a data gather/scatter program: one field out of each record of an array, sent
 * as one message.
 *
 * The program says which bytes of one record are wanted. A message of more bytes than one run of
 * the program moves makes LAPI run it again, one extent further on: so the program of one record
 * serves an array of any length. At the target the numbers come one after another, into an
 * ordinary buffer.
 *
 *     mpcc_r Dgsp_simple.c -o Dgsp_simple
 *     poe ./Dgsp_simple -procs 2
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define READINGS_HANDLER 1
#define RECORDS 8

struct record {
    char place[20];
    int number;
    double reading;
    char remark[28];
};

static double readings[RECORDS];

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

/* Reading i of the message to a task. */
static double reading_for(int task, int i)
{
    return task + i / 8.0;
}

/* The program: copy the reading of a record, then start again with the next one. */
static lapi_dg_handle_t register_readings(lapi_handle_t hndl)
{
    int code[LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE];
    lapi_dgsm_copy_t copy;
    lapi_dgsm_iterate_t iterate;
    lapi_dgsp_descr_t program;
    lapi_util_t util;

    memset(&copy, 0, sizeof copy);
    copy.opcode = LAPI_DGSM_COPY;
    copy.bytes = sizeof(double);
    copy.offset = offsetof(struct record, reading);

    memset(&iterate, 0, sizeof iterate);
    iterate.opcode = LAPI_DGSM_ITERATE;
    iterate.iter_loc = -LAPI_DGSM_COPY_SIZE; /* from the ITERATE back to the first instruction, in ints */

    /* An array of ints need not be aligned for the longs in an instruction, so instructions
     * are copied in. */
    memcpy(code, &copy, sizeof copy);
    memcpy(code + LAPI_DGSM_COPY_SIZE, &iterate, sizeof iterate);

    memset(&program, 0, sizeof program);
    program.code = code;
    program.code_size = sizeof code / sizeof code[0];
    program.depth = 1; /* no GOSUB */
    program.density = LAPI_DGSM_CONTIG; /* the bytes of one run are contiguous, those of two runs are not */
    program.size = sizeof(double);
    program.extent = sizeof(struct record);
    program.lext = offsetof(struct record, reading);
    program.rext = offsetof(struct record, reading) + sizeof(double);
    program.atom_size = 0; /* packets may end anywhere */

    /* LAPI makes a copy: code and descriptor are needed no more afterwards. */
    memset(&util, 0, sizeof util);
    util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
    util.RegDgsp.idgsp = &program;
    check(LAPI_Util(hndl, &util), "LAPI_Util: LAPI_REGISTER_DGSP");
    return util.RegDgsp.dgsp_handle;
}

/* Unreserves a program. */
static void unreserve(lapi_handle_t hndl, lapi_dg_handle_t program)
{
    lapi_util_t util;

    memset(&util, 0, sizeof util);
    util.DrefDgsp.Util_type = LAPI_UNRESERVE_DGSP;
    util.DrefDgsp.dgsp_handle = program;
    check(LAPI_Util(hndl, &util), "LAPI_Util: LAPI_UNRESERVE_DGSP");
}

/* The completion handler: all readings are there. */
static void show_readings(lapi_handle_t *hndl, void *unused)
{
    int me;

    (void)unused;
    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: the readings are", me);
    for (int i = 0; i < RECORDS; i++)
        printf(" %.3f", readings[i]);
    printf("\n");
}

/* The header handler: an ordinary buffer, because it does not set dgsp_handle in what
 * msg_len points at. */
static void *accept_readings(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                             compl_hndlr_t **completion, void **completion_param)
{
    (void)hndl, (void)uhdr, (void)uhdr_len;
    if (*msg_len != sizeof readings) {
        fprintf(stderr, "a message that this program does not send\n");
        abort();
    }
    *completion = show_readings;
    *completion_param = NULL;
    return readings;
}

/* Sends the readings of all records, and waits until the target's completion handler is done. */
static void send_readings(lapi_handle_t hndl, int me, int target)
{
    static struct record records[RECORDS];
    lapi_dg_handle_t program = register_readings(hndl);
    lapi_cntr_t handled;
    lapi_xfer_t xfer;
    int left;

    for (int i = 0; i < RECORDS; i++) {
        snprintf(records[i].place, sizeof records[i].place, "place %d", i);
        records[i].number = i;
        records[i].reading = reading_for(target, i);
        snprintf(records[i].remark, sizeof records[i].remark, "not for task %d", target);
    }
    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");

    /* udata is where the program is laid on first, udata_len how many bytes it is to move
     * altogether. */
    memset(&xfer, 0, sizeof xfer);
    xfer.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    xfer.Dgsp.tgt = target;
    xfer.Dgsp.hdr_hdl = READINGS_HANDLER;
    xfer.Dgsp.udata = records;
    xfer.Dgsp.udata_len = RECORDS * sizeof(double);
    xfer.Dgsp.cmpl_cntr = &handled;
    xfer.Dgsp.dgsp = program;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");

    /* The message may still be under way. LAPI keeps the program for it; this task needs
     * it no more. */
    unreserve(hndl, program);

    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: task %d has handled the message; completion counter after the wait: %d\n", me, target,
           left);
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Dgsp_simple needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    check(LAPI_Addr_set(hndl, (void *)accept_readings, READINGS_HANDLER), "LAPI_Addr_set");
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 == 0)
        send_readings(hndl, me, me + 1);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        for (int i = 0; i < RECORDS; i++)
            right = right && readings[i] == reading_for(me, i);
        printf("task %d: the readings are %s\n", me, right ? "as they were sent" : "WRONG");
    }
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * A block in three dimensions, gathered by one nested DGSP, scattered by another, and combined with
 * what is there already by a function of the program.
 *
 * The program of a block has three routines: planes call rows, rows call the copy of one row. The
 * target's array has another shape than the origin's, so its program has other strides. And the
 * target's begins with a CONTROL: from there on LAPI hands what arrives to the function of
 * LAPI_REG_DDM_FUNC instead of copying it.
 * Two messages go, one to be added and one to take the greater number; the user header says
 * which is which.
 *
 *     mpcc_r Dgsp_accumulate.c -o Dgsp_accumulate
 *     poe ./Dgsp_accumulate -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define BLOCK_HANDLER 1

/* The block that goes: planes, rows and columns. */
#define PLANES 2
#define ROWS 3
#define COLUMNS 4

/* The array that it comes from, and its first cell in there. */
static double from[4][5][6];
#define FROM from[1][1][1]

/* The array that it goes to, and its first cell in there. */
static double to[3][4][5];
#define TO to[1][0][1]

/* What CONTROL passes on to the function: the operation, and as operand the kind of numbers. */
enum operation { COPY = LAPI_DGSM_NO_CTL, ADD = 0, GREATER, OPERATIONS };
enum operand { DOUBLES = 1 };

/* The user header. */
struct header {
    int operation;
    int unused; /* makes its length a multiple of 8 */
};

static lapi_dg_handle_t to_block[OPERATIONS];

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

/* A program while it is written. */
struct program {
    int code[64];
    int length;
};

/* Adds an instruction; returns its index. */
static int append(struct program *program, const void *instruction, int ints)
{
    int at = program->length;

    memcpy(program->code + at, instruction, ints * sizeof *program->code);
    program->length += ints;
    return at;
}

/* Ends the routine that has begun at `start`. */
static void end_routine(struct program *program, int start)
{
    lapi_dgsm_iterate_t iterate = {LAPI_DGSM_ITERATE, start - program->length};

    append(program, &iterate, LAPI_DGSM_ITERATE_SIZE);
}

/* Calls, `reps` times and each time `stride` bytes further, the routine that begins behind the
 * next ITERATE. */
static void call_next_routine(struct program *program, long reps, long stride)
{
    lapi_dgsm_gosub_t gosub;

    memset(&gosub, 0, sizeof gosub);
    gosub.opcode = LAPI_DGSM_GOSUB;
    gosub.to_loc = LAPI_DGSM_GOSUB_SIZE + LAPI_DGSM_ITERATE_SIZE;
    gosub.ret_loc = LAPI_DGSM_GOSUB_SIZE;
    gosub.reps = reps;
    gosub.offset = 0;
    gosub.stride = stride;
    append(program, &gosub, LAPI_DGSM_GOSUB_SIZE);
}

/* The program of the block in an array whose rows and planes lie this many bytes apart. */
static lapi_dg_handle_t register_block(lapi_handle_t hndl, long row_stride, long plane_stride,
                                       enum operation operation)
{
    struct program program = {{0}, 0};
    lapi_dgsm_control_t control = {LAPI_DGSM_CONTROL, operation, DOUBLES};
    lapi_dgsm_copy_t copy;
    lapi_dgsp_descr_t descriptor;
    lapi_util_t util;
    int start;

    /* The main program: planes. */
    if (operation != COPY)
        append(&program, &control, LAPI_DGSM_CONTROL_SIZE);
    call_next_routine(&program, PLANES, plane_stride);
    end_routine(&program, 0);

    /* A plane: rows. */
    start = program.length;
    call_next_routine(&program, ROWS, row_stride);
    end_routine(&program, start);

    /* A row. */
    memset(&copy, 0, sizeof copy);
    copy.opcode = LAPI_DGSM_COPY;
    copy.bytes = COLUMNS * sizeof(double);
    copy.offset = 0;
    start = append(&program, &copy, LAPI_DGSM_COPY_SIZE);
    end_routine(&program, start);

    memset(&descriptor, 0, sizeof descriptor);
    descriptor.code = program.code;
    descriptor.code_size = program.length;
    descriptor.depth = 3;
    descriptor.density = LAPI_DGSM_SPARSE; /* there are gaps; and CONTROL asks for it in any case */
    descriptor.size = PLANES * ROWS * COLUMNS * sizeof(double);
    descriptor.lext = 0;
    descriptor.rext = (PLANES - 1) * plane_stride + (ROWS - 1) * row_stride + COLUMNS * sizeof(double);
    descriptor.extent = PLANES * plane_stride;
    descriptor.atom_size = sizeof(double); /* no packet ends inside of a number */

    memset(&util, 0, sizeof util);
    util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
    util.RegDgsp.idgsp = &descriptor;
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

/*
 * The function that combines what arrives with what is there. It runs inside LAPI, once for each
 * row or part of one, and returns how many bytes it has used. The data that arrives is in a packet,
 * at any alignment: hence the memcpy.
 */
static long combine(void *in, void *inout, long bytes, int operand, int operation)
{
    double *there = inout;
    long count = bytes / (long)sizeof *there;

    if (operand != DOUBLES)
        abort();
    for (long i = 0; i < count; i++) {
        double number;

        memcpy(&number, (char *)in + i * sizeof number, sizeof number);
        if (operation == ADD)
            there[i] += number;
        else if (number > there[i])
            there[i] = number;
    }
    return count * (long)sizeof *there;
}

static void register_function(lapi_handle_t hndl)
{
    lapi_util_t util;

    memset(&util, 0, sizeof util);
    util.DdmFunc.Util_type = LAPI_REG_DDM_FUNC;
    util.DdmFunc.ddm_func = combine;
    check(LAPI_Util(hndl, &util), "LAPI_Util: LAPI_REG_DDM_FUNC");
}

/* The completion handler: the whole block has been combined. */
static void show_row(lapi_handle_t *hndl, void *parameter)
{
    const char *what = parameter;
    int me;

    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: %s; the first row is", me, what);
    for (int column = 0; column < COLUMNS; column++)
        printf(" %g", (&TO)[column]);
    printf("\n");
}

/* The header handler: the place of the block, and in what msg_len points at the program to
 * scatter by. */
static void *accept_block(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                          compl_hndlr_t **completion, void **completion_param)
{
    static char *const done[OPERATIONS] = {"added", "the greater ones taken"};
    const struct header *header = uhdr;
    lapi_return_info_t *info = (lapi_return_info_t *)msg_len;

    (void)hndl;
    if (*uhdr_len != sizeof *header || header->operation < 0 || header->operation >= OPERATIONS) {
        fprintf(stderr, "a message that this program does not send\n");
        abort();
    }
    info->dgsp_handle = to_block[header->operation];
    info->bytes = info->msg_len;
    *completion = show_row;
    *completion_param = done[header->operation];
    return &TO;
}

/* Sends the block, and waits until the target's completion handler is done. */
static void send_block(lapi_handle_t hndl, int me, int target, lapi_dg_handle_t program, int operation)
{
    struct header header = {operation, 0};
    lapi_cntr_t handled;
    lapi_xfer_t xfer;
    int left;

    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");
    memset(&xfer, 0, sizeof xfer);
    xfer.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    xfer.Dgsp.tgt = target;
    xfer.Dgsp.hdr_hdl = BLOCK_HANDLER;
    xfer.Dgsp.uhdr = &header;
    xfer.Dgsp.uhdr_len = sizeof header;
    xfer.Dgsp.udata = &FROM;
    xfer.Dgsp.udata_len = program->size; /* a handle may be read through: this is the program's own size */
    xfer.Dgsp.cmpl_cntr = &handled;
    xfer.Dgsp.dgsp = program;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");
    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: task %d has combined the block; completion counter after the wait: %d\n", me, target,
           left);
}

/* A cell of the array that a task sends from. */
static double sent(int task, int plane, int row, int column)
{
    return 1000 * task + 100 * plane + 10 * row + column;
}

/* A cell of the other array at the beginning. */
static double there_before(int plane, int row, int column)
{
    return (plane + row + column) % 2 == 0 ? 1 : -5000;
}

/* Whether the array holds, after both messages of `sender`, what it should, and nothing around
 * has changed. */
static int is_right(int sender)
{
    for (int plane = 0; plane < 3; plane++) {
        for (int row = 0; row < 4; row++) {
            for (int column = 0; column < 5; column++) {
                double expected = there_before(plane, row, column);

                /* TO is the cell 1, 0, 1; FROM is 1, 1, 1. */
                if (plane >= 1 && row < ROWS && column >= 1) {
                    double number = sent(sender, plane, row + 1, column);

                    expected += number;
                    if (number > expected)
                        expected = number;
                }
                if (to[plane][row][column] != expected)
                    return 0;
            }
        }
    }
    return 1;
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
        fprintf(stderr, "Dgsp_accumulate needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    for (int plane = 0; plane < 4; plane++)
        for (int row = 0; row < 5; row++)
            for (int column = 0; column < 6; column++)
                from[plane][row][column] = sent(me, plane, row, column);
    for (int plane = 0; plane < 3; plane++)
        for (int row = 0; row < 4; row++)
            for (int column = 0; column < 5; column++)
                to[plane][row][column] = there_before(plane, row, column);

    /* A header handler may not call LAPI: its programs, and the function, are registered
     * beforehand. */
    for (int operation = 0; operation < OPERATIONS; operation++)
        to_block[operation] = register_block(hndl, sizeof to[0][0], sizeof to[0], operation);
    register_function(hndl);
    check(LAPI_Addr_set(hndl, (void *)accept_block, BLOCK_HANDLER), "LAPI_Addr_set");
    check(LAPI_Gfence(hndl), "LAPI_Gfence");

    if (me % 2 == 0) {
        lapi_dg_handle_t from_block = register_block(hndl, sizeof from[0][0], sizeof from[0], COPY);

        /* LAPI promises no order of two messages; waiting for the first one's handler does. */
        send_block(hndl, me, me + 1, from_block, ADD);
        send_block(hndl, me, me + 1, from_block, GREATER);
        unreserve(hndl, from_block);
    }

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        right = is_right(me - 1);
        printf("task %d: the block is %s\n", me, right ? "right, nothing around it has changed" : "WRONG");
    }
    for (int operation = 0; operation < OPERATIONS; operation++)
        unreserve(hndl, to_block[operation]);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

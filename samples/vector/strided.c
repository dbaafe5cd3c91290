/*
 * A strided vector: two columns of a matrix, sent by LAPI_Amsendv into a narrower matrix.
 *
 * Blocks of one length at equal distances need no list of addresses. The vector says base, block
 * size and stride, and how many blocks there are. Number and size of the blocks are the same on
 * both sides, the strides are not.
 *
 *     mpcc_r strided.c -o strided
 *     poe ./strided -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define ROWS 4
#define COLUMNS 7 /* of the matrix that is sent from */
#define FIRST 3   /* the first of the columns that are sent */
#define WIDTH 2   /* how many of them */
#define ROOM 3    /* columns of the matrix that receives; the last one stays free */
#define EMPTY (-1)

static int narrow[ROWS][ROOM];

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

/* A cell of the matrix that a task sends from. */
static int cell(int task, int row, int column)
{
    return 100 * task + 10 * row + column;
}

/* A strided vector over `shape`: ROWS blocks of WIDTH numbers. The lengths of the vector
 * are not read. */
static lapi_vec_t strided(void *shape[3], int *base, int columns)
{
    lapi_vec_t vector = {LAPI_GEN_STRIDED_XFER, ROWS, shape, NULL};

    shape[0] = base;
    shape[1] = (void *)(WIDTH * sizeof *base);
    shape[2] = (void *)(columns * sizeof *base);
    return vector;
}

/* The completion handler: both columns are there. */
static void show_columns(lapi_handle_t *hndl, void *unused)
{
    int me;

    (void)unused;
    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: the columns are", me);
    for (int column = 0; column < WIDTH; column++) {
        printf("%s", column > 0 ? " and" : "");
        for (int row = 0; row < ROWS; row++)
            printf(" %d", narrow[row][column]);
    }
    printf("\n");
}

/* The header handler. LAPI reads the returned vector after the handler has returned. */
static lapi_vec_t *accept_columns(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *lengths,
                                  compl_hndlr_t **completion, void **completion_param)
{
    static void *shape[3];
    static lapi_vec_t here;

    (void)hndl, (void)uhdr, (void)uhdr_len, (void)lengths;
    here = strided(shape, &narrow[0][0], ROOM);
    *completion = show_columns;
    *completion_param = NULL;
    return &here;
}

/* Sends two columns, overwrites them as soon as they may be, and waits until they have
 * been handled. */
static void send_columns(lapi_handle_t hndl, int me, int target, void *handler_there)
{
    int wide[ROWS][COLUMNS];
    void *shape[3];
    lapi_vec_t columns = strided(shape, &wide[0][FIRST], COLUMNS);
    lapi_cntr_t reusable, handled;
    int left;

    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            wide[row][column] = cell(me, row, column);
    check(LAPI_Setcntr(hndl, &reusable, 0), "LAPI_Setcntr");
    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");
    check(LAPI_Amsendv(hndl, target, handler_there, NULL, 0, &columns, NULL, &reusable, &handled),
          "LAPI_Amsendv");

    check(LAPI_Waitcntr(hndl, &reusable, 1, &left), "LAPI_Waitcntr");
    memset(wide, 0, sizeof wide);
    printf("task %d: origin counter after the wait: %d; the matrix is wiped\n", me, left);

    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: completion counter after the wait: %d; task %d has the columns\n", me, left, target);
}

/* Whether the columns are those of `sender`, and the free column is still free. */
static int columns_are_right(int sender)
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < ROOM; column++)
            if (narrow[row][column] != (column < WIDTH ? cell(sender, row, FIRST + column) : EMPTY))
                return 0;
    return 1;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **handlers;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "strided needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < ROOM; column++)
            narrow[row][column] = EMPTY;
    handlers = malloc(tasks * sizeof *handlers);
    if (handlers == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, (void *)accept_columns, handlers), "LAPI_Address_init");

    if (me % 2 == 0)
        send_columns(hndl, me, me + 1, handlers[me + 1]);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        right = columns_are_right(me - 1);
        printf("task %d: the columns are %s\n", me, right ? "right, the free one is untouched" : "WRONG");
    }
    free(handlers);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

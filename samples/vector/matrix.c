/*
 * Data in two dimensions: a block of a matrix goes into a matrix of another size, at another place.
 *
 * Each row of the block is one piece of a vector of the type LAPI_GEN_IOVECTOR. The sender knows
 * how large the block is and where it shall go; how wide the matrix over there is, only its owner
 * knows. So the user header carries the place, and the header handler at the target makes the
 * vector for it.
 *
 *     mpcc_r matrix.c -o matrix
 *     poe ./matrix -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

/* The matrix that the block comes from, and its first cell in there. */
#define FROM_ROWS 5
#define FROM_COLUMNS 8
#define FROM_ROW 1
#define FROM_COLUMN 3

/* The matrix that it goes to. */
#define ROWS 5
#define COLUMNS 6
#define EMPTY 0

/* The user header: a block, and where it goes. */
struct header {
    int row, column;
    int rows, columns;
};

static const struct header BLOCK = {2, 1, 3, 4};

/* A block on its way into the matrix: what must stay until the message is complete. */
struct arrival {
    struct header header;
    lapi_vec_t vector;
    void *places[ROWS];
    ulong lengths[ROWS];
};

static int matrix[ROWS][COLUMNS];

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
    return 100 * (task + 1) + 10 * row + column;
}

/* The completion handler: the block is in its place. */
static void show_matrix(lapi_handle_t *hndl, void *parameter)
{
    struct arrival *arrival = parameter;
    int me;

    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: %d rows of %d at row %d, column %d\n", me, arrival->header.rows,
           arrival->header.columns, arrival->header.row, arrival->header.column);
    for (int row = 0; row < ROWS; row++) {
        printf("task %d:", me);
        for (int column = 0; column < COLUMNS; column++)
            printf(" %3d", matrix[row][column]);
        printf("\n");
    }
    free(arrival);
}

/* The header handler: a vector with one piece for each row of the block. */
static lapi_vec_t *place_block(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *lengths,
                               compl_hndlr_t **completion, void **completion_param)
{
    const struct header *header = uhdr;
    struct arrival *arrival = malloc(sizeof *arrival);

    (void)hndl, (void)lengths;
    if (arrival == NULL) {
        perror("malloc");
        abort();
    }
    if (*uhdr_len != sizeof *header || header->row < 0 || header->rows < 0 || header->column < 0 ||
        header->columns < 0 || header->row + header->rows > ROWS ||
        header->column + header->columns > COLUMNS) {
        fprintf(stderr, "a block that does not fit the matrix\n");
        abort();
    }
    arrival->header = *header;
    arrival->vector.vec_type = LAPI_GEN_IOVECTOR;
    arrival->vector.num_vecs = header->rows;
    arrival->vector.info = arrival->places;
    arrival->vector.len = arrival->lengths;
    for (int i = 0; i < header->rows; i++) {
        arrival->places[i] = &matrix[header->row + i][header->column];
        arrival->lengths[i] = header->columns * sizeof matrix[0][0];
    }
    *completion = show_matrix;
    *completion_param = arrival;
    return &arrival->vector;
}

/* Sends the block, and waits until the target's completion handler is done. */
static void send_block(lapi_handle_t hndl, int me, int target, void *handler_there)
{
    int from[FROM_ROWS][FROM_COLUMNS];
    struct header header = BLOCK;
    void *places[FROM_ROWS];
    ulong lengths[FROM_ROWS];
    lapi_vec_t block = {LAPI_GEN_IOVECTOR, BLOCK.rows, places, lengths};
    lapi_cntr_t handled;
    int left;

    for (int row = 0; row < FROM_ROWS; row++)
        for (int column = 0; column < FROM_COLUMNS; column++)
            from[row][column] = cell(me, row, column);
    for (int i = 0; i < BLOCK.rows; i++) {
        places[i] = &from[FROM_ROW + i][FROM_COLUMN];
        lengths[i] = BLOCK.columns * sizeof from[0][0];
    }
    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");
    check(LAPI_Amsendv(hndl, target, handler_there, &header, sizeof header, &block, NULL, NULL, &handled),
          "LAPI_Amsendv");
    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: completion counter after the wait: %d; task %d has the block\n", me, left, target);
}

/* Whether the block of `sender` is in its place, with nothing changed around it. */
static int matrix_is_right(int sender)
{
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            int i = row - BLOCK.row, j = column - BLOCK.column;
            int inside = i >= 0 && i < BLOCK.rows && j >= 0 && j < BLOCK.columns;

            if (matrix[row][column] != (inside ? cell(sender, FROM_ROW + i, FROM_COLUMN + j) : EMPTY))
                return 0;
        }
    }
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
        fprintf(stderr, "matrix needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    handlers = malloc(tasks * sizeof *handlers);
    if (handlers == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, (void *)place_block, handlers), "LAPI_Address_init");

    if (me % 2 == 0)
        send_block(hndl, me, me + 1, handlers[me + 1]);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        right = matrix_is_right(me - 1);
        printf("task %d: the matrix is %s\n", me, right ? "right" : "WRONG");
    }
    free(handlers);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

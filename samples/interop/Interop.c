/*
 * Programs with addresses of 32 and of 64 bits in one job: this one source is compiled as both.
 *
 * LAPI_Address_init64 exchanges addresses as lapi_long_t, which is as wide as the widest, and
 * LAPI_Xfer takes those of other tasks in that form. So a task of 32 bits can write to and read
 * from memory of a task of 64 bits that it could not even name by a pointer. What tasks pass each
 * other must have the same size for both: long has not.
 *
 * Tasks work in pairs. The even task puts numbers into memory of the odd one, which gets them
 * back and compares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

/* A size at which malloc returns addresses far above 4 GiB where it can. */
#define NUMBERS 131072
#define BYTES (NUMBERS * sizeof(long long))

static lapi_cntr_t arrived;

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

static void *memory(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL) {
        perror("calloc");
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* A pointer in a form for every task: not as a signed number, which would be another address
 * in 64 bits. */
static lapi_long_t address(void *pointer)
{
    return (lapi_long_t)(ulong)pointer;
}

/* A table with one entry from each task: what it has given as `mine`. */
static lapi_long_t *exchange(lapi_handle_t hndl, int tasks, lapi_long_t mine)
{
    lapi_long_t *table = memory(tasks * sizeof *table);

    check(LAPI_Address_init64(hndl, mine, table), "LAPI_Address_init64");
    return table;
}

static long long number(int task, int i)
{
    return (long long)(task + 1) << 40 | (unsigned)i;
}

static void put(lapi_handle_t hndl, int target, lapi_long_t to, lapi_long_t counter, long long *numbers)
{
    lapi_cntr_t done;
    lapi_xfer_t xfer;
    int left;

    check(LAPI_Setcntr(hndl, &done, 0), "LAPI_Setcntr");
    memset(&xfer, 0, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.tgt = target;
    xfer.Put.tgt_addr = to;
    xfer.Put.org_addr = numbers;
    xfer.Put.len = BYTES;
    xfer.Put.tgt_cntr = counter;
    xfer.Put.cmpl_cntr = &done;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");
    check(LAPI_Waitcntr(hndl, &done, 1, &left), "LAPI_Waitcntr");
}

static void get(lapi_handle_t hndl, int target, lapi_long_t from, long long *numbers)
{
    lapi_cntr_t done;
    lapi_xfer_t xfer;
    int left;

    check(LAPI_Setcntr(hndl, &done, 0), "LAPI_Setcntr");
    memset(&xfer, 0, sizeof xfer);
    xfer.Get.Xfer_type = LAPI_GET_XFER;
    xfer.Get.tgt = target;
    xfer.Get.tgt_addr = from;
    xfer.Get.org_addr = numbers;
    xfer.Get.len = BYTES;
    xfer.Get.org_cntr = &done;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");
    check(LAPI_Waitcntr(hndl, &done, 1, &left), "LAPI_Waitcntr");
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_long_t *bits, *boards, *counters;
    long long *board = memory(BYTES), *back = memory(BYTES);
    int me, tasks, other, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Interop needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }
    other = me % 2 == 0 ? me + 1 : me - 1;

    check(LAPI_Setcntr(hndl, &arrived, 0), "LAPI_Setcntr");
    bits = exchange(hndl, tasks, 8 * sizeof(void *));
    boards = exchange(hndl, tasks, address(board));
    counters = exchange(hndl, tasks, address(&arrived));
    printf("task %d: addresses have %d bits here, and %d in task %d\n", me, (int)bits[me], (int)bits[other], other);

    if (me % 2 == 0) {
        for (int i = 0; i < NUMBERS; i++)
            board[i] = number(me, i);
        put(hndl, other, boards[other], counters[other], board);
        printf("task %d: has put %d numbers into task %d\n", me, NUMBERS, other);
    } else {
        int left;

        check(LAPI_Waitcntr(hndl, &arrived, 1, &left), "LAPI_Waitcntr");
        get(hndl, other, boards[other], back);
        for (int i = 0; i < NUMBERS; i++)
            right = right && board[i] == number(other, i) && back[i] == number(other, i);
        printf("task %d: what was put and what was got back is %s\n", me, right ? "the same" : "WRONG");
    }

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    free(bits);
    free(boards);
    free(counters);
    free(board);
    free(back);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

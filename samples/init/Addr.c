/*
 * Addresses: LAPI_Address_init and LAPI_Address_init64 exchange them, LAPI_Addr_set and
 * LAPI_Addr_get keep them under a small number.
 *
 * Each task has two variables and sends their addresses to all others: once as a pointer, once as a
 * lapi_long_t, which holds the address of a 64-bit task in a 32-bit one too. To show what the
 * tables are good for, each task then reads the variables of all tasks.
 *
 *     mpcc_r Addr.c -o Addr
 *     poe ./Addr -procs 3
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define INDEX 7

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

/* Something with an address; it is never called here. Am_xfer.c sends a message to
 * such an index. */
static void *a_header_handler(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                              compl_hndlr_t **completion, void **completion_param)
{
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)completion_param;
    *completion = NULL;
    return NULL;
}

/* The int at an address of a task, by LAPI_Get: it takes a pointer. */
static int read_by_pointer(lapi_handle_t hndl, int task, void *address)
{
    lapi_cntr_t arrived;
    int value;

    check(LAPI_Setcntr(hndl, &arrived, 0), "LAPI_Setcntr");
    check(LAPI_Get(hndl, task, sizeof value, address, &value, NULL, &arrived), "LAPI_Get");
    check(LAPI_Waitcntr(hndl, &arrived, 1, NULL), "LAPI_Waitcntr");
    return value;
}

/* The same by LAPI_Xfer: it takes a lapi_long_t. */
static int read_by_number(lapi_handle_t hndl, int task, lapi_long_t address)
{
    lapi_cntr_t arrived;
    lapi_xfer_t xfer;
    int value;

    check(LAPI_Setcntr(hndl, &arrived, 0), "LAPI_Setcntr");
    memset(&xfer, 0, sizeof xfer);
    xfer.Get.Xfer_type = LAPI_GET_XFER;
    xfer.Get.tgt = task;
    xfer.Get.tgt_addr = address;
    xfer.Get.org_addr = &value;
    xfer.Get.len = sizeof value;
    xfer.Get.org_cntr = &arrived;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");
    check(LAPI_Waitcntr(hndl, &arrived, 1, NULL), "LAPI_Waitcntr");
    return value;
}

/* Stores an address under an index and reads it back; returns whether it is the same. */
static int keep_and_take_out(lapi_handle_t hndl, int me)
{
    void *kept = NULL;
    int size, same;

    check(LAPI_Qenv(hndl, LOC_ADDRTBL_SZ, &size), "LAPI_Qenv");
    if (INDEX >= size) {
        fprintf(stderr, "the table has no index %d, for its size is %d\n", INDEX, size);
        return 0;
    }
    check(LAPI_Addr_set(hndl, (void *)a_header_handler, INDEX), "LAPI_Addr_set");
    check(LAPI_Addr_get(hndl, &kept, INDEX), "LAPI_Addr_get");
    same = kept == (void *)a_header_handler;
    printf("task %d: index %d holds %s\n", me, INDEX, same ? "the address that was set" : "ANOTHER ADDRESS");
    return same;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **pointers;
    lapi_long_t *numbers;
    int me, tasks, small, large, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    small = 10 + me;
    large = 1000000 + me;

    /* The caller makes the tables, with an entry for each task. Both calls wait for all tasks. */
    pointers = malloc(tasks * sizeof *pointers);
    numbers = malloc(tasks * sizeof *numbers);
    if (pointers == NULL || numbers == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, &small, pointers), "LAPI_Address_init");
    check(LAPI_Address_init64(hndl, (ulong)&large, numbers), "LAPI_Address_init64");
    right = pointers[me] == &small && numbers[me] == (ulong)&large;
    printf("task %d: its own entries in the tables are %s\n", me, right ? "its own addresses" : "WRONG");

    for (int task = 0; task < tasks; task++) {
        int their_small = read_by_pointer(hndl, task, pointers[task]);
        int their_large = read_by_number(hndl, task, numbers[task]);

        printf("task %d: the variables of task %d are %d and %d\n", me, task, their_small, their_large);
        right = right && their_small == 10 + task && their_large == 1000000 + task;
    }
    right = keep_and_take_out(hndl, me) && right;

    /* `small` and `large` are on the stack of main, and the others may not have read them yet. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(pointers);
    free(numbers);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

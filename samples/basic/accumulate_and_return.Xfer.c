/*
 * There and back as in accumulate_and_return.Put.c, but the first put is an operation of LAPI_Xfer.
 *
 * LAPI_Xfer takes a structure where LAPI_Put takes arguments, and addresses at the target as
 * lapi_long_t, wide enough for any task's also in a 32-bit program. The way back is a plain
 * LAPI_Put: the two do the same.
 *
 *     mpcc_r accumulate_and_return.Xfer.c -o accumulate_and_return.Xfer
 *     poe ./accumulate_and_return.Xfer -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define NUMBERS 6

/* What other tasks of this job write to. */
static struct {
    int numbers[NUMBERS];
    lapi_cntr_t full;
} inbox;

/* Where the inbox of a task is. */
struct place {
    lapi_long_t numbers;
    lapi_long_t full;
};

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

/* Exchanges the addresses of the inboxes; returns the address of the inbox of `task`. */
static struct place find_inbox(lapi_handle_t hndl, int tasks, int task)
{
    lapi_long_t *table = malloc(tasks * sizeof *table);
    struct place place;

    if (table == NULL) {
        perror("malloc");
        exit(EXIT_FAILURE);
    }
    check(LAPI_Address_init64(hndl, (ulong)inbox.numbers, table), "LAPI_Address_init64");
    place.numbers = table[task];
    check(LAPI_Address_init64(hndl, (ulong)&inbox.full, table), "LAPI_Address_init64");
    place.full = table[task];
    free(table);
    return place;
}

static int own_number(int task, int i)
{
    return 10 * (task + 1) + i;
}

/* LAPI_Xfer's form of LAPI_Put. LAPI reads the structure only during the call. */
static void put_by_xfer(lapi_handle_t hndl, int target, struct place to, int *numbers)
{
    lapi_xfer_t xfer;

    memset(&xfer, 0, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.tgt = target;
    xfer.Put.tgt_addr = to.numbers;
    xfer.Put.org_addr = numbers;
    xfer.Put.len = NUMBERS * sizeof *numbers;
    xfer.Put.tgt_cntr = to.full;
    check(LAPI_Xfer(hndl, &xfer), "LAPI_Xfer");
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    struct place there;
    int own[NUMBERS];
    int me, tasks, buddy, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "accumulate_and_return.Xfer needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }
    buddy = me % 2 == 0 ? me + 1 : me - 1;
    for (int i = 0; i < NUMBERS; i++)
        own[i] = own_number(me, i);
    check(LAPI_Setcntr(hndl, &inbox.full, 0), "LAPI_Setcntr");
    there = find_inbox(hndl, tasks, buddy);

    if (me % 2 == 0) {
        put_by_xfer(hndl, buddy, there, own);
        check(LAPI_Waitcntr(hndl, &inbox.full, 1, NULL), "LAPI_Waitcntr");
        printf("task %d: the sums:", me);
        for (int i = 0; i < NUMBERS; i++) {
            printf(" %d", inbox.numbers[i]);
            right = right && inbox.numbers[i] == own_number(me, i) + own_number(buddy, i);
        }
        printf("\ntask %d: the sums are %s\n", me, right ? "right" : "WRONG");
    } else {
        check(LAPI_Waitcntr(hndl, &inbox.full, 1, NULL), "LAPI_Waitcntr");
        for (int i = 0; i < NUMBERS; i++)
            own[i] += inbox.numbers[i];
        printf("task %d: %d numbers from task %d; the sums go back\n", me, NUMBERS, buddy);
        check(LAPI_Put(hndl, buddy, sizeof own, (void *)(ulong)there.numbers, own,
                       (lapi_cntr_t *)(ulong)there.full, NULL, NULL),
              "LAPI_Put");
    }

    /* `own` must stay until the puts are over; the fence sees to that. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

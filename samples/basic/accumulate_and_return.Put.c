/*
 * There and back by LAPI_Put: an even task puts numbers into the odd task after it, which adds its
 * own and puts the sums back.
 *
 * Each side waits for its own target counter, which the other side's put raises.
 *
 *     mpcc_r accumulate_and_return.Put.c -o accumulate_and_return.Put
 *     poe ./accumulate_and_return.Put -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define NUMBERS 6

static int own[NUMBERS];
static int inbox[NUMBERS];
static lapi_cntr_t inbox_full;

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

/* A table with one entry from each task: what it has given as `mine`. */
static void **exchange(lapi_handle_t hndl, int tasks, void *mine)
{
    void **table = malloc(tasks * sizeof *table);

    if (table == NULL) {
        perror("malloc");
        exit(EXIT_FAILURE);
    }
    check(LAPI_Address_init(hndl, mine, table), "LAPI_Address_init");
    return table;
}

static int own_number(int task, int i)
{
    return 10 * (task + 1) + i;
}

/* An even task: sends its numbers, waits for the sums, looks at them. */
static int drive(lapi_handle_t hndl, int me, int buddy, void *inbox_there, lapi_cntr_t *full_there)
{
    int right = 1;

    check(LAPI_Put(hndl, buddy, sizeof own, inbox_there, own, full_there, NULL, NULL), "LAPI_Put");
    check(LAPI_Waitcntr(hndl, &inbox_full, 1, NULL), "LAPI_Waitcntr");

    printf("task %d: the sums:", me);
    for (int i = 0; i < NUMBERS; i++) {
        printf(" %d", inbox[i]);
        right = right && inbox[i] == own_number(me, i) + own_number(buddy, i);
    }
    printf("\ntask %d: the sums are %s\n", me, right ? "right" : "WRONG");
    return right;
}

/* An odd task: waits for numbers, adds its own to them, sends the sums back from where they are. */
static void serve(lapi_handle_t hndl, int me, int buddy, void *inbox_there, lapi_cntr_t *full_there)
{
    check(LAPI_Waitcntr(hndl, &inbox_full, 1, NULL), "LAPI_Waitcntr");
    for (int i = 0; i < NUMBERS; i++)
        inbox[i] += own[i];
    printf("task %d: %d numbers from task %d; the sums go back\n", me, NUMBERS, buddy);
    check(LAPI_Put(hndl, buddy, sizeof inbox, inbox_there, inbox, full_there, NULL, NULL), "LAPI_Put");
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **inboxes, **counters;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "accumulate_and_return.Put needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    for (int i = 0; i < NUMBERS; i++)
        own[i] = own_number(me, i);
    check(LAPI_Setcntr(hndl, &inbox_full, 0), "LAPI_Setcntr");
    inboxes = exchange(hndl, tasks, inbox);
    counters = exchange(hndl, tasks, &inbox_full);

    if (me % 2 == 0)
        right = drive(hndl, me, me + 1, inboxes[me + 1], counters[me + 1]);
    else
        serve(hndl, me, me - 1, inboxes[me - 1], counters[me - 1]);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(inboxes);
    free(counters);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * LAPI_Getv: each even task reads three fields of a record of the odd task after it, in
 * one operation.
 *
 * Both vectors are in the origin: one says where the bytes come from, with addresses of the target,
 * the other where they go. With the type LAPI_GEN_IOVECTOR they have the same number of pieces,
 * each as long as its counterpart. The counters are those of LAPI_Get.
 *
 *     mpcc_r Getv.c -o Getv
 *     poe ./Getv -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define HISTORY 512

/* What every task keeps. The history is long, and no task reads it. */
static struct record {
    char name[16];
    double history[HISTORY];
    int count;
    double last;
} record;

static lapi_cntr_t was_read;

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

/* What the record of a task holds. */
static void fill(struct record *record, int task)
{
    memset(record, 0, sizeof *record);
    snprintf(record->name, sizeof record->name, "gauge %d", task);
    for (int i = 0; i < HISTORY; i++)
        record->history[i] = i;
    record->count = HISTORY + task;
    record->last = task + 0.25;
}

/* Name, count and last value of the record at `there` in the target, into the same
 * fields of `copy`. */
static void fetch(lapi_handle_t hndl, int target, struct record *there, lapi_cntr_t *read_there,
                  struct record *copy)
{
    void *from[] = {there->name, &there->count, &there->last};
    void *to[] = {copy->name, &copy->count, &copy->last};
    ulong sizes[] = {sizeof copy->name, sizeof copy->count, sizeof copy->last};
    lapi_vec_t target_vector = {LAPI_GEN_IOVECTOR, 3, from, sizes};
    lapi_vec_t origin_vector = {LAPI_GEN_IOVECTOR, 3, to, sizes};
    lapi_cntr_t arrived;
    int left;

    check(LAPI_Setcntr(hndl, &arrived, 0), "LAPI_Setcntr");
    check(LAPI_Getv(hndl, target, &target_vector, &origin_vector, read_there, &arrived), "LAPI_Getv");
    check(LAPI_Waitcntr(hndl, &arrived, 1, &left), "LAPI_Waitcntr");
    printf("task %d: origin counter after the wait: %d; \"%s\": %d values, the last %.2f\n", target - 1, left,
           copy->name, copy->count, copy->last);
}

/* Whether the copy has the three fields of the target's record, and nothing else. */
static int is_right(const struct record *copy, int target)
{
    struct record expected;

    fill(&expected, target);
    memset(expected.history, 0, sizeof expected.history);
    return strcmp(copy->name, expected.name) == 0 && copy->count == expected.count &&
           copy->last == expected.last &&
           memcmp(copy->history, expected.history, sizeof copy->history) == 0;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **records, **counters;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Getv needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    /* What can be read must be there before another task has its address. */
    fill(&record, me);
    check(LAPI_Setcntr(hndl, &was_read, 0), "LAPI_Setcntr");
    records = exchange(hndl, tasks, &record);
    counters = exchange(hndl, tasks, &was_read);

    if (me % 2 == 0) {
        struct record copy;

        memset(&copy, 0, sizeof copy);
        fetch(hndl, me + 1, records[me + 1], counters[me + 1], &copy);
        right = is_right(&copy, me + 1);
        printf("task %d: the three fields are %s\n", me, right ? "exact" : "WRONG");
    } else {
        int left;

        check(LAPI_Waitcntr(hndl, &was_read, 1, &left), "LAPI_Waitcntr");
        memset(&record, 0, sizeof record);
        printf("task %d: target counter after the wait: %d; the record has been read and is wiped\n", me,
               left);
    }

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(records);
    free(counters);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

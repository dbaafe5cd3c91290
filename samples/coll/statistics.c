/*
 * statistics.c: what lapi_coll.h is for. Each task has some measurements; all of them learn the
 * mean and the extremes, task 0 collects how many each task has, and every task leaves a note in
 * the memory of the next one.
 *
 *     mpcc_r statistics.c -o statistics
 *     poe ./statistics -procs 4
 */
#include <stdio.h>
#include <stdlib.h>

#include "lapi_coll.h"

#define MOST 8

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

/* The means of all measurements, their extremes, and how many there are: three reductions. */
static void summarize(lapi_coll_t *coll, const double *measured, int count)
{
    double sum = 0, least = measured[0], most = measured[0];
    int64_t all = count;

    for (int i = 0; i < count; i++) {
        sum += measured[i];
        least = measured[i] < least ? measured[i] : least;
        most = measured[i] > most ? measured[i] : most;
    }
    check(lapi_coll_allreduce(coll, &sum, &sum, 1, LAPI_COLL_DOUBLE, LAPI_COLL_SUM), "lapi_coll_allreduce");
    check(lapi_coll_allreduce(coll, &least, &least, 1, LAPI_COLL_DOUBLE, LAPI_COLL_MIN), "lapi_coll_allreduce");
    check(lapi_coll_allreduce(coll, &most, &most, 1, LAPI_COLL_DOUBLE, LAPI_COLL_MAX), "lapi_coll_allreduce");
    check(lapi_coll_allreduce(coll, &all, &all, 1, LAPI_COLL_INT64, LAPI_COLL_SUM), "lapi_coll_allreduce");
    printf("task %u: %d of %d measurements; mean %.2f, from %.2f to %.2f\n", coll->me, count, (int)all, sum / (double)all, least,
           most);
}

/* Task 0 shows how many measurements each task has. */
static void show_shares(lapi_coll_t *coll, int count)
{
    int *counts = (int *)calloc(coll->tasks, sizeof *counts);

    if (counts == NULL)
        exit(EXIT_FAILURE);
    check(lapi_coll_gather(coll, &count, sizeof count, counts, 0), "lapi_coll_gather");
    if (coll->me == 0) {
        printf("task 0: measurements by task:");
        for (unsigned task = 0; task < coll->tasks; task++)
            printf(" %d", counts[task]);
        printf("\n");
    }
    free(counts);
}

/* Symmetric memory: a put needs nothing but the number of the task. */
static void leave_note(lapi_coll_t *coll)
{
    lapi_coll_memory_t note;
    unsigned next = (coll->me + 1) % coll->tasks;
    int mine = 100 + (int)coll->me;

    check(lapi_coll_malloc(coll, sizeof mine, &note), "lapi_coll_malloc");
    check(LAPI_Put(coll->hndl, next, sizeof mine, note.at[next], &mine, NULL, NULL, NULL), "LAPI_Put");
    check(LAPI_Gfence(coll->hndl), "LAPI_Gfence");
    printf("task %u: the note says %d\n", coll->me, *(int *)note.local);
    check(lapi_coll_free(coll, &note), "lapi_coll_free");
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info = {0};
    lapi_coll_t coll;
    double measured[MOST];
    int count;
    double scale = 0;

    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(lapi_coll_init(&coll, hndl, 0), "lapi_coll_init");

    /* Task 0 knows the scale, for example from its input. */
    if (coll.me == 0)
        scale = 0.5;
    check(lapi_coll_broadcast(&coll, &scale, sizeof scale, 0), "lapi_coll_broadcast");
    count = 1 + (int)(coll.me % MOST);
    for (int i = 0; i < count; i++)
        measured[i] = scale * (double)(coll.me + (unsigned)i);

    summarize(&coll, measured, count);
    show_shares(&coll, count);
    leave_note(&coll);

    check(lapi_coll_end(&coll), "lapi_coll_end");
    check(LAPI_Term(hndl), "LAPI_Term");
    return 0;
}

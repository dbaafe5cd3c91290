/*
 * Tasks that no launcher has started: every task adds its number to a sum that task 0 keeps.
 *
 * The program does not differ from one that poe starts. LAPI reads the number of the task, the
 * number of tasks and the key of the job from the environment, which run.sh sets.
 *
 *     cc_r Sum.c -o Sum
 *     ./run.sh ./Sum 4
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

static long long sum;

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

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_cntr_t added;
    void **sums;
    long long mine, before;
    int me, tasks, left, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");

    sums = malloc(tasks * sizeof *sums);
    if (sums == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, &sum, sums), "LAPI_Address_init");

    /* Not the address of one's own sum: tasks started by hand need not have the same addresses. */
    mine = me + 1;
    check(LAPI_Setcntr(hndl, &added, 0), "LAPI_Setcntr");
    check(LAPI_Rmw64(hndl, FETCH_AND_ADD, 0, sums[0], &mine, &before, &added), "LAPI_Rmw64");
    check(LAPI_Waitcntr(hndl, &added, 1, &left), "LAPI_Waitcntr");
    printf("task %d: has added %lld\n", me, mine);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me == 0) {
        right = sum == (long long)tasks * (tasks + 1) / 2;
        printf("task 0: the sum of %d tasks is %lld, %s\n", tasks, sum, right ? "as it should be" : "WRONG");
    }
    free(sums);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

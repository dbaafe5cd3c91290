/*
 * LAPI_Rmw64: as Rmw.c, but with 64 bits, and with two tasks that add to the same variable at
 * the same time.
 *
 * Every odd task hands out numbered tickets. First it draws ten itself while the even task before
 * it draws ten: an int could not hold the numbers, and none may be drawn twice. Then the even task
 * takes the next number out with SWAP, and puts it back with COMPARE_AND_SWAP.
 *
 *     mpcc_r Rmw64.c -o Rmw64
 *     poe ./Rmw64 -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define FIRST_TICKET 5000000000LL
#define TICKETS 10

static long long next_ticket = FIRST_TICKET;
static long long drawn_here[TICKETS];
static long long drawn_there[TICKETS];

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

/* One operation from beginning to end; returns the previous value. */
static long long rmw(lapi_handle_t hndl, RMW_ops_t op, int target, lapi_long_t variable, long long *operand)
{
    lapi_cntr_t returned;
    long long result;

    check(LAPI_Setcntr(hndl, &returned, 0), "LAPI_Setcntr");
    check(LAPI_Rmw64(hndl, op, target, (long long *)(ulong)variable, operand, &result, &returned),
          "LAPI_Rmw64");
    check(LAPI_Waitcntr(hndl, &returned, 1, NULL), "LAPI_Waitcntr");
    return result;
}

static void draw(lapi_handle_t hndl, int target, lapi_long_t variable, long long *tickets)
{
    long long one = 1;

    for (int i = 0; i < TICKETS; i++)
        tickets[i] = rmw(hndl, FETCH_AND_ADD, target, variable, &one);
}

/* Whether the two lists hold each of the first 2 x TICKETS tickets once. */
static int all_different(const long long *a, const long long *b)
{
    int seen[2 * TICKETS] = {0};

    for (int i = 0; i < 2 * TICKETS; i++) {
        long long number = (i < TICKETS ? a[i] : b[i - TICKETS]) - FIRST_TICKET;

        if (number < 0 || number >= 2 * TICKETS || seen[number]++ != 0)
            return 0;
    }
    return 1;
}

/* An even task, when all tickets are drawn: takes the counter of its buddy out, and
 * puts it back. */
static int out_and_back(lapi_handle_t hndl, int me, int target, lapi_long_t variable)
{
    const long long after_all = FIRST_TICKET + 2 * TICKETS, away = -1;
    long long operand[2] = {away, 0};
    long long taken, swapped;

    taken = rmw(hndl, SWAP, target, variable, operand);
    printf("task %d: SWAP took %lld from task %d\n", me, taken, target);

    operand[0] = away;  /* if it is this, */
    operand[1] = taken; /* it is to be that */
    swapped = rmw(hndl, COMPARE_AND_SWAP, target, variable, operand);
    printf("task %d: COMPARE_AND_SWAP: %s\n", me, swapped ? "swapped" : "not swapped");

    operand[0] = 1LL << 40;
    taken = rmw(hndl, FETCH_AND_OR, target, variable, operand);
    printf("task %d: FETCH_AND_OR found %lld\n", me, taken);
    return taken == after_all && swapped;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_long_t *variables, *lists;
    int me, tasks, buddy, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Rmw64 needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }
    buddy = me % 2 == 0 ? me + 1 : me - 1;

    variables = malloc(tasks * sizeof *variables);
    lists = malloc(tasks * sizeof *lists);
    if (variables == NULL || lists == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init64(hndl, (ulong)&next_ticket, variables), "LAPI_Address_init64");
    check(LAPI_Address_init64(hndl, (ulong)drawn_there, lists), "LAPI_Address_init64");

    /*
     * The owner draws through LAPI too: LAPI's operations are indivisible with regard to each
     * other, but not to a plain `next_ticket++`.
     */
    if (me % 2 == 0) {
        draw(hndl, buddy, variables[buddy], drawn_here);
        check(LAPI_Put(hndl, buddy, sizeof drawn_here, (void *)(ulong)lists[buddy], drawn_here, NULL, NULL,
                       NULL),
              "LAPI_Put");
    } else {
        draw(hndl, me, variables[me], drawn_here);
    }
    check(LAPI_Gfence(hndl), "LAPI_Gfence");

    if (me % 2 == 0) {
        right = out_and_back(hndl, me, buddy, variables[buddy]);
    } else {
        right = all_different(drawn_here, drawn_there);
        printf("task %d: %d tickets from %lld on: %s\n", me, 2 * TICKETS, FIRST_TICKET,
               right ? "each drawn once" : "NOT each drawn once");
    }
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0)
        printf("task %d: at the end the variable is %lld\n", me, next_ticket);

    free(variables);
    free(lists);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * LAPI_Rmw: each even task changes an int of the odd task after it, in one indivisible
 * step each time.
 *
 * The four operations follow one another. Each gives back what the variable was before;
 * COMPARE_AND_SWAP gives back whether it has swapped.
 *
 *     mpcc_r Rmw.c -o Rmw
 *     poe ./Rmw -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

static int shared = 5;

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

/* A step of the demonstration; the operands that an operation has no use for are 0. */
struct step {
    RMW_ops_t op;
    const char *name;
    int operand[2]; /* COMPARE_AND_SWAP: swap if the variable is the first, to the second */
    int result;     /* the expected result */
};

static const struct step steps[] = {
    {FETCH_AND_ADD, "FETCH_AND_ADD", {3, 0}, 5},          /* 5 -> 8 */
    {FETCH_AND_OR, "FETCH_AND_OR", {7, 0}, 8},            /* 8 -> 15 */
    {SWAP, "SWAP", {-20, 0}, 15},                         /* 15 -> -20 */
    {COMPARE_AND_SWAP, "COMPARE_AND_SWAP", {1, 2}, 0},    /* is not 1: stays */
    {COMPARE_AND_SWAP, "COMPARE_AND_SWAP", {-20, 42}, 1}, /* is -20: -> 42 */
};

enum { STEPS = sizeof steps / sizeof steps[0], AT_THE_END = 42 };

/* Takes all steps; returns whether each previous value is the expected one. */
static int take_steps(lapi_handle_t hndl, int me, int target, int *variable_there)
{
    lapi_cntr_t returned;
    int left, right = 1;

    check(LAPI_Setcntr(hndl, &returned, 0), "LAPI_Setcntr");
    for (int i = 0; i < STEPS; i++) {
        int operand[2] = {steps[i].operand[0], steps[i].operand[1]};
        int result;

        check(LAPI_Rmw(hndl, steps[i].op, target, variable_there, operand, &result, &returned), "LAPI_Rmw");
        /* The origin counter says that the result has arrived; until then `operand` must
         * not change. */
        check(LAPI_Waitcntr(hndl, &returned, 1, &left), "LAPI_Waitcntr");
        if (steps[i].op == COMPARE_AND_SWAP)
            printf("task %d: %s (%d, %d) at task %d: %d\n", me, steps[i].name, operand[0], operand[1], target,
                   result);
        else
            printf("task %d: %s (%d) at task %d: %d\n", me, steps[i].name, operand[0], target, result);
        right = right && result == steps[i].result;
    }
    printf("task %d: the results are %s\n", me, right ? "right" : "WRONG");
    return right;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **variables;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Rmw needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    variables = malloc(tasks * sizeof *variables);
    if (variables == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, &shared, variables), "LAPI_Address_init");

    if (me % 2 == 0)
        right = take_steps(hndl, me, me + 1, variables[me + 1]);

    /* There is no target counter: the fence ensures that the variable will not change any more. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        right = shared == AT_THE_END;
        printf("task %d: at the end the variable is %d\n", me, shared);
    }

    free(variables);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * LAPI_Amsendv: an active message whose data is in several places, at the origin and at the target.
 *
 * The origin sends three arrays. The target wants the numbers in two arrays of other lengths: its
 * header handler returns not an address but its own vector. That the two vectors may be cut up
 * differently is a property of the type LAPI_GEN_GENERIC, which only active messages have.
 *
 *     mpcc_r Amv.c -o Amv
 *     poe ./Amv -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define NUMBERS 10
#define HEAD 4
#define TAIL (NUMBERS - HEAD)

static int head[HEAD];
static int tail[TAIL];

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

/* What number i of the message to a task has to be. */
static int number_for(int task, int i)
{
    return 100 * task + i;
}

/* What has arrived as number i. */
static int arrived(int i)
{
    return i < HEAD ? head[i] : tail[i - HEAD];
}

/* The completion handler: all of the message is in its places. */
static void read_numbers(lapi_handle_t *hndl, void *unused)
{
    int me;

    (void)unused;
    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: the head is", me);
    for (int i = 0; i < HEAD; i++)
        printf(" %d", head[i]);
    printf(", the tail");
    for (int i = 0; i < TAIL; i++)
        printf(" %d", tail[i]);
    printf("\n");
}

/*
 * The header handler of a vector. LAPI reads the returned vector after the handler has
 * returned, hence static:
 * it has to stay until the message is complete.
 */
static lapi_vec_t *accept_numbers(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *lengths,
                                  compl_hndlr_t **completion, void **completion_param)
{
    static void *places[] = {head, tail};
    static ulong sizes[] = {sizeof head, sizeof tail};
    static lapi_vec_t here = {LAPI_GEN_GENERIC, 2, places, sizes};

    (void)hndl, (void)uhdr, (void)uhdr_len, (void)lengths;
    *completion = read_numbers;
    *completion_param = NULL;
    return &here;
}

/* An even task: sends three arrays as one message, and waits until the target's completion
 * handler is done. */
static void send_to(lapi_handle_t hndl, int me, int target, void *handler_there)
{
    int first[2], second[3], third[5];
    void *places[] = {first, second, third};
    ulong sizes[] = {sizeof first, sizeof second, sizeof third};
    lapi_vec_t message = {LAPI_GEN_GENERIC, 3, places, sizes};
    lapi_cntr_t handled;
    int left;

    for (int i = 0; i < 2; i++)
        first[i] = number_for(target, i);
    for (int i = 0; i < 3; i++)
        second[i] = number_for(target, 2 + i);
    for (int i = 0; i < 5; i++)
        third[i] = number_for(target, 5 + i);
    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");
    check(LAPI_Amsendv(hndl, target, handler_there, NULL, 0, &message, NULL, NULL, &handled), "LAPI_Amsendv");
    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: task %d has handled the message; completion counter after the wait: %d\n", me, target,
           left);
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
        fprintf(stderr, "Amv needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    handlers = malloc(tasks * sizeof *handlers);
    if (handlers == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, (void *)accept_numbers, handlers), "LAPI_Address_init");

    if (me % 2 == 0)
        send_to(hndl, me, me + 1, handlers[me + 1]);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        for (int i = 0; i < NUMBERS; i++)
            right = right && arrived(i) == number_for(me, i);
        printf("task %d: the numbers are %s\n", me, right ? "as they were sent" : "WRONG");
    }

    free(handlers);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * LAPI_Amsend: one active message from each even task to the odd task after it.
 *
 * The origin does not determine where its data is stored. A header handler, run at the target
 * when the first packet is there, decides it; a completion handler, run when all of the data is
 * in place, uses what has come. The origin learns through its completion counter that this
 * handler has returned.
 *
 *     mpcc_r Am.c -o Am
 *     poe ./Am -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define WORDS 8

static int inbox[WORDS];

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

/* What word i of the message to a task has to be. */
static int word_for(int task, int i)
{
    return 100 * task + i;
}

/*
 * The completion handler. It has a thread of LAPI's own and may do what any thread may do: print,
 * block, call LAPI.
 */
static void read_inbox(lapi_handle_t *hndl, void *unused)
{
    int me;

    (void)unused;
    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    printf("task %d: completion handler: the message is", me);
    for (int i = 0; i < WORDS; i++)
        printf(" %d", inbox[i]);
    printf("\n");
}

/*
 * The header handler. No other message moves while it runs and it may not call LAPI, so it does no
 * more than say where the data goes and what is to happen then.
 */
static void *accept_message(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                            compl_hndlr_t **completion, void **completion_param)
{
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *completion = read_inbox;
    *completion_param = NULL;
    return inbox;
}

/* An even task: sends, and waits until the target's completion handler is done. */
static void send_to(lapi_handle_t hndl, int me, int target, void *handler_there)
{
    lapi_cntr_t handled;
    int message[WORDS];
    int left;

    for (int i = 0; i < WORDS; i++)
        message[i] = word_for(target, i);
    check(LAPI_Setcntr(hndl, &handled, 0), "LAPI_Setcntr");

    /* Neither a user header nor a target or an origin counter: only the completion counter is
     * of interest. */
    check(LAPI_Amsend(hndl, target, handler_there, NULL, 0, message, sizeof message, NULL, NULL, &handled),
          "LAPI_Amsend");

    /* The wait takes 1 off the counter, and says what is left. */
    check(LAPI_Waitcntr(hndl, &handled, 1, &left), "LAPI_Waitcntr");
    printf("task %d: task %d has handled the message; completion counter after the wait: %d\n", me, target,
           left);
}

/* An odd task: whether the message has come as it was sent. */
static int inbox_is_right(int me)
{
    for (int i = 0; i < WORDS; i++)
        if (inbox[i] != word_for(me, i))
            return 0;
    return 1;
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
        fprintf(stderr, "Am needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    /* The handler runs at the target, so its address there is needed: all tasks exchange it. */
    handlers = malloc(tasks * sizeof *handlers);
    if (handlers == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, (void *)accept_message, handlers), "LAPI_Address_init");

    if (me % 2 == 0)
        send_to(hndl, me, me + 1, handlers[me + 1]);

    /*
     * A fence waits for data, not for completion handlers. Here the two are the same: the sender
     * has waited for the handler before it came to the fence.
     */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 != 0) {
        right = inbox_is_right(me);
        printf("task %d: the message is %s\n", me, right ? "as it was sent" : "WRONG");
    }

    free(handlers);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

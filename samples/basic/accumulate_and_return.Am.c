/*
 * There and back by LAPI_Amsend: an even task sends numbers, the odd task after it adds its own and
 * sends the sums back, out of a completion handler.
 *
 * What belongs to a message goes with it all the way: the user header brings it to the header
 * handler, and the header handler hands it to the completion handler by the completion handler's
 * parameter. The even task waits for a flag of its own, which its completion handler raises.
 *
 *     mpcc_r accumulate_and_return.Am.c -o accumulate_and_return.Am
 *     poe ./accumulate_and_return.Am -procs 2
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define NUMBERS 6

/* The user header. Its length is a multiple of 8, as it should be for 64-bit programs. */
struct header {
    int sender;
    enum { OUTWARD, BACK } way;
};

/* One message on its way through the handlers of its target. */
struct delivery {
    struct header header;
    int count;
    int numbers[]; /* where LAPI puts the data */
};

static void **handlers; /* the header handler's address in each task */
static int own[NUMBERS];
static int sums[NUMBERS];

/* The program's own flag: LAPI does not use it, so it is guarded like any other that
 * threads share. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int raised;
} flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void raise_flag(void)
{
    pthread_mutex_lock(&flag.lock);
    flag.raised = 1;
    pthread_cond_signal(&flag.changed);
    pthread_mutex_unlock(&flag.lock);
}

static void wait_for_flag(void)
{
    pthread_mutex_lock(&flag.lock);
    while (!flag.raised)
        pthread_cond_wait(&flag.changed, &flag.lock);
    pthread_mutex_unlock(&flag.lock);
}

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

static int own_number(int task, int i)
{
    return 10 * (task + 1) + i;
}

/* Sends numbers, and returns when LAPI no longer uses them and the user header. */
static void send_numbers(lapi_handle_t hndl, int from, int to, int way, int *numbers)
{
    struct header header = {from, way};
    lapi_cntr_t reusable;

    check(LAPI_Setcntr(hndl, &reusable, 0), "LAPI_Setcntr");
    check(LAPI_Amsend(hndl, to, handlers[to], &header, sizeof header, numbers, NUMBERS * sizeof *numbers,
                      NULL, &reusable, NULL),
          "LAPI_Amsend");
    check(LAPI_Waitcntr(hndl, &reusable, 1, NULL), "LAPI_Waitcntr");
}

/* The completion handler, with the delivery that the header handler has made. */
static void use_delivery(lapi_handle_t *hndl, void *parameter)
{
    struct delivery *delivery = parameter;
    int me;

    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    if (delivery->header.way == OUTWARD) {
        for (int i = 0; i < delivery->count; i++)
            sums[i] = own[i] + delivery->numbers[i];
        printf("task %d: completion handler: %d numbers from task %d; the sums go back\n", me,
               delivery->count, delivery->header.sender);
        send_numbers(*hndl, me, delivery->header.sender, BACK, sums);
    } else {
        memcpy(sums, delivery->numbers, sizeof sums);
        printf("task %d: completion handler: %d sums from task %d\n", me, delivery->count,
               delivery->header.sender);
        raise_flag();
    }
    free(delivery);
}

/* The header handler: makes room for the message. The user header ends with this call, so
 * it is copied. */
static void *begin_delivery(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                            compl_hndlr_t **completion, void **completion_param)
{
    struct delivery *delivery;

    (void)hndl;
    if (*uhdr_len != sizeof delivery->header || *msg_len != NUMBERS * sizeof *delivery->numbers) {
        fprintf(stderr, "a message that this program does not send\n");
        abort();
    }
    delivery = malloc(sizeof *delivery + *msg_len);
    if (delivery == NULL) {
        perror("malloc");
        abort();
    }
    memcpy(&delivery->header, uhdr, sizeof delivery->header);
    delivery->count = *msg_len / sizeof *delivery->numbers;
    *completion = use_delivery;
    *completion_param = delivery;
    return delivery->numbers;
}

/* An even task: sends, sleeps until the sums are here, and looks at them. */
static int accumulate(lapi_handle_t hndl, int me, int buddy)
{
    int right = 1;

    send_numbers(hndl, me, buddy, OUTWARD, own);

    /* In interrupt mode, the default, LAPI serves messages while no thread of the program
     * is in LAPI. */
    wait_for_flag();

    printf("task %d: the sums:", me);
    for (int i = 0; i < NUMBERS; i++) {
        printf(" %d", sums[i]);
        right = right && sums[i] == own_number(me, i) + own_number(buddy, i);
    }
    printf("\ntask %d: the sums are %s\n", me, right ? "right" : "WRONG");
    return right;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "accumulate_and_return.Am needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    for (int i = 0; i < NUMBERS; i++)
        own[i] = own_number(me, i);
    handlers = malloc(tasks * sizeof *handlers);
    if (handlers == NULL) {
        perror("malloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Address_init(hndl, (void *)begin_delivery, handlers), "LAPI_Address_init");

    /* The handlers of the target need its table of addresses: no task sends before every
     * task has it. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (me % 2 == 0)
        right = accumulate(hndl, me, me + 1);

    /* The odd task sits in this fence while its completion handler works and sends. */
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(handlers);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

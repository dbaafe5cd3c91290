/*
 * There and back by LAPI_Amsendv: what basic/accumulate_and_return.Am.c does by LAPI_Amsend, with
 * numbers that are fields of records.
 *
 * Each number is a piece of a vector. On the way out they are gathered from the records of the even
 * task into a plain array of the odd one; the sums go back out of the odd task's completion
 * handler, straight into the records. The user header gives the header handler the direction of a
 * message, and the header handler hands what belongs to the message to the completion handler by
 * its parameter.
 *
 *     mpcc_r accumulate_and_return.Amv.c -o accumulate_and_return.Amv
 *     poe ./accumulate_and_return.Amv -procs 2
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define RECORDS 6

static struct record {
    char name[12];
    int number;
} records[RECORDS];

/* The user header. Its length is a multiple of 8, as it should be for 64-bit programs. */
struct header {
    int sender;
    enum { OUTWARD, BACK } way;
};

/* A vector of RECORDS ints, with its arrays. */
struct number_vector {
    lapi_vec_t vector;
    void *places[RECORDS];
    ulong lengths[RECORDS];
};

/* One message on its way through the handlers of its target. */
struct delivery {
    struct header header;
    struct number_vector to;
    int numbers[RECORDS]; /* where the numbers go on their way out */
};

static void **handlers; /* the header handler's address in each task */

/* The program's own flag: LAPI knows nothing of it, so it is guarded like any other that
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

/* Lets a vector name the ints that lie `step` bytes apart, from `first` on. */
static void describe(struct number_vector *numbers, int *first, size_t step)
{
    numbers->vector.vec_type = LAPI_GEN_IOVECTOR;
    numbers->vector.num_vecs = RECORDS;
    numbers->vector.info = numbers->places;
    numbers->vector.len = numbers->lengths;
    for (int i = 0; i < RECORDS; i++) {
        numbers->places[i] = (char *)first + i * step;
        numbers->lengths[i] = sizeof *first;
    }
}

/* Sends numbers, and returns when they, their vector and the user header are LAPI's no more. */
static void send_numbers(lapi_handle_t hndl, int from, int to, int way, int *first, size_t step)
{
    struct header header = {from, way};
    struct number_vector numbers;
    lapi_cntr_t reusable;

    describe(&numbers, first, step);
    check(LAPI_Setcntr(hndl, &reusable, 0), "LAPI_Setcntr");
    check(LAPI_Amsendv(hndl, to, handlers[to], &header, sizeof header, &numbers.vector, NULL, &reusable,
                       NULL),
          "LAPI_Amsendv");
    check(LAPI_Waitcntr(hndl, &reusable, 1, NULL), "LAPI_Waitcntr");
}

/* The completion handler, with the delivery that the header handler has made. */
static void use_delivery(lapi_handle_t *hndl, void *parameter)
{
    struct delivery *delivery = parameter;
    int me;

    check(LAPI_Qenv(*hndl, TASK_ID, &me), "LAPI_Qenv");
    if (delivery->header.way == OUTWARD) {
        for (int i = 0; i < RECORDS; i++)
            delivery->numbers[i] += records[i].number;
        printf("task %d: completion handler: %d numbers from task %d; the sums go back\n", me, RECORDS,
               delivery->header.sender);
        send_numbers(*hndl, me, delivery->header.sender, BACK, delivery->numbers,
                     sizeof delivery->numbers[0]);
    } else {
        printf("task %d: completion handler: %d sums from task %d\n", me, RECORDS, delivery->header.sender);
        raise_flag();
    }
    free(delivery);
}

/* The header handler. The returned vector and its arrays must stay valid until the message
 * is complete. */
static lapi_vec_t *begin_delivery(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *lengths,
                                  compl_hndlr_t **completion, void **completion_param)
{
    struct delivery *delivery = malloc(sizeof *delivery);

    (void)hndl, (void)lengths;
    if (delivery == NULL) {
        perror("malloc");
        abort();
    }
    if (*uhdr_len != sizeof delivery->header) {
        fprintf(stderr, "a message that this program does not send\n");
        abort();
    }
    memcpy(&delivery->header, uhdr, sizeof delivery->header);
    if (delivery->header.way == OUTWARD)
        describe(&delivery->to, delivery->numbers, sizeof delivery->numbers[0]);
    else
        describe(&delivery->to, &records[0].number, sizeof records[0]);
    *completion = use_delivery;
    *completion_param = delivery;
    return &delivery->to.vector;
}

/* An even task: sends, sleeps until the sums are in its records, and looks at them. */
static int accumulate(lapi_handle_t hndl, int me, int buddy)
{
    int right = 1;

    send_numbers(hndl, me, buddy, OUTWARD, &records[0].number, sizeof records[0]);

    /* In interrupt mode, the default, LAPI serves messages while no thread of the program
     * is in LAPI. */
    wait_for_flag();

    printf("task %d: the sums:", me);
    for (int i = 0; i < RECORDS; i++) {
        char name[sizeof records[i].name];

        snprintf(name, sizeof name, "record %d", i);
        printf(" %d", records[i].number);
        right = right && records[i].number == own_number(me, i) + own_number(buddy, i) &&
                strcmp(records[i].name, name) == 0;
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
        fprintf(stderr, "accumulate_and_return.Amv needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    for (int i = 0; i < RECORDS; i++) {
        snprintf(records[i].name, sizeof records[i].name, "record %d", i);
        records[i].number = own_number(me, i);
    }
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

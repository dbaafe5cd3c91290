/*
 * Thousands of short calls of one place, and a long one among them: task 0 waits or polls, and task
 * 1 makes one of its calls long.
 *
 *   wait     nothing comes for 0.3 s. Task 0 tries again when the call was shorter, because it came late
 *   handler  a header handler runs for 0.3 s in the call
 *   poll     the same in LAPI_Getcntr
 *   copy     64 MiB arrive in packets, which the call copies
 *   put      the calls are puts, all with the same arguments; a few have no data and fail, and the last ones find no room, because task 1
 *            makes no call until they have been long. Task 0 prints how many have succeeded
 *   failed   puts fail before the first one that succeeds
 *   inside   the calls are puts, all with the same arguments; inside of a few of them a header handler runs for 3 ms, which makes puts
 *            from the same place. Task 0 prints how many puts there were, and how long those few have taken, in ns
 */
#include "../common/ltest.h"

#include <signal.h>
#include <time.h>

#define SHORT_CALLS 2000
#define MUCH (64UL << 20)
#define FAILING 7
#define PUT_BYTES 64
/* In turn. */
#define LONG_PUTS 20

static lapi_cntr_t counter;
static char word[8], *much;

static void rest(long ms)
{
    struct timespec moment = {0, ms * 1000000};
    nanosleep(&moment, NULL);
}

static void *on_message(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **done, void **info)
{
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    rest(300);
    *done = NULL;
    *info = NULL;
    return NULL;
}

/* The place: all calls of task 0 come from here. */
__attribute__((noinline)) static void short_or_long(int polls)
{
    int value = 0;
    if (!polls) {
        OK(LAPI_Waitcntr(t_hndl, &counter, 1, NULL));
        return;
    }
    while (value == 0)
        OK(LAPI_Getcntr(t_hndl, &counter, &value));
    OK(LAPI_Setcntr(t_hndl, &counter, value - 1));
}

static void short_ones(int polls)
{
    for (int i = 0; i < SHORT_CALLS; i++) {
        OK(LAPI_Put(t_hndl, 0, sizeof word, word, word, &counter, NULL, NULL));
        short_or_long(polls);
    }
}

/* The place of all puts. */
__attribute__((noinline)) static int put_to_1(void *place, void *data, lapi_cntr_t *done)
{
    return LAPI_Put(t_hndl, 1, PUT_BYTES, place, data, NULL, NULL, done);
}

static double now(void)
{
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + moment.tv_nsec * 1e-9;
}

static void puts_to_1(void *place, pid_t task_1)
{
    static char data[PUT_BYTES];
    lapi_cntr_t done = {0};
    int puts = 0, in_turn = 0;
    for (int i = 0; i < SHORT_CALLS; i++) {
        OK(put_to_1(place, data, &done));
        OK(LAPI_Waitcntr(t_hndl, &done, 1, NULL));
        if (i % 100 == 50 && i < FAILING * 100)
            RETURNS(put_to_1(place, NULL, &done), LAPI_ERR_ORG_ADDR_NULL);
    }
    t_fence();
    while (in_turn < LONG_PUTS) {
        double begin = now();
        OK(put_to_1(place, data, &done));
        in_turn = now() - begin >= 1e-3 ? in_turn + 1 : 0;
        CHECK(++puts < 1000000);
    }
    kill(task_1, SIGUSR1);
    OK(LAPI_Waitcntr(t_hndl, &done, puts, NULL));
    printf("puts %d\n", SHORT_CALLS + puts);
}

static void puts_that_fail(void *place)
{
    static char data[PUT_BYTES];
    lapi_cntr_t done = {0};
    for (int i = 0; i < SHORT_CALLS; i++)
        RETURNS(put_to_1(place, NULL, &done), LAPI_ERR_ORG_ADDR_NULL);
    for (int i = 0; i < FAILING; i++)
        OK(put_to_1(place, data, &done));
    OK(LAPI_Waitcntr(t_hndl, &done, FAILING, NULL));
}

static int until_a_signal(const sigset_t *signals)
{
    int signal;
    CHECK_EQ(sigwait(signals, &signal), 0);
    return signal;
}

#define ROUNDS 10
#define PUTS_INSIDE 100

static void *window_of_1;
static int made;

static void *puts_inside(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **done, void **info)
{
    static char data[PUT_BYTES];
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    for (int i = 0; i < PUTS_INSIDE; i++, made++)
        OK(put_to_1(window_of_1, data, NULL));
    rest(3);
    *done = NULL;
    *info = NULL;
    return NULL;
}

/* In each round a message of task 1 waits until task 0 makes a put, which receives it. */
static void puts_around_puts(void **processes, void **handlers, const sigset_t *signals)
{
    static char data[PUT_BYTES];
    static lapi_cntr_t go;
    void **goes = t_addresses(&go);
    double took = 0, begin;
    for (int round = 0; round < ROUNDS; round++) {
        t_fence();
        if (t_me == 1) {
            OK(LAPI_Waitcntr(t_hndl, &go, 1, NULL));
            until_a_signal(signals);
            OK(LAPI_Amsend(t_hndl, 0, handlers[0], NULL, 0, NULL, 0, NULL, NULL, NULL));
            kill((pid_t)(long)processes[0], SIGUSR1);
        } else {
            for (int i = 0; i < SHORT_CALLS; i++, made++)
                OK(put_to_1(window_of_1, data, NULL));
            /* So that there is room for what follows: this task makes no call until the signal. */
            OK(LAPI_Fence(t_hndl));
            OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, goes[1], NULL, NULL));
            kill((pid_t)(long)processes[1], SIGUSR1);
            until_a_signal(signals);
            begin = now();
            OK(put_to_1(window_of_1, data, NULL));
            took += now() - begin;
            made++;
        }
    }
    t_fence();
    if (t_me == 0)
        printf("puts %d took %.0f\n", made, took * 1e9);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "wait";
    int polls = strcmp(how, "poll") == 0, handler = polls || strcmp(how, "handler") == 0;
    int copies = strcmp(how, "copy") == 0;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGALRM);
    /* Before LAPI starts threads. */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    t_init();
    OK(LAPI_Senv(t_hndl, INTERRUPT_SET, 0));
    much = copies ? calloc(1, MUCH) : word;
    void *counters[2], *places[2], *handlers[2], *processes[2];
    lapi_cntr_t done = {0};
    OK(LAPI_Address_init(t_hndl, &counter, counters));
    OK(LAPI_Address_init(t_hndl, much, places));
    OK(LAPI_Address_init(t_hndl, (void *)on_message, handlers));
    OK(LAPI_Address_init(t_hndl, (void *)(long)getpid(), processes));
    if (strcmp(how, "put") == 0 || strcmp(how, "failed") == 0 || strcmp(how, "inside") == 0) {
        static char window[PUT_BYTES];
        OK(LAPI_Senv(t_hndl, ERROR_CHK, 1));
        OK(LAPI_Address_init(t_hndl, window, places));
        window_of_1 = places[1];
        if (strcmp(how, "inside") == 0) {
            OK(LAPI_Address_init(t_hndl, (void *)puts_inside, handlers));
            puts_around_puts(processes, handlers, &signals);
        } else if (strcmp(how, "failed") == 0) {
            if (t_me == 0)
                puts_that_fail(places[1]);
        } else if (t_me == 0) {
            puts_to_1(places[1], (pid_t)(long)processes[1]);
        } else {
            t_fence();
            until_a_signal(&signals);
        }
        t_fence();
        t_pass();
        return 0;
    }
    if (t_me == 0) {
        double began;
        short_ones(polls);
        /* Nothing but the long call takes what task 1 sends. */
        do {
            kill((pid_t)(long)processes[1], SIGUSR1);
            /* It is there when the call begins. */
            if (copies)
                rest(50);
            began = now();
            short_or_long(polls);
        } while (strcmp(how, "wait") == 0 && now() - began < 0.35);
        kill((pid_t)(long)processes[1], SIGALRM);
        short_ones(polls);
    } else {
        while (until_a_signal(&signals) == SIGUSR1) {
            if (handler) {
                OK(LAPI_Amsend(t_hndl, 0, handlers[0], NULL, 0, NULL, 0, counters[0], NULL, &done));
            } else {
                if (!copies)
                    rest(400);
                OK(LAPI_Put(t_hndl, 0, copies ? MUCH : sizeof word, places[0], much, counters[0], NULL, &done));
            }
            OK(LAPI_Waitcntr(t_hndl, &done, 1, NULL));
        }
    }
    t_pass();
}

/*
 * Bursts of small messages while an error handler runs: last_words INTERRUPT_SET SENDER FILE
 *
 * Task 2 dies: it may still reply to a get before. The error handler of task 0 ends when task 1 has
 * a burst of task 0, which it learns from the file. The burst is sent by the "handler", or by the
 * "program" meanwhile, which waits outside of LAPI, so that LAPI's own thread runs the handler.
 * Then neither makes another call.
 */
#include "../common/ltest.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

enum { VICTIM = 2, MESSAGES = 24, SECONDS = 30 };

static uint64_t word, places[MESSAGES], values[MESSAGES];
static void **all_words, **all_places, **counters;
static lapi_cntr_t arrived, got;
static const char *file_name;
static pthread_t program;
static volatile int program_sends, in_handler, losses;

static void send_burst(void) {
    int i;
    for (i = 0; i < MESSAGES; i++) {
        values[i] = (uint64_t)i + 1;
        OK(LAPI_Put(t_hndl, 1, sizeof values[i], (uint64_t *)all_places[1] + i, &values[i], counters[1], NULL, NULL));
    }
}

static void wait_for_file(void) {
    time_t end = time(NULL) + SECONDS;
    while (access(file_name, F_OK) != 0) CHECK(time(NULL) < end);
}

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)type, (void)task;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*src, VICTIM);
    if (t_me == 0) {
        /* A call of the program may find the death first. */
        if (!program_sends || pthread_equal(pthread_self(), program)) send_burst();
        else in_handler = 1;
        wait_for_file();
    }
    OK(LAPI_Setcntr(*hndl, &got, 1));
    losses++;
}

/* Task 0: gets what cannot come, until the loss is reported. */
static void be_told(void) {
    int i;
    while (losses == 0 && !in_handler) {
        int code = LAPI_Get(t_hndl, VICTIM, sizeof word, all_words[VICTIM], &word, NULL, &got);
        if (code == LAPI_SUCCESS && !program_sends) t_wait(&got, 1);
        for (i = 0; i < 1000 && losses == 0 && !in_handler; i++) usleep(1000);
    }
    if (in_handler) {
        send_burst();
        wait_for_file();
    }
    while (losses == 0) usleep(1000);
}

int main(int argc, char **argv) {
    lapi_info_t info = {.err_hndlr = error_handler};
    int i, file;

    CHECK(argc == 4);
    program_sends = strcmp(argv[2], "program") == 0;
    CHECK(program_sends || strcmp(argv[2], "handler") == 0);
    file_name = argv[3];
    program = pthread_self();
    t_init_with(&info);
    t_set(INTERRUPT_SET, atoi(argv[1]));
    OK(LAPI_Setcntr(t_hndl, &arrived, 0));
    OK(LAPI_Setcntr(t_hndl, &got, 0));
    all_words = t_addresses(&word);
    all_places = t_addresses(places);
    counters = t_addresses(&arrived);
    t_fence();
    if (t_me == VICTIM) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (t_me == 0) {
        be_told();
        CHECK_EQ(losses, 1);
    } else {
        t_wait_exact(&arrived, MESSAGES);
        for (i = 0; i < MESSAGES; i++) CHECK_EQ((long long)places[i], i + 1);
        file = open(file_name, O_CREAT | O_WRONLY, 0600);
        CHECK(file >= 0);
        close(file);
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}

/*
 * An error handler that sends a burst of small messages, and then computes: last_words INTERRUPT_SET FILE
 *
 * Task 2 dies: it may still reply to a get before. The error handler of task 0 sends to task 1, and makes no other call until task 1 has all of
 * it, which it learns from the file.
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
static volatile int losses;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    time_t end = time(NULL) + SECONDS;
    int i;
    (void)type, (void)task;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*src, VICTIM);
    for (i = 0; t_me == 0 && i < MESSAGES; i++) {
        values[i] = (uint64_t)i + 1;
        OK(LAPI_Put(*hndl, 1, sizeof values[i], (uint64_t *)all_places[1] + i, &values[i], counters[1], NULL, NULL));
    }
    while (t_me == 0 && access(file_name, F_OK) != 0) CHECK(time(NULL) < end);
    OK(LAPI_Setcntr(*hndl, &got, 1));
    losses++;
}

int main(int argc, char **argv) {
    lapi_info_t info = {.err_hndlr = error_handler};
    int i, file;

    CHECK(argc == 3);
    file_name = argv[2];
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
        while (losses == 0) {
            if (LAPI_Get(t_hndl, VICTIM, sizeof word, all_words[VICTIM], &word, NULL, &got) == LAPI_SUCCESS)
                t_wait(&got, 1);
            else
                usleep(1000);
        }
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

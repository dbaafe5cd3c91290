/*
 * A task dies while the link to its host is down: cut
 *
 * Two tasks on two hosts, by a launcher that lets the other task continue. Task 1 prints "PID N".
 * The test takes the link down, ends that process, and takes the link up again. The put of task 0
 * that is under way then ends with LAPI_ERR_NO_CONNECTIVITY, long before TIMEOUT.
 */
#include "../common/ltest.h"

#include <signal.h>

static volatile int losses;
static int word;
static lapi_cntr_t never;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*type, INT_ERR);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, 1);
    losses++;
    OK(LAPI_Setcntr(*hndl, &never, 1));
}

int main(void) {
    lapi_info_t info = {.err_hndlr = error_handler};
    void **words;

    /* Hydra sends it to the others when a task ends early. */
    signal(SIGUSR1, SIG_IGN);
    t_init_with(&info);
    words = t_addresses(&word);
    OK(LAPI_Setcntr(t_hndl, &never, 0));
    t_fence();
    if (t_me == 1) {
        printf("PID %ld\n", (long)getpid());
        fflush(stdout);
        for (;;) pause();
    }
    /* Puts complete until the link is down; one of them does not. */
    while (!losses) {
        int code = LAPI_Put(t_hndl, 1, sizeof word, words[1], &word, NULL, NULL, &never);
        if (code != LAPI_SUCCESS) {
            CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
            break;
        }
        t_wait(&never, 1);
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}

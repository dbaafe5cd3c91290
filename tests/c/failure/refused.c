/*
 * A task dies, and the other one makes no calls but puts to it, and fences: refused FENCE
 *
 * Interrupts are off. As soon as a put is refused, the death was reported.
 */
#include "../common/ltest.h"

#include <signal.h>
#include <time.h>

enum { VICTIM = 1, SECONDS = 60 };

static volatile int losses;
static long word;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*type, INT_ERR);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, VICTIM);
    losses++;
}

int main(int argc, char **argv) {
    lapi_info_t info = {.err_hndlr = error_handler};
    time_t end = time(NULL) + SECONDS;
    void **words;
    int code;

    CHECK(argc == 2);
    t_init_with(&info);
    t_set(INTERRUPT_SET, 0);
    words = t_addresses(&word);
    t_fence();
    if (t_me == VICTIM) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    while ((code = LAPI_Put(t_hndl, VICTIM, sizeof word, words[VICTIM], &word, NULL, NULL, NULL)) == LAPI_SUCCESS) {
        CHECK(time(NULL) < end);
        if (atoi(argv[1])) OK(LAPI_Fence(t_hndl));
        usleep(1000);
    }
    CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(losses, 1);
    OK(LAPI_Term(t_hndl));
    CHECK_EQ(losses, 1);
    t_pass();
    return 0;
}

/*
 * Tasks that send a burst of small messages, and exit without LAPI_Term: exits INTERRUPT_SET HOW
 *
 * HOW: it "returns" from main, or "locked", where it holds the library's lock; or exits in a
 * "header" or "completion" handler. "later": the messages are sent by a function that runs after
 * the library's own exit function. "busy": by a header handler that computes while main returns.
 * Task 0 gets all messages.
 */
#include "../locks/locks.h"

#include <string.h>
#include <unistd.h>

enum { MOST_TASKS = 8, MESSAGES = 24 };

static uint64_t places[MOST_TASKS][MESSAGES], values[MESSAGES];
static void **all_places, **counters;
static lapi_cntr_t arrived;
static const char *how;
static volatile int busy, exiting;

static int exits(const char *where) { return strcmp(how, where) == 0; }

static void send_all(void) {
    int i;
    for (i = 0; i < MESSAGES; i++) {
        uint64_t *place = (uint64_t *)all_places[0] + t_me * MESSAGES + i;
        values[i] = (uint64_t)(t_me * 1000 + i);
        OK(LAPI_Put(t_hndl, 0, sizeof values[i], place, &values[i], counters[0], NULL, NULL));
    }
}

static void send_and_exit(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    exiting = 1;
    send_all();
    exit(0);
}

static void at_exit(void) {
    if (t_me != 0) send_all();
}

static void compute(int milliseconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
}

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = NULL;
    if (exits("header")) send_and_exit(hndl, NULL);
    if (exits("completion")) *comp_h = send_and_exit;
    if (exits("busy")) {
        send_all();
        busy = 1;
        compute(100);
    }
    *uinfo = NULL;
    return NULL;
}

static void take_all(void) {
    int task, i;
    t_wait_exact(&arrived, MESSAGES * (t_tasks - 1));
    for (task = 1; task < t_tasks; task++)
        for (i = 0; i < MESSAGES; i++) CHECK_EQ((long long)places[task][i], task * 1000 + i);
}

int main(int argc, char **argv) {
    void **handlers;
    int task, in_handler;
    CHECK(argc == 3);
    how = argv[2];
    in_handler = exits("header") || exits("completion");
    CHECK(in_handler || exits("returns") || exits("locked") || exits("later") || exits("busy"));
    /* Registered first, and so called last. */
    if (exits("later")) CHECK_EQ(atexit(at_exit), 0);
    t_init();
    CHECK(t_tasks <= MOST_TASKS);
    t_set(INTERRUPT_SET, atoi(argv[1]));
    OK(LAPI_Setcntr(t_hndl, &arrived, 0));
    get_functions();
    all_places = t_addresses(places);
    counters = t_addresses(&arrived);
    handlers = t_addresses((void *)header);
    t_fence();
    if (t_me == 0) {
        for (task = 1; (in_handler || exits("busy")) && task < t_tasks; task++)
            OK(LAPI_Amsend(t_hndl, (uint)task, handlers[task], NULL, 0, NULL, 0, NULL, NULL, NULL));
        take_all();
        OK(LAPI_Term(t_hndl));
        t_pass();
        return 0;
    }
    while (in_handler && !exiting) OK(LAPI_Probe(t_hndl));
    while (in_handler) pause();
    while (exits("busy") && !busy) usleep(1000);
    if (exits("locked")) acquire();
    if (exits("returns") || exits("locked")) send_all();
    return 0;
}

/*
 * Header handlers that send a burst of small messages, and take long: long_handler
 * INTERRUPT_SET ROUNDS FOLDER
 *
 * The header handler of task 1 ends when task 0 has the burst, which it learns from a file.
 */
#include "../common/ltest.h"

#include <fcntl.h>
#include <time.h>

enum { MESSAGES = 24, SECONDS = 30 };

static uint64_t places[MESSAGES], values[MESSAGES];
static void **all_places, **counters;
static lapi_cntr_t arrived;
static const char *folder;
static volatile int rounds_begun;

static const char *name(int round) {
    static char text[4096];
    snprintf(text, sizeof text, "%s/%d", folder, round);
    return text;
}

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    int i, round = rounds_begun++;
    time_t end = time(NULL) + SECONDS;
    (void)uhdr, (void)uhdr_len, (void)msg_len;
    for (i = 0; i < MESSAGES; i++) {
        values[i] = (uint64_t)(round * 1000 + i);
        OK(LAPI_Put(*hndl, 0, sizeof values[i], (uint64_t *)all_places[0] + i, &values[i], counters[0], NULL, NULL));
    }
    while (access(name(round), F_OK) != 0) CHECK(time(NULL) < end);
    *comp_h = NULL;
    *uinfo = NULL;
    return NULL;
}

int main(int argc, char **argv) {
    int round, rounds, i;
    void **handlers;
    CHECK(argc == 4);
    rounds = atoi(argv[2]);
    folder = argv[3];
    t_init();
    t_set(INTERRUPT_SET, atoi(argv[1]));
    OK(LAPI_Setcntr(t_hndl, &arrived, 0));
    all_places = t_addresses(places);
    counters = t_addresses(&arrived);
    handlers = t_addresses((void *)header);
    for (round = 0; round < rounds; round++) {
        t_fence();
        if (t_me == 0) {
            int file;
            OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, NULL, 0, NULL, NULL, NULL));
            t_wait_exact(&arrived, MESSAGES);
            for (i = 0; i < MESSAGES; i++) CHECK_EQ((long long)places[i], round * 1000 + i);
            file = open(name(round), O_CREAT | O_WRONLY, 0600);
            CHECK(file >= 0);
            close(file);
        }
    }
    t_fence();
    t_done();
    return 0;
}

/*
 * Bursts of small messages whose sender then computes: burst INTERRUPT_SET ROUNDS FOLDER
 *
 * Task 0 makes no call of LAPI after a burst until task 1 has all of it, which it learns from a
 * file. The last messages of a burst must not wait for another call. In some rounds it holds the
 * library's lock meanwhile, which it takes before the burst or after it.
 */
#include "../locks/locks.h"

#include <fcntl.h>
#include <unistd.h>

/* A burst fits the window of every network: with interrupts off what is beyond it needs
 * another call. */
enum { MOST = 24, SECONDS = 30 };

static uint64_t values[MOST], places[MOST];
static void **all_places, **counters, **handlers;
static lapi_cntr_t arrived;
static unsigned long handled, sum;

static void *in_place(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    uint64_t value;
    (void)hndl;
    CHECK_EQ(*uhdr_len, sizeof value);
    CHECK_EQ(*msg_len, 0);
    memcpy(&value, uhdr, sizeof value);
    handled++;
    sum += value;
    *comp_h = NULL;
    *uinfo = NULL;
    return NULL;
}

static const char *name(const char *folder, int round) {
    static char text[4096];
    snprintf(text, sizeof text, "%s/%d", folder, round);
    return text;
}

static void send_burst(int round, int messages, const char *folder) {
    time_t end = time(NULL) + SECONDS;
    int i;
    if (round % 4 == 2) acquire();
    for (i = 0; i < messages; i++) {
        uint64_t value = (uint64_t)(round * 1000 + i);
        values[i] = value;
        OK(LAPI_Put(t_hndl, 1, sizeof value, (char *)all_places[1] + (size_t)i * sizeof value, &values[i], counters[1], NULL,
                    NULL));
        OK(LAPI_Amsend(t_hndl, 1, handlers[1], &value, sizeof value, NULL, 0, counters[1], NULL, NULL));
    }
    if (round % 4 == 3) acquire();
    while (access(name(folder, round), F_OK) != 0) CHECK(time(NULL) < end);
    if (round % 4 >= 2) release();
}

static void take_burst(int round, int messages, const char *folder) {
    unsigned long expected = 0;
    int i, file;
    t_wait_exact(&arrived, 2 * messages);
    for (i = 0; i < messages; i++) {
        CHECK_EQ((long long)places[i], round * 1000 + i);
        expected += (unsigned long)(round * 1000 + i);
    }
    CHECK_EQ((long long)handled, messages);
    CHECK_EQ((long long)sum, (long long)expected);
    handled = sum = 0;
    file = open(name(folder, round), O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0);
    close(file);
}

int main(int argc, char **argv) {
    int round, rounds;
    CHECK(argc == 4);
    rounds = atoi(argv[2]);
    t_init();
    t_set(INTERRUPT_SET, atoi(argv[1]));
    OK(LAPI_Setcntr(t_hndl, &arrived, 0));
    get_functions();
    all_places = t_addresses(places);
    counters = t_addresses(&arrived);
    handlers = t_addresses((void *)in_place);
    for (round = 0; round < rounds; round++) {
        int messages = 1 + round * 7 % MOST;
        t_fence();
        if (t_me == 0)
            send_burst(round, messages, argv[3]);
        else if (t_me == 1)
            take_burst(round, messages, argv[3]);
    }
    t_fence();
    t_done();
    return 0;
}

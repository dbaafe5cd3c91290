/*
 * A program that closes all descriptors after LAPI_Init, as closefrom(3) does, and opens sockets of
 * its own, in a job over UDP: the library neither reads from them nor writes to them nor closes
 * them, and reports that no other task can be reached any more.
 */
#include "../common/ltest.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

enum { PAIRS = 48, SECONDS = 60 };

static volatile int losses;
static lapi_cntr_t tgt_cntr;
static long long word;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*type, INT_ERR);
    CHECK_EQ(*task, t_me);
    CHECK(*src != t_me);
    losses++;
}

static void check_arrived(int from, const char *want) {
    char found[16];
    CHECK_EQ(recv(from, found, sizeof found, MSG_DONTWAIT), strlen(want));
    CHECK_EQ(memcmp(found, want, strlen(want)), 0);
    CHECK_EQ(recv(from, found, sizeof found, MSG_DONTWAIT), -1);
    CHECK_EQ(errno, EAGAIN);
}

int main(void) {
    lapi_info_t info = {.err_hndlr = error_handler};
    int pairs[PAIRS][2], next, code;
    void **cntrs, **there;
    time_t end;

    t_init_with(&info);
    next = (t_me + 1) % t_tasks;
    cntrs = t_addresses(&tgt_cntr);
    there = t_addresses(&word);
    OK(LAPI_Put(t_hndl, (uint)next, sizeof word, there[next], &(long long){1}, cntrs[next], NULL, NULL));
    t_wait_exact(&tgt_cntr, 1);
    t_fence();

    for (int number = 3; number < 1024; number++) close(number);
    for (int at = 0; at < PAIRS; at++) {
        CHECK_EQ(socketpair(AF_UNIX, at % 2 ? SOCK_STREAM : SOCK_DGRAM, 0, pairs[at]), 0);
        for (int side = 0; side < 2; side++) CHECK_EQ(send(pairs[at][side], "before", 6, 0), 6);
    }
    /* The library may not look at its socket again within some microseconds. */
    usleep(1000);

    end = time(NULL) + SECONDS;
    do {
        CHECK(time(NULL) < end);
        code = LAPI_Put(t_hndl, (uint)next, sizeof word, there[next], &word, NULL, NULL, NULL);
        OK(LAPI_Fence(t_hndl));
        OK(LAPI_Probe(t_hndl));
    } while (code == LAPI_SUCCESS);
    CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
    /* Once for each task that was met. */
    CHECK(losses >= 1 && losses < t_tasks);
    OK(LAPI_Term(t_hndl));

    for (int at = 0; at < PAIRS; at++)
        for (int side = 0; side < 2; side++) {
            check_arrived(pairs[at][side], "before");
            CHECK_EQ(send(pairs[at][1 - side], "after", 5, 0), 5);
            check_arrived(pairs[at][side], "after");
        }
    t_pass();
    return 0;
}

/*
 * One task with several peers: traffic CASE ROUNDS
 *
 *   moves    task 0 exchanges messages with one peer after another, and then with all of them by turns
 *   floods   task 1 sends to task 0 all the time, while all others wait for its replies
 *   echoes   the same, but task 0 and task 1 reply to each other: every message waits for the one before
 */
#include "../common/ltest.h"

static long long value, sum;
static lapi_cntr_t arrived, done, finished;
static void **values, **sums, **all_arrived, **all_finished;

/* Puts a number into `value` of a task, whose `arrived` counts it. */
static void put(int tgt, long long number) {
    long long from = number;
    lapi_cntr_t sent;
    OK(LAPI_Setcntr(t_hndl, &sent, 0));
    OK(LAPI_Put(t_hndl, (uint)tgt, sizeof from, values[tgt], &from, all_arrived[tgt], &sent, NULL));
    t_wait_exact(&sent, 1);
}

/* One message to a peer and its reply, of which each must be the next one. */
static void exchange(int peer, long long number) {
    put(peer, number);
    t_wait_exact(&arrived, 1);
    CHECK_EQ(value, number + peer);
}

static void reply(long long number) {
    t_wait_exact(&arrived, 1);
    CHECK_EQ(value, number);
    put(0, number + t_me);
}

static void moves(int rounds) {
    for (int peer = 1; peer < t_tasks; peer++) {
        for (int i = 0; i < rounds; i++) {
            if (t_me == 0)
                exchange(peer, i);
            else if (t_me == peer)
                reply(i);
        }
    }
    for (int i = 0; i < rounds; i++) {
        for (int peer = 1; peer < t_tasks; peer++) {
            if (t_me == 0)
                exchange(peer, 7 * i);
            else if (t_me == peer)
                reply(7 * i);
        }
    }
}

/* Whether all that wait for replies have them: each has counted that in `finished` of this task. */
static int are_finished(void) { return t_value(&finished) >= t_tasks - 2; }

/* The waiting tasks: task 0 adds up what they send, and each sees its own part in order. */
static void ask(int rounds) {
    long long one = 1, before, last = -1;
    lapi_cntr_t fetched;
    OK(LAPI_Setcntr(t_hndl, &fetched, 0));
    for (int i = 0; i < rounds; i++) {
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, 0, sums[0], &one, &before, &fetched));
        t_wait_exact(&fetched, 1);
        CHECK_FOR(before > last, "%lld after %lld", before, last);
        last = before;
    }
    for (int tgt = 0; tgt < 2; tgt++) {
        OK(LAPI_Put(t_hndl, (uint)tgt, 0, NULL, NULL, all_finished[tgt], NULL, &done));
        t_wait_exact(&done, 1);
    }
}

static void floods(int rounds) {
    long long sent = 0;
    if (t_me == 1) {
        do {
            for (int i = 0; i < 32; i++) {
                OK(LAPI_Put(t_hndl, 0, sizeof value, values[0], &value, all_arrived[0], NULL, &done));
                sent++;
            }
            t_wait_exact(&done, 32);
        } while (!are_finished());
        OK(LAPI_Put(t_hndl, 0, sizeof sent, values[0], &sent, all_finished[0], NULL, &done));
        t_wait_exact(&done, 1);
    } else if (t_me == 0) {
        t_wait_exact(&finished, t_tasks - 1);
        CHECK_EQ(t_value(&arrived), value);
        CHECK_EQ(sum, (long long)rounds * (t_tasks - 2));
    } else {
        ask(rounds);
    }
}

static void echoes(int rounds) {
    if (t_me > 1) {
        ask(rounds);
    } else if (t_me == 1) {
        /* The last number is negative. */
        for (long long i = 0;; i++) {
            t_wait_exact(&arrived, 1);
            if (value < 0)
                break;
            CHECK_EQ(value, i);
            put(0, i + 1);
        }
    } else {
        long long i = 0;
        do
            exchange(1, i++);
        while (!are_finished());
        put(1, -1);
        CHECK_EQ(sum, (long long)rounds * (t_tasks - 2));
    }
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "moves";
    int rounds = argc > 2 ? atoi(argv[2]) : 300;
    t_init();
    CHECK(t_tasks >= 3);
    values = t_addresses(&value);
    sums = t_addresses(&sum);
    all_arrived = t_addresses(&arrived);
    all_finished = t_addresses(&finished);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (strcmp(name, "moves") == 0)
        moves(rounds);
    else if (strcmp(name, "floods") == 0)
        floods(rounds);
    else if (strcmp(name, "echoes") == 0)
        echoes(rounds);
    else
        T_FAIL("no such case: %s", name);
    t_done();
    return 0;
}

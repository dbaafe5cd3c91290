/*
 * Tasks 0 and 1 purge each other in the middle of their messages, and resume, while both
 * processes live on.
 * again ROUNDS SEED
 *
 * Task 2 notifies them when both have purged: it is not concerned, and its own messages with both
 * continue. What arrives in a round must be of that round: each message carries its round and is
 * filled from it.
 */
#include "../common/ltest.h"

enum { LARGE = 300000, SMALL = 3 };

struct note {
    int round, piece;
};

static unsigned char from[LARGE], into[LARGE];
static unsigned char at_handler[LARGE];
static lapi_cntr_t together, go, here, taken, landed, fetched;
static volatile int round_now, strays;
static int shared;

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    struct note *note = uhdr;
    (void)hndl, (void)msg_len;
    CHECK_EQ(*uhdr_len, sizeof *note);
    if (note->round != round_now) strays++;
    *comp_h = NULL;
    *uinfo = NULL;
    return at_handler;
}

/* Waits until the other has reached this point: by way of task 2. */
static void meet(void) {
    OK(LAPI_Put(t_hndl, 2, 0, NULL, NULL, &together, NULL, NULL));
    t_wait_exact(&go, 1);
}

static void round_of(int round, uint other, uint64_t *seed) {
    struct note note = {round, 0};
    lapi_cntr_t done, cmpl;
    int i, one = 1, before;
    bzero(&done, sizeof done);
    bzero(&cmpl, sizeof cmpl);
    t_fill(from, LARGE, (uint64_t)round);
    /* What is whole: put, active message, get, read-modify-write; and in this round's turn
     * of numbers. */
    OK(LAPI_Put(t_hndl, other, LARGE, into, from, &landed, NULL, &cmpl));
    OK(LAPI_Amsend(t_hndl, other, (void *)header, &note, sizeof note, from, LARGE, &landed, &done, &cmpl));
    for (i = 0; i < SMALL; i++)
        OK(LAPI_Amsend(t_hndl, other, (void *)header, &note, sizeof note, from, 64, &landed, &done, &cmpl));
    OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, other, &shared, &one, &before, &taken));
    t_wait_exact(&taken, 1);
    t_wait_exact(&cmpl, 2 + SMALL);
    t_wait_exact(&done, 1 + SMALL);
    t_wait_exact(&landed, 2 + SMALL);
    CHECK_FILLED(into, LARGE, (uint64_t)round);
    OK(LAPI_Get(t_hndl, other, LARGE, from, at_handler, NULL, &fetched));
    t_wait_exact(&fetched, 1);
    CHECK_FILLED(at_handler, LARGE, (uint64_t)round);
    OK(LAPI_Fence(t_hndl));
    CHECK_EQ(strays, 0);
    meet();
    /* And now what will not be whole. */
    for (i = (int)t_below(seed, 40); i >= 0; i--) {
        int code;
        switch (t_below(seed, 3)) {
        case 0: code = LAPI_Put(t_hndl, other, LARGE, into, from, NULL, NULL, NULL); break;
        case 1: code = LAPI_Get(t_hndl, other, LARGE, into, at_handler, NULL, NULL); break;
        default:
            code = LAPI_Amsend(t_hndl, other, (void *)header, &note, sizeof note, from, LARGE, NULL, NULL, NULL);
        }
        CHECK_EQ(code, LAPI_SUCCESS);
    }
    OK(LAPI_Purge_totask(t_hndl, other));
    OK(LAPI_Fence(t_hndl));
    RETURNS(LAPI_Put(t_hndl, other, 0, NULL, NULL, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
    round_now = round + 1;
    if (t_below(seed, 2) == 0) meet();
    /* Without a meeting point one of them may be far ahead: it sends no message until the other one
     * has caught up. */
    else meet(), usleep((useconds_t)t_below(seed, 2000));
    OK(LAPI_Resume_totask(t_hndl, other));
}

int main(int argc, char **argv) {
    int rounds = argc == 3 ? atoi(argv[1]) : 0, round;
    uint64_t seed;
    CHECK(rounds > 0);
    seed = t_seed((uint64_t)atoi(argv[2]), 0, 0);
    t_init();
    CHECK_EQ(t_tasks, 3);
    seed ^= (uint64_t)t_me;
    t_fence();
    if (t_me == 2) {
        for (round = 0; round < 2 * rounds; round++) {
            t_wait_exact(&together, 2);
            OK(LAPI_Put(t_hndl, 0, 0, NULL, NULL, &go, NULL, NULL));
            OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, &go, NULL, NULL));
        }
    } else {
        for (round = 0; round < rounds; round++) round_of(round, (uint)(1 - t_me), &seed);
    }
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &here, NULL, NULL));
    t_wait_exact(&here, 1);
    t_done();
    return 0;
}

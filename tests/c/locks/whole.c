/*
 * A program that takes the shared lock right after LAPI_Init and keeps it: whole
 * INTERRUPTS [THREADS]
 *
 * Its completion handlers take the lock themselves, on LAPI's threads, and call LAPI with it
 * held; they get it while the program is inside calls. With THREADS, this number of other
 * threads does the same as the program, taking the lock for each round. What the lock guards are
 * plain variables.
 */
#include "locks.h"

enum { ROUNDS = 60, LARGE = 200000, WORD = 8, MOST = 16 };

static long handled, rounds_done; /* guarded by the lock */
static void **handlers, **counters, **buffers, **sums;
static lapi_cntr_t tgt_cntr;
static char in[LARGE];
static long long sum;

static void completion(lapi_handle_t *hndl, void *info) {
    lapi_cntr_t done;
    char bytes[WORD];
    int from = (int)(long)info;
    CHECK(!mine());
    acquire();
    handled++;
    bzero(&done, sizeof done);
    OK(LAPI_Get(*hndl, (uint)from, sizeof bytes, buffers[from], bytes, NULL, &done));
    CHECK(mine());
    OK(LAPI_Waitcntr(*hndl, &done, 1, NULL));
    release();
}

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)uhdr_len, (void)msg_len;
    CHECK(mine());
    *comp_h = completion;
    *uinfo = (void *)(long)*(int *)uhdr;
    return in + LARGE / 2;
}

/* Some of everything, with the lock held. */
static void round_of(int number, char *out, char *back) {
    lapi_cntr_t org, cmpl;
    lapi_msg_info_t info;
    int tgt, value;
    bzero(&org, sizeof org);
    bzero(&cmpl, sizeof cmpl);
    for (tgt = 0; tgt < t_tasks; tgt++) {
        long len = number % 20 == 0 ? LARGE / 2 : WORD;
        long long one = 1, former;
        OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], &t_me, sizeof t_me, out, WORD, NULL, &org, &cmpl));
        CHECK(mine());
        OK(LAPI_Put(t_hndl, (uint)tgt, (ulong)len, buffers[tgt], out, counters[tgt], &org, &cmpl));
        CHECK(mine());
        OK(LAPI_Get(t_hndl, (uint)tgt, (ulong)len, buffers[tgt], back, NULL, &org));
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)tgt, sums[tgt], &one, &former, &org));
        CHECK(mine());
        OK(LAPI_Waitcntr(t_hndl, &org, 4, &value));
        CHECK(mine());
    }
    OK(LAPI_Waitcntr(t_hndl, &cmpl, 2 * t_tasks, &value));
    CHECK(mine());
    OK(LAPI_Fence(t_hndl));
    CHECK(mine());
    OK(LAPI_Probe(t_hndl));
    OK(LAPI_Msgpoll(t_hndl, 10, &info));
    OK(LAPI_Setcntr(t_hndl, &org, 3));
    OK(LAPI_Getcntr(t_hndl, &org, &value));
    CHECK_EQ(value, 3);
    OK(LAPI_Qenv(t_hndl, TASK_ID, &value));
    CHECK_EQ(value, t_me);
    CHECK(mine());
    rounds_done++;
}

static void *other(void *arg) {
    char *out = calloc(1, LARGE), *back = calloc(1, LARGE);
    int i;
    (void)arg;
    CHECK(out != NULL && back != NULL);
    for (i = 0; i < ROUNDS; i++) {
        acquire();
        round_of(i, out, back);
        release();
    }
    free(out);
    free(back);
    return NULL;
}

int main(int argc, char **argv) {
    static char out[LARGE], back[LARGE];
    pthread_t tids[MOST];
    int i, threads = argc == 3 ? atoi(argv[2]) : 0, all;
    void **again;
    CHECK(argc >= 2 && threads <= MOST);
    t_init();
    get_functions();
    acquire();
    t_set(INTERRUPT_SET, atoi(argv[1]));
    handlers = t_addresses((void *)header);
    counters = t_addresses(&tgt_cntr);
    buffers = t_addresses(in);
    sums = t_addresses(&sum);
    CHECK(mine());
    t_fence();
    CHECK(mine());
    for (i = 0; i < threads; i++) tids[i] = start(other, NULL);
    for (i = 0; i < ROUNDS; i++) {
        round_of(i, out, back);
        if (i % 7 == 0) t_fence();
        if (i % 11 == 0) {
            again = t_addresses(&tgt_cntr);
            CHECK_EQ(memcmp(again, counters, sizeof *again * (size_t)t_tasks), 0);
            free(again);
        }
        CHECK(mine());
    }
    /* The others have their turns while this one calls LAPI. */
    all = ROUNDS * (1 + threads);
    while (rounds_done < all) OK(LAPI_Probe(t_hndl));
    t_wait_exact(&tgt_cntr, all * t_tasks);
    while (handled < (long)all * t_tasks) OK(LAPI_Probe(t_hndl));
    t_fence();
    CHECK_EQ(handled, (long)all * t_tasks);
    CHECK_EQ(sum, (long long)all * t_tasks);
    CHECK(mine());
    if (threads == 0) {
        /* To the very end. */
        OK(LAPI_Term(t_hndl));
        CHECK_EQ(lk.mutex_unlock(t_hndl), EINVAL);
        t_pass();
        return 0;
    }
    release();
    for (i = 0; i < threads; i++) join(tids[i]);
    t_done();
    return 0;
}

/*
 * Read-modify-write: rmw CASE
 *
 *   values   every operation and size by every call, with every task, checked by value
 *   storm    all tasks at once on variables of one task: sums and bits exact, every previous value returned once
 *   odd      addresses that are not aligned are refused in this task, and the other task lives on
 *   lock     a lock made of COMPARE_AND_SWAP and SWAP around a variable that is changed by get and put
 */
#include "../common/ltest.h"

static int word;
static long long word64;
static void **words, **words64;
static lapi_cntr_t org_cntr;

/* By LAPI_Rmw, or by LAPI_Xfer with size 32. */
static void rmw(int by_xfer, RMW_ops_t op, int tgt, int *in, int *prev) {
    if (!by_xfer) {
        OK(LAPI_Rmw(t_hndl, op, (uint)tgt, words[tgt], in, prev, &org_cntr));
    } else {
        lapi_xfer_t xfer;
        bzero(&xfer, sizeof xfer);
        xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
        xfer.Rmw.op = op;
        xfer.Rmw.tgt = (uint)tgt;
        xfer.Rmw.size = 32;
        xfer.Rmw.tgt_var = t_long(words[tgt]);
        xfer.Rmw.in_val = in;
        xfer.Rmw.prev_tgt_val = prev;
        xfer.Rmw.org_cntr = &org_cntr;
        OK(LAPI_Xfer(t_hndl, &xfer));
    }
    t_wait_exact(&org_cntr, 1);
}

/* By LAPI_Rmw64, or by LAPI_Xfer with size 64. */
static void rmw64(int by_xfer, RMW_ops_t op, int tgt, long long *in, long long *prev) {
    if (!by_xfer) {
        OK(LAPI_Rmw64(t_hndl, op, (uint)tgt, words64[tgt], in, prev, &org_cntr));
    } else {
        lapi_xfer_t xfer;
        bzero(&xfer, sizeof xfer);
        xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
        xfer.Rmw.op = op;
        xfer.Rmw.tgt = (uint)tgt;
        xfer.Rmw.size = 64;
        xfer.Rmw.tgt_var = t_long(words64[tgt]);
        xfer.Rmw.in_val = in;
        xfer.Rmw.prev_tgt_val = prev;
        xfer.Rmw.org_cntr = &org_cntr;
        OK(LAPI_Xfer(t_hndl, &xfer));
    }
    t_wait_exact(&org_cntr, 1);
}

#define EXPECT(op, a, b, prev_is, now_is)                                                                 \
    do {                                                                                                         \
        TYPE in[2] = {(a), (b)}, prev = 99;                                                                      \
        CALL(by_xfer, op, tgt, in, &prev);                                                                       \
        CHECK_EQ(prev, (prev_is));                                                                               \
        CALL(by_xfer, FETCH_AND_OR, tgt, &zero, &prev);                                                          \
        CHECK_EQ(prev, (now_is));                                                                                \
        CHECK_EQ(in[0], (a));                                                                                    \
        CHECK_EQ(in[1], (b));                                                                                    \
    } while (0)

static void values32(int by_xfer, int tgt) {
    int zero = 0;
#define TYPE int
#define CALL rmw
    rmw(by_xfer, SWAP, tgt, &zero, NULL);
    EXPECT(FETCH_AND_ADD, 5, 0, 0, 5);
    EXPECT(FETCH_AND_ADD, -12, 0, 5, -7);
    EXPECT(SWAP, 0x7fffffff, 0, -7, 0x7fffffff);
    EXPECT(FETCH_AND_ADD, 1, 0, 0x7fffffff, -0x7fffffff - 1); /* wraps */
    EXPECT(SWAP, 0x0f0f, 0, -0x7fffffff - 1, 0x0f0f);
    EXPECT(FETCH_AND_OR, 0xf000, 0, 0x0f0f, 0xff0f);
    EXPECT(FETCH_AND_OR, -65536, 0, 0xff0f, -241);
    EXPECT(COMPARE_AND_SWAP, 3, 4, 0, -241);    /* FALSE */
    EXPECT(COMPARE_AND_SWAP, -241, -5, 1, -5);  /* TRUE */
    EXPECT(COMPARE_AND_SWAP, -241, 17, 0, -5);
#undef TYPE
#undef CALL
}

static void values64(int by_xfer, int tgt) {
    long long zero = 0, big = 0x123456789abcdef0LL;
#define TYPE long long
#define CALL rmw64
    rmw64(by_xfer, SWAP, tgt, &zero, NULL);
    EXPECT(FETCH_AND_ADD, big, 0, 0, big);
    EXPECT(FETCH_AND_ADD, -big - 9, 0, big, -9);
    EXPECT(SWAP, 0x7fffffffffffffffLL, 0, -9, 0x7fffffffffffffffLL);
    EXPECT(FETCH_AND_ADD, 1, 0, 0x7fffffffffffffffLL, -0x7fffffffffffffffLL - 1);
    EXPECT(SWAP, 0x0f0f, 0, -0x7fffffffffffffffLL - 1, 0x0f0f);
    EXPECT(FETCH_AND_OR, 0xf00000000000LL, 0, 0x0f0f, 0xf00000000f0fLL);
    EXPECT(COMPARE_AND_SWAP, 0x0f0f, 4, 0, 0xf00000000f0fLL); /* only the lower half is equal */
    EXPECT(COMPARE_AND_SWAP, 0xf00000000f0fLL, -big, 1, -big);
    EXPECT(COMPARE_AND_SWAP, 0xf00000000f0fLL, 17, 0, -big);
#undef TYPE
#undef CALL
}

static void values(void) {
    int distance, by_xfer;
    for (distance = 0; distance < t_tasks; distance++) {
        for (by_xfer = 0; by_xfer < 2; by_xfer++) {
            /* In each round every variable belongs to one task alone. */
            values32(by_xfer, (t_me + distance) % t_tasks);
            values64(by_xfer, (t_me + distance) % t_tasks);
            t_fence();
        }
    }
    /* Neither the former value nor a counter is wanted. */
    int one = 1;
    word = 0;
    t_fence();
    for (distance = 0; distance < t_tasks; distance++)
        OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)distance, words[distance], &one, NULL, NULL));
    t_fence();
    CHECK_EQ(word, t_tasks);
}

/* Every task adds 1 and 2^33 + 1 to the variables of each task and sets a bit of its own. */
static void storm(int rounds) {
    int one = 1, *prevs = malloc(sizeof *prevs * (size_t)rounds), tgt, i;
    long long big = (1LL << 33) + 1, sum = (long long)rounds * t_tasks;
    char *seen = calloc((size_t)sum, 1);
    CHECK(prevs != NULL && seen != NULL);
    word = 0;
    word64 = 0;
    t_fence();
    for (tgt = 0; tgt < t_tasks; tgt++) {
        for (i = 0; i < rounds; i++) {
            OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)tgt, words[tgt], &one, &prevs[i], &org_cntr));
            OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)tgt, words64[tgt], &big, NULL, &org_cntr));
        }
        t_wait_exact(&org_cntr, 2 * rounds);
        for (i = 0; i < rounds; i++) {
            CHECK_FOR(prevs[i] >= 0 && prevs[i] < sum, "the former value was %d", prevs[i]);
            CHECK_FOR(!seen[prevs[i]], "the former value %d was handed out twice", prevs[i]);
            seen[prevs[i]] = 1;
        }
        memset(seen, 0, (size_t)sum);
        t_fence();
    }
    CHECK_EQ(word, sum);
    CHECK_EQ(word64, sum * big);
    word = 0;
    t_fence();
    one = 1 << t_me;
    for (tgt = 0; tgt < t_tasks; tgt++)
        OK(LAPI_Rmw(t_hndl, FETCH_AND_OR, (uint)tgt, words[tgt], &one, NULL, &org_cntr));
    t_wait_exact(&org_cntr, t_tasks);
    t_fence();
    CHECK_EQ(word, (1 << t_tasks) - 1);
    free(prevs);
    free(seen);
}

static void lock(int rounds) {
    static long long guarded;
    void **guardeds = t_addresses(&guarded);
    lapi_cntr_t cmpl;
    int i, taken[2] = {0, 1}, free_again = 0, got;
    long long value;
    bzero(&cmpl, sizeof cmpl);
    word = 0;
    guarded = 0;
    t_fence();
    for (i = 0; i < rounds; i++) {
        do rmw(i % 2, COMPARE_AND_SWAP, 0, taken, &got);
        while (!got);
        OK(LAPI_Get(t_hndl, 0, sizeof value, guardeds[0], &value, NULL, &org_cntr));
        t_wait_exact(&org_cntr, 1);
        value++;
        OK(LAPI_Put(t_hndl, 0, sizeof value, guardeds[0], &value, NULL, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        rmw(i % 2, SWAP, 0, &free_again, &got);
        CHECK_EQ(got, 1);
    }
    t_fence();
    if (t_me == 0) CHECK_EQ(guarded, (long long)rounds * t_tasks);
}

static void odd(void) {
    static const int sizes[] = {32, 64};
    long long in = 1, prev = 99;
    int i, offset, tgt;
    for (tgt = 0; tgt < t_tasks; tgt++)
        for (i = 0; i < 2; i++)
            for (offset = 1; offset < sizes[i] / 8; offset++) {
                char *at = (char *)words64[tgt] + offset;
                lapi_xfer_t xfer;
                if (sizes[i] == 32)
                    RETURNS(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)tgt, (int *)(void *)at, (int *)&in, (int *)&prev, &org_cntr),
                            LAPI_ERR_UNKNOWN);
                else
                    RETURNS(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)tgt, (long long *)(void *)at, &in, &prev, &org_cntr),
                            LAPI_ERR_UNKNOWN);
                bzero(&xfer, sizeof xfer);
                xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
                xfer.Rmw.op = SWAP;
                xfer.Rmw.tgt = (uint)tgt;
                xfer.Rmw.size = (uint)sizes[i];
                xfer.Rmw.tgt_var = t_long(at);
                xfer.Rmw.in_val = &in;
                xfer.Rmw.org_cntr = &org_cntr;
                RETURNS(LAPI_Xfer(t_hndl, &xfer), LAPI_ERR_UNKNOWN);
            }
    t_fence();
    CHECK_EQ(word64, 0);
    CHECK_EQ(prev, 99);
    CHECK_EQ(t_value(&org_cntr), 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    t_init();
    words = t_addresses(&word);
    words64 = t_addresses(&word64);
    if (strcmp(argv[1], "values") == 0)
        values();
    else if (strcmp(argv[1], "storm") == 0)
        storm(4000 / t_tasks);
    else if (strcmp(argv[1], "odd") == 0)
        odd();
    else if (strcmp(argv[1], "lock") == 0)
        lock(600 / t_tasks);
    else
        T_FAIL("there is no case %s", argv[1]);
    t_done();
    return 0;
}

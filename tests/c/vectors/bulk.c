/*
 * Vectors by bulk transfer: bulk KIND HINT WAY [ROUNDS], KIND one of putv getv amv, HINT none use
 * not (the flags of LAPI_Xfer), WAY keys or packets: what the statistics of the network must show;
 * any: nothing, and task 0 prints a line when it begins
 *
 * Two tasks on the network, each of which works with the other. Pieces are long, at odd addresses,
 * in any order, and have other boundaries at both ends where they touch; some shapes have short and
 * empty pieces between the long ones.
 */
#include "vec.h"

#define IO LAPI_GEN_IOVECTOR
#define STRIDED LAPI_GEN_STRIDED_XFER
#define LONGEST_PACKET 40000 /* more than a packet of the network holds */
enum { LONG, MIXED, MOSTLY_SHORT, MANY }; /* the lengths of pieces */

static const struct {
    lapi_vectype_t type;
    uint count;
    ulong a, b, c; /* of a strided vector: blocks of `a` bytes, `b` apart at the origin and `c` at the target */
    int lengths, placements[2];
} shapes[] = {
    {IO, 20, 0, 0, 0, LONG, {SPREAD, SHUFFLED}},
    {IO, 20, 0, 0, 0, LONG, {TOUCHING, SPREAD}},
    {IO, 20, 0, 0, 0, LONG, {SHUFFLED, TOUCHING}},
    {IO, 60, 0, 0, 0, MIXED, {SPREAD, SHUFFLED}},
    {IO, 60, 0, 0, 0, MIXED, {TOUCHING, SHUFFLED}},
    {IO, 600, 0, 0, 0, MOSTLY_SHORT, {SPREAD, SHUFFLED}},
    {IO, 6000, 0, 0, 0, MANY, {SPREAD, SHUFFLED}}, /* 3,000 long pieces, in batches */
    {STRIDED, 17, 500001, 500009, 700000, LONG, {1, 3}},
    {STRIDED, 30, 262144, 262144, 262145, LONG, {0, 5}},
};
#define SHAPES ((int)(sizeof shapes / sizeof *shapes))

static unsigned char *out, *in;
static void **outs, **ins, **tgt_cntrs, **handlers;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static side from, to;
static lapi_vec_t *returned;
static volatile int completed;
static uint64_t mine, theirs;

static ulong length(int how, uint i, uint64_t *seed) {
    ulong len = (how == MANY ? 50000 : 200000) + t_below(seed, how == MANY ? 10000 : 600000);
    if (how == MANY) return i % 2 ? t_below(seed, 200) : len;
    if (how == LONG) return len;
    if (how == MOSTLY_SHORT) return i % 40 == 7 ? len : t_below(seed, 3000);
    return i % 5 == 1 ? 0 : i % 2 ? t_below(seed, 3000) : len;
}

static side make(int number, int which) {
    uint64_t seed = t_seed((uint64_t)number, 1, 1);
    ulong *len;
    uint i;
    side s;
    if (shapes[number].type == STRIDED)
        return v_strided(shapes[number].count, shapes[number].a, which ? shapes[number].c : shapes[number].b,
                         (ulong)shapes[number].placements[which]);
    len = v_alloc(shapes[number].count * sizeof *len);
    for (i = 0; i < shapes[number].count; i++) len[i] = length(shapes[number].lengths, i, &seed);
    s = v_pieces(IO, shapes[number].count, len, shapes[number].placements[which],
                 t_seed((uint64_t)number, (uint64_t)which, 2));
    free(len);
    return s;
}

static void whole(lapi_handle_t *hndl, void *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_PTR(info, &to);
    CHECK_EQ(v_differs(&to, in, to.bytes, theirs), -1);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    lapi_return_info_t *ret = (lapi_return_info_t *)len_vec;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof theirs);
    CHECK_EQ(*(uint64_t *)uhdr, theirs);
    CHECK_EQ(ret->msg_len, to.bytes);
    CHECK_PTR(ret->udata_one_pkt_ptr, NULL);
    *comp_h = whole;
    *uinfo = &to;
    return returned;
}

static long packets(void) {
    lapi_statistics_t s;
    OK(LAPI_Qenv(t_hndl, QUERY_STATISTICS, (int *)&s));
    return (long)(s.Tot_pkt_sent_cnt + s.Tot_pkt_rcv_cnt);
}

static void start(const char *kind, int flags, lapi_vec_t *org, lapi_vec_t *tgt_vec) {
    uint tgt = (uint)!t_me;
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    if (strcmp(kind, "putv") == 0) {
        x.Putv.Xfer_type = LAPI_PUTV_XFER;
        x.Putv.flags = flags | USE_TGT_VEC_TYPE;
        x.Putv.tgt = tgt;
        x.Putv.org_vec = org;
        x.Putv.tgt_vec = tgt_vec;
        x.Putv.tgt_cntr = t_long(tgt_cntrs[tgt]);
        x.Putv.org_cntr = &org_cntr;
        x.Putv.cmpl_cntr = &cmpl_cntr;
    } else if (strcmp(kind, "getv") == 0) {
        x.Getv.Xfer_type = LAPI_GETV_XFER;
        x.Getv.flags = flags | USE_TGT_VEC_TYPE;
        x.Getv.tgt = tgt;
        x.Getv.org_vec = org;
        x.Getv.tgt_vec = tgt_vec;
        x.Getv.tgt_cntr = t_long(tgt_cntrs[tgt]);
        x.Getv.org_cntr = &org_cntr;
        x.Getv.chndlr = whole;
        x.Getv.cinfo = &to;
    } else {
        CHECK_EQ(strcmp(kind, "amv"), 0);
        x.Amv.Xfer_type = LAPI_AMV_XFER;
        x.Amv.flags = flags;
        x.Amv.tgt = tgt;
        x.Amv.hdr_hdl = t_long(handlers[tgt]);
        x.Amv.uhdr_len = sizeof mine;
        x.Amv.uhdr = &mine;
        x.Amv.org_vec = org;
        x.Amv.tgt_cntr = t_long(tgt_cntrs[tgt]);
        x.Amv.org_cntr = &org_cntr;
        x.Amv.cmpl_cntr = &cmpl_cntr;
    }
    OK(LAPI_Xfer(t_hndl, &x));
}

static void step(const char *kind, int flags, const char *way, int number, int round) {
    int get = strcmp(kind, "getv") == 0, put = strcmp(kind, "putv") == 0;
    long least = (long)(from.bytes / LONGEST_PACKET), count;
    lapi_vec_t *org, *tgt_vec;
    mine = t_seed((uint64_t)t_me, (uint64_t)number, (uint64_t)round);
    theirs = t_seed((uint64_t)!t_me, (uint64_t)number, (uint64_t)round);
    v_poison(&from, out);
    v_fill(&from, out, mine);
    v_poison(&to, in);
    returned = v_vector(&to, in);
    completed = 0;
    org = get ? v_vector(&to, in) : v_vector(&from, out);
    tgt_vec = get ? v_vector(&from, outs[!t_me]) : v_vector(&to, ins[!t_me]);
    t_fence();
    count = packets();
    start(kind, flags, org, tgt_vec);
    v_spoil(org);
    v_spoil(tgt_vec);
    t_wait_exact(&org_cntr, 1);
    /* The data may be changed, and is needed no more. */
    if (!get) memset(out, 0x11, from.area);
    t_wait_exact(&tgt_cntr, 1);
    if (!get) t_wait_exact(&cmpl_cntr, 1);
    if (!put) t_probe_until(&completed, 1);
    V_CHECK(&to, in, to.bytes, theirs);
    t_fence();
    count = packets() - count;
    /* Of this task's message, and of that part of the other's that came after the fence. An access
     * counts as a packet. */
    if (strcmp(way, "any") != 0)
        CHECK_FOR((strcmp(way, "keys") == 0) == (count < least), "%ld packets for %lu bytes in shape %d", count,
                  from.bytes, number);
    v_spoil(returned);
}

int main(int argc, char **argv) {
    int flags, number, which, round, rounds = argc == 5 ? atoi(argv[4]) : 1;
    ulong room[2] = {0, 0};
    CHECK(argc == 4 || argc == 5);
    flags = strcmp(argv[2], "use") == 0 ? LAPI_USE_BULK_XFER : strcmp(argv[2], "not") == 0 ? LAPI_NOT_USE_BULK_XFER : 0;
    t_init();
    CHECK_EQ(t_tasks, 2);
    for (number = 0; number < SHAPES; number++)
        for (which = 0; which < 2; which++) {
            side s = make(number, which);
            if (s.area > room[which]) room[which] = s.area;
            v_free(&s);
        }
    out = v_alloc(room[0]);
    in = v_alloc(room[1]);
    outs = t_addresses(out);
    ins = t_addresses(in);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses((void *)arriving);
    if (t_me == 0 && strcmp(argv[3], "any") == 0) {
        printf("begins\n");
        fflush(stdout);
    }
    for (number = 0; number < SHAPES; number++) {
        /* Only registrations come in batches. */
        if (shapes[number].lengths == MANY && strcmp(argv[3], "packets") == 0) continue;
        from = make(number, 0);
        to = make(number, 1);
        for (round = 0; round < rounds; round++) step(argv[1], flags, argv[3], number, round);
        t_fence();
        v_free(&from);
        v_free(&to);
    }
    t_done();
    return 0;
}

/*
 * Gather/scatter programs by bulk transfer: bulk WAY, WAY keys or packets: what the statistics of
 * the network must show
 *
 * Two tasks on the network, each of which sends to the other: a program with long blocks at the
 * origin, at the target, and at both; with short copies between the long ones. Programs of short
 * blocks go in packets.
 */
#include "message.h"

enum { ROOM = 40 << 20, BYTES = 12000000, LONGEST_PACKET = 40000 };

static unsigned char *out, *in;
static void **handlers, **tgt_cntrs;
static lapi_cntr_t org_cntr, cmpl_cntr, tgt_cntr;
static end from, to;
static uint64_t mine, theirs;
static volatile int completed;

static program *ready(program *p, long extent) {
    p->depth = p_depth(p, 0);
    p_write(p, extent, 1);
    p->descr.density = LAPI_DGSM_SPARSE;
    return p;
}

/* Three long blocks, odd places. */
static program *blocks(void) {
    program *p = p_new();
    p_copy(p, 0, 700001, 3);
    p_gosub(p, 0, 1, 3, 800000, 300000);
    p_copy(p, 1, 200011, 0);
    return ready(p, 1900000);
}

/* The same with short copies between them. */
static program *mixed(void) {
    program *p = p_new();
    p_copy(p, 0, 600001, 7);
    p_copy(p, 0, 100, 650000);
    p_gosub(p, 0, 1, 2, 800000, 500000);
    p_copy(p, 1, 300000, 0);
    p_copy(p, 1, 1, 400001);
    return ready(p, 1900000);
}

static program *short_blocks(void) {
    program *p = p_new();
    p_gosub(p, 0, 1, 100, 0, 1500);
    p_copy(p, 1, 1000, 3);
    return ready(p, 150000);
}

static void whole(lapi_handle_t *hndl, void *info) {
    unsigned char *source = malloc((size_t)from.area), *stream;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_PTR(info, &to);
    CHECK(source != NULL);
    t_fill(source, (size_t)from.area, theirs);
    stream = e_stream(&from, source);
    E_CHECK(&to, in, ~theirs, stream);
    free(source);
    free(stream);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof theirs);
    CHECK_EQ(*(uint64_t *)uhdr, theirs);
    CHECK_EQ(ret->msg_len, from.bytes);
    CHECK_PTR(ret->udata_one_pkt_ptr, NULL);
    *comp_h = whole;
    *uinfo = &to;
    if (to.p != NULL) {
        ret->dgsp_handle = to.p->handle;
        ret->bytes = (ulong)to.bytes;
    }
    return e_base(&to, in);
}

static long packets(void) {
    lapi_statistics_t s;
    OK(LAPI_Qenv(t_hndl, QUERY_STATISTICS, (int *)&s));
    return (long)(s.Tot_pkt_sent_cnt + s.Tot_pkt_rcv_cnt);
}

static void message(program *origin, program *target, int by_keys, const char *what) {
    static uint64_t number;
    int tgt = !t_me;
    long least, count;
    lapi_xfer_t x;
    mine = t_seed((uint64_t)t_me, ++number, 7);
    theirs = t_seed((uint64_t)tgt, number, 7);
    from = e_make(origin, BYTES);
    to = e_make(target, BYTES);
    CHECK_FOR(from.area <= ROOM && to.area <= ROOM, "areas of %ld and %ld bytes", from.area, to.area);
    t_fill(out, (size_t)from.area, mine);
    t_fill(in, (size_t)to.area, ~theirs);
    e_register(&to);
    completed = 0;
    least = BYTES / LONGEST_PACKET;
    t_fence();
    count = packets();
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)tgt;
    x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
    x.Dgsp.uhdr_len = sizeof mine;
    x.Dgsp.uhdr = &mine;
    x.Dgsp.udata = e_base(&from, out);
    x.Dgsp.udata_len = (ulong)from.bytes;
    x.Dgsp.tgt_cntr = t_long(tgt_cntrs[tgt]);
    x.Dgsp.org_cntr = &org_cntr;
    x.Dgsp.cmpl_cntr = &cmpl_cntr;
    x.Dgsp.dgsp = from.p ? e_register(&from) : LAPI_BYTE;
    OK(LAPI_Xfer(t_hndl, &x));
    e_unreserve(&from);
    t_wait_exact(&org_cntr, 1);
    memset(out, 0x11, (size_t)from.area);
    t_wait_exact(&tgt_cntr, 1);
    t_wait_exact(&cmpl_cntr, 1);
    CHECK_EQ(completed, 1);
    t_fence();
    count = packets() - count;
    /* Of this task's message, and of that part of the other's that came after the fence. An access
     * counts as a packet. */
    CHECK_FOR(by_keys == (count < least), "%ld packets: %s", count, what);
    e_unreserve(&to);
    e_free(&from);
    e_free(&to);
}

int main(int argc, char **argv) {
    int by_keys;
    CHECK_EQ(argc, 2);
    by_keys = strcmp(argv[1], "keys") == 0;
    t_init();
    CHECK_EQ(t_tasks, 2);
    out = malloc(ROOM);
    in = malloc(ROOM);
    CHECK(out != NULL && in != NULL);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses((void *)arriving);
    message(NULL, NULL, by_keys, "contiguous at both");
    message(blocks(), NULL, by_keys, "long blocks at the origin");
    message(NULL, blocks(), by_keys, "long blocks at the target");
    message(blocks(), blocks(), by_keys, "long blocks at both");
    message(mixed(), NULL, by_keys, "short copies at the origin");
    message(mixed(), blocks(), by_keys, "other blocks at both");
    message(NULL, mixed(), by_keys, "short copies at the target");
    message(short_blocks(), NULL, 0, "short blocks at the origin");
    message(NULL, short_blocks(), 0, "short blocks at the target");
    message(blocks(), short_blocks(), 0, "short blocks at the target, long ones at the origin");
    t_done();
    return 0;
}

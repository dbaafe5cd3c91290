/*
 * Transfers by programs made by hand: transfer CASE
 *
 *   layouts   every layout at the origin, at the target and at both, from 0 bytes to many times the program; all
 *             counters, completion and send completion handlers, udata_one_pkt_ptr
 *   large     messages of many MiB with blocks longer than packets
 *   absolute  programs that hold addresses: udata is NULL
 *   bytes     fewer bytes delivered than sent; LAPI_BURY_MSG and NULL; bytes of the program left out at its start
 */
#include "message.h"

enum { ROOM = 40 << 20 };

typedef struct {
    uint64_t seed;
    long sent;
    int src, action;
} header;
enum { BURY = 1, NOTHING = 2, COMPLETE = 4, INLINE = 8 }; /* NOTHING: return NULL */

static unsigned char *out, *in;
static void **handlers, **tgt_cntrs;
static lapi_cntr_t org_cntr, cmpl_cntr, tgt_cntr;
static end from, to;
static volatile int called, completed, sent;
static int max_packet;
static long skipped; /* recv_offset_dgsp_bytes */

/* --- layouts --- */

static program *ready(program *p, long extent, lapi_dgsp_density_t density) {
    p->depth = p_depth(p, 0);
    p_write(p, extent, 1);
    p->descr.density = density;
    return p;
}

/* An int and a char, in an array: the manual's example. */
static program *int_and_char(void) {
    program *p = p_new();
    p_copy(p, 0, 5, 0);
    return ready(p, 8, LAPI_DGSM_CONTIG);
}

static program *bytes(void) {
    program *p = p_new();
    p_copy(p, 0, 100, 0);
    return ready(p, 100, LAPI_DGSM_UNIT);
}

/* Contiguous, but not at the start, and backwards from one application to the next. */
static program *backwards(void) {
    program *p = p_new();
    p_copy(p, 0, 24, 16);
    return ready(p, -32, LAPI_DGSM_CONTIG);
}

/* A column of a matrix of 8-byte elements. */
static program *column(void) {
    program *p = p_new();
    p_gosub(p, 0, 1, 50, 0, 400);
    p_copy(p, 1, 8, 0);
    return ready(p, 8, LAPI_DGSM_SPARSE);
}

/* A block of 5 x 6 x 7 ints in one of 10 x 11 x 12, not at its corner. */
static program *brick(void) {
    program *p = p_new();
    p_gosub(p, 0, 1, 5, 2 * 11 * 12 * 4, 11 * 12 * 4);
    p_gosub(p, 1, 2, 6, 3 * 12 * 4, 12 * 4);
    p_copy(p, 2, 7 * 4, 4 * 4);
    return ready(p, 10 * 11 * 12 * 4, LAPI_DGSM_SPARSE);
}

/* Fields in an order that is not that of their addresses, one of them twice as far as
 * the extent. */
static program *record(void) {
    static const long disp[] = {40, 0, 17, 3, 160}, len[] = {8, 2, 16, 1, 5};
    program *p = p_new();
    instruction *op = p_op(p, 0, LAPI_DGSM_MCOPY);
    op->count = 5;
    memcpy(op->disp, disp, sizeof disp);
    memcpy(op->len, len, sizeof len);
    return ready(p, 64, LAPI_DGSM_SPARSE);
}

/* Blocks of more than one packet, with gaps. */
static program *long_blocks(void) {
    program *p = p_new();
    p_copy(p, 0, 70001, 3);
    p_gosub(p, 0, 1, 3, 80000, 30000);
    p_copy(p, 1, 20011, 0);
    p_copy(p, 1, 1, 25000);
    return ready(p, 200000, LAPI_DGSM_SPARSE);
}

/* Instructions that move nothing in between, and a routine with 0 repetitions. */
static program *with_nothing(void) {
    program *p = p_new();
    p_copy(p, 0, 0, 1l << 40);
    p_gosub(p, 0, 1, 0, 1l << 40, 1l << 20);
    p_copy(p, 0, 10, 6);
    p_op(p, 0, LAPI_DGSM_MCOPY)->count = 0;
    p_copy(p, 1, 10, 0);
    return ready(p, 20, LAPI_DGSM_SPARSE);
}

static program *(*const layouts[])(void) = {NULL,  int_and_char, bytes,       backwards,   column,
                                            brick, record,       long_blocks, with_nothing};
#define LAYOUTS ((int)(sizeof layouts / sizeof *layouts))

static program *layout(int i) { return layouts[i] == NULL ? NULL : layouts[i](); }

/* --- messages --- */

static void check(uint64_t seed) {
    unsigned char *source = malloc((size_t)from.area), *stream;
    CHECK(source != NULL);
    t_fill(source, (size_t)from.area, seed);
    stream = e_stream(&from, source);
    E_CHECK(&to, in, ~seed, stream);
    free(source);
    free(stream);
}

static void whole(lapi_handle_t *hndl, void *info) {
    header *head = info;
    CHECK_EQ(*hndl, t_hndl);
    check(head->seed);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void counted(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void released(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    CHECK_PTR(param, &from);
    memset(out, 0x11, (size_t)from.area);
    __atomic_fetch_add(&sent, 1, __ATOMIC_RELEASE);
}

static void *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    static header last;
    header *head = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_EQ(ret->src, head->src);
    CHECK_EQ(ret->msg_len, head->sent);
    CHECK_EQ(ret->ret_flags, LAPI_NORMAL);
    CHECK_EQ(ret->ctl_flags, LAPI_DELIVER_MSG);
    CHECK_PTR(ret->dgsp_handle, NULL);
    CHECK_EQ(ret->recv_offset_dgsp_bytes, 0);
    if (head->sent + (long)*uhdr_len > max_packet) CHECK_PTR(ret->udata_one_pkt_ptr, NULL);
    if (head->sent > 0 && head->sent + (long)*uhdr_len <= max_packet / 2) CHECK(ret->udata_one_pkt_ptr != NULL);
    if (ret->udata_one_pkt_ptr != NULL) {
        unsigned char *source = malloc((size_t)from.area), *stream;
        CHECK_EQ((uintptr_t)ret->udata_one_pkt_ptr % 8, 0);
        t_fill(source, (size_t)from.area, head->seed);
        stream = e_stream(&from, source);
        CHECK_EQ(memcmp(stream, ret->udata_one_pkt_ptr, (size_t)head->sent), 0);
        free(source);
        free(stream);
    }
    last = *head;
    *comp_h = !(head->action & COMPLETE) ? NULL : head->action & (BURY | NOTHING) ? counted : whole;
    *uinfo = &last;
    if (head->action & INLINE) ret->ret_flags = LAPI_SEND_REPLY;
    if (head->action & BURY) ret->ctl_flags = LAPI_BURY_MSG;
    /* With a handle set, NULL is an address like any other. */
    if (to.p != NULL && !(head->action & NOTHING)) {
        ret->dgsp_handle = to.p->handle;
        ret->bytes = (ulong)to.bytes;
        ret->recv_offset_dgsp_bytes = (ulong)skipped;
    }
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    return head->action & NOTHING ? NULL : e_base(&to, in);
}

/* One message of each task to the task `distance` further, from `from` to `to`. */
static void message(int distance, int action) {
    static int number;
    static const int hints[] = {0, LAPI_USE_BULK_XFER, LAPI_NOT_USE_BULK_XFER};
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    uint64_t mine = t_seed((uint64_t)t_me, (uint64_t)++number, 7), theirs = t_seed((uint64_t)src, (uint64_t)number, 7);
    header head = {mine, from.bytes, t_me, action};
    lapi_xfer_t x;
    CHECK_FOR(from.area <= ROOM && to.area <= ROOM, "areas of %ld and %ld bytes", from.area, to.area);
    t_fill(out, (size_t)from.area, mine);
    t_fill(in, (size_t)to.area, ~theirs);
    e_register(&to);
    called = completed = sent = 0;
    t_fence();
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.flags = hints[number % 3];
    x.Dgsp.tgt = (uint)tgt;
    x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
    x.Dgsp.uhdr_len = sizeof head;
    x.Dgsp.uhdr = &head;
    x.Dgsp.udata = e_base(&from, out);
    x.Dgsp.udata_len = (ulong)from.bytes;
    x.Dgsp.shdlr = released;
    x.Dgsp.sinfo = &from;
    x.Dgsp.tgt_cntr = t_long(tgt_cntrs[tgt]);
    x.Dgsp.org_cntr = number % 2 ? &org_cntr : NULL;
    x.Dgsp.cmpl_cntr = &cmpl_cntr;
    x.Dgsp.dgsp = from.p ? e_register(&from) : LAPI_BYTE;
    OK(LAPI_Xfer(t_hndl, &x));
    e_unreserve(&from);
    if (number % 2) t_wait_exact(&org_cntr, 1);
    t_probe_until(&sent, 1);
    memset(&head, 0x11, sizeof head);
    t_wait_exact(&tgt_cntr, 1);
    t_wait_exact(&cmpl_cntr, 1);
    CHECK_EQ(called, 1);
    CHECK_EQ(sent, 1);
    CHECK_EQ(completed, action & COMPLETE ? 1 : 0);
    if (action & (BURY | NOTHING))
        CHECK_FILLED(in, to.area, ~theirs);
    else
        check(theirs);
    e_unreserve(&to);
}

static void all_layouts(void) {
    static const long lengths[] = {0, 1, 4, 5, 7, 100, 128, 1000, 8191, 8192, 40003, 300000};
    int distance, a, b, turn = 0;
    size_t i;
    for (distance = 0; distance < t_tasks; distance++)
        for (a = 0; a < LAYOUTS; a++)
            for (b = 0; b < LAYOUTS; b++)
                for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                    /* All pairs with some lengths, pairs with one contiguous end with all. */
                    if (a != 0 && b != 0 && i % 4 != (size_t)(a + b) % 4) continue;
                    from = e_make(layout(a), lengths[i]);
                    to = e_make(layout(b), lengths[i]);
                    message(distance, turn++ % 3 == 0 ? COMPLETE : turn % 3 == 1 ? COMPLETE | INLINE : 0);
                    e_free(&from);
                    e_free(&to);
                }
}

static void large(void) {
    static const long lengths[] = {1 << 20, (3 << 20) + 77, 8 << 20};
    int distance, i;
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < 3; i++) {
            from = e_make(long_blocks(), lengths[i]);
            to = e_make(i == 2 ? long_blocks() : NULL, lengths[i]);
            message(distance, COMPLETE);
            e_free(&from), e_free(&to);
            from = e_make(i == 1 ? brick() : NULL, lengths[i]);
            to = e_make(i == 1 ? column() : record(), lengths[i] / (i == 1 ? 40 : 1));
            if (i == 1) e_free(&from), from = e_make(brick(), to.bytes);
            message(distance, 0);
            e_free(&from), e_free(&to);
        }
}

/* --- bytes --- */

static void fewer(void) {
    static const long lengths[] = {40, 3000, 50000, 900000};
    int distance, i, b, part;
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < 4; i++)
            for (b = 1; b < LAYOUTS; b++)
                for (part = 0; part <= 3; part++) {
                    from = e_make(b % 2 ? brick() : NULL, lengths[i]);
                    to = e_make(layout(b), part == 3 ? lengths[i] : lengths[i] * part / 3);
                    message(distance, part == 3 ? (b % 2 ? BURY : NOTHING) | (b % 3 ? COMPLETE : 0) : COMPLETE);
                    e_free(&from), e_free(&to);
                    if (part > 0) continue;
                    skipped = 1 + 77 * b;
                    from = e_make(NULL, lengths[i]);
                    to = e_make(layout(b), lengths[i] + skipped);
                    e_skip(&to, skipped);
                    message(distance, 0);
                    e_free(&from), e_free(&to);
                    skipped = 0;
                }
}

/* --- absolute --- */

static unsigned char scattered[4][4096];

static void absolute(void) {
    static const long at[] = {100, 0, 4000, 77}, len[] = {1000, 1, 96, 8};
    int distance, i, round;
    for (distance = 0; distance < t_tasks; distance++)
        for (round = 0; round < 4; round++) {
            uint64_t mine = t_seed((uint64_t)t_me, (uint64_t)round, 8);
            int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
            program *p = p_new();
            header head;
            lapi_xfer_t x;
            unsigned char expected[2210];
            instruction *op = p_op(p, 0, LAPI_DGSM_MCOPY);
            op->count = 4;
            for (i = 0; i < 4; i++) {
                op->disp[i] = (long)(uintptr_t)(scattered[i] + at[i]);
                op->len[i] = len[i];
                t_fill(scattered[i], sizeof scattered[i], t_seed(mine, (uint64_t)i, 0));
            }
            ready(p, 0, LAPI_DGSM_SPARSE);
            /* Twice the program, extent 0. */
            from = e_make(NULL, 2 * p->size);
            to = e_make(NULL, 2 * p->size);
            t_fill(in, (size_t)to.area, 1);
            called = 0;
            bzero(&head, sizeof head);
            head.sent = from.bytes;
            head.src = t_me;
            t_fence();
            bzero(&x, sizeof x);
            x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
            x.Dgsp.tgt = (uint)tgt;
            x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
            x.Dgsp.udata_len = (ulong)head.sent;
            x.Dgsp.tgt_cntr = t_long(tgt_cntrs[tgt]);
            x.Dgsp.org_cntr = &org_cntr;
            x.Dgsp.cmpl_cntr = &cmpl_cntr;
            x.Dgsp.dgsp = p_register(p);
            OK(LAPI_Xfer(t_hndl, &x));
            OK(p_unreserve(p->handle));
            t_wait_exact(&org_cntr, 1);
            t_wait_exact(&tgt_cntr, 1);
            t_wait_exact(&cmpl_cntr, 1);
            {
                uint64_t theirs = t_seed((uint64_t)src, (uint64_t)round, 8);
                unsigned char whole_area[4096], *next = expected;
                for (i = 0; i < 8; i++) {
                    t_fill(whole_area, sizeof whole_area, t_seed(theirs, (uint64_t)i % 4, 0));
                    memcpy(next, whole_area + at[i % 4], (size_t)len[i % 4]);
                    next += len[i % 4];
                }
                CHECK_EQ(next - expected, to.bytes);
            }
            CHECK_EQ(memcmp(in + to.base, expected, (size_t)to.bytes), 0);
            t_fence();
            e_free(&from), e_free(&to);
            free(p);
        }
}

static void *plain(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                   void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    CHECK_EQ(*msg_len, to.bytes);
    *comp_h = NULL;
    return e_base(&to, in);
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    max_packet = t_query(MAX_PKT_SZ);
    out = malloc(ROOM);
    in = malloc(ROOM);
    CHECK(out != NULL && in != NULL);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses(strcmp(which, "absolute") == 0 ? (void *)plain : (void *)arriving);
    if (strcmp(which, "layouts") == 0) all_layouts();
    else if (strcmp(which, "large") == 0) large();
    else if (strcmp(which, "bytes") == 0) fewer();
    else if (strcmp(which, "absolute") == 0) absolute();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

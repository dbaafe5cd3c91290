/*
 * Random vectors: random SEED CASES [CASE]
 *
 * Every task follows a plan that each task makes from the seed: per case what (put, get, message),
 * with vectors of which types and pieces. In each round BATCH cases are under way at once, from
 * every task to every one of its targets in turn. The expected data is computed piece by piece from
 * the plan. With CASE only that one is run.
 */
#include "vec.h"

enum { BATCH = 8, ROOM = 400000, KINDS = 6 };
enum { PUTV, GETV, AMV, XPUTV, XGETV, XAMV };

typedef struct {
    int kind;
    side from, to;
    ulong bytes; /* that arrive: fewer than are sent when the target has less room */
    uint64_t seed;
    int flags, bury, handler;
} plan;

typedef struct {
    int src, number;
} header;

/*
 * One case under way in each direction: `mine` to my target, `theirs` from the task whose target I
 * am. What others read and write lies in the first halves of `out` and `in`, what this task sends
 * and gets in the second ones.
 */
typedef struct {
    plan mine, theirs;
    header head;
    unsigned char *out, *in;
    void **outs, **ins;
    lapi_vec_t *org, *tgt, *returned;
    lapi_cntr_t org_cntr, cmpl_cntr, tgt_cntr;
    void **tgt_cntrs;
    volatile int called, completed, sent;
} slot;

static uint64_t seed;
static slot slots[BATCH];
static void **handlers;

static ulong length(uint64_t *random, uint count) {
    ulong most = ROOM / 4 / (count + 1);
    switch (t_below(random, 6)) {
    case 0: return 0;
    case 1: return t_below(random, 4);
    case 2: return 8;
    default: return t_below(random, (most < 200 || t_below(random, 3) == 0 ? most : 200) + 1);
    }
}

static uint number_of(uint64_t *random) {
    static const uint limits[] = {1, 2, 5, 40, 300, 2500};
    return (uint)t_below(random, limits[t_below(random, 6)] + 1);
}

static side pieces(uint64_t *random, lapi_vectype_t type, uint count, const ulong *len) {
    int placement = (int)t_below(random, PLACEMENTS);
    return v_pieces(type, count, len, placement, t_random(random));
}

static ulong *lengths(uint64_t *random, uint count) {
    ulong *len = v_alloc(count * sizeof *len);
    uint i;
    for (i = 0; i < count; i++) len[i] = length(random, count);
    return len;
}

static plan make(int src, int number) {
    uint64_t random = t_seed(seed, (uint64_t)src, (uint64_t)number);
    uint count = number_of(&random);
    ulong *len, *more, block;
    plan p;
    bzero(&p, sizeof p);
    p.kind = (int)t_below(&random, KINDS);
    p.seed = t_random(&random);
    p.flags = (int)t_below(&random, 4);
    p.bury = t_below(&random, 10) == 0;
    p.handler = (int)t_below(&random, 4);
    switch (t_below(&random, p.kind == AMV || p.kind == XAMV ? 3 : 2)) {
    case 0:
        len = lengths(&random, count);
        p.from = pieces(&random, LAPI_GEN_IOVECTOR, count, len);
        p.to = pieces(&random, LAPI_GEN_IOVECTOR, count, len);
        free(len);
        break;
    case 1:
        block = length(&random, count);
        p.from = v_strided(count, block, block + t_below(&random, 40), t_below(&random, 9));
        p.to = v_strided(count, block, block + t_below(&random, 40), t_below(&random, 9));
        break;
    default:
        len = lengths(&random, count);
        p.from = pieces(&random, LAPI_GEN_GENERIC, count, len);
        count = number_of(&random);
        more = lengths(&random, count);
        p.to = pieces(&random, LAPI_GEN_GENERIC, count, more);
        free(len);
        free(more);
    }
    CHECK(p.from.area <= ROOM && p.to.area <= ROOM);
    p.bytes = p.from.bytes < p.to.bytes ? p.from.bytes : p.to.bytes;
    return p;
}

static void drop(plan *p) {
    v_free(&p->from);
    v_free(&p->to);
}

static int is_am(const plan *p) { return p->kind == AMV || p->kind == XAMV; }
static int is_get(const plan *p) { return p->kind == GETV || p->kind == XGETV; }
static int is_xfer(const plan *p) { return p->kind >= XPUTV; }

/* --- handlers --- */

static void whole(lapi_handle_t *hndl, void *info) {
    slot *s = info;
    const plan *p = &s->theirs;
    CHECK_EQ(*hndl, t_hndl);
    if (!p->bury) CHECK_EQ(v_differs(&p->to, s->in, p->bytes, p->seed), -1);
    __atomic_fetch_add(&s->completed, 1, __ATOMIC_RELEASE);
}

static void got(lapi_handle_t *hndl, void *info) {
    slot *s = info;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(v_differs(&s->mine.to, s->in + ROOM, s->mine.bytes, s->mine.seed), -1);
    __atomic_fetch_add(&s->sent, 1, __ATOMIC_RELEASE);
}

static void gone(lapi_handle_t *hndl, void *info, lapi_sh_info_t *what) {
    slot *s = info;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(what->reason, LAPI_SUCCESS);
    memset(s->out + ROOM, 0x11, s->mine.from.area);
    __atomic_fetch_add(&s->sent, 1, __ATOMIC_RELEASE);
}

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    lapi_return_info_t *ret = (lapi_return_info_t *)len_vec;
    header *head = uhdr;
    slot *s = &slots[head->number % BATCH];
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_EQ(ret->src, head->src);
    CHECK_EQ(ret->msg_len, s->theirs.from.bytes);
    s->called++;
    *comp_h = s->theirs.handler ? whole : NULL;
    *uinfo = s;
    if (s->theirs.handler == 2) ret->ret_flags = LAPI_LOCAL_STATE;
    if (s->theirs.handler == 3) ret->ret_flags = LAPI_SEND_REPLY;
    if (s->theirs.bury) ret->ctl_flags = LAPI_BURY_MSG;
    return s->returned;
}

/* --- one case --- */

static void prepare(slot *s, int src, int number) {
    s->mine = make(t_me, number);
    s->theirs = make(src, number);
    s->head.src = t_me;
    s->head.number = number;
    s->called = s->completed = s->sent = 0;
    memset(s->out, POISON, 2 * ROOM);
    memset(s->in, POISON, 2 * ROOM);
    s->returned = v_vector(&s->theirs.to, s->in);
}

/* A get reads at the target what follows from the origin's plan, so the target has to
 * put it there. */
static void fill(slot *s) {
    if (is_get(&s->theirs)) v_fill(&s->theirs.from, s->out, s->theirs.seed);
    if (!is_get(&s->mine)) v_fill(&s->mine.from, s->out + ROOM, s->mine.seed);
}

static void begin(slot *s, int tgt) {
    plan *p = &s->mine;
    lapi_xfer_t x;
    int flags = p->flags % 2 ? USE_TGT_VEC_TYPE : 0;
    bzero(&x, sizeof x);
    s->org = is_get(p) ? v_vector(&p->to, s->in + ROOM) : v_vector(&p->from, s->out + ROOM);
    s->tgt = is_am(p) ? NULL : is_get(p) ? v_vector(&p->from, s->outs[tgt]) : v_vector(&p->to, s->ins[tgt]);
    switch (p->kind) {
    case PUTV:
        OK(LAPI_Putv(t_hndl, (uint)tgt, s->tgt, s->org, s->tgt_cntrs[tgt], &s->org_cntr, &s->cmpl_cntr));
        break;
    case GETV:
        OK(LAPI_Getv(t_hndl, (uint)tgt, s->tgt, s->org, s->tgt_cntrs[tgt], &s->org_cntr));
        break;
    case AMV:
        OK(LAPI_Amsendv(t_hndl, (uint)tgt, handlers[tgt], &s->head, sizeof s->head, s->org, s->tgt_cntrs[tgt],
                        &s->org_cntr, &s->cmpl_cntr));
        break;
    case XPUTV:
        x.Putv.Xfer_type = LAPI_PUTV_XFER;
        x.Putv.flags = flags;
        x.Putv.tgt = (uint)tgt;
        x.Putv.shdlr = gone;
        x.Putv.sinfo = s;
        x.Putv.org_vec = s->org;
        x.Putv.tgt_vec = s->tgt;
        x.Putv.tgt_cntr = t_long(s->tgt_cntrs[tgt]);
        x.Putv.org_cntr = &s->org_cntr;
        x.Putv.cmpl_cntr = &s->cmpl_cntr;
        OK(LAPI_Xfer(t_hndl, &x));
        break;
    case XGETV:
        x.Getv.Xfer_type = LAPI_GETV_XFER;
        x.Getv.flags = flags;
        x.Getv.tgt = (uint)tgt;
        x.Getv.org_vec = s->org;
        x.Getv.tgt_vec = s->tgt;
        x.Getv.tgt_cntr = t_long(s->tgt_cntrs[tgt]);
        x.Getv.org_cntr = &s->org_cntr;
        x.Getv.chndlr = got;
        x.Getv.cinfo = s;
        OK(LAPI_Xfer(t_hndl, &x));
        break;
    default:
        x.Amv.Xfer_type = LAPI_AMV_XFER;
        x.Amv.tgt = (uint)tgt;
        x.Amv.hdr_hdl = t_long(handlers[tgt]);
        x.Amv.uhdr_len = sizeof s->head;
        x.Amv.uhdr = &s->head;
        x.Amv.shdlr = gone;
        x.Amv.sinfo = s;
        x.Amv.org_vec = s->org;
        x.Amv.tgt_cntr = t_long(s->tgt_cntrs[tgt]);
        x.Amv.org_cntr = &s->org_cntr;
        x.Amv.cmpl_cntr = &s->cmpl_cntr;
        OK(LAPI_Xfer(t_hndl, &x));
    }
}

static void end(slot *s) {
    int wanted = !(is_am(&s->theirs) && s->theirs.bury);
    t_wait_exact(&s->org_cntr, 1);
    if (is_xfer(&s->mine)) t_probe_until(&s->sent, 1);
    v_spoil(s->org);
    if (s->tgt != NULL) v_spoil(s->tgt);
    t_wait_exact(&s->tgt_cntr, 1);
    v_spoil(s->returned);
    if (!is_get(&s->mine)) t_wait_exact(&s->cmpl_cntr, 1);
    CHECK_EQ(s->called, is_am(&s->theirs));
    CHECK_EQ(s->completed, is_am(&s->theirs) && s->theirs.handler != 0);
    if (is_get(&s->mine)) V_CHECK(&s->mine.to, s->in + ROOM, s->mine.bytes, s->mine.seed);
    if (!is_get(&s->theirs)) V_CHECK(&s->theirs.to, s->in, wanted ? s->theirs.bytes : 0, s->theirs.seed);
    drop(&s->mine);
    drop(&s->theirs);
}

int main(int argc, char **argv) {
    int cases, only, i, number, distance = 0;
    CHECK(argc == 3 || argc == 4);
    seed = strtoull(argv[1], NULL, 10);
    cases = atoi(argv[2]);
    only = argc == 4 ? atoi(argv[3]) : -1;
    t_init();
    if (t_me == 0) printf("seed %llu\n", (unsigned long long)seed);
    handlers = t_addresses((void *)arriving);
    for (i = 0; i < BATCH; i++) {
        slots[i].out = v_alloc(2 * ROOM);
        slots[i].in = v_alloc(2 * ROOM);
        slots[i].outs = t_addresses(slots[i].out);
        slots[i].ins = t_addresses(slots[i].in);
        slots[i].tgt_cntrs = t_addresses(&slots[i].tgt_cntr);
    }
    for (number = 0; number < cases; number += BATCH, distance++) {
        int tgt = (t_me + distance) % t_tasks, src = (t_me - distance % t_tasks + t_tasks) % t_tasks;
        for (i = 0; i < BATCH; i++) prepare(&slots[i], src, number + i), fill(&slots[i]);
        t_fence();
        for (i = 0; i < BATCH; i++)
            if (only < 0 || number + i == only) begin(&slots[i], tgt);
        for (i = 0; i < BATCH; i++)
            if (only < 0 || number + i == only) end(&slots[i]);
    }
    t_done();
    return 0;
}

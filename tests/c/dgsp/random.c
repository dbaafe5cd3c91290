/*
 * Random programs: random SEED CASES [CASE]
 *
 * Every task follows a plan that each task makes from the seed: per case a program at the origin,
 * at the target or at both, nested up to 8 deep, and a message shorter than the program, as long,
 * or longer. BATCH cases are under way at once. The expected data is computed copy by copy. With
 * CASE only that one is run.
 */
#include "message.h"

enum { BATCH = 8, ROOM = 4 << 20, LONGEST = 200000 };

typedef struct {
    end from, to;
    long sent; /* bytes of the message; as many or fewer are delivered */
    uint64_t seed;
    int handler;
} plan;

typedef struct {
    int src, number;
} header;

typedef struct {
    plan mine, theirs;
    header head;
    unsigned char *out, *in;
    lapi_cntr_t org_cntr, cmpl_cntr, tgt_cntr;
    void **tgt_cntrs;
    volatile int called, completed;
} slot;

static uint64_t seed;
static slot slots[BATCH];
static void **handlers;

static program *some_program(uint64_t *random) {
    static const taste tastes[] = {
        {8, 1, 40, 600, 6000, 0},      {8, 1, 300, 3000, 20000, 0},  {3, 4, 4, 200, 3000, 0},
        {2, 8, 8, 400, 20000, 0},      {4, 1, 9000, 30000, 60000, 0}, {5, 16, 2000, 9000, 100000, 0},
    };
    return p_random(random, &tastes[t_below(random, sizeof tastes / sizeof *tastes)]);
}

/* The same in every task that generates it. */
static plan make(int src, int number) {
    uint64_t random = t_seed(seed, (uint64_t)src, (uint64_t)number);
    int which = (int)t_below(&random, 3);
    program *from = which != 1 ? some_program(&random) : NULL, *to = which != 0 ? some_program(&random) : NULL;
    long size = from ? from->size : to->size, fewer;
    plan p;
    bzero(&p, sizeof p);
    p.seed = t_random(&random);
    p.handler = (int)t_below(&random, 3);
    switch (t_below(&random, 5)) {
    case 0: p.sent = 1 + (long)t_below(&random, (uint64_t)size); break;
    case 1: p.sent = size; break;
    case 2: p.sent = size * (1 + (long)t_below(&random, 4)); break;
    case 3: p.sent = (long)t_below(&random, 64); break;
    default: p.sent = 1 + (long)t_below(&random, 6 * (uint64_t)size);
    }
    if (p.sent > LONGEST) p.sent = LONGEST;
    fewer = t_below(&random, 5) == 0 ? (long)t_below(&random, (uint64_t)p.sent + 1) : p.sent;
    for (;;) {
        p.from = e_make(from, p.sent);
        p.to = e_make(to, to && fewer < p.sent ? fewer : p.sent);
        if (p.from.area <= ROOM && p.to.area <= ROOM) return p;
        free(p.from.t.list);
        free(p.to.t.list);
        p.sent /= 2;
    }
}

static void drop(plan *p) {
    e_free(&p->from);
    e_free(&p->to);
}

static void fill_source(const plan *p, unsigned char *area) { t_fill(area, (size_t)p->from.area, p->seed); }
static void fill_target(const plan *p, unsigned char *area) { t_fill(area, (size_t)p->to.area, ~p->seed); }

static void check(const plan *p, const unsigned char *area) {
    unsigned char *source = malloc((size_t)p->from.area), *stream;
    CHECK(source != NULL);
    fill_source(p, source);
    stream = e_stream(&p->from, source);
    E_CHECK(&p->to, area, ~p->seed, stream);
    free(source);
    free(stream);
}

static void whole(lapi_handle_t *hndl, void *info) {
    slot *s = info;
    CHECK_EQ(*hndl, t_hndl);
    check(&s->theirs, s->in);
    __atomic_fetch_add(&s->completed, 1, __ATOMIC_RELEASE);
}

static void *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    header *head = uhdr;
    slot *s = &slots[head->number % BATCH];
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_EQ(ret->src, head->src);
    CHECK_EQ(ret->msg_len, s->theirs.sent);
    s->called++;
    *comp_h = s->theirs.handler ? whole : NULL;
    *uinfo = s;
    if (s->theirs.handler == 2) ret->ret_flags = LAPI_LOCAL_STATE;
    if (s->theirs.to.p != NULL) {
        ret->dgsp_handle = s->theirs.to.p->handle;
        ret->bytes = (ulong)s->theirs.to.bytes;
    }
    return e_base(&s->theirs.to, s->in);
}

static void begin(slot *s, int tgt) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)tgt;
    x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
    x.Dgsp.uhdr_len = sizeof s->head;
    x.Dgsp.uhdr = &s->head;
    x.Dgsp.udata = e_base(&s->mine.from, s->out);
    x.Dgsp.udata_len = (ulong)s->mine.sent;
    x.Dgsp.tgt_cntr = t_long(s->tgt_cntrs[tgt]);
    x.Dgsp.org_cntr = &s->org_cntr;
    x.Dgsp.cmpl_cntr = &s->cmpl_cntr;
    x.Dgsp.dgsp = s->mine.from.p ? e_register(&s->mine.from) : LAPI_BYTE;
    OK(LAPI_Xfer(t_hndl, &x));
    /* Operations under way keep the program. */
    e_unreserve(&s->mine.from);
    memset(&x, 0x99, sizeof x);
}

static void finish(slot *s, int number) {
    t_wait_exact(&s->org_cntr, 1);
    memset(s->out, 0x11, (size_t)s->mine.from.area);
    t_wait_exact(&s->tgt_cntr, 1);
    t_wait_exact(&s->cmpl_cntr, 1);
    CHECK_FOR(s->called == 1, "case %d: %d calls of the header handler", number, s->called);
    CHECK_EQ(s->completed, s->theirs.handler ? 1 : 0);
    check(&s->theirs, s->in);
    e_unreserve(&s->theirs.to);
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
        slots[i].out = malloc(ROOM);
        slots[i].in = malloc(ROOM);
        CHECK(slots[i].out != NULL && slots[i].in != NULL);
        slots[i].tgt_cntrs = t_addresses(&slots[i].tgt_cntr);
    }
    for (number = 0; number < cases; number += BATCH, distance++) {
        int tgt = (t_me + distance) % t_tasks, src = (t_me - distance % t_tasks + t_tasks) % t_tasks;
        for (i = 0; i < BATCH; i++) {
            slot *s = &slots[i];
            s->mine = make(t_me, number + i);
            s->theirs = make(src, number + i);
            s->head.src = t_me;
            s->head.number = number + i;
            s->called = s->completed = 0;
            fill_source(&s->mine, s->out);
            fill_target(&s->theirs, s->in);
            e_register(&s->theirs.to);
        }
        t_fence();
        for (i = 0; i < BATCH; i++)
            if (only < 0 || number + i == only) begin(&slots[i], tgt);
        for (i = 0; i < BATCH; i++)
            if (only < 0 || number + i == only) finish(&slots[i], number + i);
    }
    t_done();
    return 0;
}

/*
 * How long a program lives: life CASE
 *
 *   counts     register, reserve, unreserve; the handle read as a descriptor; the caller's copy thrown away
 *   handles    LAPI handles that are none do for these requests; before LAPI_Init, after LAPI_Term, from another handle
 *   flight     unreserved at both ends while a long message is under way
 *   threads    threads that register, send and unreserve at the same time
 */
#include "message.h"

static void **handlers;

/* 4 bytes of every 16, 3 times, in a routine. */
static program *some(void) {
    program *p = p_new();
    p_gosub(p, 0, 1, 3, 8, 16);
    p_copy(p, 1, 4, 0);
    p->depth = 2;
    p_write(p, 64, 1);
    return p;
}

static int packs(lapi_handle_t hndl, lapi_dg_handle_t handle) {
    static const char data[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,";
    char packed[12] = "";
    lapi_util_t util;
    int result;
    bzero(&util, sizeof util);
    util.PackDgsp.Util_type = LAPI_DGSP_PACK;
    util.PackDgsp.dgsp = handle;
    util.PackDgsp.in_buf = (void *)data;
    util.PackDgsp.bytes = 12;
    util.PackDgsp.out_buf = packed;
    util.PackDgsp.out_size = 12;
    result = LAPI_Util(hndl, &util);
    CHECK_EQ(memcmp(packed, result ? "\0\0\0\0\0\0\0\0\0\0\0\0" : "89abopqrEFGH", 12), 0);
    CHECK_EQ(util.PackDgsp.position, result ? 0 : 12);
    return result;
}

/* --- counts --- */

static void counts(void) {
    program *p = some(), *q = some();
    lapi_dg_handle_t a, b, byte = LAPI_BYTE;
    int i, code[MAX_CODE], ints = p->descr.code_size;
    memcpy(code, p->code, sizeof code);
    p->descr.atom_size = 4;
    a = p_register(p);
    b = p_register(q);
    CHECK(a != b);
    /* The handle is a descriptor, with code of its own. */
    CHECK((void *)a != (void *)&p->descr);
    CHECK(a->code != p->code && a->code != NULL);
    CHECK_EQ(a->code_size, ints);
    CHECK_EQ(memcmp(a->code, code, (size_t)ints * sizeof(int)), 0);
    CHECK_EQ(a->depth, 2);
    CHECK_EQ(a->density, LAPI_DGSM_SPARSE);
    CHECK_EQ(a->size, 12);
    CHECK_EQ(a->extent, 64);
    CHECK_EQ(a->lext, 8);
    CHECK_EQ(a->rext, 44);
    CHECK_EQ(a->atom_size, 4);
    memset(p, 0x99, sizeof *p);
    free(p);
    CHECK_EQ(packs(t_hndl, a), LAPI_SUCCESS);
    /* Registered once, reserved five times. */
    for (i = 0; i < 5; i++) OK(p_reserve(a));
    for (i = 0; i < 6; i++) {
        CHECK_EQ(packs(t_hndl, a), LAPI_SUCCESS);
        CHECK_EQ(a->size, 12);
        OK(p_unreserve(a));
    }
    RETURNS(p_unreserve(a), LAPI_ERR_DGSP_FREE);
    RETURNS(p_reserve(a), LAPI_ERR_DGSP);
    RETURNS(packs(t_hndl, a), LAPI_ERR_DGSP);
    /* The other one is not affected. */
    CHECK_EQ(packs(t_hndl, b), LAPI_SUCCESS);
    OK(p_unreserve(b));
    RETURNS(p_unreserve(b), LAPI_ERR_DGSP_FREE);
    /* Values that are not handles. */
    RETURNS(p_unreserve((lapi_dg_handle_t)&q->descr), LAPI_ERR_DGSP_FREE);
    RETURNS(p_reserve((lapi_dg_handle_t)&q->descr), LAPI_ERR_DGSP);
    RETURNS(p_unreserve((lapi_dg_handle_t)8), LAPI_ERR_DGSP_FREE);
    RETURNS(p_reserve((lapi_dg_handle_t)8), LAPI_ERR_DGSP);
    RETURNS(p_reserve(NULL), LAPI_ERR_DGSP);
    RETURNS(p_unreserve(NULL), LAPI_ERR_DGSP);
    /* LAPI_BYTE: contiguous bytes, for ever. */
    CHECK_EQ(byte->size, 1);
    CHECK_EQ(byte->extent, 1);
    CHECK_EQ(byte->lext, 0);
    CHECK_EQ(byte->rext, 1);
    CHECK_EQ(byte->density, LAPI_DGSM_UNIT);
    CHECK_EQ(byte->atom_size, 0);
    for (i = 0; i < 3; i++) OK(p_unreserve(byte));
    OK(p_reserve(byte));
    CHECK_EQ(byte->size, 1);
    free(q);
}

/* --- handles --- */

static void handles(void) {
    lapi_handle_t mine = t_hndl, other;
    lapi_info_t info;
    program *p = some();
    size_t i;
    lapi_handle_t wrong[] = {t_hndl + 1, 999, LAPI_VOID_HANDLE, 0xdeadbeef};
    bzero(&info, sizeof info);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        t_hndl = wrong[i];
        p_register(p);
        OK(p_reserve(p->handle));
        CHECK_EQ(packs(mine, p->handle), LAPI_SUCCESS);
        CHECK_EQ(packs(wrong[i], p->handle), LAPI_ERR_HNDL_INVALID);
        OK(p_unreserve(p->handle));
        OK(p_unreserve(p->handle));
        RETURNS(p_unreserve(p->handle), LAPI_ERR_DGSP_FREE);
    }
    t_hndl = mine;
    OK(LAPI_Init(&other, &info));
    p_register(p);
    CHECK_EQ(packs(other, p->handle), LAPI_SUCCESS);
    OK(LAPI_Gfence(mine));
    OK(LAPI_Term(mine));
    /* Its handle has ended, the program has not. */
    CHECK_EQ(p->handle->size, 12);
    CHECK_EQ(packs(other, p->handle), LAPI_SUCCESS);
    OK(p_reserve(p->handle));
    OK(p_unreserve(p->handle));
    OK(LAPI_Gfence(other));
    OK(LAPI_Term(other));
    CHECK_EQ(p->handle->extent, 64);
    bzero(&info, sizeof info);
    OK(LAPI_Init(&t_hndl, &info));
    CHECK_EQ(packs(t_hndl, p->handle), LAPI_SUCCESS);
    OK(p_unreserve(p->handle));
    RETURNS(packs(t_hndl, p->handle), LAPI_ERR_DGSP);
}

/* --- flight --- */

enum { BYTES = 6 << 20 };
static end from, to;
static unsigned char *out, *in;
static volatile int asked;

static void *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    ret->dgsp_handle = to.p->handle;
    ret->bytes = ret->msg_len;
    *comp_h = NULL;
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
    return e_base(&to, in);
}

static program *blocks(long len, long gap) {
    program *p = p_new();
    p_gosub(p, 0, 1, 100, 0, len + gap);
    p_copy(p, 1, len, 0);
    p->depth = 2;
    p_write(p, 100 * (len + gap), 1);
    return p;
}

static void start(lapi_dg_handle_t dgsp, int tgt, const void *data, ulong bytes, void *handler, lapi_cntr_t *done,
                  lapi_cntr_t *cmpl) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)tgt;
    x.Dgsp.hdr_hdl = t_long(handler);
    x.Dgsp.udata = (void *)data;
    x.Dgsp.udata_len = bytes;
    x.Dgsp.org_cntr = done;
    x.Dgsp.cmpl_cntr = cmpl;
    x.Dgsp.dgsp = dgsp;
    OK(LAPI_Xfer(t_hndl, &x));
}

static void flight(void) {
    lapi_cntr_t done, cmpl;
    int round;
    bzero(&done, sizeof done);
    bzero(&cmpl, sizeof cmpl);
    handlers = t_addresses((void *)arriving);
    for (round = 0; round < 12; round++) {
        int tgt = (t_me + round) % t_tasks, src = (t_me - round % t_tasks + t_tasks) % t_tasks;
        uint64_t mine = t_seed((uint64_t)t_me, (uint64_t)round, 6), theirs = t_seed((uint64_t)src, (uint64_t)round, 6);
        unsigned char *source, *stream;
        from = e_make(blocks(300 + round, 9), BYTES);
        to = e_make(blocks(100, 3 + round), BYTES);
        out = malloc((size_t)from.area);
        in = malloc((size_t)to.area);
        source = malloc((size_t)from.area);
        CHECK(out != NULL && in != NULL && source != NULL);
        t_fill(out, (size_t)from.area, mine);
        t_fill(in, (size_t)to.area, ~theirs);
        e_register(&from);
        e_register(&to);
        asked = 0;
        t_fence();
        start(from.p->handle, tgt, e_base(&from, out), BYTES, handlers[tgt], &done, &cmpl);
        e_unreserve(&from);
        RETURNS(p_unreserve(from.p->handle), LAPI_ERR_DGSP_FREE);
        t_probe_until(&asked, 1);
        e_unreserve(&to);
        RETURNS(p_reserve(to.p->handle), LAPI_ERR_DGSP);
        t_wait_exact(&done, 1);
        t_wait_exact(&cmpl, 1);
        t_fence();
        t_fill(source, (size_t)from.area, theirs);
        stream = e_stream(&from, source);
        E_CHECK(&to, in, ~theirs, stream);
        free(stream);
        free(source);
        free(out);
        free(in);
        e_free(&from);
        e_free(&to);
    }
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 150 };

typedef struct {
    unsigned char *to;
} order;

static unsigned char *landings;
static void **landings_at;

static void *placing(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr_len, (void)uinfo, (void)msg_len;
    *comp_h = NULL;
    return ((order *)uhdr)->to;
}

static void *work(void *arg) {
    int thread = (int)(intptr_t)arg, round;
    lapi_cntr_t cmpl;
    uint64_t random = t_seed((uint64_t)t_me, (uint64_t)thread, 12);
    bzero(&cmpl, sizeof cmpl);
    for (round = 0; round < ROUNDS; round++) {
        program *p = blocks(1 + (long)t_below(&random, 50), (long)t_below(&random, 9));
        end e = e_make(p, 1 + (long)t_below(&random, 4000));
        int tgt = (t_me + round) % t_tasks;
        unsigned char *data = malloc((size_t)e.area), *stream;
        lapi_xfer_t x;
        order o;
        CHECK(data != NULL);
        o.to = (unsigned char *)landings_at[tgt] + (size_t)(t_me * THREADS + thread) * 4096;
        t_fill(data, (size_t)e.area, t_random(&random));
        bzero(&x, sizeof x);
        x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
        x.Dgsp.tgt = (uint)tgt;
        x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
        x.Dgsp.uhdr = &o;
        x.Dgsp.uhdr_len = sizeof o;
        x.Dgsp.udata = e_base(&e, data);
        x.Dgsp.udata_len = (ulong)e.bytes;
        x.Dgsp.cmpl_cntr = &cmpl;
        x.Dgsp.dgsp = p_register(p);
        OK(p_reserve(p->handle));
        OK(LAPI_Xfer(t_hndl, &x));
        OK(p_unreserve(p->handle));
        OK(p_unreserve(p->handle));
        t_wait_exact(&cmpl, 1);
        /* It has landed where a get finds it. */
        stream = malloc((size_t)e.bytes);
        OK(LAPI_Get(t_hndl, (uint)tgt, (ulong)e.bytes, o.to, stream, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        {
            unsigned char *expected = e_stream(&e, data);
            CHECK_FOR(memcmp(stream, expected, (size_t)e.bytes) == 0, "round %d of thread %d is wrong", round, thread);
            free(expected);
        }
        free(stream);
        free(data);
        e_free(&e);
    }
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    intptr_t i;
    landings = malloc((size_t)(t_tasks * THREADS) * 4096);
    CHECK(landings != NULL);
    landings_at = t_addresses(landings);
    handlers = t_addresses((void *)placing);
    for (i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&ids[i], NULL, work, (void *)i), 0);
    for (i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(ids[i], NULL), 0);
    t_fence();
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    /* Nothing is initialised, and the handle is not looked at. */
    program *early = some();
    p_register(early);
    OK(p_reserve(early->handle));
    OK(p_unreserve(early->handle));
    t_init();
    CHECK_EQ(packs(t_hndl, early->handle), LAPI_SUCCESS);
    if (strcmp(which, "counts") == 0) counts();
    else if (strcmp(which, "handles") == 0) handles();
    else if (strcmp(which, "flight") == 0) flight();
    else if (strcmp(which, "threads") == 0) threads();
    else T_FAIL("there is no case \"%s\"", which);
    t_fence();
    OK(LAPI_Term(t_hndl));
    CHECK_EQ(early->handle->size, 12);
    OK(p_unreserve(early->handle));
    RETURNS(p_unreserve(early->handle), LAPI_ERR_DGSP_FREE);
    t_pass();
    return 0;
}

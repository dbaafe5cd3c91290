/*
 * Wrong programs, and programs in the wrong place: errors CASE
 *
 *   verify    LAPI_VERIFY_DGSP=yes: every error code of a registration; the variable is read at every registration
 *   params    ERROR_CHK on: every parameter error of LAPI_DGSP_XFER
 *   reported  errors that only a message reveals: the error handler of the task that finds one is called, the message
 *             is buried, counters are incremented and handlers run
 *   default   without an error handler the job ends (two tasks)
 */
#include "message.h"

/* --- verify --- */

/* A main program that copies 4 bytes at 0 and calls a routine 3 times, which copies 8 bytes and
 * then two blocks. */
static program *good(void) {
    program *p = p_new();
    instruction *op;
    p_copy(p, 0, 4, 0);
    p_gosub(p, 0, 1, 3, 8, 40);
    p_copy(p, 1, 8, 0);
    op = p_op(p, 1, LAPI_DGSM_MCOPY);
    op->count = 2;
    op->disp[0] = 16;
    op->len[0] = 2;
    op->disp[1] = 20;
    op->len[1] = 5;
    p->depth = 2;
    p_write(p, 200, 1);
    return p;
}

/* The offsets of its instructions, in ints. */
enum {
    AT_COPY = 0,
    AT_GOSUB = LAPI_DGSM_COPY_SIZE,
    AT_ITERATE = AT_GOSUB + LAPI_DGSM_GOSUB_SIZE,
    MAIN_ENDS = AT_ITERATE + LAPI_DGSM_ITERATE_SIZE
};

#define OFFSET_OF(type, field) (offsetof(type, field) / sizeof(int))

static void set_long(int *at, long value) { memcpy(at, &value, sizeof value); }

/* Registers the good program after a change, and expects a return code; the change may use `p`
 * and `code`. */
#define REFUSED(change, expected)                                                                                \
    do {                                                                                                         \
        program *p = good();                                                                                     \
        int *code = p->code;                                                                                     \
        (void)code;                                                                                              \
        change;                                                                                                  \
        RETURNS(p_try(p), expected);                                                                             \
        CHECK_PTR(p->handle, NULL);                                                                              \
        free(p);                                                                                                 \
    } while (0)

static int routine_starts(void) {
    program *p = good();
    int at = AT_GOSUB + p->code[AT_GOSUB + OFFSET_OF(lapi_dgsm_gosub_t, to_loc)];
    CHECK(at >= MAIN_ENDS);
    free(p);
    return at;
}

static void verified(void) {
    const int routine = routine_starts(), mcopy = routine + LAPI_DGSM_COPY_SIZE;
    const int to_loc = AT_GOSUB + OFFSET_OF(lapi_dgsm_gosub_t, to_loc);
    const int ret_loc = AT_GOSUB + OFFSET_OF(lapi_dgsm_gosub_t, ret_loc);
    const int reps = AT_GOSUB + OFFSET_OF(lapi_dgsm_gosub_t, reps);
    const int iter_loc = AT_ITERATE + OFFSET_OF(lapi_dgsm_iterate_t, iter_loc);
    const int opcodes[] = {AT_COPY, AT_GOSUB, AT_ITERATE, routine, mcopy};
    static const int wrong[] = {5, -1, INT_MAX, INT_MIN}, far[] = {-1000, 1000, INT_MAX, INT_MIN};
    lapi_util_t util;
    size_t i, k;
    bzero(&util, sizeof util);
    util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
    RETURNS(LAPI_Util(t_hndl, &util), LAPI_ERR_DGSP);
    for (i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        for (k = 0; k < 4; k++) REFUSED(code[opcodes[i]] = wrong[k], LAPI_ERR_DGSP_OPC);
    for (k = 0; k < 4; k++) {
        REFUSED(code[to_loc] = far[k], LAPI_ERR_DGSP_BRANCH);
        REFUSED(code[ret_loc] = far[k], LAPI_ERR_DGSP_BRANCH);
        REFUSED(code[iter_loc] = far[k], LAPI_ERR_DGSP_BRANCH);
    }
    /* The code ends before its end. */
    for (i = 1; i < (size_t)MAIN_ENDS; i++) REFUSED(p->descr.code_size = (int)i, LAPI_ERR_DGSP_BRANCH);
    REFUSED(set_long(&code[AT_COPY + OFFSET_OF(lapi_dgsm_copy_t, bytes)], -1), LAPI_ERR_DGSP_COPY_SZ);
    REFUSED(set_long(&code[routine + OFFSET_OF(lapi_dgsm_copy_t, bytes)], LONG_MIN), LAPI_ERR_DGSP_COPY_SZ);
    REFUSED(set_long(&code[mcopy + OFFSET_OF(lapi_dgsm_mcopy_t, block) + OFFSET_OF(lapi_dgsm_block_t, block_len)], -2),
            LAPI_ERR_DGSP_COPY_SZ);
    REFUSED(set_long(&code[reps], -1), LAPI_ERR_DGSP_REPS);
    for (k = 0; k < 3; k++) REFUSED(p->descr.depth = 1 - (int)k, LAPI_ERR_DGSP_STACK);
    REFUSED(code[to_loc] = -AT_GOSUB, LAPI_ERR_DGSP_STACK); /* calls itself */
    REFUSED(p->descr.atom_size = -1, LAPI_ERR_DGSP_ATOM);
    REFUSED(p->descr.atom_size = INT_MIN, LAPI_ERR_DGSP_ATOM);
    /* A descriptor that is not true. */
    REFUSED(p->descr.size++, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.size = 0, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.lext++, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.rext--, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.density = LAPI_DGSM_CONTIG, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.density = LAPI_DGSM_UNIT, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.code = NULL, LAPI_ERR_DGSP_OTHER);
    REFUSED(p->descr.code_size = 0, LAPI_ERR_DGSP_OTHER);
    REFUSED((p->routines[0].n = 0, p->descr.code_size = 0, p_control(p, 0, 1, 1), p_copy(p, 0, 4, 0), p->n = 1,
             p_write(p, 4, 1), p->descr.density = LAPI_DGSM_UNIT),
            LAPI_ERR_DGSP_CTL);
}

/* Registers a program whose descriptor is wrong, and checks what it packs. */
static void unverified(void) {
    program *p = good();
    lapi_util_t util;
    char data[256], packed[256];
    unsigned char *stream;
    end e = e_make(good(), 49);
    p->descr.size = 1;
    p->descr.depth = 1;
    p->descr.rext = 0;
    p_register(p);
    CHECK_EQ(p->handle->size, 1);
    t_fill(data, sizeof data, 1);
    bzero(&util, sizeof util);
    util.PackDgsp.Util_type = LAPI_DGSP_PACK;
    util.PackDgsp.dgsp = p->handle;
    util.PackDgsp.in_buf = data;
    util.PackDgsp.bytes = 49;
    util.PackDgsp.out_buf = packed;
    util.PackDgsp.out_size = sizeof packed;
    OK(LAPI_Util(t_hndl, &util));
    e.base = 0;
    stream = e_stream(&e, (unsigned char *)data);
    CHECK_EQ(memcmp(packed, stream, 49), 0);
    OK(p_unreserve(p->handle));
    free(p);
    free(stream);
    e_free(&e);
}

static void verify(void) {
    program *p = good();
    setenv("LAPI_VERIFY_DGSP", "yes", 1);
    p_register(p);
    OK(p_unreserve(p->handle));
    verified();
    setenv("LAPI_VERIFY_DGSP", "no", 1);
    unverified();
    setenv("LAPI_VERIFY_DGSP", "yes", 1);
    REFUSED(p->descr.size++, LAPI_ERR_DGSP_OTHER);
    unsetenv("LAPI_VERIFY_DGSP");
    unverified();
    free(p);
}

/* --- params --- */

static char buffer[4096];
static lapi_cntr_t cntr;
static volatile int called, completed;

static void *plain(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                   void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    CHECK(*msg_len <= sizeof buffer / 2);
    *comp_h = NULL;
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    return buffer + sizeof buffer / 2;
}

static lapi_xfer_t good_xfer(lapi_dg_handle_t dgsp) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)t_me;
    x.Dgsp.hdr_hdl = t_long((void *)plain);
    x.Dgsp.uhdr = buffer;
    x.Dgsp.uhdr_len = 8;
    x.Dgsp.udata = buffer;
    x.Dgsp.udata_len = 40;
    x.Dgsp.org_cntr = x.Dgsp.cmpl_cntr = &cntr;
    x.Dgsp.dgsp = dgsp;
    return x;
}

#define XFER(change, code)                                                                                       \
    do {                                                                                                         \
        lapi_xfer_t x = good_xfer(p->handle);                                                                    \
        change;                                                                                                  \
        RETURNS(LAPI_Xfer(t_hndl, &x), code);                                                                    \
    } while (0)

static void params(void) {
    program *p = good(), *q = good();
    const uint max_uhdr = (uint)t_query(MAX_UHDR_SZ), no_task = (uint)t_tasks;
    lapi_cntr_t done;
    int task;
    bzero(&done, sizeof done);
    p_register(p);
    p_register(q);
    OK(p_unreserve(q->handle));
    t_set(ERROR_CHK, 1);
    XFER(x.Dgsp.tgt = no_task, LAPI_ERR_TGT);
    XFER(x.Dgsp.hdr_hdl = 0, LAPI_ERR_HDR_HNDLR_NULL);
    XFER(x.Dgsp.uhdr = NULL, LAPI_ERR_UHDR_NULL);
    XFER(x.Dgsp.uhdr_len = max_uhdr + 4, LAPI_ERR_UHDR_LEN);
    XFER(x.Dgsp.uhdr_len = 7, LAPI_ERR_HDR_LEN);
    XFER(x.Dgsp.udata_len = (ulong)LAPI_MAX_MSG_SZ + 1, LAPI_ERR_DATA_LEN);
    XFER(x.Dgsp.dgsp = NULL, LAPI_ERR_DGSP);
    XFER(x.Dgsp.dgsp = q->handle, LAPI_ERR_DGSP);
    XFER(x.Dgsp.dgsp = (lapi_dg_handle_t)&p->descr, LAPI_ERR_DGSP);
    RETURNS(LAPI_Xfer(t_hndl + 1, (lapi_xfer_t[]){good_xfer(p->handle)}), LAPI_ERR_HNDL_INVALID);
    /* An atom that no packet holds is refused by the transfer at the latest. */
    q->descr.atom_size = t_query(MAX_ATOM_SIZE);
    OK(p_try(q));
    XFER((x.Dgsp.dgsp = q->handle, x.Dgsp.org_cntr = NULL, x.Dgsp.cmpl_cntr = &done), LAPI_SUCCESS);
    t_wait_exact(&done, 1);
    OK(p_unreserve(q->handle));
    q->descr.atom_size++;
    if (p_try(q) == LAPI_SUCCESS) {
        XFER(x.Dgsp.dgsp = q->handle, LAPI_ERR_DGSP_ATOM);
        OK(p_unreserve(q->handle));
    } else {
        RETURNS(p_try(q), LAPI_ERR_DGSP_ATOM);
    }
    CHECK_EQ(t_value(&cntr), 0);
    called = 0;
    t_fence();
    for (task = 0; task < t_tasks; task++) {
        XFER((x.Dgsp.tgt = (uint)task, x.Dgsp.cmpl_cntr = &done, x.Dgsp.org_cntr = NULL), LAPI_SUCCESS);
        XFER((x.Dgsp.tgt = (uint)task, x.Dgsp.cmpl_cntr = &done, x.Dgsp.org_cntr = NULL, x.Dgsp.udata_len = 0,
              x.Dgsp.udata = NULL, x.Dgsp.uhdr = NULL, x.Dgsp.uhdr_len = 0),
             LAPI_SUCCESS);
    }
    t_wait_exact(&done, 2 * t_tasks);
    t_fence();
    CHECK_EQ(called, 2 * t_tasks);
    OK(p_unreserve(p->handle));
    free(p);
    free(q);
}

/* --- reported --- */

enum { ROOM = 200000 };
static unsigned char *out, *in;
static void **handlers, **tgt_cntrs;
static lapi_cntr_t org_cntr, cmpl_cntr, tgt_cntr;
static volatile int reported;
static int expected, source;
static lapi_dg_handle_t returned;

static void errors(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, expected);
    CHECK_EQ(*type, AM_ERR);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, source);
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELEASE);
}

static void completion(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    *comp_h = completion;
    *uinfo = NULL;
    ret->dgsp_handle = returned;
    ret->bytes = ROOM / 4;
    if (ret->bytes > ret->msg_len) ret->bytes = ret->msg_len;
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    return in;
}

static long nothing(void *data, void *inout, long bytes, int operand, int operation) {
    (void)data, (void)inout, (void)operand, (void)operation;
    T_FAIL("the function is called for %ld bytes of a message that is buried", bytes);
}

static program *controlled(void) {
    program *p = p_new();
    p_control(p, 0, 1, 1);
    p_copy(p, 0, 4, 0);
    p_write(p, 4, 1);
    return p;
}

static program *atoms_of(int atom) {
    program *p = p_new();
    p_copy(p, 0, 4, 0);
    p_write(p, 4, 1);
    p->descr.atom_size = atom;
    return p;
}

/* One message by this program to the task `distance` further, whose header handler returns
 * that program. */
static void send_one(int distance, long bytes, lapi_dg_handle_t by, lapi_dg_handle_t into, int code, int at_origin) {
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    lapi_xfer_t x;
    returned = into;
    expected = code;
    source = at_origin ? tgt : src;
    reported = called = completed = 0;
    t_fill(out, ROOM, 1);
    t_fill(in, ROOM, 2);
    t_fence();
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)tgt;
    x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
    x.Dgsp.udata = out;
    x.Dgsp.udata_len = (ulong)bytes;
    x.Dgsp.tgt_cntr = t_long(tgt_cntrs[tgt]);
    x.Dgsp.org_cntr = &org_cntr;
    x.Dgsp.cmpl_cntr = &cmpl_cntr;
    x.Dgsp.dgsp = by;
    OK(LAPI_Xfer(t_hndl, &x));
    t_wait_exact(&org_cntr, 1);
    t_wait_exact(&tgt_cntr, 1);
    t_wait_exact(&cmpl_cntr, 1);
    t_probe_until(&reported, 1);
    t_fence();
    CHECK_EQ(called, 1);
    CHECK_EQ(completed, 1);
    CHECK_EQ(reported, 1);
    CHECK_FILLED(in, ROOM, 2);
}

/* A message that is refused is none that the error handler would get. */
static void refused_before(lapi_dg_handle_t control) {
    static char header[2048];
    lapi_xfer_t x;
    reported = 0;
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)t_me;
    x.Dgsp.hdr_hdl = t_long(handlers[t_me]);
    x.Dgsp.uhdr = header;
    x.Dgsp.uhdr_len = sizeof header;
    x.Dgsp.udata = out;
    x.Dgsp.udata_len = 400;
    x.Dgsp.dgsp = control;
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_UHDR_LEN);
    CHECK_EQ(reported, 0);
}

static void report(void) {
    static const long lengths[] = {4, 400, 20000, ROOM};
    program *control = controlled(), *ints = atoms_of(4), *any = atoms_of(0), *gone = atoms_of(0), *none = p_new();
    int distance;
    size_t i;
    p_write(none, 0, 1);
    p_register(none);
    p_register(control);
    p_register(ints);
    p_register(any);
    p_register(gone);
    OK(p_unreserve(gone->handle));
    refused_before(control->handle);
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            /* CONTROL without a function, */
            OK(p_ddm(t_hndl, NULL));
            send_one(distance, lengths[i], ints->handle, control->handle, LAPI_ERR_DGSP_CTL, 0);
            OK(p_ddm(t_hndl, nothing));
            /* with operands that packets may cut apart, */
            send_one(distance, lengths[i], any->handle, control->handle, LAPI_ERR_DGSP_CTL, 0);
            send_one(distance, lengths[i], LAPI_BYTE, control->handle, LAPI_ERR_DGSP_CTL, 0);
            /* where data is gathered; */
            send_one(distance, lengths[i], control->handle, any->handle, LAPI_ERR_DGSP_CTL, 1);
            /* no program; a program that moves nothing. */
            send_one(distance, lengths[i], any->handle, gone->handle, LAPI_ERR_DGSP, 0);
            send_one(distance, lengths[i], any->handle, none->handle, LAPI_ERR_DGSP_OTHER, 0);
        }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    lapi_info_t start;
    bzero(&start, sizeof start);
    if (strcmp(which, "default") != 0) start.err_hndlr = errors;
    t_init_with(&start);
    out = malloc(ROOM);
    in = malloc(ROOM);
    CHECK(out != NULL && in != NULL);
    handlers = t_addresses((void *)arriving);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "verify") == 0) {
        verify();
    } else if (strcmp(which, "params") == 0) {
        params();
    } else if (strcmp(which, "reported") == 0) {
        report();
    } else if (strcmp(which, "default") == 0) {
        program *control = controlled();
        send_one(1, 400, LAPI_BYTE, p_register(control), 0, 0);
        T_FAIL("the job has not ended");
    } else {
        T_FAIL("there is no case \"%s\"", which);
    }
    t_done();
    return 0;
}

/*
 * Who holds the shared lock in handlers: handlers CASE
 *
 *   with      header, inline completion and send completion handlers run with it, and cannot take or release it
 *   without   completion handlers of LAPI's own threads and error handlers run without it, and may take it
 *
 * Each is done by a program that leaves the lock alone, and by one that holds it all the time.
 */
#include "../dgsp/program.h"
#include "locks.h"

enum { HEADER = 10, NOT_SET = 900, MESSAGES = 50, LARGE = 300000 };

static volatile int headers, inlines, sends, completions, errors;
static lapi_cond_t cond;
static lapi_cntr_t org_cntr, cmpl_cntr, own_cntr;
static void **buffers;
static char out[LARGE], in[LARGE];

static void bump(volatile int *count) { __atomic_fetch_add(count, 1, __ATOMIC_RELEASE); }

/* --- with --- */

/* What holds in a handler that LAPI calls with the lock held. */
static void held_by_lapi(void) {
    struct timespec soon = from_now(1000000);
    CHECK(mine());
    CHECK_EQ(lk.mutex_lock(t_hndl), EDEADLK);
    CHECK_EQ(lk.mutex_trylock(t_hndl), EBUSY);
    CHECK_EQ(lk.mutex_unlock(t_hndl), EPERM);
    CHECK_EQ(lk.cond_wait(t_hndl, &cond), EPERM);
    CHECK_EQ(lk.cond_timedwait(t_hndl, &cond, &soon), EPERM);
    signal_one(&cond);
    CHECK(mine());
}

static void inline_handler(lapi_handle_t *hndl, void *info) {
    lapi_util_t util;
    int reply = *(int *)info;
    held_by_lapi();
    util.Util_type = LAPI_GET_THREAD_FUNC;
    OK(LAPI_Util(*hndl, &util));
    /* A call from here neither takes nor releases the lock. */
    OK(LAPI_Put(*hndl, (uint)reply, 8, buffers[reply], out, NULL, NULL, NULL));
    CHECK(mine());
    bump(&inlines);
}

static void *header_handler(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                            compl_hndlr_t **comp_h, void **uinfo) {
    static int from[64];
    (void)uhdr_len;
    held_by_lapi();
    OK(LAPI_Setcntr(*hndl, &own_cntr, 1));
    CHECK(mine());
    from[ret->src] = ret->src;
    CHECK_EQ(*(int *)uhdr, ret->src);
    *comp_h = inline_handler;
    *uinfo = &from[ret->src];
    ret->ret_flags = LAPI_SEND_REPLY;
    bump(&headers);
    return in;
}

static void sent(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    (void)hndl, (void)param;
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    held_by_lapi();
    bump(&sends);
}

static void send_to(int tgt, ulong len) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Am.Xfer_type = LAPI_AM_XFER;
    x.Am.tgt = (uint)tgt;
    x.Am.hdr_hdl = HEADER;
    x.Am.uhdr = &t_me;
    x.Am.uhdr_len = sizeof t_me;
    x.Am.udata = out;
    x.Am.udata_len = len;
    x.Am.shdlr = sent;
    x.Am.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &x));
}

static void with(int keep) {
    int i, tgt;
    headers = inlines = sends = 0;
    t_fence();
    if (keep) acquire();
    for (i = 0; i < MESSAGES; i++)
        for (tgt = 0; tgt < t_tasks; tgt++) {
            send_to(tgt, i % 10 == 0 ? LARGE : (ulong)i);
            CHECK_EQ(mine(), keep);
        }
    t_wait_exact(&cmpl_cntr, MESSAGES * t_tasks);
    CHECK_EQ(mine(), keep);
    t_probe_until(&inlines, MESSAGES * t_tasks);
    t_probe_until(&sends, MESSAGES * t_tasks);
    t_fence();
    CHECK_EQ(mine(), keep);
    CHECK_EQ(headers, MESSAGES * t_tasks);
    CHECK_EQ(inlines, MESSAGES * t_tasks);
    CHECK_EQ(sends, MESSAGES * t_tasks);
    if (keep) release();
    t_fence();
}

/* --- without --- */

/* What holds where the lock is free to be taken. `forgotten`: the handler returns with it. */
static void takes_it(int forgotten) {
    CHECK(!mine());
    acquire();
    OK(LAPI_Probe(t_hndl));
    CHECK(mine());
    if (!forgotten) release();
}

static void completion_handler(lapi_handle_t *hndl, void *info) {
    lapi_cntr_t done;
    char bytes[8];
    int from = (int)(long)info;
    CHECK(!mine());
    CHECK_EQ(lk.mutex_unlock(t_hndl), EPERM);
    acquire();
    bzero(&done, sizeof done);
    OK(LAPI_Get(*hndl, (uint)from, sizeof bytes, buffers[from], bytes, NULL, &done));
    CHECK(mine());
    OK(LAPI_Waitcntr(*hndl, &done, 1, NULL));
    CHECK(mine());
    OK(LAPI_Fence(*hndl));
    CHECK(mine());
    bump(&completions);
    if (completions % 3 != 0) release(); /* else the program forgets it, without consequences */
}

static void *to_completion(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                           compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    CHECK(mine());
    *comp_h = completion_handler;
    *uinfo = (void *)(long)ret->src;
    return in;
}

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)type, (void)task, (void)src;
    CHECK_EQ(*hndl, t_hndl);
    CHECK(*code == LAPI_ERR_HDR_HNDLR_NULL || *code == LAPI_ERR_DGSP_CTL);
    CHECK_EQ(lk.mutex_unlock(t_hndl), EPERM);
    takes_it(errors % 2);
    bump(&errors);
}

static program *control;

/* The error is found in a call that a handler makes: the lock is released nevertheless, and held
 * again afterwards. */
static void wrong_call(lapi_handle_t *hndl, void *info) {
    lapi_xfer_t x;
    int before = errors;
    (void)info;
    held_by_lapi();
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)t_me;
    x.Dgsp.hdr_hdl = HEADER;
    x.Dgsp.uhdr = &t_me;
    x.Dgsp.uhdr_len = sizeof t_me;
    x.Dgsp.udata = out;
    x.Dgsp.udata_len = 400;
    x.Dgsp.dgsp = control->handle;
    OK(LAPI_Xfer(*hndl, &x));
    CHECK_EQ(errors, before + 1);
    held_by_lapi();
    bump(&inlines);
}

static void *to_wrong_call(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                           compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    *comp_h = wrong_call;
    *uinfo = NULL;
    ret->ret_flags = LAPI_SEND_REPLY;
    return in;
}

static void without(int keep) {
    int i, tgt;
    completions = 0;
    t_fence();
    if (keep) acquire();
    for (i = 0; i < MESSAGES; i++)
        for (tgt = 0; tgt < t_tasks; tgt++) {
            OK(LAPI_Amsend(t_hndl, (uint)tgt, (void *)(HEADER + 1), NULL, 0, out, 8, NULL, NULL, &cmpl_cntr));
            CHECK_EQ(mine(), keep);
        }
    t_wait_exact(&cmpl_cntr, MESSAGES * t_tasks);
    CHECK_EQ(mine(), keep);
    t_probe_until(&completions, MESSAGES * t_tasks);
    t_fence();
    CHECK_EQ(completions, MESSAGES * t_tasks);

    /* Errors of messages from all tasks, found by the dispatcher, */
    errors = 0;
    t_fence();
    for (i = 0; i < 10; i++)
        for (tgt = 0; tgt < t_tasks; tgt++) {
            OK(LAPI_Amsend(t_hndl, (uint)tgt, (void *)NOT_SET, NULL, 0, out, 8, NULL, NULL, NULL));
            CHECK_EQ(mine(), keep);
        }
    t_probe_until(&errors, 10 * t_tasks);
    CHECK_EQ(mine(), keep);
    t_fence();

    /* and inside of calls that handlers make. */
    errors = inlines = headers = 0;
    t_fence();
    for (i = 0; i < 10; i++)
        OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)(HEADER + 2), NULL, 0, NULL, 0, NULL, NULL, &cmpl_cntr));
    t_wait_exact(&cmpl_cntr, 10);
    t_probe_until(&inlines, 20);
    CHECK_EQ(errors, 10);
    CHECK_EQ(headers, 10); /* the wrong messages carried no data */
    CHECK_EQ(mine(), keep);
    t_fence();
    if (keep) release();
    t_fence();
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.err_hndlr = error_handler;
    t_init_with(&info);
    if (argc == 3) t_set(INTERRUPT_SET, atoi(argv[2]));
    get_functions();
    OK(LAPI_Addr_set(t_hndl, (void *)header_handler, HEADER));
    OK(LAPI_Addr_set(t_hndl, (void *)to_completion, HEADER + 1));
    OK(LAPI_Addr_set(t_hndl, (void *)to_wrong_call, HEADER + 2));
    buffers = t_addresses(in);
    control = p_new();
    p_control(control, 0, 1, 1);
    p_copy(control, 0, 4, 0);
    p_write(control, 4, 1);
    p_register(control);
    if (strcmp(which, "with") == 0) with(0), with(1);
    else if (strcmp(which, "without") == 0) without(0), without(1);
    else T_FAIL("there is no case \"%s\"", which);
    until_free();
    t_done();
    return 0;
}

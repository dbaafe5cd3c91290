/*
 * Wrong vectors: params CASE
 *
 *   checked    ERROR_CHK on: every parameter error of the calls, in the order in which they are looked for
 *   unchecked  ERROR_CHK off: what cannot be done without is still refused
 *   handles    handles that are none
 *   zero       num_vecs 0 moves no data, with arrays and without; counters and handlers act
 *   empty      nor do pieces of no bytes, however many there are, and fences pass
 */
#include "vec.h"

static unsigned char buffer[256];
static void *org_info[4], *tgt_info[4];
static ulong org_len[4], tgt_len[4];
static lapi_vec_t org, tgt;
static lapi_cntr_t cntr;
static volatile int called;

#define ROOMY ((ulong)1 << 62)

/* Two valid vectors, which the checks then change. */
static void good(lapi_vectype_t type) {
    int i;
    for (i = 0; i < 4; i++) {
        org_info[i] = buffer + 8 * i;
        tgt_info[i] = buffer + 128 + 8 * i;
        org_len[i] = tgt_len[i] = 8;
    }
    if (type == LAPI_GEN_STRIDED_XFER) {
        org_info[1] = tgt_info[1] = (void *)4;
        org_info[2] = tgt_info[2] = (void *)8;
    }
    org.vec_type = tgt.vec_type = type;
    org.num_vecs = tgt.num_vecs = 4;
    org.info = org_info;
    tgt.info = tgt_info;
    org.len = org_len;
    tgt.len = tgt_len;
}

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    static void *info[4];
    static lapi_vec_t vec = {LAPI_GEN_IOVECTOR, 4, info, org_len};
    int i;
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo, (void)len_vec;
    for (i = 0; i < 4; i++) info[i] = buffer + 128 + 8 * i;
    *comp_h = NULL;
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    return &vec;
}
#define HANDLER ((void *)arriving)

/* The return code of all forms of a call with these two vectors; the target is `me` because refused
 * calls send nothing. */
static void pair_returns(int line, lapi_vec_t *o, lapi_vec_t *t, int code) {
    int codes[6], i;
    uint me = (uint)t_me;
    lapi_xfer_t x;
    codes[0] = LAPI_Putv(t_hndl, me, t, o, NULL, &cntr, &cntr);
    codes[1] = LAPI_Getv(t_hndl, me, t, o, NULL, &cntr);
    for (i = 2; i < 6; i++) {
        bzero(&x, sizeof x);
        if (i < 4) {
            x.Putv.Xfer_type = LAPI_PUTV_XFER;
            x.Putv.flags = i % 2 ? USE_TGT_VEC_TYPE : 0;
            x.Putv.tgt = me;
            x.Putv.org_vec = o;
            x.Putv.tgt_vec = t;
            x.Putv.org_cntr = x.Putv.cmpl_cntr = &cntr;
        } else {
            x.Getv.Xfer_type = LAPI_GETV_XFER;
            x.Getv.flags = i % 2 ? USE_TGT_VEC_TYPE : 0;
            x.Getv.tgt = me;
            x.Getv.org_vec = o;
            x.Getv.tgt_vec = t;
            x.Getv.org_cntr = &cntr;
        }
        codes[i] = LAPI_Xfer(t_hndl, &x);
    }
    for (i = 0; i < 6; i++)
        if (codes[i] != code)
            t_fail(__FILE__, line, "form %d of this call returns %d, expected %d", i, codes[i], code);
}
#define PAIR(code) pair_returns(__LINE__, &org, &tgt, code)

static void origin_returns(int line, lapi_vec_t *o, int code) {
    int codes[2], i;
    lapi_xfer_t x;
    codes[0] = LAPI_Amsendv(t_hndl, (uint)t_me, HANDLER, NULL, 0, o, NULL, &cntr, &cntr);
    bzero(&x, sizeof x);
    x.Amv.Xfer_type = LAPI_AMV_XFER;
    x.Amv.tgt = (uint)t_me;
    x.Amv.hdr_hdl = t_long(HANDLER);
    x.Amv.org_vec = o;
    x.Amv.org_cntr = x.Amv.cmpl_cntr = &cntr;
    codes[1] = LAPI_Xfer(t_hndl, &x);
    for (i = 0; i < 2; i++)
        if (codes[i] != code)
            t_fail(__FILE__, line, "form %d of this call returns %d, expected %d", i, codes[i], code);
}
#define ORIGIN(code) origin_returns(__LINE__, &org, code)

/* One good operation of each kind to every task. */
static void still_works(void) {
    lapi_cntr_t done;
    int task;
    bzero(&done, sizeof done);
    CHECK_EQ(t_value(&cntr), 0); /* no refused call has counted */
    called = 0;
    t_fence();
    good(LAPI_GEN_IOVECTOR);
    for (task = 0; task < t_tasks; task++) {
        OK(LAPI_Putv(t_hndl, (uint)task, &tgt, &org, NULL, NULL, &done));
        OK(LAPI_Getv(t_hndl, (uint)task, &tgt, &org, NULL, &done));
        OK(LAPI_Amsendv(t_hndl, (uint)task, HANDLER, NULL, 0, &org, NULL, NULL, &done));
    }
    t_wait_exact(&done, 3 * t_tasks);
    t_fence();
    CHECK_EQ(called, t_tasks);
    t_fence();
}

/* Everything about the pair is wrong, and is put right in the order of the checks. */
static void order_of_pieces(void) {
    good(LAPI_GEN_IOVECTOR);
    org.vec_type = LAPI_GEN_GENERIC;
    tgt.vec_type = 99;
    tgt.num_vecs = 3;
    org_info[2] = tgt_info[1] = NULL;
    org_len[0] = org_len[1] = org_len[2] = ROOMY;
    tgt_len[0] = tgt_len[1] = tgt_len[2] = ROOMY + 1;
    pair_returns(__LINE__, NULL, &tgt, LAPI_ERR_ORG_VEC_NULL);
    pair_returns(__LINE__, NULL, NULL, LAPI_ERR_ORG_VEC_NULL);
    pair_returns(__LINE__, &org, NULL, LAPI_ERR_TGT_VEC_NULL);
    PAIR(LAPI_ERR_ORG_VEC_TYPE);
    org.vec_type = LAPI_GEN_STRIDED_XFER;
    PAIR(LAPI_ERR_TGT_VEC_TYPE);
    tgt.vec_type = LAPI_GEN_IOVECTOR;
    PAIR(LAPI_ERR_VEC_TYPE_DIFF);
    org.vec_type = LAPI_GEN_IOVECTOR;
    PAIR(LAPI_ERR_VEC_NUM_DIFF);
    tgt.num_vecs = 4;
    PAIR(LAPI_ERR_ORG_VEC_ADDR);
    org_info[2] = buffer;
    PAIR(LAPI_ERR_TGT_VEC_ADDR);
    tgt_info[1] = buffer;
    PAIR(LAPI_ERR_ORG_VEC_LEN);
    org_len[0] = org_len[1] = org_len[2] = 8;
    PAIR(LAPI_ERR_TGT_VEC_LEN);
    tgt_len[0] = tgt_len[1] = tgt_len[2] = 8;
    tgt_len[3] = 9;
    PAIR(LAPI_ERR_VEC_LEN_DIFF);
    tgt_len[3] = 7;
    PAIR(LAPI_ERR_VEC_LEN_DIFF);
    /* As much in all, and as much each except for the first. */
    tgt_len[0] = 9;
    PAIR(LAPI_ERR_VEC_LEN_DIFF);
}

static void order_of_blocks(void) {
    good(LAPI_GEN_STRIDED_XFER);
    tgt.num_vecs = 5;
    org_info[0] = tgt_info[0] = NULL;
    org_info[1] = (void *)(ROOMY + 1);
    tgt_info[1] = (void *)(ROOMY + 2);
    org_info[2] = tgt_info[2] = (void *)ROOMY;
    PAIR(LAPI_ERR_VEC_NUM_DIFF);
    tgt.num_vecs = 4;
    PAIR(LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL);
    org_info[0] = buffer;
    PAIR(LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL);
    tgt_info[0] = buffer;
    PAIR(LAPI_ERR_ORG_STRIDE);
    org_info[1] = (void *)8;
    PAIR(LAPI_ERR_TGT_STRIDE);
    tgt_info[1] = (void *)4;
    PAIR(LAPI_ERR_ORG_EXTENT);
    org_info[2] = (void *)8;
    PAIR(LAPI_ERR_TGT_EXTENT);
    tgt_info[2] = (void *)8;
    PAIR(LAPI_ERR_VEC_LEN_DIFF);
    org_info[1] = (void *)9;
    PAIR(LAPI_ERR_ORG_STRIDE);
}

static void types(void) {
    good(LAPI_GEN_GENERIC);
    PAIR(LAPI_ERR_ORG_VEC_TYPE);
    org.vec_type = LAPI_GEN_IOVECTOR;
    PAIR(LAPI_ERR_TGT_VEC_TYPE);
    org.vec_type = (lapi_vectype_t)-1;
    PAIR(LAPI_ERR_ORG_VEC_TYPE);
    ORIGIN(LAPI_ERR_ORG_VEC_TYPE);
    org.vec_type = 3;
    ORIGIN(LAPI_ERR_ORG_VEC_TYPE);
}

static void order_of_origin(void) {
    lapi_vectype_t type;
    origin_returns(__LINE__, NULL, LAPI_ERR_ORG_VEC_NULL);
    for (type = LAPI_GEN_IOVECTOR; type <= LAPI_GEN_GENERIC; type += LAPI_GEN_GENERIC - LAPI_GEN_IOVECTOR) {
        good(type);
        org_info[3] = NULL;
        org_len[0] = org_len[1] = org_len[2] = ROOMY;
        ORIGIN(LAPI_ERR_ORG_VEC_ADDR);
        org_info[3] = buffer;
        ORIGIN(LAPI_ERR_ORG_VEC_LEN);
        /* The sum is 0 if the overflow is ignored. */
        org_len[3] = ROOMY;
        ORIGIN(LAPI_ERR_ORG_VEC_LEN);
    }
    good(LAPI_GEN_STRIDED_XFER);
    org_info[0] = NULL;
    org_info[1] = (void *)(ROOMY + 1);
    org_info[2] = (void *)ROOMY;
    ORIGIN(LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL);
    org_info[0] = buffer;
    ORIGIN(LAPI_ERR_ORG_STRIDE);
    org_info[1] = (void *)8;
    ORIGIN(LAPI_ERR_ORG_EXTENT);
}

static void parameters(void) {
    const uint no_task = (uint)t_tasks, max_uhdr = (uint)t_query(MAX_UHDR_SZ);
    uint me = (uint)t_me;
    char *uhdr = calloc(max_uhdr + 64, 1);
    lapi_xfer_t x;
    good(LAPI_GEN_IOVECTOR);
    RETURNS(LAPI_Putv(t_hndl, no_task, &tgt, &org, NULL, &cntr, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Getv(t_hndl, (uint)-1, &tgt, &org, NULL, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Amsendv(t_hndl, no_task, HANDLER, NULL, 0, &org, NULL, &cntr, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Amsendv(t_hndl, me, NULL, NULL, 0, &org, NULL, &cntr, &cntr), LAPI_ERR_HDR_HNDLR_NULL);
    RETURNS(LAPI_Amsendv(t_hndl, me, HANDLER, NULL, 8, &org, NULL, &cntr, &cntr), LAPI_ERR_UHDR_NULL);
    RETURNS(LAPI_Amsendv(t_hndl, me, HANDLER, uhdr, max_uhdr + 8, &org, NULL, &cntr, &cntr), LAPI_ERR_UHDR_LEN);
    RETURNS(LAPI_Amsendv(t_hndl, me, HANDLER, uhdr, 6, &org, NULL, &cntr, &cntr), LAPI_ERR_HDR_LEN);
    bzero(&x, sizeof x);
    x.Amv.Xfer_type = LAPI_AMV_XFER;
    x.Amv.org_vec = &org;
    x.Amv.tgt = no_task;
    x.Amv.hdr_hdl = t_long(HANDLER);
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_TGT);
    x.Amv.tgt = me;
    x.Amv.hdr_hdl = 0;
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_HDR_HNDLR_NULL);
    x.Amv.hdr_hdl = t_long(HANDLER);
    x.Amv.uhdr_len = 16;
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_UHDR_NULL);
    bzero(&x, sizeof x);
    x.Putv.Xfer_type = LAPI_PUTV_XFER;
    x.Putv.tgt = no_task;
    x.Putv.org_vec = &org;
    x.Putv.tgt_vec = &tgt;
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_TGT);
    bzero(&x, sizeof x);
    x.Getv.Xfer_type = LAPI_GETV_XFER;
    x.Getv.tgt = no_task;
    x.Getv.org_vec = &org;
    x.Getv.tgt_vec = &tgt;
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_TGT);
    free(uhdr);
}

/* What looks wrong and is not. */
static void accepted(void) {
    lapi_cntr_t done;
    bzero(&done, sizeof done);
    good(LAPI_GEN_IOVECTOR);
    org_info[1] = tgt_info[1] = org_info[3] = tgt_info[3] = NULL;
    org_len[1] = tgt_len[1] = org_len[3] = tgt_len[3] = 0;
    OK(LAPI_Putv(t_hndl, (uint)t_me, &tgt, &org, NULL, NULL, &done));
    t_wait_exact(&done, 1);
    OK(LAPI_Getv(t_hndl, (uint)t_me, &tgt, &org, NULL, &done));
    t_wait_exact(&done, 1);
    good(LAPI_GEN_STRIDED_XFER);
    org.len = tgt.len = NULL;
    org_info[2] = (void *)4; /* as far as the block is long */
    OK(LAPI_Putv(t_hndl, (uint)t_me, &tgt, &org, NULL, NULL, &done));
    t_wait_exact(&done, 1);
    OK(LAPI_Getv(t_hndl, (uint)t_me, &tgt, &org, NULL, &done));
    t_wait_exact(&done, 1);
}

static void checked(void) {
    t_set(ERROR_CHK, 1);
    order_of_pieces();
    order_of_blocks();
    types();
    order_of_origin();
    parameters();
    still_works();
    accepted();
    still_works();
}

static void unchecked(void) {
    t_set(ERROR_CHK, 0);
    good(LAPI_GEN_IOVECTOR);
    /* Any return code is allowed, as long as the program and the job survive. */
    LAPI_Putv(t_hndl, (uint)t_tasks + 5, &tgt, &org, NULL, NULL, NULL);
    LAPI_Getv(t_hndl, (uint)t_tasks + 5, &tgt, &org, NULL, NULL);
    LAPI_Amsendv(t_hndl, (uint)t_tasks + 5, HANDLER, NULL, 0, &org, NULL, NULL, NULL);
    RETURNS(LAPI_Amsendv(t_hndl, (uint)t_me, NULL, NULL, 0, &org, NULL, NULL, NULL), LAPI_ERR_HDR_HNDLR_NULL);
    still_works();
}

static void refuses(lapi_handle_t h) {
    lapi_xfer_t x;
    RETURNS(LAPI_Putv(h, 0, &tgt, &org, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Getv(h, 0, &tgt, &org, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Amsendv(h, 0, HANDLER, NULL, 0, &org, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    bzero(&x, sizeof x);
    x.Putv.Xfer_type = LAPI_PUTV_XFER;
    x.Putv.org_vec = &org;
    x.Putv.tgt_vec = &tgt;
    RETURNS(LAPI_Xfer(h, &x), LAPI_ERR_HNDL_INVALID);
}

static void handles(void) {
    good(LAPI_GEN_IOVECTOR);
    refuses(t_hndl + 1);
    refuses(LAPI_VOID_HANDLE);
    refuses(0xdeadbeef);
    still_works();
}

/* --- zero --- */

static volatile int handlers_called;

static void completion(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    __atomic_fetch_add(&handlers_called, 1, __ATOMIC_RELEASE);
}

static void gone(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    completion(hndl, param);
}

static lapi_vec_t *nothing(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                           void **uinfo) {
    static lapi_vec_t vec;
    (void)hndl, (void)uhdr_len, (void)uinfo;
    CHECK_EQ(*len_vec, 0);
    vec.vec_type = *(lapi_vectype_t *)uhdr;
    *comp_h = completion;
    return &vec;
}

static void zero(void) {
    void **nothings = t_addresses((void *)nothing);
    static lapi_cntr_t there;
    lapi_cntr_t here, done;
    void **theres = t_addresses(&there);
    lapi_vectype_t type;
    int distance, arrays, check;
    bzero(&here, sizeof here);
    bzero(&done, sizeof done);
    for (check = 0; check < 2; check++) {
        t_set(ERROR_CHK, check);
        for (distance = 0; distance < t_tasks; distance++)
            for (type = LAPI_GEN_IOVECTOR; type <= LAPI_GEN_GENERIC; type++)
                for (arrays = 0; arrays < 2; arrays++) {
                    uint task = (uint)((t_me + distance) % t_tasks);
                    lapi_xfer_t x;
                    good(type);
                    org.num_vecs = tgt.num_vecs = 0;
                    if (!arrays) org.info = tgt.info = NULL, org.len = tgt.len = NULL;
                    memset(buffer, POISON, sizeof buffer);
                    handlers_called = 0;
                    t_fence();
                    OK(LAPI_Amsendv(t_hndl, task, nothings[task], &type, sizeof type, &org, theres[task], &here, &done));
                    t_wait_exact(&here, 1);
                    t_wait_exact(&there, 1);
                    t_wait_exact(&done, 1);
                    t_probe_until(&handlers_called, 1);
                    t_fence();
                    if (type == LAPI_GEN_GENERIC) continue;
                    OK(LAPI_Putv(t_hndl, task, &tgt, &org, theres[task], &here, &done));
                    t_wait_exact(&here, 1);
                    t_wait_exact(&there, 1);
                    t_wait_exact(&done, 1);
                    t_fence();
                    OK(LAPI_Getv(t_hndl, task, &tgt, &org, theres[task], &here));
                    t_wait_exact(&here, 1);
                    t_wait_exact(&there, 1);
                    bzero(&x, sizeof x);
                    x.Putv.Xfer_type = LAPI_PUTV_XFER;
                    x.Putv.tgt = task;
                    x.Putv.shdlr = gone;
                    x.Putv.org_vec = &org;
                    x.Putv.tgt_vec = &tgt;
                    x.Putv.cmpl_cntr = &done;
                    OK(LAPI_Xfer(t_hndl, &x));
                    t_wait_exact(&done, 1);
                    t_probe_until(&handlers_called, 2);
                    bzero(&x, sizeof x);
                    x.Getv.Xfer_type = LAPI_GETV_XFER;
                    x.Getv.flags = USE_TGT_VEC_TYPE;
                    x.Getv.tgt = task;
                    x.Getv.org_vec = &org;
                    x.Getv.tgt_vec = &tgt;
                    x.Getv.chndlr = completion;
                    OK(LAPI_Xfer(t_hndl, &x));
                    t_probe_until(&handlers_called, 3);
                    t_fence();
                    CHECK_EQ(handlers_called, 3);
                    CHECK(buffer[0] == POISON && memcmp(buffer, buffer + 1, sizeof buffer - 1) == 0);
                }
    }
}

/* So many that no packet holds the description of the target's vector. */
enum { EMPTY = 20000 };

static void empty(void) {
    static void *addresses[EMPTY];
    static lapi_long_t wide[EMPTY];
    static ulong lengths[EMPTY];
    static const uint counts[] = {1, 2000, EMPTY};
    static lapi_cntr_t there;
    lapi_vec_t vec = {LAPI_GEN_IOVECTOR, 0, addresses, lengths};
    lapi_lvec_t lvec = {LAPI_GEN_IOVECTOR, 0, wide, lengths};
    lapi_cntr_t here, done;
    void **theres = t_addresses(&there);
    int distance, number;
    bzero(&here, sizeof here);
    bzero(&done, sizeof done);
    for (number = 0; number < EMPTY; number++) {
        addresses[number] = buffer + number % 64;
        wide[number] = t_long(buffer);
    }
    memset(buffer, POISON, sizeof buffer);
    for (distance = 0; distance < t_tasks; distance++)
        for (number = 0; number < 3; number++) {
            uint task = (uint)((t_me + distance) % t_tasks);
            lapi_xfer_t x;
            vec.num_vecs = lvec.num_vecs = counts[number];
            handlers_called = 0;
            t_fence();
            OK(LAPI_Putv(t_hndl, task, &vec, &vec, theres[task], &here, &done));
            OK(LAPI_Fence(t_hndl));
            t_wait_exact(&here, 1);
            t_wait_exact(&there, 1);
            t_wait_exact(&done, 1);
            t_fence();
            OK(LAPI_Getv(t_hndl, task, &vec, &vec, theres[task], &here));
            OK(LAPI_Fence(t_hndl));
            t_wait_exact(&here, 1);
            t_wait_exact(&there, 1);
            bzero(&x, sizeof x);
            x.Putv.Xfer_type = LAPI_PUTV_XFER;
            x.Putv.tgt = task;
            x.Putv.shdlr = gone;
            x.Putv.org_vec = &vec;
            x.Putv.tgt_vec = &lvec;
            x.Putv.cmpl_cntr = &done;
            OK(LAPI_Xfer(t_hndl, &x));
            t_wait_exact(&done, 1);
            t_probe_until(&handlers_called, 1);
            bzero(&x, sizeof x);
            x.Getv.Xfer_type = LAPI_GETV_XFER;
            x.Getv.tgt = task;
            x.Getv.org_vec = &vec;
            x.Getv.tgt_vec = &lvec;
            x.Getv.chndlr = completion;
            OK(LAPI_Xfer(t_hndl, &x));
            t_probe_until(&handlers_called, 2);
            t_fence();
            CHECK(buffer[0] == POISON && memcmp(buffer, buffer + 1, sizeof buffer - 1) == 0);
        }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "checked") == 0) checked();
    else if (strcmp(which, "unchecked") == 0) unchecked();
    else if (strcmp(which, "handles") == 0) handles();
    else if (strcmp(which, "zero") == 0) zero();
    else if (strcmp(which, "empty") == 0) empty();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

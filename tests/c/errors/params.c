/*
 * Wrong parameters: params CASE
 *
 *   checked    ERROR_CHK on: every parameter error of every call that is built, without a loss of other operations
 *   unchecked  ERROR_CHK off: errors that can be refused safely, and the job continues
 *   handles    invalid handles: never returned, terminated, void
 *   later      calls and requests of later levels, asked wrongly, do not say that they have succeeded
 *   message    one wrong call, for its message on standard error
 */
#include "../common/ltest.h"

static char buffer[64];
static lapi_cntr_t cntr;
static volatile int called;

static void *handler(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    CHECK(*msg_len <= sizeof buffer);
    called++;
    *comp_h = NULL;
    return buffer;
}
#define HANDLER ((void *)handler)

static lapi_xfer_t put_xfer(void) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Put.Xfer_type = LAPI_PUT_XFER;
    x.Put.tgt_addr = t_long(buffer);
    x.Put.org_addr = buffer;
    x.Put.len = 8;
    return x;
}

static lapi_xfer_t get_xfer(void) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Get.Xfer_type = LAPI_GET_XFER;
    x.Get.tgt_addr = t_long(buffer);
    x.Get.org_addr = buffer;
    x.Get.len = 8;
    return x;
}

static lapi_xfer_t am_xfer(void) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Am.Xfer_type = LAPI_AM_XFER;
    x.Am.hdr_hdl = t_long(HANDLER);
    x.Am.uhdr = buffer;
    x.Am.uhdr_len = 8;
    x.Am.udata = buffer;
    x.Am.udata_len = 8;
    return x;
}

static long long value64;

static lapi_xfer_t rmw_xfer(void) {
    static long long in[2];
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Rmw.Xfer_type = LAPI_RMW_XFER;
    x.Rmw.op = FETCH_AND_ADD;
    x.Rmw.size = 64;
    x.Rmw.tgt_var = t_long(&value64);
    x.Rmw.in_val = in;
    return x;
}

#define XFER(make, change, code)                                                                                 \
    do {                                                                                                         \
        lapi_xfer_t x = make();                                                                                  \
        change;                                                                                                  \
        RETURNS(LAPI_Xfer(t_hndl, &x), code);                                                                    \
    } while (0)

/* Everything still works: one valid operation of each kind, to every task. */
static void still_works(void) {
    static lapi_cntr_t done;
    static long long one = 1;
    int tgt;
    called = 0;
    value64 = 0;
    t_fence();
    for (tgt = 0; tgt < t_tasks; tgt++) {
        XFER(put_xfer, (x.Put.tgt = (uint)tgt, x.Put.cmpl_cntr = &done), LAPI_SUCCESS);
        XFER(get_xfer, (x.Get.tgt = (uint)tgt, x.Get.org_cntr = &done), LAPI_SUCCESS);
        XFER(am_xfer, (x.Am.tgt = (uint)tgt, x.Am.cmpl_cntr = &done), LAPI_SUCCESS);
        XFER(rmw_xfer, (x.Rmw.tgt = (uint)tgt, x.Rmw.in_val = &one, x.Rmw.org_cntr = &done), LAPI_SUCCESS);
    }
    t_wait_exact(&done, 4 * t_tasks);
    t_fence();
    CHECK_EQ(called, t_tasks);
    CHECK_EQ(value64, t_tasks);
    CHECK_EQ(t_value(&cntr), 0); /* no wrong call has counted */
    t_fence();
}

static void checked(void) {
    /* More than all addresses: a 4-byte INTEGER of Fortran and what lies behind it. */
    const ulong too_long = sizeof(ulong) == 8 ? (ulong)0x800000000001ull : (ulong)LAPI_MAX_MSG_SZ + 1;
    const uint no_task = (uint)t_tasks, max_uhdr = (uint)t_query(MAX_UHDR_SZ);
    uint me = (uint)t_me;
    int in = 1, size = t_query(LOC_ADDRTBL_SZ);
    long long in64 = 1;
    void *found;
    lapi_msg_info_t info;
    char *header = calloc(max_uhdr + 64, 1);
    CHECK(header != NULL);
    t_set(ERROR_CHK, 1);

    RETURNS(LAPI_Put(t_hndl, no_task, 8, buffer, buffer, NULL, &cntr, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Put(t_hndl, (uint)-1, 8, buffer, buffer, NULL, &cntr, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Put(t_hndl, me, too_long, buffer, buffer, NULL, &cntr, &cntr), LAPI_ERR_DATA_LEN);
    RETURNS(LAPI_Put(t_hndl, me, ~0ul, buffer, buffer, NULL, &cntr, &cntr), LAPI_ERR_DATA_LEN);
    RETURNS(LAPI_Put(t_hndl, me, (ulong)LAPI_MAX_MSG_SZ + 1, buffer, buffer, NULL, &cntr, &cntr), LAPI_ERR_DATA_LEN);
    RETURNS(LAPI_Put(t_hndl, me, 8, NULL, buffer, NULL, &cntr, &cntr), LAPI_ERR_TGT_ADDR_NULL);
    RETURNS(LAPI_Put(t_hndl, me, 8, buffer, NULL, NULL, &cntr, &cntr), LAPI_ERR_ORG_ADDR_NULL);

    RETURNS(LAPI_Get(t_hndl, no_task, 8, buffer, buffer, NULL, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Get(t_hndl, me, too_long, buffer, buffer, NULL, &cntr), LAPI_ERR_DATA_LEN);
    RETURNS(LAPI_Get(t_hndl, me, 8, NULL, buffer, NULL, &cntr), LAPI_ERR_TGT_ADDR_NULL);
    RETURNS(LAPI_Get(t_hndl, me, 8, buffer, NULL, NULL, &cntr), LAPI_ERR_ORG_ADDR_NULL);

    RETURNS(LAPI_Amsend(t_hndl, no_task, HANDLER, NULL, 0, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Amsend(t_hndl, me, NULL, NULL, 0, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_HDR_HNDLR_NULL);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, NULL, 8, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_UHDR_NULL);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, header, max_uhdr + 8, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_UHDR_LEN);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, header, 0x80000000u, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_UHDR_LEN);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, header, 1, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_HDR_LEN);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, header, 6, buffer, 8, NULL, &cntr, &cntr), LAPI_ERR_HDR_LEN);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, NULL, 0, NULL, 8, NULL, &cntr, &cntr), LAPI_ERR_ORG_ADDR_NULL);
    RETURNS(LAPI_Amsend(t_hndl, me, HANDLER, NULL, 0, buffer, too_long, NULL, &cntr, &cntr), LAPI_ERR_DATA_LEN);

    RETURNS(LAPI_Rmw(t_hndl, FETCH_AND_ADD, no_task, &in, &in, NULL, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Rmw(t_hndl, (RMW_ops_t)4, me, &in, &in, NULL, &cntr), LAPI_ERR_RMW_OP);
    RETURNS(LAPI_Rmw(t_hndl, (RMW_ops_t)-1, me, &in, &in, NULL, &cntr), LAPI_ERR_RMW_OP);
    RETURNS(LAPI_Rmw(t_hndl, SWAP, me, NULL, &in, NULL, &cntr), LAPI_ERR_TGT_VAR_NULL);
    RETURNS(LAPI_Rmw(t_hndl, SWAP, me, &in, NULL, NULL, &cntr), LAPI_ERR_IN_VAL_NULL);
    RETURNS(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, no_task, &in64, &in64, NULL, &cntr), LAPI_ERR_TGT);
    RETURNS(LAPI_Rmw64(t_hndl, (RMW_ops_t)99, me, &in64, &in64, NULL, &cntr), LAPI_ERR_RMW_OP);
    RETURNS(LAPI_Rmw64(t_hndl, SWAP, me, NULL, &in64, NULL, &cntr), LAPI_ERR_TGT_VAR_NULL);
    RETURNS(LAPI_Rmw64(t_hndl, SWAP, me, &in64, NULL, NULL, &cntr), LAPI_ERR_IN_VAL_NULL);
    CHECK_EQ(in, 1);
    CHECK_EQ(in64, 1);

    XFER(put_xfer, x.Put.tgt = no_task, LAPI_ERR_TGT);
    XFER(put_xfer, x.Put.len = too_long, LAPI_ERR_DATA_LEN);
    XFER(put_xfer, x.Put.tgt_addr = 0, LAPI_ERR_TGT_ADDR_NULL);
    XFER(put_xfer, x.Put.org_addr = NULL, LAPI_ERR_ORG_ADDR_NULL);
    XFER(get_xfer, x.Get.tgt = no_task, LAPI_ERR_TGT);
    XFER(get_xfer, x.Get.len = too_long, LAPI_ERR_DATA_LEN);
    XFER(get_xfer, x.Get.tgt_addr = 0, LAPI_ERR_TGT_ADDR_NULL);
    XFER(get_xfer, x.Get.org_addr = NULL, LAPI_ERR_ORG_ADDR_NULL);
    XFER(am_xfer, x.Am.tgt = no_task, LAPI_ERR_TGT);
    XFER(am_xfer, x.Am.hdr_hdl = 0, LAPI_ERR_HDR_HNDLR_NULL);
    XFER(am_xfer, x.Am.uhdr = NULL, LAPI_ERR_UHDR_NULL);
    XFER(am_xfer, x.Am.uhdr_len = max_uhdr + 4, LAPI_ERR_UHDR_LEN);
    XFER(am_xfer, x.Am.uhdr_len = 3, LAPI_ERR_HDR_LEN);
    XFER(am_xfer, x.Am.udata = NULL, LAPI_ERR_ORG_ADDR_NULL);
    XFER(am_xfer, x.Am.udata_len = too_long, LAPI_ERR_DATA_LEN);
    XFER(rmw_xfer, x.Rmw.tgt = no_task, LAPI_ERR_TGT);
    XFER(rmw_xfer, x.Rmw.op = (RMW_ops_t)17, LAPI_ERR_RMW_OP);
    XFER(rmw_xfer, x.Rmw.size = 8, LAPI_ERR_OP_SZ);
    XFER(rmw_xfer, x.Rmw.size = 0, LAPI_ERR_OP_SZ);
    XFER(rmw_xfer, x.Rmw.tgt_var = 0, LAPI_ERR_TGT_VAR_NULL);
    XFER(rmw_xfer, x.Rmw.in_val = NULL, LAPI_ERR_IN_VAL_NULL);
    XFER(put_xfer, x.Xfer_type = (lapi_xfer_type_t)12, LAPI_ERR_XFER_CMD);
    XFER(put_xfer, x.Xfer_type = (lapi_xfer_type_t)-1, LAPI_ERR_XFER_CMD);

    RETURNS(LAPI_Getcntr(t_hndl, NULL, &in), LAPI_ERR_CNTR_NULL);
    RETURNS(LAPI_Getcntr(t_hndl, &cntr, NULL), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Setcntr(t_hndl, NULL, 0), LAPI_ERR_CNTR_NULL);
    RETURNS(LAPI_Waitcntr(t_hndl, NULL, 0, &in), LAPI_ERR_CNTR_NULL);
    RETURNS(LAPI_Msgpoll(t_hndl, 1, NULL), LAPI_ERR_MSG_INFO_NULL);
    RETURNS(LAPI_Address_init(t_hndl, buffer, NULL), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Address_init64(t_hndl, 0, NULL), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Addr_set(t_hndl, HANDLER, 0), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_set(t_hndl, HANDLER, size), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_get(t_hndl, &found, 0), LAPI_ERR_ADDR_HNDL_RANGE);
    RETURNS(LAPI_Addr_get(t_hndl, NULL, 1), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Qenv(t_hndl, TASK_ID, NULL), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Qenv(t_hndl, LAST_QUERY, &in), LAPI_ERR_QUERY_TYPE);
    RETURNS(LAPI_Senv(t_hndl, TASK_ID, 1), LAPI_ERR_QUERY_TYPE);
    RETURNS(LAPI_Senv(t_hndl, TIMEOUT, 1), LAPI_ERR_SET_VAL);
    OK(LAPI_Msgpoll(t_hndl, 1, &info));

    /* What looks wrong and is not. */
    OK(LAPI_Put(t_hndl, me, 0, NULL, NULL, NULL, NULL, NULL));
    OK(LAPI_Get(t_hndl, me, 0, NULL, NULL, NULL, NULL));
    OK(LAPI_Amsend(t_hndl, me, HANDLER, NULL, 0, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Amsend(t_hndl, me, HANDLER, header, 4, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Amsend(t_hndl, me, HANDLER, header, max_uhdr / 4 * 4, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Fence(t_hndl));
    t_fence();
    still_works();
}

static void unchecked(void) {
    uint no_task = (uint)t_tasks + 5;
    int in = 1, ret = 0;
    long long in64 = 1;
    void *found;
    t_set(ERROR_CHK, 0);
    /* Any return code is allowed, as long as the program and the job survive. */
    LAPI_Put(t_hndl, no_task, 8, buffer, buffer, NULL, NULL, NULL);
    LAPI_Get(t_hndl, no_task, 8, buffer, buffer, NULL, NULL);
    LAPI_Amsend(t_hndl, no_task, HANDLER, NULL, 0, buffer, 8, NULL, NULL, NULL);
    LAPI_Rmw(t_hndl, FETCH_AND_ADD, no_task, &in, &in, NULL, NULL);
    LAPI_Rmw64(t_hndl, FETCH_AND_ADD, no_task, &in64, &in64, NULL, NULL);
    LAPI_Rmw(t_hndl, (RMW_ops_t)77, (uint)t_me, &ret, &in, NULL, NULL);
    LAPI_Qenv(t_hndl, TASK_ID, NULL);
    LAPI_Addr_set(t_hndl, HANDLER, -1);
    LAPI_Addr_set(t_hndl, HANDLER, 1 << 30);
    LAPI_Addr_get(t_hndl, &found, 1 << 30);
    LAPI_Addr_get(t_hndl, NULL, 1);
    LAPI_Getcntr(t_hndl, &cntr, NULL);
    LAPI_Getcntr(t_hndl, NULL, &in);
    LAPI_Setcntr(t_hndl, NULL, 1);
    LAPI_Msgpoll(t_hndl, 1, NULL);
    RETURNS(LAPI_Amsend(t_hndl, (uint)t_me, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL), LAPI_ERR_HDR_HNDLR_NULL);
    RETURNS(LAPI_Qenv(t_hndl, LAST_QUERY, &in), LAPI_ERR_QUERY_TYPE);
    RETURNS(LAPI_Senv(t_hndl, NUM_TASKS, 1), LAPI_ERR_QUERY_TYPE);
    XFER(put_xfer, x.Xfer_type = (lapi_xfer_type_t)1234, LAPI_ERR_XFER_CMD);
    XFER(rmw_xfer, x.Rmw.size = 16, LAPI_ERR_OP_SZ);
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, NULL, NULL, NULL));
    OK(LAPI_Amsend(t_hndl, (uint)t_me, HANDLER, NULL, 0, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Fence(t_hndl));
    still_works();
}

/* Every call that takes a handle. */
static void refuses(lapi_handle_t h) {
    int in = 1;
    long long in64 = 1;
    void *found;
    void *table[64];
    lapi_long_t table64[64];
    lapi_msg_info_t info;
    lapi_xfer_t x = put_xfer();
    RETURNS(LAPI_Put(h, 0, 8, buffer, buffer, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Get(h, 0, 8, buffer, buffer, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Amsend(h, 0, HANDLER, NULL, 0, buffer, 8, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Rmw(h, SWAP, 0, &in, &in, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Rmw64(h, SWAP, 0, &in64, &in64, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Xfer(h, &x), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Getcntr(h, &cntr, &in), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Setcntr(h, &cntr, 0), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Waitcntr(h, &cntr, 1, &in), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Probe(h), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Msgpoll(h, 1, &info), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Fence(h), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Gfence(h), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Address_init(h, buffer, table), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Address_init64(h, 1, table64), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Addr_set(h, HANDLER, 1), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Addr_get(h, &found, 1), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Qenv(h, TASK_ID, &in), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Senv(h, TIMEOUT, 900), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Term(h), LAPI_ERR_HNDL_INVALID);
}

static void handles(void) {
    lapi_handle_t live = t_hndl, ended;
    lapi_info_t info;
    uint i;
    for (i = 0; i < 300; i++)
        if (i != live) refuses(i);
    refuses(LAPI_VOID_HANDLE);
    refuses(0xdeadbeef);
    refuses(0x80000000u);
    refuses(live | 0x10000);
    bzero(&info, sizeof info);
    OK(LAPI_Init(&ended, &info));
    CHECK(ended != live);
    OK(LAPI_Gfence(ended));
    OK(LAPI_Term(ended));
    refuses(ended);
    still_works();
}

/* These are errors also when the calls are built: none of them has an object. */
static void later(void) {
    static const lapi_xfer_type_t types[] = {LAPI_GETV_XFER, LAPI_PUTV_XFER, LAPI_AMV_XFER, LAPI_DGSP_XFER,
                                             LAPI_RDMA_XFER, LAPI_AMX_XFER,  LAPI_MC_XFER};
    int left = 0;
    size_t i;
    lapi_xfer_t x;
    lapi_util_t util;
    t_set(ERROR_CHK, 1);
    for (i = 0; i < sizeof types / sizeof *types; i++) {
        bzero(&x, sizeof x);
        x.Xfer_type = types[i];
        CHECK(LAPI_Xfer(t_hndl, &x) >= LAPI_ERR_UNKNOWN);
    }
    for (i = 0; i <= LAPI_STAT_SAVE + 1; i++) {
        /* These need no object; a null function removes the former one. */
        if (i == LAPI_GET_THREAD_FUNC || i == LAPI_REG_DDM_FUNC) continue;
        bzero(&util, sizeof util);
        util.Util_type = (lapi_util_type_t)i;
        CHECK_FOR(LAPI_Util(t_hndl, &util) >= LAPI_ERR_UNKNOWN, "LAPI_Util request %zu", i);
    }
    CHECK(LAPI_Amsendv(t_hndl, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Putv(t_hndl, 0, NULL, NULL, NULL, NULL, NULL) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Getv(t_hndl, 0, NULL, NULL, NULL, NULL) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Nopoll_wait(t_hndl, NULL, 1, &left) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Nopoll_wait(t_hndl, &cntr, 0, &left) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Purge_totask(t_hndl, (uint)t_tasks) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Resume_totask(t_hndl, (uint)t_tasks) >= LAPI_ERR_UNKNOWN);
    CHECK(LAPI_Setcntr_wstatus(t_hndl, NULL, 0, NULL, NULL) >= LAPI_ERR_UNKNOWN);
    still_works();
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    refuses(0);
    refuses(1);
    refuses(LAPI_VOID_HANDLE);
    t_init();
    if (strcmp(which, "checked") == 0) checked();
    else if (strcmp(which, "unchecked") == 0) unchecked();
    else if (strcmp(which, "handles") == 0) handles();
    else if (strcmp(which, "later") == 0) later();
    else if (strcmp(which, "message") == 0) {
        t_set(ERROR_CHK, 1);
        RETURNS(LAPI_Put(t_hndl, 4321, 8, buffer, buffer, NULL, NULL, NULL), LAPI_ERR_TGT);
    } else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

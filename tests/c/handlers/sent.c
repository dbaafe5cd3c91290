/*
 * Send completion handlers of LAPI_Xfer, and the completion handler of its GET: sent CASE
 *
 *   put am rmw   the handler runs once, gets the target and LAPI_SUCCESS; the data may be changed in it
 *   get          the handler runs when the data is there
 */
#include "../common/ltest.h"

enum { LARGEST = 500000, COUNT = 12 };

static const ulong lens[COUNT] = {0, 1, 8, 64, 128, 129, 1000, 5000, 9000, 70000, 262144, LARGEST};

/* One operation under way. */
typedef struct {
    int tgt;
    unsigned char *data;
    ulong len;
    uint64_t seed;
    volatile int called;
} operation;

static unsigned char *in[COUNT];
static void **ins[COUNT], **handlers, **tgt_cntrs, **variables;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static long long variable;

static void sent(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    operation *o = param;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(info->src, o->tgt);
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    /* The data may be changed from now on. */
    memset(o->data, 0x66, o->len);
    __atomic_fetch_add(&o->called, 1, __ATOMIC_RELEASE);
}

static void got(lapi_handle_t *hndl, void *param) {
    operation *o = param;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_FILLED(o->data, o->len, o->seed);
    __atomic_fetch_add(&o->called, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    int number;
    (void)hndl;
    CHECK_EQ(*uhdr_len, sizeof number);
    memcpy(&number, uhdr, sizeof number);
    CHECK_EQ(*msg_len, lens[number]);
    *comp_h = NULL;
    *uinfo = NULL;
    return in[number];
}

static uint64_t seed_of(int task, int number) { return t_seed((uint64_t)task, (uint64_t)number, 3); }

static void put_or_am(int is_am, int distance) {
    static operation o[COUNT];
    static int numbers[COUNT];
    lapi_xfer_t xfer;
    int i, tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    for (i = 0; i < COUNT; i++) {
        numbers[i] = i;
        o[i].tgt = tgt;
        o[i].len = lens[i];
        o[i].called = 0;
        o[i].data = malloc(lens[i] + 1);
        CHECK(o[i].data != NULL);
        t_fill(o[i].data, lens[i], seed_of(t_me, i));
        memset(in[i], 0, lens[i] + 1);
    }
    t_fence();
    for (i = 0; i < COUNT; i++) {
        bzero(&xfer, sizeof xfer);
        if (is_am) {
            xfer.Am.Xfer_type = LAPI_AM_XFER;
            xfer.Am.tgt = (uint)tgt;
            xfer.Am.hdr_hdl = t_long(handlers[tgt]);
            xfer.Am.uhdr = &numbers[i];
            xfer.Am.uhdr_len = sizeof numbers[i];
            xfer.Am.udata = o[i].data;
            xfer.Am.udata_len = lens[i];
            xfer.Am.shdlr = sent;
            xfer.Am.sinfo = &o[i];
            xfer.Am.tgt_cntr = t_long(tgt_cntrs[tgt]);
            xfer.Am.org_cntr = i % 2 ? &org_cntr : NULL; /* both may be wanted */
            xfer.Am.cmpl_cntr = &cmpl_cntr;
        } else {
            xfer.Put.Xfer_type = LAPI_PUT_XFER;
            xfer.Put.tgt = (uint)tgt;
            xfer.Put.tgt_addr = t_long(ins[i][tgt]);
            xfer.Put.org_addr = o[i].data;
            xfer.Put.len = lens[i];
            xfer.Put.shdlr = sent;
            xfer.Put.sinfo = &o[i];
            xfer.Put.tgt_cntr = t_long(tgt_cntrs[tgt]);
            xfer.Put.org_cntr = i % 2 ? &org_cntr : NULL;
            xfer.Put.cmpl_cntr = &cmpl_cntr;
        }
        OK(LAPI_Xfer(t_hndl, &xfer));
        memset(&xfer, 0x99, sizeof xfer); /* the structure is the program's again */
    }
    t_wait_exact(&cmpl_cntr, COUNT);
    t_wait_exact(&org_cntr, COUNT / 2);
    t_wait_exact(&tgt_cntr, COUNT);
    for (i = 0; i < COUNT; i++) {
        t_probe_until(&o[i].called, 1);
        CHECK_FILLED(in[i], lens[i], seed_of(src, i));
        CHECK_EQ(in[i][lens[i]], 0);
    }
    t_fence();
    for (i = 0; i < COUNT; i++) {
        CHECK_EQ(o[i].called, 1);
        free(o[i].data);
    }
}

static void get(int distance) {
    static operation o[COUNT];
    lapi_xfer_t xfer;
    int i, tgt = (t_me + distance) % t_tasks;
    for (i = 0; i < COUNT; i++) {
        o[i].tgt = tgt;
        o[i].len = lens[i];
        o[i].seed = seed_of(tgt, i);
        o[i].called = 0;
        o[i].data = calloc(lens[i] + 1, 1);
        CHECK(o[i].data != NULL);
        t_fill(in[i], lens[i], seed_of(t_me, i));
    }
    t_fence();
    for (i = 0; i < COUNT; i++) {
        bzero(&xfer, sizeof xfer);
        xfer.Get.Xfer_type = LAPI_GET_XFER;
        xfer.Get.tgt = (uint)tgt;
        xfer.Get.tgt_addr = t_long(ins[i][tgt]);
        xfer.Get.org_addr = o[i].data;
        xfer.Get.len = lens[i];
        xfer.Get.tgt_cntr = t_long(tgt_cntrs[tgt]);
        xfer.Get.org_cntr = i % 2 ? &org_cntr : NULL;
        xfer.Get.chndlr = got;
        xfer.Get.cinfo = &o[i];
        OK(LAPI_Xfer(t_hndl, &xfer));
        memset(&xfer, 0x99, sizeof xfer);
    }
    t_wait_exact(&tgt_cntr, COUNT);
    t_wait_exact(&org_cntr, COUNT / 2);
    for (i = 0; i < COUNT; i++) t_probe_until(&o[i].called, 1);
    t_fence();
    for (i = 0; i < COUNT; i++) {
        CHECK_EQ(o[i].called, 1);
        CHECK_EQ(o[i].data[lens[i]], 0);
        free(o[i].data);
    }
}

static void rmw(int distance) {
    enum { TIMES = 200 };
    static operation o[TIMES];
    static long long ones[TIMES], prevs[TIMES];
    lapi_xfer_t xfer;
    int i, tgt = (t_me + distance) % t_tasks;
    long long sum = 0;
    variable = 0;
    t_fence();
    for (i = 0; i < TIMES; i++) {
        o[i].tgt = tgt;
        o[i].data = (unsigned char *)&ones[i];
        o[i].len = sizeof ones[i];
        o[i].called = 0;
        ones[i] = 1LL << 32;
        prevs[i] = -1;
        bzero(&xfer, sizeof xfer);
        xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
        xfer.Rmw.op = FETCH_AND_ADD;
        xfer.Rmw.tgt = (uint)tgt;
        xfer.Rmw.size = 64;
        xfer.Rmw.tgt_var = t_long(variables[tgt]);
        xfer.Rmw.in_val = &ones[i];
        xfer.Rmw.prev_tgt_val = &prevs[i];
        xfer.Rmw.org_cntr = &org_cntr;
        xfer.Rmw.shdlr = sent;
        xfer.Rmw.sinfo = &o[i];
        OK(LAPI_Xfer(t_hndl, &xfer));
    }
    t_wait_exact(&org_cntr, TIMES);
    for (i = 0; i < TIMES; i++) {
        t_probe_until(&o[i].called, 1);
        CHECK_EQ(o[i].called, 1);
        sum += prevs[i] >> 32;
    }
    CHECK_EQ(sum, (long long)TIMES * (TIMES - 1) / 2);
    t_fence();
    CHECK_EQ(variable, (long long)TIMES << 32);
    t_fence();
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    int distance, i, round;
    t_init();
    for (i = 0; i < COUNT; i++) {
        in[i] = malloc(lens[i] + 1);
        CHECK(in[i] != NULL);
        ins[i] = t_addresses(in[i]);
    }
    handlers = t_addresses((void *)arrived);
    tgt_cntrs = t_addresses(&tgt_cntr);
    variables = t_addresses(&variable);
    for (round = 0; round < 5; round++)
        for (distance = 0; distance < t_tasks; distance++) {
            if (strcmp(which, "put") == 0) put_or_am(0, distance);
            else if (strcmp(which, "am") == 0) put_or_am(1, distance);
            else if (strcmp(which, "get") == 0) get(distance);
            else if (strcmp(which, "rmw") == 0) rmw(distance);
            else T_FAIL("there is no case \"%s\"", which);
        }
    t_done();
    return 0;
}

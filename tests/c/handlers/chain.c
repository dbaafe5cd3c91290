/*
 * What a send completion handler of LAPI_Xfer may do: chain CASE DISTANCE
 *
 *   put am rmw vector   each operation is started by the send completion handler of the one before
 *   get                 the same with the completion handler of a get
 *   thread              a chain that a completion handler begins, in a thread with the smallest stack
 *   waits               a call that would wait returns LAPI_ERR_UNKNOWN in the handler; what does not wait works
 *   alone               no other handler that holds the lock runs in the middle of the handler
 *   ended               after LAPI_Term in the handler no other handler runs
 *
 * DISTANCE is how far the target is: 0 is the task itself.
 */
#include "../common/ltest.h"

static int links = 100000;

static int tgt, depth, deepest, inside;
static volatile int called, arrivals, over;
static const char *which;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr, never;
static long long in, out = 77, one = 1, previous;
static void **ins, **handlers, **tgt_cntrs;
static lapi_vec_t mine, theirs;
static void *mine_at[1], *theirs_at[1];
static ulong sizes[1] = {sizeof in};

static void start(void);

/* A handler that runs under the lock begins and ends. */
static void enter(void) {
    CHECK_EQ(inside, 0);
    inside = 1;
    if (++depth > deepest) deepest = depth;
}

static void leave(void) {
    inside = 0;
    depth--;
}

static void sent(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    enter();
    CHECK_EQ(*hndl, t_hndl);
    CHECK_PTR(param, &called);
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    if (++called < links) start();
    leave();
}

static void got(lapi_handle_t *hndl, void *param) {
    (void)hndl, (void)param;
    if (__atomic_add_fetch(&called, 1, __ATOMIC_ACQ_REL) < links) start();
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    enter();
    arrivals++;
    *comp_h = NULL;
    leave();
    return &in;
}

static void start(void) {
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    if (strcmp(which, "am") == 0) {
        xfer.Am.Xfer_type = LAPI_AM_XFER;
        xfer.Am.tgt = (uint)tgt;
        xfer.Am.hdr_hdl = t_long(handlers[tgt]);
        xfer.Am.udata = &out;
        xfer.Am.udata_len = sizeof out;
        xfer.Am.shdlr = sent;
        xfer.Am.sinfo = (void *)&called;
    } else if (strcmp(which, "rmw") == 0) {
        xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
        xfer.Rmw.op = FETCH_AND_ADD;
        xfer.Rmw.tgt = (uint)tgt;
        xfer.Rmw.size = 64;
        xfer.Rmw.tgt_var = t_long(ins[tgt]);
        xfer.Rmw.in_val = &one;
        xfer.Rmw.prev_tgt_val = &previous;
        xfer.Rmw.shdlr = sent;
        xfer.Rmw.sinfo = (void *)&called;
    } else if (strcmp(which, "vector") == 0) {
        xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
        xfer.Putv.tgt = (uint)tgt;
        xfer.Putv.org_vec = &mine;
        xfer.Putv.tgt_vec = &theirs;
        xfer.Putv.shdlr = sent;
        xfer.Putv.sinfo = (void *)&called;
    } else if (strcmp(which, "get") == 0) {
        xfer.Get.Xfer_type = LAPI_GET_XFER;
        xfer.Get.tgt = (uint)tgt;
        xfer.Get.tgt_addr = t_long(ins[tgt]);
        xfer.Get.org_addr = &previous;
        xfer.Get.len = sizeof previous;
        xfer.Get.chndlr = got;
    } else {
        xfer.Put.Xfer_type = LAPI_PUT_XFER;
        xfer.Put.tgt = (uint)tgt;
        xfer.Put.tgt_addr = t_long(ins[tgt]);
        xfer.Put.org_addr = &out;
        xfer.Put.len = sizeof out;
        xfer.Put.shdlr = sent;
        xfer.Put.sinfo = (void *)&called;
    }
    OK(LAPI_Xfer(t_hndl, &xfer));
}

static void chain(void) {
    start();
    while (called < links) OK(LAPI_Probe(t_hndl));
    t_fence();
    CHECK_EQ(called, links);
    if (strcmp(which, "get") != 0) CHECK_EQ(deepest, 1);
    if (strcmp(which, "am") == 0) CHECK_EQ(arrivals, links);
    if (strcmp(which, "rmw") == 0) CHECK_EQ(in, links);
    else if (strcmp(which, "get") != 0) CHECK_EQ(in, 77);
}

/* In a thread of the library. */
static void begin(lapi_handle_t *hndl, void *param) {
    (void)hndl, (void)param;
    start();
    while (called < links) OK(LAPI_Probe(t_hndl));
    over = 1;
}

static void *begins(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = begin;
    *uinfo = NULL;
    return NULL;
}

static void thread(void) {
    OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)begins, NULL, 0, NULL, 0, NULL, NULL, NULL));
    while (!over) OK(LAPI_Probe(t_hndl));
    t_fence();
    CHECK_EQ(called, links);
    CHECK_EQ(deepest, 1);
}

/* A completion handler that increments a target counter only when it has the lock. */
static void completed(lapi_handle_t *hndl, void *param) { (void)hndl, (void)param; }

static void *completing(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                        void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = completed;
    *uinfo = NULL;
    return NULL;
}

static void waiting(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    int value = -1;
    lapi_msg_info_t state;
    (void)param, (void)info;
    OK(LAPI_Amsend(*hndl, (uint)t_me, (void *)completing, NULL, 0, NULL, 0, &tgt_cntr, NULL, NULL));
    RETURNS(LAPI_Waitcntr(*hndl, &tgt_cntr, 1, NULL), LAPI_ERR_UNKNOWN);
    RETURNS(LAPI_Gfence(*hndl), LAPI_ERR_UNKNOWN);
    RETURNS(LAPI_Fence(*hndl), LAPI_ERR_UNKNOWN);
    OK(LAPI_Getcntr(*hndl, &never, &value));
    CHECK_EQ(value, 0);
    OK(LAPI_Probe(*hndl));
    OK(LAPI_Msgpoll(*hndl, 10, &state));
    called++;
}

static void put_with(scompl_hndlr_t *handler, ulong len) {
    static char room[100000];
    lapi_xfer_t xfer;
    CHECK(len <= sizeof room);
    bzero(&xfer, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.tgt = (uint)tgt;
    xfer.Put.tgt_addr = len == sizeof out ? t_long(ins[tgt]) : 0;
    xfer.Put.org_addr = &out;
    xfer.Put.len = len == sizeof out ? len : 0;
    xfer.Put.shdlr = handler;
    OK(LAPI_Xfer(t_hndl, &xfer));
}

static void waits(void) {
    int i;
    for (i = 1; i <= 100; i++) {
        put_with(waiting, i % 2 ? sizeof out : 0);
        while (called < i) OK(LAPI_Probe(t_hndl));
        t_wait_exact(&tgt_cntr, 1);
    }
    t_fence();
}

static void slow(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    (void)hndl, (void)param, (void)info;
    enter();
    OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], NULL, 0, NULL, 0, NULL, NULL, &cmpl_cntr));
    OK(LAPI_Amsend(t_hndl, (uint)t_me, handlers[t_me], NULL, 0, NULL, 0, NULL, NULL, &cmpl_cntr));
    OK(LAPI_Probe(t_hndl));
    called++;
    leave();
}

static void alone(void) {
    enum { TIMES = 2000 };
    int i;
    for (i = 0; i < TIMES; i++) put_with(slow, sizeof out);
    while (called < TIMES) OK(LAPI_Probe(t_hndl));
    t_wait_exact(&cmpl_cntr, 2 * TIMES);
    t_fence();
    CHECK_EQ(arrivals, 2 * TIMES);
}

static void ending(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    (void)param, (void)info;
    if (over) return;
    /* Messages to this task itself: their handlers would be next. */
    OK(LAPI_Amsend(*hndl, (uint)t_me, handlers[t_me], NULL, 0, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Term(t_hndl));
    called = arrivals;
    over = 1;
}

static void ended(void) {
    int i;
    lapi_handle_t old = t_hndl;
    void **processes = t_processes();
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me != 0) {
        for (i = 0; i < 100; i++) OK(LAPI_Amsend(t_hndl, 0, handlers[0], NULL, 0, NULL, 0, NULL, NULL, NULL));
        t_leaves();
    } else {
        /* The messages of the others are here, and their handlers would be next. */
        for (i = 1; i < t_tasks; i++) t_until_outside(processes[i]);
        if (t_tasks > 1) usleep(100000);
        tgt = t_me;
        put_with(ending, sizeof out);
        for (i = 0; i < 1000 && !over; i++) (void)LAPI_Probe(old);
        CHECK_EQ(over, 1);
        for (i = 0; i < 100; i++) RETURNS(LAPI_Probe(old), LAPI_ERR_HNDL_INVALID);
        CHECK_EQ(arrivals, called);
    }
    if (t_me != 0) OK(LAPI_Term(t_hndl));
    t_pass();
}

int main(int argc, char **argv) {
    links = t_rounds(links);
    CHECK_EQ(argc, 3);
    which = argv[1];
    if (strcmp(which, "thread") == 0) {
        lapi_info_t info;
        com_thread_info_t how;
        pthread_attr_t attributes;
        bzero(&info, sizeof info);
        bzero(&how, sizeof how);
        CHECK_EQ(pthread_attr_init(&attributes), 0);
        CHECK_EQ(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
        how.thread_attr = &attributes;
        info.lapi_thread_attr = &how;
        t_init_with(&info);
    } else t_init();
    tgt = (t_me + atoi(argv[2])) % t_tasks;
    ins = t_addresses(&in);
    handlers = t_addresses((void *)arrived);
    tgt_cntrs = t_addresses(&tgt_cntr);
    mine.vec_type = theirs.vec_type = LAPI_GEN_IOVECTOR;
    mine.num_vecs = theirs.num_vecs = 1;
    mine.len = theirs.len = sizes;
    mine.info = mine_at;
    theirs.info = theirs_at;
    mine_at[0] = &out;
    theirs_at[0] = ins[tgt];
    t_fence();
    if (strcmp(which, "thread") == 0) thread();
    else if (strcmp(which, "waits") == 0) waits();
    else if (strcmp(which, "alone") == 0) alone();
    else if (strcmp(which, "ended") == 0) {
        ended();
        return 0;
    } else chain();
    t_done();
    return 0;
}

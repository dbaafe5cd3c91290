/*
 * Handlers of one handle that call LAPI on another one: handles CASE
 *
 *   header sent inline   two threads; handlers of this kind of each handle send on the other one
 *   calls                what else such a handler may call, and that a call which would wait returns LAPI_ERR_UNKNOWN
 */
#include "../common/ltest.h"


enum { HANDLES = 2 };

static int rounds = 5000;

static lapi_handle_t h[HANDLES];
static const char *which;
static volatile int begun[HANDLES], counted, rounds_over;
static lapi_cntr_t cmpl[HANDLES];
static long long in[HANDLES], out = 5;

static int number_of(lapi_handle_t hndl) { return hndl == h[1]; }

static void *count(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    __atomic_fetch_add(&counted, 1, __ATOMIC_ACQ_REL);
    *comp_h = NULL;
    return NULL;
}

/* Sends on the other handle. Gives the other thread a moment to be in a handler too. */
static void cross(int mine) {
    int other = 1 - mine, i;
    __atomic_fetch_add(&begun[mine], 1, __ATOMIC_ACQ_REL);
    for (i = 0; i < 2000 && begun[other] < begun[mine]; i++) continue;
    OK(LAPI_Amsend(h[other], (uint)t_me, (void *)count, NULL, 0, NULL, 0, NULL, NULL, &cmpl[mine]));
    OK(LAPI_Put(h[other], (uint)((t_me + 1) % t_tasks), sizeof out, &in[mine], &out, NULL, NULL, &cmpl[mine]));
}

static void completed(lapi_handle_t *hndl, void *param) {
    (void)param;
    cross(number_of(*hndl));
}

static void sent(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    (void)param, (void)info;
    cross(number_of(*hndl));
}

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)uhdr, (void)uhdr_len, (void)uinfo;
    *comp_h = NULL;
    if (strcmp(which, "header") == 0) cross(number_of(*hndl));
    else {
        *comp_h = completed;
        ((lapi_return_info_t *)msg_len)->ret_flags = LAPI_SEND_REPLY;
    }
    return NULL;
}

static void *thread(void *param) {
    int mine = *(int *)param, i;
    for (i = 0; i < rounds; i++) {
        if (strcmp(which, "sent") == 0) {
            lapi_xfer_t xfer;
            bzero(&xfer, sizeof xfer);
            xfer.Put.Xfer_type = LAPI_PUT_XFER;
            xfer.Put.tgt = (uint)((t_me + 1) % t_tasks);
            xfer.Put.tgt_addr = t_long(&in[mine]);
            xfer.Put.org_addr = &out;
            xfer.Put.len = sizeof out;
            xfer.Put.shdlr = sent;
            OK(LAPI_Xfer(h[mine], &xfer));
        } else OK(LAPI_Amsend(h[mine], (uint)t_me, (void *)header, NULL, 0, NULL, 0, NULL, NULL, NULL));
    }
    /* The other thread may wait for it. */
    __atomic_fetch_add(&begun[mine], rounds, __ATOMIC_ACQ_REL);
    while (begun[mine] < 2 * rounds) OK(LAPI_Probe(h[mine]));
    __atomic_fetch_add(&rounds_over, 1, __ATOMIC_ACQ_REL);
    while (rounds_over < HANDLES || counted < HANDLES * rounds) OK(LAPI_Probe(h[mine]));
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[HANDLES];
    int numbers[HANDLES] = {0, 1}, i, left;
    for (i = 0; i < HANDLES; i++) CHECK_EQ(pthread_create(&threads[i], NULL, thread, &numbers[i]), 0);
    for (i = 0; i < HANDLES; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (i = 0; i < HANDLES; i++) {
        OK(LAPI_Waitcntr(h[1 - i], &cmpl[i], 2 * rounds, &left));
        CHECK_EQ(left, 0);
    }
    CHECK_EQ(counted, HANDLES * rounds);
    for (i = 0; i < HANDLES; i++) OK(LAPI_Gfence(h[i]));
    for (i = 0; i < HANDLES; i++) CHECK_EQ(in[i], 5);
}

static lapi_cntr_t up, never;

static void *calling(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    lapi_handle_t other = h[1 - number_of(*hndl)];
    lapi_msg_info_t state;
    int value = 0;
    (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    OK(LAPI_Setcntr(other, &up, 3));
    OK(LAPI_Waitcntr(other, &up, 2, &value));
    CHECK_EQ(value, 1);
    OK(LAPI_Qenv(other, TASK_ID, &value));
    CHECK_EQ(value, t_me);
    OK(LAPI_Probe(other));
    OK(LAPI_Msgpoll(other, 5, &state));
    RETURNS(LAPI_Waitcntr(other, &never, 1, NULL), LAPI_ERR_UNKNOWN);
    RETURNS(LAPI_Gfence(other), LAPI_ERR_UNKNOWN);
    OK(LAPI_Amsend(other, (uint)t_me, (void *)count, NULL, 0, NULL, 0, NULL, NULL, NULL));
    /* Its handler does not run in the middle of this one. */
    CHECK_EQ(counted, 0);
    rounds_over = 1;
    return NULL;
}

static void calls(void) {
    /* Only this thread runs handlers. */
    OK(LAPI_Senv(h[0], INTERRUPT_SET, 0));
    OK(LAPI_Senv(h[1], INTERRUPT_SET, 0));
    OK(LAPI_Amsend(h[0], (uint)t_me, (void *)calling, NULL, 0, NULL, 0, NULL, NULL, NULL));
    while (!rounds_over) OK(LAPI_Probe(h[0]));
    while (counted != 1) OK(LAPI_Probe(h[1]));
    OK(LAPI_Gfence(h[0]));
    OK(LAPI_Gfence(h[1]));
}

int main(int argc, char **argv) {
    int i;
    CHECK_EQ(argc, 2);
    rounds = t_rounds(rounds);
    which = argv[1];
    t_init();
    h[0] = t_hndl;
    t_init();
    h[1] = t_hndl;
    for (i = 0; i < HANDLES; i++) OK(LAPI_Gfence(h[i]));
    if (strcmp(which, "calls") == 0) calls();
    else run_threads();
    OK(LAPI_Term(h[0]));
    t_done();
    return 0;
}

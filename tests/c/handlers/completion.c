/*
 * Completion handlers: completion CASE
 *
 *   threads   they run on a thread of their own, named lapi-compl-N; LAPI_LOCAL_STATE ones on the receiving thread
 *   order     with one thread they run in the order in which the messages completed
 *   parallel  with four threads, four may wait for each other (num_compl_hndlr_thr)
 *   blocking  they may block in LAPI_Get and LAPI_Waitcntr, LAPI_Rmw and LAPI_Fence
 *   replies   LAPI_SEND_REPLY handlers that reply to each other tens of thousands of times
 *   flood     every task floods all tasks with messages, each of which gets a reply of the same size
 *   rmw       LAPI_Rmw from handlers of both kinds, every previous value returned once
 */
#include "../common/ltest.h"

#include <sys/prctl.h>

static void **handlers, **seconds, **variables;
static volatile int completed, replied;
static lapi_cntr_t cmpl_cntr;
static pthread_t main_thread;

/* Waits, in LAPI, for a number that handlers count up. */
static void until(volatile int *count, int value) { t_probe_until(count, value); }

/* --- threads --- */

static pthread_t header_thread;

static void on_own_thread(lapi_handle_t *hndl, void *info) {
    char name[32] = "";
    (void)info;
    CHECK_EQ(*hndl, t_hndl);
    CHECK(!pthread_equal(pthread_self(), main_thread));
    prctl(PR_GET_NAME, name, 0, 0, 0);
    CHECK_FOR(strncmp(name, "lapi-compl-", 11) == 0, "the thread of a completion handler is named \"%s\"", name);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void on_same_thread(lapi_handle_t *hndl, void *info) {
    (void)info;
    CHECK_EQ(*hndl, t_hndl);
    CHECK(pthread_equal(pthread_self(), header_thread));
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *either(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)uhdr_len;
    header_thread = pthread_self();
    *uinfo = NULL;
    *comp_h = on_own_thread;
    if (*(int *)uhdr) {
        ret->ret_flags = LAPI_LOCAL_STATE;
        *comp_h = on_same_thread;
    }
    return NULL;
}

static void threads(void) {
    int i, distance, inlined;
    void **at = t_addresses((void *)either);
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < 200; i++) {
            int tgt = (t_me + distance) % t_tasks;
            inlined = i % 2;
            completed = 0;
            t_fence();
            OK(LAPI_Amsend(t_hndl, (uint)tgt, at[tgt], &inlined, sizeof inlined, &inlined, 4, NULL, NULL, &cmpl_cntr));
            t_wait_exact(&cmpl_cntr, 1);
            until(&completed, 1);
        }
}

/* --- order --- */

enum { ORDERED = 3000 };
static long arrival, departure;

static void in_order(lapi_handle_t *hndl, void *info) {
    (void)hndl;
    CHECK_EQ((long)info, departure);
    departure++;
    if (departure % 97 == 0) usleep(200); /* lets a queue build up */
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *numbered(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                      void **uinfo) {
    /* A message of one packet is complete when its header handler returns. */
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = in_order;
    *uinfo = (void *)arrival++;
    return NULL;
}

static void order(void) {
    int i;
    void **at = t_addresses((void *)numbered);
    for (i = 0; i < ORDERED; i++) {
        uint tgt = (uint)((t_me + i) % t_tasks);
        OK(LAPI_Amsend(t_hndl, tgt, at[tgt], NULL, 0, &i, sizeof i, NULL, NULL, &cmpl_cntr));
    }
    t_wait_exact(&cmpl_cntr, ORDERED);
    t_fence();
    until(&completed, ORDERED);
    CHECK_EQ(arrival, ORDERED);
}

/* --- parallel --- */

static volatile int inside;

static void together(lapi_handle_t *hndl, void *info) {
    (void)info;
    __atomic_fetch_add(&inside, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) % 4 != 0) usleep(100);
    CHECK_EQ(*hndl, t_hndl);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *to_together(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                         void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = together;
    *uinfo = NULL;
    return NULL;
}

static void parallel(void) {
    int round, i;
    void **at = t_addresses((void *)to_together);
    uint tgt = (uint)((t_me + 1) % t_tasks);
    for (round = 0; round < 20; round++) {
        for (i = 0; i < 4; i++)
            OK(LAPI_Amsend(t_hndl, tgt, at[tgt], NULL, 0, NULL, 0, NULL, NULL, &cmpl_cntr));
        t_wait_exact(&cmpl_cntr, 4);
        t_fence();
    }
    until(&completed, 80);
}

/* --- blocking --- */

enum { WIDE = 20000 };
static unsigned char library[WIDE], brought[WIDE];
static void **libraries;

static void brings(lapi_handle_t *hndl, void *info) {
    int src = (int)(long)info, one = 1, prev = -1;
    lapi_cntr_t org;
    bzero(&org, sizeof org);
    memset(brought, 0, WIDE);
    OK(LAPI_Get(*hndl, (uint)src, WIDE, libraries[src], brought, NULL, &org));
    OK(LAPI_Waitcntr(*hndl, &org, 1, NULL));
    CHECK_FILLED(brought, WIDE, (uint64_t)src + 5);
    OK(LAPI_Rmw(*hndl, FETCH_AND_ADD, (uint)src, variables[src], &one, &prev, &org));
    OK(LAPI_Waitcntr(*hndl, &org, 1, NULL));
    CHECK(prev >= 0);
    OK(LAPI_Fence(*hndl));
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *to_brings(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                       compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    *comp_h = brings;
    *uinfo = (void *)(long)ret->src;
    return NULL;
}

static int variable;

static void blocking(void) {
    int i, tgt, mode;
    void **at = t_addresses((void *)to_brings);
    libraries = t_addresses(library);
    t_fill(library, WIDE, (uint64_t)t_me + 5);
    t_fence();
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        for (i = 0; i < 100; i++)
            for (tgt = 0; tgt < t_tasks; tgt++)
                OK(LAPI_Amsend(t_hndl, (uint)tgt, at[tgt], NULL, 0, &i, sizeof i, NULL, NULL, &cmpl_cntr));
        t_wait_exact(&cmpl_cntr, 100 * t_tasks);
        t_fence();
    }
    until(&completed, 200 * t_tasks);
    t_fence();
    CHECK_EQ(variable, 200 * t_tasks);
}

/* --- replies --- */

static int rounds = 40000;

static void reply(lapi_handle_t *hndl, void *info) {
    long count = (long)info & 0xffffff, src = (long)info >> 24;
    int head[2] = {t_me, (int)count + 1};
    __atomic_fetch_add(&replied, 1, __ATOMIC_RELEASE);
    if (count < rounds)
        OK(LAPI_Amsend(*hndl, (uint)src, handlers[src], head, sizeof head, NULL, 0, NULL, NULL, NULL));
    else
        __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *asked(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                   void **uinfo) {
    int *head = uhdr;
    (void)hndl;
    CHECK_EQ(*uhdr_len, 8);
    CHECK_EQ(head[0], ret->src);
    *comp_h = reply;
    *uinfo = (void *)(((long)head[0] << 24) + head[1]);
    ret->ret_flags = LAPI_SEND_REPLY;
    return NULL;
}

static void replies(void) {
    int head[2] = {t_me, 1};
    uint tgt = (uint)((t_me + 1) % t_tasks);
    handlers = t_addresses((void *)asked);
    t_fence();
    /* Message 1 goes out here, the handlers of both sides send 2 to rounds in turn. */
    OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], head, sizeof head, NULL, 0, NULL, NULL, NULL));
    until(&completed, 1);
    t_fence();
    CHECK_EQ(completed, 1);
}

/* --- flood --- */

enum { FLOOD = 2000, HEAD = 800 };
static unsigned char thanks_head[HEAD];

static void *thanks(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)msg_len, (void)uinfo;
    CHECK_FILLED(uhdr, *uhdr_len, 9);
    __atomic_fetch_add(&replied, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return NULL;
}

static void thank(lapi_handle_t *hndl, void *info) {
    long src = (long)info;
    OK(LAPI_Amsend(*hndl, (uint)src, seconds[src], thanks_head, HEAD, NULL, 0, NULL, NULL, NULL));
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *to_thank(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl;
    CHECK_FILLED(uhdr, *uhdr_len, 8);
    *comp_h = thank;
    *uinfo = (void *)(long)ret->src;
    ret->ret_flags = LAPI_SEND_REPLY;
    return NULL;
}

static void flood(void) {
    int i, tgt;
    static unsigned char head[HEAD];
    handlers = t_addresses((void *)to_thank);
    seconds = t_addresses((void *)thanks);
    t_fill(head, HEAD, 8);
    t_fill(thanks_head, HEAD, 9);
    t_fence();
    for (i = 0; i < FLOOD; i++)
        for (tgt = 0; tgt < t_tasks; tgt++)
            OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], head, HEAD, NULL, 0, NULL, NULL, NULL));
    until(&completed, FLOOD * t_tasks);
    until(&replied, FLOOD * t_tasks);
    t_fence();
    CHECK_EQ(completed, FLOOD * t_tasks);
    CHECK_EQ(replied, FLOOD * t_tasks);
}

/* --- rmw --- */

enum { TICKETS = 400 };
static int tickets[2 * TICKETS * 16];
static volatile int drawn;
static lapi_cntr_t tickets_cntr;

static void draw(lapi_handle_t *hndl, void *info) {
    static int one = 1;
    int slot = __atomic_fetch_add(&drawn, 1, __ATOMIC_ACQ_REL);
    (void)info;
    OK(LAPI_Rmw(*hndl, FETCH_AND_ADD, 0, variables[0], &one, &tickets[slot], &tickets_cntr));
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *to_draw(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    *comp_h = draw;
    *uinfo = NULL;
    if (ret->src % 2) ret->ret_flags = LAPI_SEND_REPLY;
    return NULL;
}

static void rmw(void) {
    int i, tgt;
    char *seen = calloc((size_t)(TICKETS * t_tasks * t_tasks), 1);
    void **at = t_addresses((void *)to_draw);
    CHECK(t_tasks <= 16 && seen != NULL);
    for (i = 0; i < TICKETS; i++)
        for (tgt = 0; tgt < t_tasks; tgt++)
            OK(LAPI_Amsend(t_hndl, (uint)tgt, at[tgt], NULL, 0, NULL, 0, NULL, NULL, NULL));
    until(&completed, TICKETS * t_tasks);
    t_wait_exact(&tickets_cntr, TICKETS * t_tasks);
    for (i = 0; i < TICKETS * t_tasks; i++) {
        CHECK_FOR(tickets[i] >= 0 && tickets[i] < TICKETS * t_tasks * t_tasks, "ticket %d", tickets[i]);
        CHECK(!seen[tickets[i]]);
        seen[tickets[i]] = 1;
    }
    t_fence();
    if (t_me == 0) CHECK_EQ(variable, TICKETS * t_tasks * t_tasks);
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    lapi_info_t info;
    rounds = t_rounds(rounds);
    bzero(&info, sizeof info);
    if (strcmp(which, "parallel") == 0) info.num_compl_hndlr_thr = 4;
    t_init_with(&info);
    main_thread = pthread_self();
    variables = t_addresses(&variable);
    if (strcmp(which, "threads") == 0) threads();
    else if (strcmp(which, "order") == 0) order();
    else if (strcmp(which, "parallel") == 0) parallel();
    else if (strcmp(which, "blocking") == 0) blocking();
    else if (strcmp(which, "replies") == 0) replies();
    else if (strcmp(which, "flood") == 0) flood();
    else if (strcmp(which, "rmw") == 0) rmw();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

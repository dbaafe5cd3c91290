/*
 * Header handlers in every combination: header CASE
 *
 *   ways       by address and by index, LAPI_Amsend and LAPI_Xfer, the old and the enhanced interface
 *   one-packet udata_one_pkt_ptr for messages of one packet, NULL for longer ones
 *   unwanted   NULL from the handler, and LAPI_BURY_MSG, with and without a completion handler
 *   drop       LAPI_DROP_PKT some times, then accepted, while other messages keep coming
 *   counters   LAPI_Setcntr and LAPI_Getcntr inside a header handler
 *
 * The user header says which message it is and what the handler shall do with it.
 */
#include "../common/ltest.h"

enum { ROOM = 1 << 20, INDEX = 3 };
enum { COPY = 1, BURY = 2, REFUSE = 4, WITH_COMPLETION = 8 }; /* REFUSE: return NULL */

typedef struct {
    uint64_t seed, len;
    int src, action, drops, number;
} order;

static const ulong lens[] = {0, 1, 7, 8, 64, 100, 512, 1000, 4000, 8192, 40000, 65536, 300001, ROOM};
#define LENS (sizeof lens / sizeof *lens)

static unsigned char *data, *landing;
static void **enhanced_at, **old_at, **tgt_cntrs;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static volatile int called, completed;
static int max_packet;

static void completion(lapi_handle_t *hndl, void *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_PTR(info, &landing);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void look_at_info(lapi_return_info_t *ret, const order *o, uint uhdr_len) {
    static int magic;
    int one_packet = uhdr_len + ret->msg_len <= (ulong)max_packet;
    CHECK_EQ(ret->msg_len, o->len);
    CHECK_EQ(ret->src, o->src);
    CHECK_EQ(ret->ret_flags, LAPI_NORMAL);
    CHECK_EQ(ret->ctl_flags, LAPI_DELIVER_MSG);
    CHECK_PTR(ret->dgsp_handle, NULL);
    CHECK_EQ(ret->recv_offset_dgsp_bytes, 0);
    if (magic == 0) magic = ret->MAGIC;
    CHECK_EQ(ret->MAGIC, magic);
    if (o->len == 0) return;
    if (!one_packet) {
        CHECK_PTR(ret->udata_one_pkt_ptr, NULL);
        return;
    }
    CHECK_FOR(ret->udata_one_pkt_ptr != NULL, "no pointer to the data of a message of %lu + %u bytes; MAX_PKT_SZ is %d",
              ret->msg_len, uhdr_len, max_packet);
    CHECK_EQ((uintptr_t)ret->udata_one_pkt_ptr % 8, 0);
    CHECK_FILLED(ret->udata_one_pkt_ptr, o->len, o->seed);
}

static void *enhanced(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    order *o = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *o);
    CHECK_EQ((uintptr_t)uhdr % 8, 0);
    look_at_info(ret, o, *uhdr_len);
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    *uinfo = NULL;
    if (o->action & WITH_COMPLETION) {
        *comp_h = completion;
        *uinfo = &landing;
    }
    if (o->action & COPY && ret->udata_one_pkt_ptr != NULL) {
        memcpy(landing, ret->udata_one_pkt_ptr, ret->msg_len);
        ret->ctl_flags = LAPI_BURY_MSG;
    }
    if (o->action & BURY) ret->ctl_flags = LAPI_BURY_MSG;
    return o->action & REFUSE ? NULL : landing;
}

static void *old(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                 void **uinfo) {
    order *o = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *o);
    CHECK_EQ(*msg_len, o->len);
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    *comp_h = o->action & WITH_COMPLETION ? completion : NULL;
    *uinfo = o->action & WITH_COMPLETION ? &landing : NULL;
    return landing;
}

static void send_order(int by_xfer, int tgt, void *hdr_hdl, order *o) {
    if (!by_xfer) {
        OK(LAPI_Amsend(t_hndl, (uint)tgt, hdr_hdl, o, sizeof *o, data, o->len, tgt_cntrs[tgt], &org_cntr, &cmpl_cntr));
    } else {
        lapi_xfer_t xfer;
        bzero(&xfer, sizeof xfer);
        xfer.Am.Xfer_type = LAPI_AM_XFER;
        xfer.Am.tgt = (uint)tgt;
        xfer.Am.hdr_hdl = t_long(hdr_hdl);
        xfer.Am.uhdr_len = sizeof *o;
        xfer.Am.uhdr = o;
        xfer.Am.udata = data;
        xfer.Am.udata_len = o->len;
        xfer.Am.tgt_cntr = t_long(tgt_cntrs[tgt]);
        xfer.Am.org_cntr = &org_cntr;
        xfer.Am.cmpl_cntr = &cmpl_cntr;
        OK(LAPI_Xfer(t_hndl, &xfer));
    }
}

static order make(ulong len, int action) {
    static int number;
    order o;
    bzero(&o, sizeof o);
    o.number = number++;
    o.len = len;
    o.src = t_me;
    o.action = action;
    o.seed = t_seed((uint64_t)t_me, len, (uint64_t)o.number);
    t_fill(data, len, o.seed);
    return o;
}

/* One message from every task to the task `distance` further, and what must be true of it. */
static void exchange(int distance, int by_xfer, int use_old, int by_index, ulong len, int action) {
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    int delivered = !(action & (BURY | REFUSE)), copied = action & COPY && sizeof(order) + len <= (ulong)max_packet;
    order o = make(len, action);
    void *hdr_hdl = by_index ? (void *)(uintptr_t)(INDEX + use_old) : use_old ? old_at[tgt] : enhanced_at[tgt];
    called = completed = 0;
    memset(landing, 0xee, len + 1);
    t_fence();
    send_order(by_xfer, tgt, hdr_hdl, &o);
    t_wait_exact(&org_cntr, 1);
    memset(data, 0x11, len);
    t_wait_exact(&tgt_cntr, 1);
    CHECK_EQ(called, 1);
    CHECK_EQ(completed, action & WITH_COMPLETION ? 1 : 0);
    if (delivered || copied)
        CHECK_FILLED(landing, len, t_seed((uint64_t)src, len, (uint64_t)o.number));
    else if (len > 0)
        CHECK_FOR(landing[0] == 0xee && landing[len - 1] == 0xee && landing[len / 2] == 0xee,
                  "data of %lu bytes was put down that was not wanted", len);
    CHECK_EQ(landing[len], 0xee);
    t_wait_exact(&cmpl_cntr, 1);
}

static void ways(void) {
    int distance, way;
    size_t i;
    for (distance = 0; distance < t_tasks; distance++)
        for (way = 0; way < 16; way++)
            for (i = 0; i < LENS; i++)
                exchange(distance, way & 1, way >> 1 & 1, way >> 2 & 1, lens[i], way & 8 ? WITH_COMPLETION : 0);
}

static void one_packet(void) {
    int distance, edge = max_packet - (int)sizeof(order), len;
    for (distance = 0; distance < t_tasks; distance++) {
        for (len = 0; len <= edge; len += 1 + len / 7) {
            exchange(distance, 0, 0, 0, (ulong)len, COPY);
            exchange(distance, 1, 0, 1, (ulong)len, COPY | REFUSE | WITH_COMPLETION | BURY);
        }
        for (len = edge - 9; len <= edge + 9; len++) exchange(distance, 0, 0, 1, (ulong)len, COPY);
        for (len = 2 * max_packet; len <= ROOM; len *= 2) exchange(distance, 0, 0, 0, (ulong)len, COPY);
    }
}

static void unwanted(void) {
    static const int actions[] = {REFUSE, BURY, BURY | REFUSE};
    int distance;
    size_t i, a;
    for (distance = 0; distance < t_tasks; distance++)
        for (a = 0; a < 3; a++)
            for (i = 0; i < LENS; i++) {
                exchange(distance, 0, 0, 0, lens[i], actions[a]);
                exchange(distance, 1, 0, 1, lens[i], actions[a] | WITH_COMPLETION);
            }
}

/* --- drop --- */

enum { MESSAGES = 60, SLOT = 70000 };

static unsigned char *slots;
static int offered[64][MESSAGES];
static volatile int accepted;

static void *dropping(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                      void **uinfo) {
    order *o = uhdr;
    (void)hndl, (void)uinfo;
    *comp_h = NULL;
    look_at_info(ret, o, *uhdr_len);
    if (offered[o->src][o->number]++ < o->drops) {
        ret->ctl_flags = LAPI_DROP_PKT;
        return NULL;
    }
    __atomic_fetch_add(&accepted, 1, __ATOMIC_RELEASE);
    return slots + ((size_t)o->src * MESSAGES + (size_t)o->number) * SLOT;
}

static int drops_of(int number) { return number % 3 == 1 ? 1 + number % 5 : 0; }
static ulong len_of(int number) { return lens[(size_t)number % 11] + (ulong)number; }

static void drop(void) {
    static order orders[64][MESSAGES];
    unsigned char *from = malloc(MESSAGES * (size_t)SLOT);
    void **dropping_at = t_addresses((void *)dropping);
    int i, tgt, src;
    slots = malloc((size_t)t_tasks * MESSAGES * SLOT);
    CHECK(from != NULL && slots != NULL);
    t_fence();
    for (i = 0; i < MESSAGES; i++) t_fill(from + i * SLOT, len_of(i), t_seed((uint64_t)t_me, (uint64_t)i, 4));
    for (i = 0; i < MESSAGES; i++)
        for (tgt = 0; tgt < t_tasks; tgt++) {
            order *o = &orders[tgt][i];
            o->number = i;
            o->src = t_me;
            o->drops = drops_of(i);
            o->len = len_of(i);
            o->seed = t_seed((uint64_t)t_me, (uint64_t)i, 4);
            OK(LAPI_Amsend(t_hndl, (uint)tgt, dropping_at[tgt], o, sizeof *o, from + i * SLOT, o->len, tgt_cntrs[tgt],
                           &org_cntr, &cmpl_cntr));
        }
    t_wait_exact(&cmpl_cntr, MESSAGES * t_tasks);
    t_wait_exact(&org_cntr, MESSAGES * t_tasks);
    t_wait_exact(&tgt_cntr, MESSAGES * t_tasks);
    CHECK_EQ(accepted, MESSAGES * t_tasks);
    for (src = 0; src < t_tasks; src++)
        for (i = 0; i < MESSAGES; i++) {
            CHECK_EQ(offered[src][i], drops_of(i) + 1);
            CHECK_FILLED(slots + ((size_t)src * MESSAGES + (size_t)i) * SLOT, len_of(i),
                         t_seed((uint64_t)src, (uint64_t)i, 4));
        }
}

/* --- counters --- */

static lapi_cntr_t own;

static void *setting(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    int value = -1;
    (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    OK(LAPI_Getcntr(*hndl, &own, &value));
    OK(LAPI_Setcntr(*hndl, &own, value + 1));
    *comp_h = NULL;
    return NULL;
}

static void in_handler(void) {
    void **setting_at = t_addresses((void *)setting);
    int i, tgt;
    for (i = 0; i < 500; i++)
        for (tgt = 0; tgt < t_tasks; tgt++)
            OK(LAPI_Amsend(t_hndl, (uint)tgt, setting_at[tgt], NULL, 0, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Waitcntr(t_hndl, &own, 500 * t_tasks, NULL));
    t_fence();
    CHECK_EQ(t_value(&own), 0);
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    max_packet = t_query(MAX_PKT_SZ);
    CHECK_FOR(max_packet > 128 && max_packet < ROOM / 2, "MAX_PKT_SZ is %d", max_packet);
    data = malloc(2 * ROOM);
    landing = malloc(2 * ROOM);
    CHECK(data != NULL && landing != NULL);
    OK(LAPI_Addr_set(t_hndl, (void *)enhanced, INDEX));
    OK(LAPI_Addr_set(t_hndl, (void *)old, INDEX + 1));
    enhanced_at = t_addresses((void *)enhanced);
    old_at = t_addresses((void *)old);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "ways") == 0) ways();
    else if (strcmp(which, "one-packet") == 0) one_packet();
    else if (strcmp(which, "unwanted") == 0) unwanted();
    else if (strcmp(which, "drop") == 0) drop();
    else if (strcmp(which, "counters") == 0) in_handler();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

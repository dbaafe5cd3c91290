/*
 * The vector header handler: handler CASE
 *
 *   chapter    the two LAPI_GEN_GENERIC examples of the manual's chapter 6, piece by piece
 *   generic    more pieces than are sent, fewer, none; everything in one piece, one piece in everything
 *   interface  the arguments of the handler, by address and by index, with and without a user header
 *   unwanted   a null vector, LAPI_BURY_MSG and both, with and without a completion handler
 *   drop       LAPI_DROP_PKT some times, then accepted, while other messages keep coming
 *   threads    where completion handlers run
 *
 * The user header says which message it is and what the handler shall do with it.
 */
#include "vec.h"

#include <sys/prctl.h>

enum { INDEX = 7, ROOM = 3 << 20 };
enum { BURY = 1, NOTHING = 2, COPY = 4, COMPLETE = 8, INLINE = 16, REPLY = 32 }; /* NOTHING: return NULL */

typedef struct {
    uint64_t seed, bytes;
    int src, action, number, pad;
} order;

static unsigned char *out, *in;
static void **handlers, **tgt_cntrs;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static side from, to;
static volatile int called, completed;
static lapi_vec_t *returned;
static pthread_t main_thread, header_thread;
static int max_packet;

static ulong fits(void) { return from.bytes < to.bytes ? from.bytes : to.bytes; }

static void completion(lapi_handle_t *hndl, void *info) {
    const order *o = info;
    char name[32] = "";
    CHECK_EQ(*hndl, t_hndl);
    if (!(o->action & (BURY | NOTHING))) CHECK_EQ(v_differs(&to, in, fits(), o->seed), -1);
    if (o->action & INLINE) {
        /* A message of one packet is complete when its header handler returns; of a longer one
         * another thread may take the last packet. */
        if (o->bytes < 500) CHECK(pthread_equal(pthread_self(), header_thread));
    } else if (!(o->action & REPLY)) {
        CHECK(!pthread_equal(pthread_self(), main_thread));
        prctl(PR_GET_NAME, name, 0, 0, 0);
        CHECK_FOR(strncmp(name, "lapi-compl-", 11) == 0, "a completion handler runs in the thread \"%s\"", name);
    }
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void look_at_info(const lapi_return_info_t *ret, ulong bytes, int src, uint64_t seed, uint uhdr_len) {
    static int magic;
    if (magic == 0) magic = ret->MAGIC;
    CHECK_EQ(ret->MAGIC, magic);
    CHECK_EQ(ret->msg_len, bytes);
    CHECK_EQ(ret->src, src);
    CHECK_EQ(ret->ret_flags, LAPI_NORMAL);
    CHECK_EQ(ret->ctl_flags, LAPI_DELIVER_MSG);
    CHECK_PTR(ret->dgsp_handle, NULL);
    CHECK_EQ(ret->recv_offset_dgsp_bytes, 0);
    if (bytes == 0) return;
    if (bytes + uhdr_len > (ulong)max_packet) CHECK_PTR(ret->udata_one_pkt_ptr, NULL);
    /* How much of a packet the description of a vector takes is for the library to decide. */
    if (bytes + uhdr_len <= (ulong)max_packet / 2) CHECK(ret->udata_one_pkt_ptr != NULL);
    if (ret->udata_one_pkt_ptr == NULL) return;
    CHECK_EQ((uintptr_t)ret->udata_one_pkt_ptr % 8, 0);
    CHECK_FILLED(ret->udata_one_pkt_ptr, bytes, seed);
}

static lapi_vec_t *obeying(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                           void **uinfo) {
    static order last;
    lapi_return_info_t *ret = (lapi_return_info_t *)len_vec;
    order *o = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *o);
    CHECK_EQ((uintptr_t)uhdr % 8, 0);
    look_at_info(ret, o->bytes, o->src, o->seed, *uhdr_len);
    last = *o;
    header_thread = pthread_self();
    *comp_h = o->action & COMPLETE ? completion : NULL;
    *uinfo = &last;
    if (o->action & INLINE) ret->ret_flags = LAPI_LOCAL_STATE;
    if (o->action & REPLY) ret->ret_flags = LAPI_SEND_REPLY;
    if (o->action & BURY) ret->ctl_flags = LAPI_BURY_MSG;
    if (o->action & COPY && ret->udata_one_pkt_ptr != NULL) {
        const char *data = ret->udata_one_pkt_ptr;
        uint i;
        for (i = 0; i < to.count; i++) {
            memcpy(in + to.at[i], data, to.len[i]);
            data += to.len[i];
        }
        ret->ctl_flags = LAPI_BURY_MSG;
    }
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    return o->action & NOTHING ? NULL : returned;
}

static void send_order(int tgt, int way, order *o, lapi_vec_t *org) {
    void *handler = way & 1 ? (void *)INDEX : handlers[tgt];
    lapi_xfer_t x;
    if (!(way & 2)) {
        OK(LAPI_Amsendv(t_hndl, (uint)tgt, handler, o, sizeof *o, org, tgt_cntrs[tgt], &org_cntr, &cmpl_cntr));
        return;
    }
    bzero(&x, sizeof x);
    x.Amv.Xfer_type = LAPI_AMV_XFER;
    x.Amv.tgt = (uint)tgt;
    x.Amv.hdr_hdl = t_long(handler);
    x.Amv.uhdr_len = sizeof *o;
    x.Amv.uhdr = o;
    x.Amv.org_vec = org;
    x.Amv.tgt_cntr = t_long(tgt_cntrs[tgt]);
    x.Amv.org_cntr = &org_cntr;
    x.Amv.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &x));
}

/* One message from every task to the task `distance` further, with the layouts `from` and `to`; the
 * data is not checked. */
static uint64_t message(int distance, int way, int action) {
    static int number;
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    uint64_t seed = t_seed((uint64_t)t_me, (uint64_t)++number, 5);
    lapi_vec_t *org = v_vector(&from, out);
    order o;
    bzero(&o, sizeof o);
    o.seed = seed;
    o.bytes = from.bytes;
    o.src = t_me;
    o.action = action;
    CHECK(from.area <= ROOM && to.area <= ROOM);
    v_poison(&from, out);
    v_fill(&from, out, seed);
    v_poison(&to, in);
    returned = v_vector(&to, in);
    called = completed = 0;
    t_fence();
    send_order(tgt, way, &o, org);
    t_wait_exact(&org_cntr, 1);
    memset(out, 0x11, from.area);
    memset(&o, 0x11, sizeof o);
    v_spoil(org);
    t_wait_exact(&tgt_cntr, 1);
    v_spoil(returned);
    CHECK_EQ(called, 1);
    CHECK_EQ(completed, action & COMPLETE ? 1 : 0);
    t_wait_exact(&cmpl_cntr, 1);
    return t_seed((uint64_t)src, (uint64_t)number, 5);
}

static void delivered(int distance, int way, int action) {
    uint64_t seed = message(distance, way, action);
    V_CHECK(&to, in, fits(), seed);
    v_free(&from);
    v_free(&to);
}

static side pieces(lapi_vectype_t type, uint count, const ulong *len, int placement) {
    return v_pieces(type, count, len, placement, t_seed(count, len[0], (uint64_t)placement));
}

/* `count` pieces of `len` bytes. */
static side equal(lapi_vectype_t type, uint count, ulong len, int placement) {
    ulong *lens = v_alloc((count + 1) * sizeof *lens);
    uint i;
    side s;
    for (i = 0; i <= count; i++) lens[i] = len;
    s = pieces(type, count, lens, placement);
    free(lens);
    return s;
}

/* --- chapter --- */

static void chapter(void) {
    static const ulong org[] = {5, 10, 5}, tgt[] = {12, 2, 4, 2}, more[] = {20}, less[] = {5, 10};
    unsigned char data[20];
    int distance;
    for (distance = 0; distance < t_tasks; distance++) {
        from = pieces(LAPI_GEN_GENERIC, 3, org, SPREAD);
        to = pieces(LAPI_GEN_GENERIC, 4, tgt, SHUFFLED);
        t_fill(data, 20, message(distance, distance, 0));
        CHECK_EQ(memcmp(in + to.at[0], data, 12), 0);
        CHECK_EQ(memcmp(in + to.at[1], data + 12, 2), 0);
        CHECK_EQ(memcmp(in + to.at[2], data + 14, 4), 0);
        CHECK_EQ(memcmp(in + to.at[3], data + 18, 2), 0);
        v_free(&from), v_free(&to);
        from = pieces(LAPI_GEN_GENERIC, 1, more, SPREAD);
        to = pieces(LAPI_GEN_GENERIC, 2, less, SPREAD);
        t_fill(data, 20, message(distance, distance, COMPLETE));
        CHECK_EQ(memcmp(in + to.at[0], data, 5), 0);
        CHECK_EQ(memcmp(in + to.at[1], data + 5, 10), 0);
        CHECK_EQ(in[to.at[1] + 10], POISON);
        v_free(&from), v_free(&to);
    }
}

/* --- generic --- */

static void generic(void) {
    /* How many pieces of how many bytes there and here. */
    static const ulong cases[][4] = {
        {0, 8, 0, 8},         {0, 8, 9, 8},       {9, 8, 0, 8},        {7, 0, 5, 8},          {7, 8, 5, 0},
        {1, 1, 1, 2},         {1, 2, 1, 1},       {3, 40, 5, 24},      {1, 100000, 1300, 80}, {1300, 80, 1, 100000},
        {5000, 10, 2500, 19}, {100, 100, 1, 1},   {1, 1, 100, 100},    {1, 1 << 20, 1, 1000}, {1, 1000, 1, 1 << 20},
        {2, 1 << 20, 3, 1 << 19}, {1300, 1000, 7, 200000}, {100000, 7, 1, 700001}, {1, 700000, 100000, 8},
    };
    int distance, action;
    size_t i;
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < sizeof cases / sizeof *cases; i++)
            for (action = 0; action <= COMPLETE; action += COMPLETE) {
                from = equal(LAPI_GEN_GENERIC, (uint)cases[i][0], cases[i][1], (int)i % PLACEMENTS);
                to = equal(LAPI_GEN_GENERIC, (uint)cases[i][2], cases[i][3], (int)(i + 1) % PLACEMENTS);
                delivered(distance, (int)i, action);
            }
}

/* --- interface --- */

static volatile int bare_calls;

/* Without a user header the handler has no instructions. */
static lapi_vec_t *bare(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                        void **uinfo) {
    (void)uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, 0);
    CHECK_EQ(*len_vec, 48);
    *comp_h = NULL;
    *uinfo = NULL;
    __atomic_fetch_add(&bare_calls, 1, __ATOMIC_RELEASE);
    return returned;
}

static void interface(void) {
    static const ulong lens[] = {1, 0, 39, 60, 700};
    void **bares = t_addresses((void *)bare);
    int distance, way, i, count;
    ulong len;
    for (distance = 0; distance < t_tasks; distance++) {
        for (way = 0; way < 4; way++) {
            for (i = 1; i <= 5; i++) {
                from = pieces(LAPI_GEN_IOVECTOR, (uint)i, lens, SHUFFLED);
                to = pieces(LAPI_GEN_IOVECTOR, (uint)i, lens, SPREAD);
                delivered(distance, way, way == 3 ? COPY : 0);
            }
            /* Around the length of one packet, and well beyond. */
            for (len = 50; len <= 40000; len += 1 + len / 5)
                for (count = 1; count <= 9; count += 4) {
                    from = v_strided((uint)count, len, len + 3, 0);
                    to = v_strided((uint)count, len, len, 1);
                    delivered(distance, way, way == 2 ? COPY : 0);
                }
        }
        from = equal(LAPI_GEN_IOVECTOR, 6, 8, SPREAD);
        to = equal(LAPI_GEN_IOVECTOR, 6, 8, SHUFFLED);
        v_poison(&to, in);
        v_fill(&from, out, 77);
        returned = v_vector(&to, in);
        bare_calls = 0;
        t_fence();
        i = (t_me + distance) % t_tasks;
        {
            lapi_vec_t *org = v_vector(&from, out);
            OK(LAPI_Amsendv(t_hndl, (uint)i, bares[i], NULL, 0, org, NULL, NULL, &cmpl_cntr));
            t_wait_exact(&cmpl_cntr, 1);
            v_spoil(org);
        }
        t_fence();
        CHECK_EQ(bare_calls, 1);
        V_CHECK(&to, in, 48, 77);
        v_spoil(returned);
        v_free(&from), v_free(&to);
    }
}

/* --- unwanted --- */

static void unwanted(void) {
    static const int actions[] = {BURY, NOTHING, BURY | NOTHING};
    static const lapi_vectype_t types[] = {LAPI_GEN_IOVECTOR, LAPI_GEN_GENERIC};
    static const ulong lens[][2] = {{3, 8}, {1, 1}, {40, 100}, {1300, 40}, {5, 200000}, {0, 1}, {9, 0}};
    int distance;
    size_t i, a;
    for (distance = 0; distance < t_tasks; distance++)
        for (a = 0; a < 3; a++)
            for (i = 0; i < sizeof lens / sizeof *lens; i++) {
                from = equal(types[i % 2], (uint)lens[i][0], lens[i][1], SPREAD);
                to = equal(types[i % 2], (uint)lens[i][0], lens[i][1], SHUFFLED);
                message(distance, (int)i, actions[a] | (i % 3 == 1 ? COMPLETE : i % 3 == 2 ? COMPLETE | INLINE : 0));
                V_CHECK(&to, in, 0, 0);
                v_free(&from), v_free(&to);
            }
}

/* --- drop --- */

enum { MESSAGES = 40, SLOT = 60000 };

static side shape_of(int number, int which) {
    if (number % 3 == 0) return v_strided((uint)(number % 7 + 1), (ulong)(number * 23), (ulong)(number * 23 + which), 0);
    return equal(number % 3 == 1 ? LAPI_GEN_IOVECTOR : LAPI_GEN_GENERIC, (uint)(number * 5), (ulong)(number * 3),
                 which ? SHUFFLED : SPREAD);
}

static side shapes[MESSAGES][2];
static lapi_vec_t *vectors[64][MESSAGES];
static unsigned char *landings;
static int offered[64][MESSAGES];
static volatile int accepted;

static int drops_of(int number) { return number % 3 == 1 ? 1 + number % 5 : 0; }
static uint64_t seed_of(int task, int number) { return t_seed((uint64_t)task, (uint64_t)number, 9); }

static lapi_vec_t *dropping(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    lapi_return_info_t *ret = (lapi_return_info_t *)len_vec;
    order *o = uhdr;
    (void)hndl, (void)uinfo;
    *comp_h = NULL;
    look_at_info(ret, o->bytes, o->src, o->seed, *uhdr_len);
    if (offered[o->src][o->number]++ < drops_of(o->number)) {
        ret->ctl_flags = LAPI_DROP_PKT;
        return NULL;
    }
    __atomic_fetch_add(&accepted, 1, __ATOMIC_RELEASE);
    return vectors[o->src][o->number];
}

static unsigned char *landing(int src, int number) { return landings + ((size_t)src * MESSAGES + (size_t)number) * SLOT; }

static void drop(void) {
    static order orders[64][MESSAGES];
    static lapi_vec_t *orgs[MESSAGES];
    unsigned char *data = v_alloc(MESSAGES * (size_t)SLOT);
    void **dropping_at = t_addresses((void *)dropping);
    int i, task;
    CHECK(t_tasks <= 64);
    landings = v_alloc((size_t)t_tasks * MESSAGES * SLOT);
    for (i = 0; i < MESSAGES; i++) {
        shapes[i][0] = shape_of(i, 0);
        shapes[i][1] = shape_of(i, 1);
        CHECK(shapes[i][0].area <= SLOT && shapes[i][1].area <= SLOT);
        v_fill(&shapes[i][0], data + i * SLOT, seed_of(t_me, i));
        orgs[i] = v_vector(&shapes[i][0], data + i * SLOT);
        for (task = 0; task < t_tasks; task++) {
            v_poison(&shapes[i][1], landing(task, i));
            vectors[task][i] = v_vector(&shapes[i][1], landing(task, i));
        }
    }
    t_fence();
    for (i = 0; i < MESSAGES; i++)
        for (task = 0; task < t_tasks; task++) {
            order *o = &orders[task][i];
            o->number = i;
            o->src = t_me;
            o->bytes = shapes[i][0].bytes;
            o->seed = seed_of(t_me, i);
            OK(LAPI_Amsendv(t_hndl, (uint)task, dropping_at[task], o, sizeof *o, orgs[i], tgt_cntrs[task], &org_cntr,
                            &cmpl_cntr));
        }
    t_wait_exact(&cmpl_cntr, MESSAGES * t_tasks);
    t_wait_exact(&org_cntr, MESSAGES * t_tasks);
    t_wait_exact(&tgt_cntr, MESSAGES * t_tasks);
    CHECK_EQ(accepted, MESSAGES * t_tasks);
    for (task = 0; task < t_tasks; task++)
        for (i = 0; i < MESSAGES; i++) {
            CHECK_EQ(offered[task][i], drops_of(i) + 1);
            V_CHECK(&shapes[i][1], landing(task, i), shapes[i][1].bytes, seed_of(task, i));
        }
}

/* --- threads --- */

static void threads(void) {
    static const int actions[] = {COMPLETE, COMPLETE | INLINE, COMPLETE | REPLY};
    int distance, i;
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < 60; i++) {
            from = equal(LAPI_GEN_IOVECTOR, (uint)(i + 1), (ulong)(i * i * i / 20), SPREAD);
            to = equal(LAPI_GEN_IOVECTOR, (uint)(i + 1), (ulong)(i * i * i / 20), SHUFFLED);
            delivered(distance, i, actions[i % 3]);
        }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    main_thread = pthread_self();
    t_init();
    max_packet = t_query(MAX_PKT_SZ);
    out = v_alloc(ROOM);
    in = v_alloc(ROOM);
    OK(LAPI_Addr_set(t_hndl, (void *)obeying, INDEX));
    handlers = t_addresses((void *)obeying);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "chapter") == 0) chapter();
    else if (strcmp(which, "generic") == 0) generic();
    else if (strcmp(which, "interface") == 0) interface();
    else if (strcmp(which, "unwanted") == 0) unwanted();
    else if (strcmp(which, "drop") == 0) drop();
    else if (strcmp(which, "threads") == 0) threads();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

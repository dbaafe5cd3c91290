/*
 * RDMA transfers: rdma CASE [LARGEST]
 *
 *   absent         without MP_RDMA_COUNT there are none
 *   registrations  memory that is acquired and released, and what is refused
 *   contexts       those of other tasks, up to MP_RDMA_COUNT=3
 *   refused        transfers with wrong parameters; none of them counts
 *   transfers      puts and gets of every length at offsets
 *   counters       the origin counter of a put rises when its data is at the target
 *   purged         task 1 makes no call while task 0 begins transfers with it, and purges it
 *   handlers       the handler runs after the counter, releases, and puts 0 bytes to its own task
 */
#include "rdma.h"

static void absent(void) {
    static char memory[64];
    lapi_user_pvo_t pvo = 0;
    lapi_user_cxt_t number = 0;
    lapi_xfer_t x = transfer(LAPI_RDMA_PUT, t_tasks - 1, 1, (uintptr_t)memory, (uintptr_t)memory, 8);
    RETURNS(registration(LAPI_RDMA_ACQUIRE, memory, sizeof memory, &pvo), LAPI_ERR_NO_RDMA_RESOURCE);
    RETURNS(released((uintptr_t)memory), LAPI_ERR_NO_RDMA_RESOURCE);
    RETURNS(context(LAPI_RDMA_ACQUIRE, t_tasks - 1, &number), LAPI_ERR_NO_RDMA_RESOURCE);
    RETURNS(context(LAPI_RDMA_RELEASE, t_tasks - 1, &number), LAPI_ERR_NO_RDMA_RESOURCE);
    RETURNS(LAPI_Xfer(t_hndl, &x), LAPI_ERR_NO_RDMA_RESOURCE);
    CHECK(pvo == 0 && number == 0);
}

static void registrations(void) {
    static char memory[4096];
    lapi_user_pvo_t pvo = 0, part, whole;
    RETURNS(registration(LAPI_RDMA_ACQUIRE, NULL, 64, &pvo), LAPI_ERR_XLATE_FAILED);
    RETURNS(registration(LAPI_RDMA_ACQUIRE, memory, 0, &pvo), LAPI_ERR_XLATE_FAILED);
    RETURNS(registration(LAPI_RDMA_ACQUIRE, (void *)(UINTPTR_MAX - 62), 64, &pvo), LAPI_ERR_XLATE_FAILED);
    RETURNS(registration(LAPI_RDMA_RELEASE + 1, memory, 64, &pvo), LAPI_ERR_UTIL_CMD);
    CHECK(pvo == 0);
    RETURNS(released(0), LAPI_ERR_SRC_BUFHNDL);
    RETURNS(released((uintptr_t)memory), LAPI_ERR_SRC_BUFHNDL);
    whole = acquired(memory, sizeof memory);
    part = acquired(memory, 64);
    pvo = acquired(memory + 64, 64);
    CHECK((void *)(uintptr_t)pvo == memory + 64 && pvo != whole);
    RETURNS(released((uintptr_t)memory + 8), LAPI_ERR_SRC_BUFHNDL);
    OK(released(pvo));
    RETURNS(released(pvo), LAPI_ERR_SRC_BUFHNDL);
    OK(released(part));
    OK(released(whole));
    RETURNS(released(whole), LAPI_ERR_SRC_BUFHNDL);
    RETURNS(released(part), LAPI_ERR_SRC_BUFHNDL);
}

static void contexts(void) {
    enum { LIMIT = 3 };
    lapi_user_cxt_t *numbers = calloc((size_t)t_tasks * LIMIT, sizeof *numbers), other = 0, kept;
    int task, i, j;
    RETURNS(context(LAPI_RDMA_ACQUIRE, t_me, &other), LAPI_ERR_TGT);
    RETURNS(context(LAPI_RDMA_ACQUIRE, t_tasks, &other), LAPI_ERR_TGT);
    RETURNS(context(LAPI_RDMA_ACQUIRE, -1, &other), LAPI_ERR_TGT);
    CHECK(other == 0);
    for (task = 0; task < t_tasks; task++) {
        if (task == t_me) continue;
        RETURNS(context(LAPI_RDMA_RELEASE, task, &other), LAPI_ERR_TGT_CONTEXT);
        RETURNS(context(LAPI_RDMA_RELEASE + 1, task, &other), LAPI_ERR_UTIL_CMD);
        for (i = 0; i < LIMIT; i++) numbers[task * LIMIT + i] = acquired_context(task);
        RETURNS(context(LAPI_RDMA_ACQUIRE, task, &other), LAPI_ERR_NO_RDMA_RESOURCE);
        CHECK(other == 0);
    }
    for (i = 0; i < t_tasks * LIMIT; i++)
        for (j = 0; j < i; j++) CHECK(numbers[i] != numbers[j] || (numbers[i] == 0));
    for (task = 0; task < t_tasks; task++) {
        lapi_user_cxt_t *mine = numbers + task * LIMIT;
        if (task == t_me) continue;
        kept = mine[1];
        RETURNS(context(LAPI_RDMA_RELEASE, t_me, &mine[1]), LAPI_ERR_TGT_CONTEXT);
        OK(context(LAPI_RDMA_RELEASE, task, &mine[1]));
        CHECK_EQ(mine[1], kept);
        RETURNS(context(LAPI_RDMA_RELEASE, task, &mine[1]), LAPI_ERR_TGT_CONTEXT);
        mine[1] = acquired_context(task);
        for (i = 0; i < LIMIT; i++) OK(context(LAPI_RDMA_RELEASE, task, &mine[i]));
    }
    t_fence();
}

static int wrong_handler_calls;

static void wrong_handler(lapi_handle_t *hndl, void *info, lapi_sh_info_t *what) {
    (void)hndl, (void)info, (void)what;
    wrong_handler_calls++;
}

#define REFUSED(change, code)                                                                                    \
    do {                                                                                                         \
        lapi_xfer_t x = transfer(LAPI_RDMA_PUT, tgt, number, pvo, pvos[tgt], 64);                                \
        x.HwXfer.org_cntr = &cntr;                                                                               \
        x.HwXfer.shdlr = wrong_handler;                                                                          \
        change;                                                                                                  \
        RETURNS(LAPI_Xfer(t_hndl, &x), code);                                                                    \
        x.HwXfer.op = x.HwXfer.op == LAPI_RDMA_PUT ? LAPI_RDMA_GET : x.HwXfer.op;                                \
        RETURNS(LAPI_Xfer(t_hndl, &x), code);                                                                    \
    } while (0)

static void refused(void) {
    static char memory[4096];
    static lapi_cntr_t cntr;
    int tgt = (t_me + 1) % t_tasks;
    lapi_user_cxt_t number = acquired_context(tgt), gone = acquired_context(tgt);
    lapi_user_pvo_t pvo = acquired(memory, sizeof memory), *pvos = exchanged(pvo);
    lapi_user_pvo_t released_pvo = acquired(memory + 8, 8);
    OK(released(released_pvo));
    OK(context(LAPI_RDMA_RELEASE, tgt, &gone));
    REFUSED(x.HwXfer.tgt = (uint)t_tasks, LAPI_ERR_TGT);
    REFUSED(x.HwXfer.tgt = (uint)t_me, LAPI_ERR_TGT_CONTEXT);
    REFUSED(x.HwXfer.op = 0, LAPI_ERR_XFER_CMD);
    REFUSED(x.HwXfer.op = LAPI_RDMA_PUT | LAPI_RDMA_GET, LAPI_ERR_XFER_CMD);
    REFUSED(x.HwXfer.op = LAPI_RDMA_PUT | LAPI_RCNTR_UPDATE, LAPI_ERR_XFER_CMD);
    REFUSED(x.HwXfer.remote_cxt = 0, LAPI_ERR_TGT_CONTEXT);
    REFUSED(x.HwXfer.remote_cxt = gone, LAPI_ERR_TGT_CONTEXT);
    REFUSED(x.HwXfer.src_pvo = released_pvo, LAPI_ERR_SRC_BUFHNDL);
    REFUSED(x.HwXfer.src_pvo = 0, LAPI_ERR_SRC_BUFHNDL);
    REFUSED(x.HwXfer.src_offset = sizeof memory - 63, LAPI_ERR_OFFSET_LEN);
    REFUSED(x.HwXfer.src_offset = UINT32_MAX, LAPI_ERR_OFFSET_LEN);
    REFUSED(x.HwXfer.len = sizeof memory + 1, LAPI_ERR_OFFSET_LEN);
    REFUSED(x.HwXfer.tgt_pvo = 0, LAPI_ERR_TGT_BUFHNDL);
    REFUSED(x.HwXfer.tgt_pvo = UINT64_MAX - 62, LAPI_ERR_TGT_OFFSET);
    REFUSED((x.HwXfer.tgt_pvo = UINT64_MAX - 62, x.HwXfer.tgt_offset = 63), LAPI_ERR_TGT_OFFSET);
    t_fence();
    CHECK_EQ(t_value(&cntr), 0);
    CHECK_EQ(wrong_handler_calls, 0);
    OK(released(pvo));
    OK(context(LAPI_RDMA_RELEASE, tgt, &number));
    free(pvos);
}

/* The memory of a task: its own data, the place for a get, and the place for a put. */
static void transfers(size_t largest) {
    enum { OFFSETS = 3 };
    static const uint offsets[OFFSETS][2] = {{0, 0}, {1, 4099}, {8192, 3}};
    size_t lengths[80], count = t_lengths(lengths, 80, largest), room = (largest + 16384) / 4096 * 4096, i;
    unsigned char *memory = aligned_alloc(4096, 3 * room);
    int tgt = (t_me + 1) % t_tasks, src = (t_me + t_tasks - 1) % t_tasks, at;
    lapi_user_cxt_t number = acquired_context(tgt);
    lapi_user_pvo_t data, place, *datas, *places;
    CHECK(memory != NULL);
    data = acquired(memory, room);
    place = acquired(memory + room, 2 * room);
    datas = exchanged(data);
    places = exchanged(place);
    for (i = 0; i < count; i++) {
        for (at = 0; at < OFFSETS; at++) {
            size_t len = lengths[i], here = offsets[at][0], there = offsets[at][1], used = len + 8192 + 64;
            lapi_cntr_t got, put;
            lapi_xfer_t get_xfer = transfer(LAPI_RDMA_GET, tgt, number, place, datas[tgt], len);
            lapi_xfer_t put_xfer = transfer(LAPI_RDMA_PUT, tgt, number, data, places[tgt], len);
            OK(LAPI_Setcntr(t_hndl, &got, 0));
            OK(LAPI_Setcntr(t_hndl, &put, 0));
            t_fill(memory, used, t_seed((uint64_t)t_me, len, (uint64_t)at));
            memset(memory + room, 0xee, used);
            memset(memory + 2 * room, 0xee, used);
            t_fence();
            get_xfer.HwXfer.src_offset = (uint)here;
            get_xfer.HwXfer.tgt_offset = (uint)there;
            get_xfer.HwXfer.org_cntr = &got;
            put_xfer.HwXfer.src_offset = (uint)here;
            put_xfer.HwXfer.tgt_offset = (uint)(room + there);
            put_xfer.HwXfer.org_cntr = &put;
            OK(LAPI_Xfer(t_hndl, &get_xfer));
            OK(LAPI_Xfer(t_hndl, &put_xfer));
            t_wait_exact(&got, 1);
            t_wait_exact(&put, 1);
            t_fence();
            {
                unsigned char *wanted = malloc(used), *came = memory + room + here, *sent = memory + 2 * room + there;
                CHECK(wanted != NULL);
                t_fill(wanted, used, t_seed((uint64_t)tgt, len, (uint64_t)at));
                CHECK_FOR(memcmp(came, wanted + there, len) == 0, "a get of %zu bytes, offsets %zu and %zu", len,
                          here, there);
                CHECK(came[len] == 0xee && (here == 0 || came[-1] == 0xee));
                t_fill(wanted, used, t_seed((uint64_t)src, len, (uint64_t)at));
                CHECK_FOR(memcmp(sent, wanted + here, len) == 0, "a put of %zu bytes, offsets %zu and %zu", len,
                          here, there);
                CHECK(sent[len] == 0xee && (there == 0 || sent[-1] == 0xee));
                free(wanted);
            }
            CHECK_FILLED(memory, used, t_seed((uint64_t)t_me, len, (uint64_t)at));
        }
    }
    t_fence();
    OK(released(data));
    OK(released(place));
    OK(context(LAPI_RDMA_RELEASE, tgt, &number));
    free(datas);
    free(places);
    free(memory);
}

/* A put, and then a get by the same task of what the put has written: the counter alone was waited
 * for. Then transfers without a counter, which a fence completes. */
static void counters(void) {
    enum { LEN = 200000 };
    static unsigned char data[LEN], place[LEN], back[LEN];
    static lapi_cntr_t put, got;
    int tgt = (t_me + 1) % t_tasks, round;
    lapi_user_cxt_t number = acquired_context(tgt);
    lapi_user_pvo_t from = acquired(data, LEN), to = acquired(place, LEN), in = acquired(back, LEN);
    lapi_user_pvo_t *places = exchanged(to);
    for (round = 0; round < t_rounds(100); round++) {
        size_t len = round % 2 ? LEN : (size_t)round + 1;
        lapi_xfer_t x = transfer(LAPI_RDMA_PUT, tgt, number, from, places[tgt], len);
        t_fill(data, LEN, t_seed((uint64_t)t_me, (uint64_t)round, 5));
        x.HwXfer.org_cntr = &put;
        OK(LAPI_Xfer(t_hndl, &x));
        t_wait_exact(&put, 1);
        x = transfer(LAPI_RDMA_GET, tgt, number, in, places[tgt], len);
        x.HwXfer.org_cntr = &got;
        OK(LAPI_Xfer(t_hndl, &x));
        t_wait_exact(&got, 1);
        CHECK(memcmp(back, data, len) == 0);
    }
    t_fence();
    for (round = 0; round < 16; round++) {
        lapi_xfer_t x = transfer(LAPI_RDMA_PUT, tgt, number, from, places[tgt], 1000);
        x.HwXfer.src_offset = (uint)round * 1000;
        x.HwXfer.tgt_offset = (uint)round * 1000;
        OK(LAPI_Xfer(t_hndl, &x));
    }
    t_fence();
    {
        int src = (t_me + t_tasks - 1) % t_tasks;
        CHECK_FILLED(place, 16000, t_seed((uint64_t)src, (uint64_t)t_rounds(100) - 1, 5));
    }
    CHECK_EQ(t_value(&put), 0);
    CHECK_EQ(t_value(&got), 0);
    t_fence();
}

struct one {
    lapi_user_pvo_t pvo; /* released by the handler */
    lapi_cntr_t cntr;
    lapi_cntr_t noticed;
    unsigned char *into; /* of a get: its data is here when the handler runs */
    size_t len;
    uint64_t seed;
    int tgt, calls, counted;
};

static void handler(lapi_handle_t *hndl, void *info, lapi_sh_info_t *what) {
    struct one *one = info;
    int value = -1;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(what->src, one->tgt);
    CHECK_EQ(what->reason, 0);
    one->calls++;
    OK(LAPI_Getcntr(*hndl, &one->cntr, &value));
    CHECK_EQ(value, one->counted);
    if (one->into != NULL) CHECK_FILLED(one->into, one->len, one->seed);
    OK(released(one->pvo));
    OK(LAPI_Put(*hndl, (uint)t_me, 0, NULL, NULL, (lapi_cntr_t *)&one->noticed, NULL, NULL));
}

static void handlers(void) {
    enum { COUNT = 64, ROOM = 70000 };
    static struct one ones[2 * COUNT];
    static unsigned char data[ROOM];
    unsigned char *memory = malloc((size_t)2 * COUNT * ROOM);
    int tgt = (t_me + 1) % t_tasks, src = (t_me + t_tasks - 1) % t_tasks, i;
    lapi_user_cxt_t number = acquired_context(tgt);
    lapi_user_pvo_t *places, *datas, all, from;
    CHECK(memory != NULL);
    t_fill(data, ROOM, t_seed((uint64_t)t_me, 1, 1));
    all = acquired(memory, (size_t)2 * COUNT * ROOM);
    from = acquired(data, ROOM);
    places = exchanged(all);
    datas = exchanged(from);
    for (i = 0; i < 2 * COUNT; i++) {
        struct one *one = &ones[i];
        size_t len = i % 3 == 0 ? ROOM : (size_t)i * 8;
        int gets = i % 2;
        lapi_xfer_t x;
        one->tgt = tgt;
        one->len = len;
        one->counted = 1;
        /* Each has a registration of its own, which it releases. */
        one->pvo = gets ? acquired(memory + (size_t)i * ROOM, ROOM) : acquired(data, ROOM);
        if (gets) {
            one->into = memory + (size_t)i * ROOM;
            one->seed = t_seed((uint64_t)tgt, 1, 1);
        }
        x = transfer(gets ? LAPI_RDMA_GET : LAPI_RDMA_PUT, tgt, number, one->pvo, gets ? datas[tgt] : places[tgt], len);
        x.HwXfer.tgt_offset = gets ? 0 : (uint)i * ROOM;
        x.HwXfer.org_cntr = &one->cntr;
        x.HwXfer.shdlr = handler;
        x.HwXfer.sinfo = one;
        OK(LAPI_Xfer(t_hndl, &x));
    }
    for (i = 0; i < 2 * COUNT; i++) t_wait_exact(&ones[i].noticed, 1);
    t_fence();
    for (i = 0; i < 2 * COUNT; i++) {
        CHECK_EQ(ones[i].calls, 1);
        t_wait_exact(&ones[i].cntr, 1);
        if (i % 2 == 0) CHECK_FILLED(memory + (size_t)i * ROOM, ones[i].len, t_seed((uint64_t)src, 1, 1));
    }
    t_fence(); /* each has looked at what the next transfers overwrite */
    /* Handlers without a counter. */
    memset(ones, 0, 2 * sizeof *ones);
    for (i = 0; i < 2; i++) {
        lapi_xfer_t x = transfer(i ? LAPI_RDMA_GET : LAPI_RDMA_PUT, tgt, number, all, places[tgt], 8);
        ones[i].tgt = tgt;
        ones[i].pvo = acquired(data, 8);
        x.HwXfer.shdlr = handler;
        x.HwXfer.sinfo = &ones[i];
        OK(LAPI_Xfer(t_hndl, &x));
        t_wait_exact(&ones[i].noticed, 1);
        CHECK_EQ(ones[i].calls, 1);
    }
    t_fence();
    OK(released(from));
    OK(released(all));
    for (i = 3; i < 2 * COUNT; i += 2)
        RETURNS(released(ones[i].pvo), LAPI_ERR_SRC_BUFHNDL);
    RETURNS(released((uintptr_t)data), LAPI_ERR_SRC_BUFHNDL);
    t_fence();
    free(memory);
}

static int purged_calls;

static void on_purged(lapi_handle_t *hndl, void *info, lapi_sh_info_t *what) {
    (void)hndl;
    CHECK_EQ(what->src, 1);
    CHECK_EQ(what->reason, LAPI_ERR_TGT_PURGED);
    OK(released(*(lapi_user_pvo_t *)info));
    purged_calls++;
}

/* Each task ends without the other. */
static void purged(void) {
    enum { LEN = 4 << 20 };
    static unsigned char memory[LEN];
    static lapi_cntr_t cntr;
    lapi_user_pvo_t pvo = acquired(memory, LEN), *pvos = exchanged(pvo);
    void **processes = t_processes();
    int i;
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me == 1) {
        t_leaves();
        t_until_ended(processes[0]);
    } else {
        static lapi_user_pvo_t each[2];
        lapi_user_cxt_t number = acquired_context(1);
        t_until_outside(processes[1]);
        for (i = 0; i < 2; i++) {
            lapi_xfer_t x;
            each[i] = acquired(memory, LEN);
            x = transfer(i ? LAPI_RDMA_GET : LAPI_RDMA_PUT, 1, number, each[i], pvos[1], LEN);
            x.HwXfer.org_cntr = &cntr;
            x.HwXfer.shdlr = on_purged;
            x.HwXfer.sinfo = &each[i];
            OK(LAPI_Xfer(t_hndl, &x));
        }
        OK(LAPI_Probe(t_hndl));
        CHECK_EQ(purged_calls, 0);
        OK(LAPI_Purge_totask(t_hndl, 1));
        while (purged_calls < 2) OK(LAPI_Probe(t_hndl));
        for (i = 0; i < 100; i++) OK(LAPI_Probe(t_hndl));
        CHECK_EQ(purged_calls, 2);
        CHECK_EQ(t_value(&cntr), 0);
        OK(released(pvo));
        RETURNS(released(pvo), LAPI_ERR_SRC_BUFHNDL);
        OK(LAPI_Term(t_hndl));
    }
    t_pass();
    exit(0);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    t_init();
    if (strcmp(which, "absent") == 0) absent();
    else if (strcmp(which, "registrations") == 0) registrations();
    else if (strcmp(which, "contexts") == 0) contexts();
    else if (strcmp(which, "refused") == 0) refused();
    else if (strcmp(which, "transfers") == 0) transfers(strtoul(argv[2], NULL, 10));
    else if (strcmp(which, "counters") == 0) counters();
    else if (strcmp(which, "handlers") == 0) handlers();
    else if (strcmp(which, "purged") == 0) purged();
    else T_FAIL("there is no case %s", which);
    t_done();
    return 0;
}

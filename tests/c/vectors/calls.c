/*
 * Vectors together with all other operations: calls CASE
 *
 *   fence     only LAPI_Fence and LAPI_Gfence show that the data has arrived
 *   copied    data of up to BUF_CP_SIZE bytes is copied at once, whatever the number of messages
 *   passive   the target is not in LAPI
 *   replies   completion handlers of both kinds reply with vectors
 *   threads   four threads put, get and send at the same time
 */
#include "vec.h"

enum { SLOT = 80000 };

static void **handlers, **areas;
static unsigned char *area; /* what others write to and read from */
static volatile int completed;
static lapi_cntr_t tgt_cntr;
static void **tgt_cntrs;

/* Sides of the same pieces, one spread and one shuffled; every seed has its own. */
static void sides(uint64_t seed, side *from, side *to) {
    static const uint counts[] = {1, 3, 20, 150, 700};
    static const ulong longest[] = {70000, 5000, 2000, 300, 60};
    int class = (int)t_below(&seed, 5);
    uint count = 1 + (uint)t_below(&seed, counts[class]), i;
    ulong *len = v_alloc(count * sizeof *len);
    for (i = 0; i < count; i++) len[i] = t_below(&seed, longest[class]);
    *from = v_pieces(LAPI_GEN_IOVECTOR, count, len, SPREAD, seed);
    *to = v_pieces(LAPI_GEN_IOVECTOR, count, len, SHUFFLED, seed + 1);
    CHECK(from->area <= SLOT && to->area <= SLOT);
    free(len);
}

static unsigned char *slot_of(void *base, int src, int number, int numbers) {
    return (unsigned char *)base + (size_t)(src * numbers + number) * SLOT;
}

/* Where a message goes: its vector is made here, and thrown away when the completion
 * handler runs. */
typedef struct {
    uint64_t seed;
    int src, number, numbers, reply;
} order;

typedef struct {
    order o;
    lapi_vec_t *vec;
    side from, to;
    unsigned char *at;
} landing;

static void landed(lapi_handle_t *hndl, void *info);

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    landing *l = v_alloc(sizeof *l);
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof l->o);
    memcpy(&l->o, uhdr, sizeof l->o);
    sides(l->o.seed, &l->from, &l->to);
    CHECK_EQ(*len_vec, l->to.bytes);
    l->at = slot_of(area, l->o.src, l->o.number, l->o.numbers);
    l->vec = v_vector(&l->to, l->at);
    *comp_h = landed;
    *uinfo = l;
    if (l->o.reply == 2) ((lapi_return_info_t *)len_vec)->ret_flags = LAPI_SEND_REPLY;
    return l->vec;
}

static void landed(lapi_handle_t *hndl, void *info) {
    landing *l = info;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(v_differs(&l->to, l->at, l->to.bytes, l->o.seed), -1);
    /* All data has arrived: LAPI does not need the vector any more. */
    v_spoil(l->vec);
    if (l->o.reply) {
        /* The same pieces back, from a copy, to other slots. Handlers do not wait, so copy and
         * vector are not freed. */
        order back = l->o;
        unsigned char *data = v_alloc(l->from.area);
        back.src = t_me;
        back.number += l->o.numbers / 2;
        back.reply = 0;
        v_fill(&l->from, data, l->o.seed);
        OK(LAPI_Amsendv(*hndl, (uint)l->o.src, handlers[l->o.src], &back, sizeof back, v_vector(&l->from, data),
                        tgt_cntrs[l->o.src], NULL, NULL));
    }
    v_free(&l->from);
    v_free(&l->to);
    free(l);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static uint64_t seed_of(int src, int tgt, int number) {
    return t_seed((uint64_t)src, (uint64_t)tgt, (uint64_t)number);
}

static void make_areas(int numbers) {
    area = v_alloc((size_t)(t_tasks * numbers) * SLOT);
    memset(area, POISON, (size_t)(t_tasks * numbers) * SLOT);
    areas = t_addresses(area);
    t_fence();
}

/* --- fence --- */

enum { OPS = 30 };

static void fence(void) {
    side from[OPS], to[OPS];
    lapi_vec_t *org[OPS], *tgt[OPS];
    order orders[OPS];
    unsigned char *out = v_alloc((size_t)OPS * SLOT), *got = v_alloc((size_t)OPS * SLOT), *library = v_alloc(SLOT);
    void **libraries = t_addresses(library);
    int round, i;
    t_fill(library, SLOT, 3);
    make_areas(OPS);
    for (round = 0; round < 15; round++) {
        int to_task = (t_me + round) % t_tasks, from_task = (t_me - round % t_tasks + t_tasks) % t_tasks;
        memset(area, POISON, (size_t)(t_tasks * OPS) * SLOT);
        memset(got, POISON, (size_t)OPS * SLOT);
        t_fence();
        for (i = 0; i < OPS; i++) {
            uint64_t seed = seed_of(t_me, to_task, round * OPS + i);
            sides(seed, &from[i], &to[i]);
            v_fill(&from[i], out + i * SLOT, seed);
            bzero(&orders[i], sizeof orders[i]);
            orders[i].seed = seed;
            orders[i].src = t_me;
            orders[i].number = i;
            orders[i].numbers = OPS;
            org[i] = i % 3 == 2 ? v_vector(&to[i], got + i * SLOT) : v_vector(&from[i], out + i * SLOT);
            tgt[i] = i % 3 == 2 ? v_vector(&from[i], libraries[to_task])
                                : v_vector(&to[i], slot_of(areas[to_task], t_me, i, OPS));
            if (i % 3 == 0) OK(LAPI_Putv(t_hndl, (uint)to_task, tgt[i], org[i], NULL, NULL, NULL));
            if (i % 3 == 1)
                OK(LAPI_Amsendv(t_hndl, (uint)to_task, handlers[to_task], &orders[i], sizeof orders[i], org[i], NULL,
                                NULL, NULL));
            if (i % 3 == 2) OK(LAPI_Getv(t_hndl, (uint)to_task, tgt[i], org[i], NULL, NULL));
        }
        OK(LAPI_Fence(t_hndl));
        for (i = 2; i < OPS; i += 3) {
            uint piece;
            for (piece = 0; piece < to[i].count; piece++)
                CHECK_EQ(memcmp(got + i * SLOT + to[i].at[piece], library + from[i].at[piece], to[i].len[piece]), 0);
        }
        memset(out, 0x11, (size_t)OPS * SLOT);
        t_fence();
        for (i = 0; i < OPS; i++) {
            side theirs[2];
            uint64_t seed = seed_of(from_task, t_me, round * OPS + i);
            if (i % 3 != 2) {
                sides(seed, &theirs[0], &theirs[1]);
                CHECK_EQ(v_differs(&theirs[1], slot_of(area, from_task, i, OPS), theirs[1].bytes, seed), -1);
                v_free(&theirs[0]), v_free(&theirs[1]);
            }
            v_spoil(org[i]), v_spoil(tgt[i]);
            v_free(&from[i]), v_free(&to[i]);
        }
        t_probe_until(&completed, (round + 1) * (OPS / 3));
        t_fence();
    }
}

/* --- copied --- */

enum { MANY = 3000, SMALL = 64 };

static volatile int small_arrived;
static unsigned char *small_area;

static lapi_vec_t *small(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                         void **uinfo) {
    static void *info[3];
    static lapi_vec_t vec = {LAPI_GEN_STRIDED_XFER, 8, info, NULL};
    int number = *(int *)uhdr;
    (void)hndl, (void)uhdr_len, (void)uinfo;
    CHECK_EQ(*len_vec, SMALL);
    info[0] = small_area + (MANY + number) * SMALL;
    info[1] = info[2] = (void *)8;
    *comp_h = NULL;
    small_arrived++;
    return &vec;
}

static void copied(void) {
    int i, limit = t_query(BUF_CP_SIZE), tgt = (t_me + 1) % t_tasks, src = (t_me - 1 + t_tasks) % t_tasks;
    void **smalls = t_addresses((void *)small), **at;
    lapi_cntr_t org_cntr, cmpl_cntr;
    CHECK_FOR(limit >= SMALL + (int)sizeof(int), "BUF_CP_SIZE is %d", limit);
    bzero(&org_cntr, sizeof org_cntr);
    bzero(&cmpl_cntr, sizeof cmpl_cntr);
    small_area = v_alloc(2 * MANY * SMALL);
    at = t_addresses(small_area);
    t_fence();
    for (i = 0; i < 2 * MANY; i++) {
        unsigned char data[2 * SMALL];
        void *org_info[3] = {data, (void *)8, (void *)16},
             *tgt_info[3] = {(char *)at[tgt] + (i / 2) * SMALL, (void *)8, (void *)8};
        lapi_vec_t org = {LAPI_GEN_STRIDED_XFER, SMALL / 8, org_info, NULL}, to = org;
        int number = i / 2, word;
        to.info = tgt_info;
        for (word = 0; word < SMALL / 8; word++) {
            uint64_t value = t_seed((uint64_t)t_me, (uint64_t)i, (uint64_t)word);
            memcpy(data + 16 * word, &value, 8);
        }
        if (i % 2)
            OK(LAPI_Amsendv(t_hndl, (uint)tgt, smalls[tgt], &number, sizeof number, &org, NULL, &org_cntr, &cmpl_cntr));
        else
            OK(LAPI_Putv(t_hndl, (uint)tgt, &to, &org, NULL, &org_cntr, &cmpl_cntr));
        CHECK_FOR(org_cntr.cntr == 1, "%s %d of %d bytes is not copied at once", i % 2 ? "message" : "put", number, SMALL);
        OK(LAPI_Setcntr(t_hndl, &org_cntr, 0));
        memset(data, 0x11, sizeof data);
        memset(org_info, 0x99, sizeof org_info);
        memset(tgt_info, 0x99, sizeof tgt_info);
        number = -1;
    }
    t_wait_exact(&cmpl_cntr, 2 * MANY);
    t_fence();
    CHECK_EQ(small_arrived, MANY);
    for (i = 0; i < 2 * MANY; i++) {
        int word;
        for (word = 0; word < SMALL / 8; word++) {
            uint64_t value = t_seed((uint64_t)src, (uint64_t)i, (uint64_t)word);
            CHECK_EQ(memcmp(small_area + ((i % 2) * MANY + i / 2) * SMALL + 8 * word, &value, 8), 0);
        }
    }
}

/* --- passive --- */

static void passive(void) {
    lapi_cntr_t cmpl;
    int i;
    bzero(&cmpl, sizeof cmpl);
    make_areas(1);
    for (i = 0; i < 20; i++) {
        int turn = i % t_tasks, task;
        completed = 0;
        t_fence();
        if (t_me == turn) {
            for (task = 0; task < t_tasks; task++) {
                side from, to;
                order o = {seed_of(t_me, task, i), t_me, 0, 1, 0};
                lapi_vec_t *org;
                unsigned char *out = v_alloc(SLOT);
                sides(o.seed, &from, &to);
                v_fill(&from, out, o.seed);
                org = v_vector(&from, out);
                OK(LAPI_Amsendv(t_hndl, (uint)task, handlers[task], &o, sizeof o, org, NULL, NULL, &cmpl));
                t_wait_exact(&cmpl, 1);
                v_spoil(org);
                v_free(&from), v_free(&to);
                free(out);
            }
        } else {
            while (!__atomic_load_n(&completed, __ATOMIC_ACQUIRE)) usleep(50);
        }
        t_fence();
        CHECK_EQ(completed, 1);
    }
}

/* --- replies --- */

enum { ASKED = 60 };

static void replies(void) {
    lapi_vec_t *org[ASKED];
    order orders[ASKED];
    side from[ASKED], to[ASKED];
    unsigned char *out = v_alloc((size_t)ASKED * SLOT);
    lapi_cntr_t cmpl;
    int i, tgt = (t_me + 1) % t_tasks;
    bzero(&cmpl, sizeof cmpl);
    /* Requests arrive in the slots of a task, replies in others. */
    make_areas(2 * ASKED);
    for (i = 0; i < ASKED; i++) {
        bzero(&orders[i], sizeof orders[i]);
        orders[i].seed = seed_of(t_me, tgt, i);
        orders[i].src = t_me;
        orders[i].number = i;
        orders[i].numbers = 2 * ASKED;
        orders[i].reply = 1 + i % 2;
        sides(orders[i].seed, &from[i], &to[i]);
        v_fill(&from[i], out + i * SLOT, orders[i].seed);
        org[i] = v_vector(&from[i], out + i * SLOT);
        OK(LAPI_Amsendv(t_hndl, (uint)tgt, handlers[tgt], &orders[i], sizeof orders[i], org[i], NULL, NULL, &cmpl));
    }
    t_wait_exact(&cmpl, ASKED);
    t_wait_exact(&tgt_cntr, ASKED);
    t_probe_until(&completed, 2 * ASKED);
    for (i = 0; i < ASKED; i++) v_spoil(org[i]), v_free(&from[i]), v_free(&to[i]);
    t_fence();
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 40 };

static void *work(void *arg) {
    int thread = (int)(intptr_t)arg, round;
    unsigned char *out = v_alloc(SLOT), *got = v_alloc(SLOT);
    lapi_cntr_t cmpl;
    bzero(&cmpl, sizeof cmpl);
    for (round = 0; round < ROUNDS; round++) {
        int task = (t_me + round) % t_tasks;
        unsigned char *there = slot_of(areas[task], t_me, thread, THREADS);
        order o = {seed_of(t_me * THREADS + thread, task, round), t_me, thread, THREADS, 0};
        side from, to;
        lapi_vec_t *org, *tgt;
        sides(o.seed, &from, &to);
        v_poison(&from, out);
        v_fill(&from, out, o.seed);
        v_poison(&from, got);
        org = v_vector(&from, out);
        tgt = v_vector(&to, there);
        if (round % 2)
            OK(LAPI_Putv(t_hndl, (uint)task, tgt, org, NULL, NULL, &cmpl));
        else
            OK(LAPI_Amsendv(t_hndl, (uint)task, handlers[task], &o, sizeof o, org, NULL, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        v_spoil(org);
        org = v_vector(&from, got);
        OK(LAPI_Getv(t_hndl, (uint)task, tgt, org, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        V_CHECK(&from, got, from.bytes, o.seed);
        v_spoil(org), v_spoil(tgt);
        v_free(&from), v_free(&to);
    }
    free(out);
    free(got);
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    intptr_t i;
    make_areas(THREADS);
    for (i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&ids[i], NULL, work, (void *)i), 0);
    for (i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(ids[i], NULL), 0);
    t_fence();
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    handlers = t_addresses((void *)arriving);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "fence") == 0) fence();
    else if (strcmp(which, "copied") == 0) copied();
    else if (strcmp(which, "passive") == 0) passive();
    else if (strcmp(which, "replies") == 0) replies();
    else if (strcmp(which, "threads") == 0) threads();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

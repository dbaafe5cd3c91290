/* What the threads of a task do to others: every operation, looked at where it ends. */
#include "../dgsp/program.h"
#include "operations.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static uint64_t turn;
static int allowed, idle;
static lapi_util_t shared;
lapi_dg_handle_t scattering;
account_t sent[MOST];

static void has_come(lapi_handle_t *hndl, void *param) {
    worker_t *w = &workers[(uintptr_t)param % WORKERS];
    CHECK_EQ(*hndl, t_hndl);
    w->handled = (uintptr_t)param / WORKERS;
}
static void *come_param(const worker_t *w) { return (void *)(uintptr_t)(w->operations * WORKERS + (uint64_t)w->number); }

/* ---- the parts of operations ---- */

static size_t length(uint64_t *random, size_t most) {
    uint64_t class = t_below(random, 100);
    if (class < 40) return t_below(random, 100);
    if (class < 70) return t_below(random, 1500);
    if (class < 90) return t_below(random, 20000);
    return t_below(random, most) + 1;
}

note_t note_of(worker_t *w, int flavour, size_t len, uint64_t seed, int interest) {
    note_t note = {era, soak_round, life[t_me], ++w->operations, seed, len, t_me, w->number, flavour, interest};
    return note;
}

/* An active message in one of its forms; 0 when the target is lost. It is complete when
 * this returns. */
static int message(worker_t *w, int tgt, int flavour, size_t len, uint64_t seed, int interest) {
    note_t note = note_of(w, flavour, len, seed, interest);
    int form = (int)t_below(&w->random, 3);
    lapi_xfer_t xfer;
    prepare(w, tgt, 1);
    t_fill(w->out, len, seed);
    if (form == 0) {
        if (!WENT(LAPI_Amsend(t_hndl, (uint)tgt, (void *)arrived, &note, sizeof note, w->out, len, ARRIVAL, &w->org,
                              &w->cntr), tgt))
            return 0;
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Am.Xfer_type = LAPI_AM_XFER;
        xfer.Am.flags = form == 1 ? 0 : LAPI_USE_BULK_XFER;
        xfer.Am.tgt = (uint)tgt;
        xfer.Am.hdr_hdl = t_long((void *)arrived);
        xfer.Am.uhdr = &note;
        xfer.Am.uhdr_len = sizeof note;
        xfer.Am.udata = w->out;
        xfer.Am.udata_len = len;
        xfer.Am.shdlr = sending_is_over;
        xfer.Am.sinfo = w;
        xfer.Am.tgt_cntr = t_long(ARRIVAL);
        xfer.Am.org_cntr = &w->org;
        xfer.Am.cmpl_cntr = &w->cntr;
        if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) return 0;
        w->accepted++;
        work_done(XFER, 0);
    }
    form = settle(w, tgt, 1);
    origin_settles(w, tgt, 1);
    if (!form) return 0;
    sent[tgt].counters++;
    sent[tgt].messages++;
    if (flavour == INLINE) replies_due[tgt]++;
    work_done(AM, len);
    return 1;
}

/* Fetches the data that was put, or lets the target check it. */
static int look_back(worker_t *w, int tgt, size_t len, uint64_t seed) {
    lapi_xfer_t xfer;
    if (t_below(&w->random, 2)) return message(w, tgt, LOOK, 0, seed, (int)len);
    prepare(w, tgt, 1);
    memset(w->home, 0xee, len);
    if (t_below(&w->random, 2)) {
        if (!WENT(LAPI_Get(t_hndl, (uint)tgt, len, places[t_me][w->number].put, w->home, ARRIVAL, &w->cntr), tgt))
            return 0;
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Get.Xfer_type = LAPI_GET_XFER;
        xfer.Get.tgt = (uint)tgt;
        xfer.Get.tgt_addr = t_long(places[t_me][w->number].put);
        xfer.Get.org_addr = w->home;
        xfer.Get.len = len;
        xfer.Get.tgt_cntr = t_long(ARRIVAL);
        xfer.Get.org_cntr = &w->cntr;
        xfer.Get.chndlr = has_come;
        w->operations++;
        xfer.Get.cinfo = come_param(w);
        if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) return 0;
        if (!AWAIT(w, w->handled == w->operations, tgt)) return 0;
        work_done(XFER, 0);
    }
    if (!settle(w, tgt, 1)) return 0;
    CHECK_FILLED(w->home, len, seed);
    sent[tgt].counters++;
    work_done(GET, len);
    return 1;
}

/* ---- the operations: each returns 0 when its target is lost ---- */

static int do_put(worker_t *w, int tgt) {
    size_t len = length(&w->random, LARGE - 1);
    uint64_t seed = t_random(&w->random);
    lapi_xfer_t xfer;
    int came;
    t_fill(w->out, len, seed);
    prepare(w, tgt, 1);
    if (t_below(&w->random, 2)) {
        if (!WENT(LAPI_Put(t_hndl, (uint)tgt, len, places[t_me][w->number].put, w->out, ARRIVAL, &w->org, &w->cntr), tgt))
            return 0;
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Put.Xfer_type = LAPI_PUT_XFER;
        xfer.Put.flags = t_below(&w->random, 2) ? LAPI_NOT_USE_BULK_XFER : LAPI_NO_LOCAL_COPY;
        xfer.Put.tgt = (uint)tgt;
        xfer.Put.tgt_addr = t_long(places[t_me][w->number].put);
        xfer.Put.org_addr = w->out;
        xfer.Put.len = len;
        xfer.Put.shdlr = sending_is_over;
        xfer.Put.sinfo = w;
        xfer.Put.tgt_cntr = t_long(ARRIVAL);
        xfer.Put.org_cntr = &w->org;
        xfer.Put.cmpl_cntr = &w->cntr;
        if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) return 0;
        w->accepted++;
        work_done(XFER, 0);
    }
    came = settle(w, tgt, 1);
    origin_settles(w, tgt, 1);
    if (!came) return 0;
    sent[tgt].counters++;
    work_done(PUT, len);
    return look_back(w, tgt, len, seed);
}

static int do_burst(worker_t *w, int tgt) {
    uint64_t seed = t_random(&w->random);
    int i;
    prepare(w, tgt, BURST);
    for (i = 0; i < BURST; i++) {
        unsigned char *from = w->out + i * 256;
        t_fill(from, 256, t_seed(seed, (uint64_t)i, 0));
        if (!WENT(LAPI_Put(t_hndl, (uint)tgt, 256, places[t_me][w->number].burst[i], from, ARRIVAL, &w->org, &w->cntr),
                  tgt))
            return 0;
    }
    if (!settle(w, tgt, BURST)) return 0;
    origin_settles(w, tgt, BURST);
    sent[tgt].counters += BURST;
    work_done(BURST_OF, BURST * 256);
    return message(w, tgt, LOOK_BURST, 0, seed, BURST);
}

static int do_message(worker_t *w, int tgt) {
    int flavour = (int)t_below(&w->random, SCATTERED + 1);
    if (flavour == LOOK || flavour == LOOK_BURST) flavour = PLACED;
    return message(w, tgt, flavour, length(&w->random, flavour == SCATTERED ? 80000 : LARGE - 1), t_random(&w->random), 0);
}

static int do_light(worker_t *w, int tgt) {
    size_t len = t_below(&w->random, 80);
    light_t light = {(uint32_t)era, (uint32_t)life[t_me], t_me, w->number, t_random(&w->random), (uint32_t)len,
                     (uint32_t)soak_round};
    lapi_xfer_t xfer;
    memset(&xfer, 0x99, sizeof xfer); /* as old programs leave it */
    xfer.Am.Xfer_type = LAPI_AM_LW_XFER;
    xfer.Am.flags = 0;
    xfer.Am.tgt = (uint)tgt;
    xfer.Am.hdr_hdl = LIGHT_INDEX;
    xfer.Am.uhdr = &light;
    xfer.Am.uhdr_len = sizeof light;
    xfer.Am.udata = w->out;
    xfer.Am.udata_len = len;
    t_fill(w->out, len, light.seed);
    if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) return 0;
    memset(w->out, 0x77, len);
    memset(&light, 0x77, sizeof light);
    sent[tgt].light++;
    work_done(AM_LW, len);
    return 1;
}

static int rmw(worker_t *w, int tgt, RMW_ops_t op, int32_t *in, int32_t *prev) {
    prepare(w, tgt, 1);
    if (!WENT(LAPI_Rmw(t_hndl, op, (uint)tgt, &places[t_me][w->number].word, in, prev, &w->cntr), tgt)) return 0;
    if (!settle(w, tgt, 1)) return 0;
    work_done(RMW, 4);
    return 1;
}

/* Each thread has a word of its own at each task, whose value it tracks. All add to one sum. */
static int do_rmw(worker_t *w, int tgt) {
    int32_t in[2] = {(int32_t)t_random(&w->random), 0}, prev = 0, had;
    long long add = (long long)t_below(&w->random, 1000), wide_prev = -1;
    lapi_xfer_t xfer;
    if (!rmw(w, tgt, SWAP, in, &prev)) return 0;
    if (w->word_life[tgt] == life[tgt] + 1) CHECK_EQ(prev, w->word[tgt]);
    w->word[tgt] = had = in[0];
    w->word_life[tgt] = life[tgt] + 1;
    in[0] = (int32_t)t_random(&w->random);
    if (!rmw(w, tgt, FETCH_AND_OR, in, &prev)) return 0;
    CHECK_EQ(prev, had);
    had |= in[0];
    w->word[tgt] = had;
    in[0] = t_below(&w->random, 4) ? had : ~had;
    in[1] = (int32_t)t_random(&w->random);
    if (!rmw(w, tgt, COMPARE_AND_SWAP, in, &prev)) return 0;
    CHECK_EQ(prev, in[0] == had);
    if (prev) w->word[tgt] = in[1];
    prepare(w, tgt, 1);
    if (t_below(&w->random, 2)) {
        if (!WENT(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)tgt, &sums[t_me][era % ERAS], &add, &wide_prev, &w->cntr), tgt))
            return 0;
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
        xfer.Rmw.op = FETCH_AND_ADD;
        xfer.Rmw.tgt = (uint)tgt;
        xfer.Rmw.size = 64;
        xfer.Rmw.tgt_var = t_long(&sums[t_me][era % ERAS]);
        xfer.Rmw.in_val = &add;
        xfer.Rmw.prev_tgt_val = &wide_prev;
        xfer.Rmw.org_cntr = &w->cntr;
        xfer.Rmw.shdlr = sending_is_over;
        xfer.Rmw.sinfo = w;
        if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) return 0;
        w->accepted++;
    }
    if (settle(w, tgt, 1)) {
        CHECK(wide_prev >= 0);
        sent[tgt].added += (uint64_t)add;
        work_done(RMW64, 8);
    } else {
        while (w->reported < w->accepted) look_around(w);
        return 0;
    }
    while (w->reported < w->accepted) look_around(w);
    return 1;
}

/* What needs no target. */
static void do_alone(worker_t *w) {
    int value = -1, was = -1;
    lapi_statistics_t statistics;
    char text[LAPI_MAX_ERR_STRING];
    switch (t_below(&w->random, 4)) {
    case 0:
        OK(LAPI_Fence(t_hndl));
        work_done(FENCE, 0);
        return;
    case 1:
        if (w->number != 1) break;
        OK(LAPI_Qenv(t_hndl, INTERRUPT_SET, &was));
        OK(LAPI_Senv(t_hndl, INTERRUPT_SET, !was));
        OK(LAPI_Qenv(t_hndl, INTERRUPT_SET, &value));
        CHECK_EQ(value, !was);
        work_done(TOGGLE, 0);
        return;
    default: break;
    }
    CHECK_EQ(t_query(TASK_ID), t_me);
    CHECK_EQ(t_query(NUM_TASKS), t_tasks);
    OK(LAPI_Qenv(t_hndl, QUERY_SHM_STATISTICS, (int *)&statistics));
    OK(LAPI_Msg_string(LAPI_ERR_TGT_PURGED, text));
    work_done(ASK, 0);
}

static int attempt(worker_t *w, int tgt) {
    switch (t_below(&w->random, 16)) {
    case 0: case 1: case 2: return do_put(w, tgt);
    case 3: return do_burst(w, tgt);
    case 4: case 5: case 6: return do_message(w, tgt);
    case 7: case 8: return do_light(w, tgt);
    case 9: return do_vectors(w, tgt);
    case 10: return do_vector_message(w, tgt);
    case 11: return do_layout(w, tgt);
    case 12: case 13: return do_rmw(w, tgt);
    default: do_alone(w); return 1;
    }
}

static void do_one(worker_t *w, int tgt) {
    if (attempt(w, tgt)) return;
    /* Until the purge, operations under way may still increment our counters. */
    while (!lost[tgt]) look_around(w);
    work_done(LOST, 0);
}

/* The same with the lock of the handle held all the while. */
static void do_locked(worker_t *w, int tgt) {
    lapi_thread_func_t *lock = &shared.ThreadFunc;
    pthread_t owner;
    CHECK_EQ(lock->mutex_lock(t_hndl), 0);
    CHECK_EQ(lock->mutex_trylock(t_hndl), EBUSY);
    CHECK_EQ(lock->mutex_lock(t_hndl), EDEADLK);
    CHECK_EQ(lock->mutex_getowner(t_hndl, &owner), 0);
    CHECK(pthread_equal(owner, pthread_self()));
    w->locked = 1;
    do_one(w, tgt);
    if (t_below(&w->random, 8) == 0) {
        static lapi_cond_t never;
        struct timespec at;
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += 2000000;
        if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
        CHECK_EQ(lock->cond_timedwait(t_hndl, &never, &at), ETIMEDOUT);
    }
    w->locked = 0;
    CHECK_EQ(lock->mutex_unlock(t_hndl), 0);
    work_done(LOCKED, 0);
}

static void *work(void *arg) {
    worker_t *w = arg;
    uint64_t mine = 0;
    int i, count;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (turn == mine) pthread_cond_wait(&begun, &mutex);
        mine = turn;
        count = allowed;
        pthread_mutex_unlock(&mutex);
        for (i = 0; i < count && !giving_up; i++) {
            int tgt = (int)t_below(&w->random, (uint64_t)t_tasks);
            if (w->number == 0 && t_below(&w->random, 3) == 0) do_locked(w, tgt);
            else do_one(w, tgt);
        }
        /* No operation with a lost task is under way any more. */
        CHECK_EQ(w->reported, w->accepted);
        pthread_mutex_lock(&mutex);
        idle++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

void workers_start(int count) {
    pthread_mutex_lock(&mutex);
    turn++;
    allowed = count;
    idle = 0;
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&mutex);
}

int workers_idle(void) {
    int all;
    pthread_mutex_lock(&mutex);
    all = idle == WORKERS;
    pthread_mutex_unlock(&mutex);
    return all;
}

void workers_init(uint64_t seed) {
    int i;
    program *p = p_new();
    p_copy(p, 0, PIECE, 0);
    p->depth = p_depth(p, 0);
    p_write(p, APART, 1);
    scattering = p_register(p);
    free(p);
    bzero(&shared, sizeof shared);
    shared.ThreadFunc.Util_type = LAPI_GET_THREAD_FUNC;
    OK(LAPI_Util(t_hndl, &shared));
    for (i = 0; i < WORKERS; i++) {
        worker_t *w = &workers[i];
        w->number = i;
        w->waits_for = -1;
        w->random = t_seed(seed, (uint64_t)t_me * MOST + (uint64_t)i, life[t_me]);
        pthread_mutex_init(&w->mutex, NULL);
        CHECK_EQ(pthread_create(&w->tid, NULL, work, w), 0);
    }
}

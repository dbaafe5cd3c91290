/*
 * Many threads on one handle and on several: threads HANDLES THREADS ROUNDS
 *
 * On each handle this number of threads does every kind of operation at the same time, with
 * interrupts on, and checks that the data has arrived: they fetch back what they have put, and
 * completion handlers check what was sent. In addition to them one thread polls and changes the
 * mode, and two play ball with counters that no message changes. At the end every handler has run
 * once for each message, and every counter has its expected value.
 */
#include "../dgsp/program.h"

enum { PART = 6000, PARTS = 4, SLOT = PARTS * PART, LIBRARY = 8192, MOST_HANDLES = 4, BLOCKS = 8 };
enum { PUT, PUTV, SENT, SPREAD };

/* A handle, and what belongs to it. */
typedef struct {
    lapi_handle_t hndl;
    int number;
    unsigned char *in; /* slot (src * threads + thread), in it a part for each kind of operation */
    unsigned char library[LIBRARY];
    void **ins, **libraries, **totals, **arriveds, **tgt_cntrs;
    long long total;
    lapi_cntr_t tgt_cntr, ping, pong;
    int handled, over;
} handle;

typedef struct {
    handle *on;
    int thread;
    pthread_t tid;
} worker;

typedef struct {
    uint64_t seed, len;
    unsigned char *to;
    int handle, src;
} header;

static handle handles[MOST_HANDLES];
static int threads, rounds;

static void wait_exact(lapi_handle_t hndl, lapi_cntr_t *cntr, int val) {
    int left = -1;
    OK(LAPI_Waitcntr(hndl, cntr, val, &left));
    CHECK_EQ(left, 0);
}

static uint64_t library_seed(const handle *h, int task) { return t_seed(7, (uint64_t)h->number, (uint64_t)task); }

static void completed(lapi_handle_t *hndl, void *info) {
    header *head = info;
    handle *h = &handles[head->handle];
    CHECK_EQ(*hndl, h->hndl);
    CHECK_FOR(t_differs(head->to, head->len, head->seed) < 0, "%lu bytes from task %d are not what was sent",
              (ulong)head->len, head->src);
    __atomic_fetch_add(&h->handled, 1, __ATOMIC_RELEASE);
    free(head);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    header *copy = malloc(sizeof *copy);
    CHECK(copy != NULL);
    CHECK_EQ(*uhdr_len, sizeof *copy);
    memcpy(copy, uhdr, sizeof *copy);
    CHECK_EQ(*hndl, handles[copy->handle].hndl);
    CHECK_EQ(((lapi_return_info_t *)msg_len)->msg_len, copy->len);
    *comp_h = completed;
    *uinfo = copy;
    return copy->to;
}

/* Blocks of `block` bytes, as far apart again. */
static lapi_vec_t strided(void **info, void *base, ulong block) {
    lapi_vec_t vec;
    bzero(&vec, sizeof vec);
    vec.vec_type = LAPI_GEN_STRIDED_XFER;
    vec.num_vecs = BLOCKS;
    vec.info = info;
    info[0] = base;
    info[1] = (void *)block;
    info[2] = (void *)(2 * block);
    return vec;
}

/* A program that takes two of three thirds. */
static program *two_of_three(long third) {
    program *p = p_new();
    p_copy(p, 0, third, 0);
    p_copy(p, 0, third, 2 * third);
    p->depth = p_depth(p, 0);
    p_write(p, 3 * third, 1);
    p->descr.density = LAPI_DGSM_SPARSE;
    return p;
}

static int target(int src, int thread, int round) { return (src + thread + round) % t_tasks; }

/* One round: all operations at once with one task, and then a check of all data. */
static void go_round(worker *w, int round, unsigned char *out, unsigned char *home, unsigned char *back) {
    handle *h = w->on;
    uint64_t seed = t_seed((uint64_t)h->number * 64 + (uint64_t)w->thread, (uint64_t)t_me, (uint64_t)round);
    uint64_t random = seed;
    uint tgt = (uint)target(t_me, w->thread, round), i;
    unsigned char *slot = (unsigned char *)h->ins[tgt] + (size_t)(t_me * threads + w->thread) * SLOT;
    ulong len = 1 + t_below(&random, PART), block = 1 + t_below(&random, PART / (2 * BLOCKS));
    ulong from = 8 * t_below(&random, (LIBRARY - PART) / 8), third = 8 * (1 + t_below(&random, PART / 24));
    void *org_info[3], *tgt_info[3];
    lapi_vec_t org_vec, tgt_vec;
    lapi_cntr_t org, cmpl, put_back;
    lapi_xfer_t xfer;
    lapi_util_t util;
    header head;
    long long one = 1, before = -1;
    int value, orgs = 0, cmpls = 0;
    program *p = two_of_three((long)third);
    lapi_dg_handle_t layout = p_register(p);
    bzero(&org, sizeof org);
    bzero(&cmpl, sizeof cmpl);
    bzero(&put_back, sizeof put_back);
    for (i = 0; i < PARTS; i++) t_fill(out + i * PART, PART, seed + i * 1000);

    OK(LAPI_Put(h->hndl, tgt, len, slot + PUT * PART, out + PUT * PART, h->tgt_cntrs[tgt], &org, &cmpl));
    orgs++, cmpls++;
    org_vec = strided(org_info, out + PUTV * PART, block);
    tgt_vec = strided(tgt_info, slot + PUTV * PART, block);
    OK(LAPI_Putv(h->hndl, tgt, &tgt_vec, &org_vec, h->tgt_cntrs[tgt], &org, &cmpl));
    orgs++, cmpls++;
    head.handle = h->number;
    head.src = t_me;
    head.len = len;
    head.seed = seed + SENT * 1000;
    head.to = slot + SENT * PART;
    OK(LAPI_Amsend(h->hndl, tgt, h->arriveds[tgt], &head, sizeof head, out + SENT * PART, len, h->tgt_cntrs[tgt], &org,
                   &cmpl));
    orgs++, cmpls++;

    OK(LAPI_Get(h->hndl, tgt, PART, (unsigned char *)h->libraries[tgt] + from, home, h->tgt_cntrs[tgt], &org));
    orgs++;
    OK(LAPI_Rmw64(h->hndl, FETCH_AND_ADD, tgt, h->totals[tgt], &one, &before, &org));
    orgs++;
    OK(LAPI_Getcntr(h->hndl, &org, &value));
    CHECK(value >= 0 && value <= orgs);
    wait_exact(h->hndl, &org, orgs);
    CHECK(before >= 0 && before < (long long)t_tasks * threads * rounds);
    CHECK_FOR(t_differs(home, PART, library_seed(h, (int)tgt) + from / 8) < 0, "a get from task %u is wrong", tgt);

    /* The part that the program describes: two thirds, as one message. */
    for (i = 0; i < 2; i++) t_fill(back + i * third, third, t_seed(seed, SPREAD, 0) + i * third / 8);
    memcpy(out + SPREAD * PART, back, third);
    memcpy(out + SPREAD * PART + 2 * third, back + third, third);
    head.len = 2 * third;
    head.seed = t_seed(seed, SPREAD, 0);
    head.to = slot + SPREAD * PART;
    bzero(&xfer, sizeof xfer);
    xfer.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    xfer.Dgsp.tgt = tgt;
    xfer.Dgsp.hdr_hdl = t_long(h->arriveds[tgt]);
    xfer.Dgsp.uhdr = &head;
    xfer.Dgsp.uhdr_len = sizeof head;
    xfer.Dgsp.udata = out + SPREAD * PART;
    xfer.Dgsp.udata_len = 2 * third;
    xfer.Dgsp.dgsp = layout;
    xfer.Dgsp.tgt_cntr = t_long(h->tgt_cntrs[tgt]);
    xfer.Dgsp.org_cntr = &org;
    xfer.Dgsp.cmpl_cntr = &cmpl;
    OK(LAPI_Xfer(h->hndl, &xfer));
    cmpls++;
    wait_exact(h->hndl, &org, 1);
    bzero(&util, sizeof util);
    util.DrefDgsp.Util_type = LAPI_UNRESERVE_DGSP;
    util.DrefDgsp.dgsp_handle = layout;
    OK(LAPI_Util(h->hndl, &util));
    free(p);

    /* Complete at the target, so it can be fetched back. Now and then a fence says so instead of
     * the counter. */
    if (round % 8 == 0) OK(LAPI_Fence(h->hndl));
    wait_exact(h->hndl, &cmpl, cmpls);
    memset(back, 0xee, 2 * PART);
    OK(LAPI_Get(h->hndl, tgt, len, slot + PUT * PART, back, NULL, &put_back));
    org_vec = strided(org_info, back + PART, block);
    OK(LAPI_Getv(h->hndl, tgt, &tgt_vec, &org_vec, NULL, &put_back));
    wait_exact(h->hndl, &put_back, 2);
    CHECK_FOR(memcmp(back, out + PUT * PART, len) == 0, "%lu bytes put are not at task %u", len, tgt);
    for (i = 0; i < BLOCKS; i++) {
        ulong at = 2 * i * block;
        CHECK_FOR(memcmp(back + PART + at, out + PUTV * PART + at, block) == 0, "block %u put is not at task %u", i, tgt);
        CHECK(i == BLOCKS - 1 || back[PART + at + block] == 0xee);
    }
}

static void *work(void *arg) {
    worker *w = arg;
    unsigned char *out = malloc(PARTS * PART), *home = malloc(PART), *back = malloc(2 * PART);
    int round;
    CHECK(out != NULL && home != NULL && back != NULL);
    for (round = 0; round < rounds; round++) go_round(w, round, out, home, back);
    free(out);
    free(home);
    free(back);
    return NULL;
}

/* Polls in every way, and changes the mode while others are in calls. */
static void *poll_and_toggle(void *arg) {
    handle *h = arg;
    int turn, on = 1, value;
    for (turn = 1; !__atomic_load_n(&h->over, __ATOMIC_ACQUIRE); turn++) {
        lapi_msg_info_t info;
        OK(LAPI_Probe(h->hndl));
        OK(LAPI_Msgpoll(h->hndl, 3, &info));
        OK(LAPI_Qenv(h->hndl, INTERRUPT_SET, &value));
        CHECK_EQ(value, on);
        if (turn % 16 == 0) OK(LAPI_Senv(h->hndl, INTERRUPT_SET, on = !on));
        usleep(200);
    }
    OK(LAPI_Senv(h->hndl, INTERRUPT_SET, 1));
    return NULL;
}

/* Counters that only LAPI_Setcntr changes: the call wakes threads that wait for one. */
static void *serve(void *arg) {
    handle *h = arg;
    int i;
    for (i = 0; i < rounds; i++) {
        OK(LAPI_Setcntr(h->hndl, &h->ping, 1));
        wait_exact(h->hndl, &h->pong, 1);
    }
    return NULL;
}

static void *give_back(void *arg) {
    handle *h = arg;
    int i;
    for (i = 0; i < rounds; i++) {
        wait_exact(h->hndl, &h->ping, 1);
        if (i % 4 == 0) usleep(500); /* the other side falls asleep */
        OK(LAPI_Setcntr(h->hndl, &h->pong, 1));
    }
    return NULL;
}

static void **addresses(const handle *h, void *mine) {
    void **table = malloc(sizeof *table * (size_t)t_tasks);
    CHECK(table != NULL);
    OK(LAPI_Address_init(h->hndl, mine, table));
    return table;
}

static void open_handle(handle *h, int number) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.num_compl_hndlr_thr = 2;
    if (number == 0) {
        t_init_with(&info);
        h->hndl = t_hndl;
    } else {
        OK(LAPI_Init(&h->hndl, &info));
    }
    h->number = number;
    h->in = malloc((size_t)(t_tasks * threads) * SLOT);
    CHECK(h->in != NULL);
    t_fill(h->library, LIBRARY, library_seed(h, t_me));
    h->ins = addresses(h, h->in);
    h->libraries = addresses(h, h->library);
    h->totals = addresses(h, &h->total);
    h->arriveds = addresses(h, (void *)arrived);
    h->tgt_cntrs = addresses(h, &h->tgt_cntr);
}

/* Everything has arrived, once. */
static void look_back(handle *h) {
    int src, thread, round, mine = 0, value;
    for (src = 0; src < t_tasks; src++)
        for (thread = 0; thread < threads; thread++)
            for (round = 0; round < rounds; round++) mine += target(src, thread, round) == t_me;
    OK(LAPI_Gfence(h->hndl));
    CHECK_EQ(__atomic_load_n(&h->handled, __ATOMIC_ACQUIRE), 2 * mine);
    CHECK_EQ(__atomic_load_n(&h->total, __ATOMIC_ACQUIRE), mine);
    wait_exact(h->hndl, &h->tgt_cntr, 5 * mine);
    OK(LAPI_Getcntr(h->hndl, &h->tgt_cntr, &value));
    CHECK_EQ(value, 0);
    /* No task leaves while others still check. */
    OK(LAPI_Gfence(h->hndl));
}

int main(int argc, char **argv) {
    worker *workers;
    pthread_t helpers[MOST_HANDLES][3];
    int count, i, t;
    CHECK(argc == 4);
    count = atoi(argv[1]);
    threads = atoi(argv[2]);
    rounds = atoi(argv[3]);
    CHECK(count >= 1 && count <= MOST_HANDLES && threads >= 1);
    for (i = 0; i < count; i++) open_handle(&handles[i], i);
    workers = calloc((size_t)(count * threads), sizeof *workers);
    CHECK(workers != NULL);
    for (i = 0; i < count; i++) {
        void *(*const help[])(void *) = {poll_and_toggle, serve, give_back};
        for (t = 0; t < 3; t++) CHECK_EQ(pthread_create(&helpers[i][t], NULL, help[t], &handles[i]), 0);
        for (t = 0; t < threads; t++) {
            worker *w = &workers[i * threads + t];
            w->on = &handles[i];
            w->thread = t;
            CHECK_EQ(pthread_create(&w->tid, NULL, work, w), 0);
        }
    }
    for (i = 0; i < count * threads; i++) CHECK_EQ(pthread_join(workers[i].tid, NULL), 0);
    for (i = 0; i < count; i++) {
        __atomic_store_n(&handles[i].over, 1, __ATOMIC_RELEASE);
        for (t = 0; t < 3; t++) CHECK_EQ(pthread_join(helpers[i][t], NULL), 0);
    }
    for (i = 0; i < count; i++) look_back(&handles[i]);
    for (i = count - 1; i > 0; i--) OK(LAPI_Term(handles[i].hndl));
    t_done();
    free(workers);
    return 0;
}

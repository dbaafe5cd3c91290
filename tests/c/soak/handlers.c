/* What messages do where they arrive. */
#include "operations.h"

account_t seen[MOST][ERAS];
_Atomic uint64_t replies[MOST][ERAS], replies_due[MOST];
lapi_cntr_t arrivals[MOST][ERAS];
long long sums[MOST][ERAS];
place_t places[MOST][WORKERS];
unsigned char library[LARGE];
claim_t claims[MOST];

/* A message that a completion handler checks. */
typedef struct pending {
    note_t note;
    struct pending *next, **link;
    unsigned char *own;
    side at;
    lapi_vec_t *vec;
} pending_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pending_t *pending[MOST], *doomed[MOST];
static atomic_int inside[MOST]; /* completion handlers of each one's messages that run */
static uint64_t dropped[MOST][WORKERS];

uint64_t library_seed(int task) { return t_seed(board->seed, (uint64_t)task, 0x11b); }

/* Nothing of another era, of another life of its sender, or of a round that cannot be yet
 * or any more. */
static void is_of_now(const char *what, int src, uint64_t of_era, uint64_t of_life, uint64_t of_round) {
    uint64_t now = soak_round;
    CHECK_FOR(src >= 0 && src < t_tasks, "%s of task %d", what, src);
    CHECK_FOR(of_era == era && of_life == life[src] && (of_round == now || of_round == now + 1),
              "%s of task %d comes from its life %lu, era %lu, round %lu; here are life %lu, era %lu, round %lu", what, src,
              (ulong)of_life, (ulong)of_era, (ulong)of_round, (ulong)life[src], (ulong)era, (ulong)now);
    CHECK_FOR(!lost[src], "%s of task %d, which was purged", what, src);
}

static pending_t *pend(const note_t *note) {
    pending_t *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->note = *note;
    pthread_mutex_lock(&mutex);
    p->link = &pending[note->src];
    p->next = *p->link;
    if (p->next != NULL) p->next->link = &p->next;
    *p->link = p;
    pthread_mutex_unlock(&mutex);
    return p;
}

static void scrap(pending_t *p) {
    free(p->own);
    if (p->vec != NULL) v_spoil(p->vec);
    v_free(&p->at);
    free(p);
}

/*
 * Takes a message from the list; 0 when it belonged to a life that is over: its handler was about
 * to run at the purge.
 */
static int take(pending_t *p) {
    int now;
    pthread_mutex_lock(&mutex);
    now = p->note.life == life[p->note.src] && !lost[p->note.src];
    if (now) {
        if (p->next != NULL) p->next->link = p->link;
        *p->link = p->next;
        inside[p->note.src]++;
    }
    pthread_mutex_unlock(&mutex);
    return now;
}

void handlers_part(int task) {
    pending_t *p, *next;
    while (inside[task] != 0) {
        OK(LAPI_Probe(t_hndl));
        usleep(100);
    }
    pthread_mutex_lock(&mutex);
    /* No thread can still use what the previous purge left. */
    for (p = doomed[task]; p != NULL; p = next) next = p->next, scrap(p);
    doomed[task] = pending[task];
    pending[task] = NULL;
    pthread_mutex_unlock(&mutex);
}

static void look_at(const note_t *note, const void *at, size_t len, uint64_t seed) {
    long where = t_differs(at, len, seed);
    CHECK_FOR(where < 0, "byte %ld of %zu of message %lu of task %d, worker %d, flavour %d, era %lu is not what was sent",
              where, len, (ulong)note->number, note->src, note->worker, note->flavour, (ulong)note->era);
}

/* A completion handler that waits: the sender's library must reply, unless the sender is lost. */
static void fetch(const note_t *note) {
    size_t len = 1 + note->seed % 20000;
    unsigned char *into = malloc(len);
    lapi_cntr_t got;
    CHECK(into != NULL);
    bzero(&got, sizeof got);
    if (WENT(LAPI_Get(t_hndl, (uint)note->src, len, library, into, NULL, &got), note->src)) {
        while (t_value(&got) < 1 && !lost[note->src]) sched_yield();
        if (!lost[note->src]) {
            t_wait_exact(&got, 1);
            look_at(note, into, len, library_seed(note->src));
            work_done(FETCHED_BY_HANDLER, len);
        }
    }
    free(into);
}

static void reply(const note_t *note) {
    light_t light = {(uint32_t)era, (uint32_t)life[t_me], t_me, note->worker, note->seed, 0, (uint32_t)soak_round};
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    xfer.Am.Xfer_type = LAPI_AM_LW_XFER;
    xfer.Am.tgt = (uint)note->src;
    xfer.Am.hdr_hdl = REPLY_INDEX;
    xfer.Am.uhdr = &light;
    xfer.Am.uhdr_len = sizeof light;
    if (WENT(LAPI_Xfer(t_hndl, &xfer), note->src)) board->replies++;
}

static void completed(lapi_handle_t *hndl, void *info) {
    pending_t *p = info;
    note_t note = p->note;
    place_t *place = &places[note.src][note.worker];
    int i;
    CHECK_EQ(*hndl, t_hndl);
    if (!take(p)) {
        board->stragglers++;
        return;
    }
    CHECK_EQ(note.era, era);
    switch (note.flavour) {
    case LOOK: look_at(&note, place->put, note.interest, note.seed); break;
    case LOOK_BURST:
        for (i = 0; i < note.interest; i++)
            look_at(&note, place->burst[i], sizeof place->burst[i], t_seed(note.seed, (uint64_t)i, 0));
        break;
    case PIECES: V_CHECK(&p->at, place->vector, note.len, note.seed); break;
    case OWN_BUFFER: look_at(&note, p->own, note.len, note.seed); break;
    case SCATTERED:
        for (i = 0; (uint64_t)i * PIECE < note.len; i++) {
            size_t now = note.len - (size_t)i * PIECE < PIECE ? note.len - (size_t)i * PIECE : PIECE;
            memmove(place->message + (size_t)i * PIECE, place->message + (size_t)i * APART, now);
        }
        look_at(&note, place->message, note.len, note.seed);
        break;
    default: look_at(&note, place->message, note.len, note.seed);
    }
    if (note.flavour == FETCHING) fetch(&note);
    if (note.flavour == INLINE) reply(&note);
    scrap(p);
    inside[note.src]--;
}

/* The handler has had the whole message. */
static void *had(lapi_return_info_t *ret, const note_t *note) {
    seen[note->src][era % ERAS].messages++;
    ret->ctl_flags = LAPI_BURY_MSG;
    return NULL;
}

void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    static const lapi_ret_flags_t inline_flags[] = {LAPI_LOCAL_STATE, LAPI_SEND_REPLY, LAPI_NORMAL};
    lapi_return_info_t *ret = (lapi_return_info_t *)msg_len;
    const note_t *note = uhdr;
    place_t *place;
    pending_t *p;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *note);
    CHECK_EQ(ret->msg_len, note->len);
    CHECK_EQ(ret->src, note->src);
    is_of_now("a message", note->src, note->era, note->life, note->round);
    *comp_h = NULL;
    *uinfo = NULL;
    place = &places[note->src][note->worker];
    switch (note->flavour) {
    case BURIED: return had(ret, note);
    case TAKEN:
        if (ret->udata_one_pkt_ptr == NULL) break;
        look_at(note, ret->udata_one_pkt_ptr, note->len, note->seed);
        return had(ret, note);
    case DROPPED:
        if (dropped[note->src][note->worker] == note->number) break;
        dropped[note->src][note->worker] = note->number;
        board->drops++;
        ret->ctl_flags = LAPI_DROP_PKT;
        return NULL;
    default: break;
    }
    seen[note->src][era % ERAS].messages++;
    p = pend(note);
    *comp_h = completed;
    *uinfo = p;
    if (note->flavour == INLINE) ret->ret_flags = inline_flags[note->number % 3];
    if (note->flavour == SCATTERED && note->len != 0) {
        ret->dgsp_handle = scattering;
        ret->bytes = note->len;
    }
    if (note->flavour == OWN_BUFFER) {
        p->own = malloc(note->len + 1);
        CHECK(p->own != NULL);
        return p->own;
    }
    return place->message;
}

lapi_vec_t *arrived_in_pieces(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                              void **uinfo) {
    const note_t *note = uhdr;
    pending_t *p;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *note);
    (void)msg_len;
    is_of_now("a vector", note->src, note->era, note->life, note->round);
    seen[note->src][era % ERAS].messages++;
    p = pend(note);
    p->at = shape(note->seed, note->interest, TARGET);
    v_poison(&p->at, places[note->src][note->worker].vector);
    p->vec = v_vector(&p->at, places[note->src][note->worker].vector);
    *comp_h = completed;
    *uinfo = p;
    return p->vec;
}

/* Light-weight: the header and the data are in one packet. */
static void *light_arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                           void **uinfo) {
    lapi_return_info_t *ret = (lapi_return_info_t *)msg_len;
    const light_t *light = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *light);
    CHECK_EQ(ret->msg_len, light->len);
    is_of_now("a light message", light->src, light->era, light->life, light->round);
    CHECK(light->len == 0 || ret->udata_one_pkt_ptr != NULL);
    if (light->len != 0)
        CHECK_FOR(t_differs(ret->udata_one_pkt_ptr, light->len, light->seed) < 0, "a light message of task %d is wrong",
                  light->src);
    seen[light->src][era % ERAS].light++;
    *comp_h = NULL;
    *uinfo = NULL;
    ret->ctl_flags = LAPI_BURY_MSG;
    return NULL;
}

static void *replied(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    const light_t *light = uhdr;
    (void)hndl, (void)msg_len;
    CHECK_EQ(*uhdr_len, sizeof *light);
    CHECK_FOR(light->era == era && light->life == life[light->src], "a reply of task %d comes from era %u, life %u",
              light->src, light->era, light->life);
    replies[light->src][era % ERAS]++;
    *comp_h = NULL;
    *uinfo = NULL;
    return NULL;
}

void *claimed(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    const note_t *note = uhdr;
    const uint64_t *word = (const uint64_t *)((const char *)uhdr + sizeof *note);
    claim_t *claim = &claims[note->src];
    (void)hndl, (void)msg_len;
    CHECK_EQ(*uhdr_len, sizeof *note + 4 * sizeof *word);
    /* The fence between two rounds may have failed for its sender alone, which then makes its
     * last claim. */
    is_of_now("a claim", note->src, note->era, note->life,
              note->round + (note->interest && note->round + 1 == soak_round));
    claim->counters = word[0];
    claim->messages = word[1];
    claim->light = word[2];
    claim->added = word[3];
    claim->round = note->round;
    claim->final = (uint64_t)note->interest;
    claim->era = note->era + 1;
    *comp_h = NULL;
    *uinfo = NULL;
    return NULL;
}

void handlers_init(void) {
    int src, worker;
    for (src = 0; src < MOST; src++)
        for (worker = 0; worker < WORKERS; worker++) dropped[src][worker] = UINT64_MAX;
    t_fill(library, sizeof library, library_seed(t_me));
    OK(LAPI_Addr_set(t_hndl, (void *)light_arrived, LIGHT_INDEX));
    OK(LAPI_Addr_set(t_hndl, (void *)replied, REPLY_INDEX));
}

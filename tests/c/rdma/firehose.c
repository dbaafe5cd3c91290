/*
 * RDMA transfers as a run-time system makes them: firehose SEED ROUNDS PIECES CONTEXTS
 *
 * The heap of each task is registered in pieces of 16 MiB, and 1,024 bounce buffers of 4 KiB in
 * one more. Each task holds CONTEXTS contexts of each other task and uses them in turn. In each
 * round a task writes to its own part of the others' heaps by puts without waiting for each, then
 * waits for one counter, and gets the data back. Half of the rounds put by bounce buffers and get
 * into memory that is registered for each transfer; the other half the other way round.
 */
#include "rdma.h"

enum { PIECE = 16 << 20, BOUNCE = 4096, BOUNCES = 1024 };

struct operation {
    lapi_user_pvo_t pvo; /* registered for this operation alone, or 0 */
    int bounce;          /* the buffer that it holds, or -1 */
    unsigned char *into; /* of a get by a bounce buffer */
    size_t len;
};

static unsigned char *heap, *bounces;
static int pieces, per_peer, free_bounces[BOUNCES], bounces_left = BOUNCES, turn, ended;
static lapi_user_pvo_t *mine, **theirs, bounce_pvo;
static lapi_user_cxt_t *numbers;
static lapi_cntr_t done, noticed;

static void operation_ends(lapi_handle_t *hndl, void *info, lapi_sh_info_t *what) {
    struct operation *operation = info;
    CHECK_EQ(what->reason, 0);
    if (operation->bounce >= 0) {
        if (operation->into != NULL)
            memcpy(operation->into, bounces + (size_t)operation->bounce * BOUNCE, operation->len);
        free_bounces[bounces_left++] = operation->bounce;
    }
    if (operation->pvo != 0) OK(released(operation->pvo));
    ended++;
    OK(LAPI_Put(*hndl, (uint)t_me, 0, NULL, NULL, &noticed, NULL, NULL));
    free(operation);
}

/* Starts transfers between `local`, anywhere, and the heap of a task; no transfer crosses a piece.
 * Returns how many. */
static int move(int op, int tgt, unsigned char *local, size_t at, size_t len, int by_bounce) {
    int count = 0;
    while (len > 0) {
        size_t piece = at / PIECE, offset = at % PIECE, step = len < PIECE - offset ? len : PIECE - offset;
        struct operation *operation = calloc(1, sizeof *operation);
        lapi_xfer_t x;
        CHECK(operation != NULL);
        operation->bounce = -1;
        if (by_bounce && step > BOUNCE) step = BOUNCE;
        x = transfer(op, tgt, numbers[tgt * per_peer + turn++ % per_peer], 0, theirs[piece][tgt], step);
        x.HwXfer.tgt_offset = (uint)offset;
        x.HwXfer.org_cntr = &done;
        x.HwXfer.shdlr = operation_ends;
        x.HwXfer.sinfo = operation;
        operation->len = step;
        if (by_bounce) {
            while (bounces_left == 0) OK(LAPI_Probe(t_hndl));
            operation->bounce = free_bounces[--bounces_left];
            x.HwXfer.src_pvo = bounce_pvo;
            x.HwXfer.src_offset = (uint)operation->bounce * BOUNCE;
            if (op == LAPI_RDMA_PUT)
                memcpy(bounces + x.HwXfer.src_offset, local, step);
            else
                operation->into = local;
        } else {
            x.HwXfer.src_pvo = operation->pvo = acquired(local, step);
        }
        OK(LAPI_Xfer(t_hndl, &x));
        local += step;
        at += step;
        len -= step;
        count++;
    }
    return count;
}

static uint64_t seed_of(uint64_t seed, int tgt, int round) {
    return t_seed(seed, (uint64_t)t_me * 4096 + (uint64_t)tgt, (uint64_t)round);
}

int main(int argc, char **argv) {
    uint64_t seed, random;
    int rounds, round, task, i;
    size_t part, size;
    unsigned char *out, *in;
    CHECK(argc == 5);
    seed = strtoull(argv[1], NULL, 10);
    rounds = atoi(argv[2]);
    pieces = atoi(argv[3]);
    per_peer = atoi(argv[4]);
    t_init();
    t_set(INTERRUPT_SET, 0); /* the handlers run in the calls of this thread */
    random = t_seed(seed, (uint64_t)t_me, 0);
    size = (size_t)pieces * PIECE;
    part = size / (size_t)t_tasks;
    heap = aligned_alloc(4096, size);
    bounces = aligned_alloc(4096, (size_t)BOUNCE * BOUNCES);
    out = malloc(part * (size_t)t_tasks);
    in = malloc(part * (size_t)t_tasks);
    mine = calloc((size_t)pieces, sizeof *mine);
    theirs = calloc((size_t)pieces, sizeof *theirs);
    numbers = calloc((size_t)t_tasks * (size_t)per_peer, sizeof *numbers);
    CHECK(heap != NULL && bounces != NULL && out != NULL && in != NULL);
    CHECK(mine != NULL && theirs != NULL && numbers != NULL);
    for (i = 0; i < pieces; i++) {
        mine[i] = acquired(heap + (size_t)i * PIECE, PIECE);
        theirs[i] = exchanged(mine[i]);
    }
    bounce_pvo = acquired(bounces, (size_t)BOUNCE * BOUNCES);
    for (i = 0; i < BOUNCES; i++) free_bounces[i] = i;
    for (task = 0; task < t_tasks; task++)
        for (i = 0; i < per_peer && task != t_me; i++) numbers[task * per_peer + i] = acquired_context(task);
    t_fence();
    for (round = 0; round < rounds; round++) {
        /* A part of the part, short or long; a long one is in several pieces. */
        size_t first = (size_t)t_below(&random, part / 2);
        size_t len = 1 + (size_t)t_below(&random, round % 2 ? 65536 : part / 2);
        int by_bounce = (int)t_below(&random, 2), gets;
        for (gets = 0; gets < 2; gets++) {
            int started = 0, distance;
            ended = 0;
            for (distance = 1; distance < t_tasks; distance++) {
                int tgt = (t_me + distance) % t_tasks;
                unsigned char *there = (gets ? in : out) + part * (size_t)tgt;
                if (gets)
                    memset(there, 0xee, len);
                else
                    t_fill(there, len, seed_of(seed, tgt, round));
                started += move(gets ? LAPI_RDMA_GET : LAPI_RDMA_PUT, tgt, there, part * (size_t)t_me + first, len,
                                by_bounce != gets);
            }
            t_wait_exact(&done, started);
            t_wait_exact(&noticed, started);
            CHECK_EQ(ended, started);
        }
        CHECK_EQ(bounces_left, BOUNCES);
        for (task = 0; task < t_tasks; task++)
            if (task != t_me) CHECK_FILLED(in + part * (size_t)task, len, seed_of(seed, task, round));
    }
    t_fence();
    for (task = 0; task < t_tasks; task++)
        for (i = 0; i < per_peer && task != t_me; i++)
            OK(context(LAPI_RDMA_RELEASE, task, &numbers[task * per_peer + i]));
    for (i = 0; i < pieces; i++) OK(released(mine[i]));
    OK(released(bounce_pvo));
    t_done();
    return 0;
}

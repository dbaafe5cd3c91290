/*
 * lapi_coll.h: barrier, broadcast, reduction, gathering and symmetric memory for all tasks of a
 * job, on LAPI's own calls.
 *
 * The whole helper is this file: copy it to where your program is. It uses LAPI_Address_init,
 * LAPI_Put, LAPI_Setcntr and LAPI_Waitcntr and nothing else, so it works with every implementation
 * of LAPI. C99 and C++.
 *
 *     lapi_coll_t coll;
 *     lapi_coll_init(&coll, hndl, 0);                  every task
 *     lapi_coll_allreduce(&coll, &mine, &sum, 1, LAPI_COLL_DOUBLE, LAPI_COLL_SUM);
 *     lapi_coll_end(&coll);
 *
 * Every function is collective: all tasks of the job call the same functions in the same order,
 * with the same root, and with sizes that agree. It returns LAPI_SUCCESS, or the code of the LAPI
 * call that has failed; LAPI_ERR_MEMORY_EXHAUSTED without memory; LAPI_ERR_TGT for a root that is
 * no task. After an error the lapi_coll_t can only be ended. A task sends and receives at most 2
 * ceil(log2(tasks)) messages for each piece of the data (gathering: as many as the data that goes
 * through it needs).
 *
 * A task that has no memory for what lapi_coll_init or lapi_coll_malloc needs makes the call fail
 * in all tasks. Only one without memory for a table of addresses in lapi_coll_init cannot tell the
 * others, which wait until it has ended LAPI.
 *
 * A lapi_coll_t is used by one thread at a time. A program that wants collective calls in several
 * threads makes one for each of them. Messages of the program that are under way are not touched:
 * a barrier is no fence. What a program has put elsewhere is there after LAPI_Fence and a barrier,
 * or LAPI_Gfence.
 *
 * How it works. Task p exchanges data with p + 2^k and p - 2^k, modulo the number of tasks, for
 * each k: whatever the root, each of these channels has one sender and one receiver. A channel has
 * LAPI_COLL_SLOTS slots in the memory of its receiver and a counter there for each of them, which
 * says that it is full: messages may overtake each other, so that one counter for all slots would
 * not say which. The sender has a counter that says how many are free. So a task that is already in
 * the next collective call cannot overwrite what a slower task still reads.
 */
#ifndef LAPI_COLL_H
#define LAPI_COLL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAPI_COLL_SLOTS 2      /* of a channel: the sender fills one while the receiver empties the other */
#define LAPI_COLL_LEVELS 31    /* 2^31 tasks */
#define LAPI_COLL_PIECE 16384  /* bytes of a slot, if lapi_coll_init is passed 0 */

/* What is combined. */
typedef enum {
    LAPI_COLL_INT32,
    LAPI_COLL_UINT32,
    LAPI_COLL_INT64,
    LAPI_COLL_UINT64,
    LAPI_COLL_FLOAT,
    LAPI_COLL_DOUBLE
} lapi_coll_type_t;

/* How. The last three are for integers. */
typedef enum {
    LAPI_COLL_SUM,
    LAPI_COLL_PROD,
    LAPI_COLL_MIN,
    LAPI_COLL_MAX,
    LAPI_COLL_AND,
    LAPI_COLL_OR,
    LAPI_COLL_XOR
} lapi_coll_op_t;

/* One's own operation: into[i] becomes into[i] o from[i] for `count` elements. It must be
 * associative and commutative. */
typedef void (*lapi_coll_combine_t)(void *into, const void *from, size_t count);

/* In the memory of each task, known to all others. */
typedef struct {
    lapi_cntr_t full[2][LAPI_COLL_LEVELS][LAPI_COLL_SLOTS]; /* 1: the slot is full; by direction and level */
    lapi_cntr_t room[2][LAPI_COLL_LEVELS];                  /* slots of the receiver that are free */
    lapi_cntr_t sent;                                       /* the data of the last message may be changed */
    /* The slots come behind it: by direction, level and number; then room for one piece. */
} lapi_coll_board_t;

typedef struct {
    lapi_handle_t hndl;
    unsigned me, tasks, levels;
    size_t piece;
    lapi_coll_board_t *board;
    char *packed;  /* a piece that lapi_coll_gather puts together, behind the slots */
    char **boards; /* of all tasks */
    unsigned sent[2][LAPI_COLL_LEVELS], taken[2][LAPI_COLL_LEVELS];
} lapi_coll_t;

/* Memory of the same size in every task. */
typedef struct {
    void *local;
    void **at; /* its address in each task: a target for LAPI_Put, LAPI_Get and LAPI_Rmw */
} lapi_coll_memory_t;

/* A direction of the channels: to p + 2^k, and to p - 2^k. */
enum { LAPI_COLL_UP, LAPI_COLL_DOWN };

/* ---- not to be called by programs: one channel ----------------------------------------------- */

static inline unsigned lapi_coll_other(const lapi_coll_t *coll, int direction, unsigned level)
{
    unsigned distance = 1u << level;

    return (unsigned)(((uint64_t)coll->me + (direction == LAPI_COLL_UP ? distance : coll->tasks - distance)) % coll->tasks);
}

static inline size_t lapi_coll_slot(const lapi_coll_t *coll, int direction, unsigned level, unsigned number)
{
    size_t index = ((size_t)direction * coll->levels + level) * LAPI_COLL_SLOTS + number % LAPI_COLL_SLOTS;

    return (sizeof(lapi_coll_board_t) + 63) / 64 * 64 + index * coll->piece;
}

/* Puts at most a piece into the next slot of the channel in this direction. The data may be changed
 * when this returns. */
static inline int lapi_coll_send(lapi_coll_t *coll, int direction, unsigned level, const void *data, size_t bytes)
{
    unsigned to = lapi_coll_other(coll, direction, level), number = coll->sent[direction][level];
    char *there = coll->boards[to];
    lapi_coll_board_t *board = (lapi_coll_board_t *)there;
    lapi_cntr_t *sent = &coll->board->sent;
    int rc = LAPI_Waitcntr(coll->hndl, &coll->board->room[direction][level], 1, NULL);

    coll->sent[direction][level]++;
    if (rc == LAPI_SUCCESS)
        rc = LAPI_Put(coll->hndl, to, bytes, there + lapi_coll_slot(coll, direction, level, number),
                      bytes ? (void *)data : NULL, &board->full[direction][level][number % LAPI_COLL_SLOTS], sent, NULL);
    return rc == LAPI_SUCCESS ? LAPI_Waitcntr(coll->hndl, sent, 1, NULL) : rc;
}

/* Waits for the next piece that comes in this direction. It is valid until lapi_coll_release. */
static inline int lapi_coll_receive(lapi_coll_t *coll, int direction, unsigned level, const void **data)
{
    unsigned number = coll->taken[direction][level]++;

    *data = (char *)coll->board + lapi_coll_slot(coll, direction, level, number);
    return LAPI_Waitcntr(coll->hndl, &coll->board->full[direction][level][number % LAPI_COLL_SLOTS], 1, NULL);
}

/* The sender may use the slot again. */
static inline int lapi_coll_release(lapi_coll_t *coll, int direction, unsigned level)
{
    unsigned from = lapi_coll_other(coll, direction == LAPI_COLL_UP ? LAPI_COLL_DOWN : LAPI_COLL_UP, level);
    lapi_coll_board_t *board = (lapi_coll_board_t *)coll->boards[from];

    return LAPI_Put(coll->hndl, from, 0, NULL, NULL, &board->room[direction][level], NULL, NULL);
}

static inline int lapi_coll_take(lapi_coll_t *coll, int direction, unsigned level, void *into, size_t bytes)
{
    const void *piece;
    int rc = lapi_coll_receive(coll, direction, level, &piece);

    if (rc == LAPI_SUCCESS && bytes != 0)
        memcpy(into, piece, bytes);
    return rc == LAPI_SUCCESS ? lapi_coll_release(coll, direction, level) : rc;
}

static inline size_t lapi_coll_element(lapi_coll_type_t type)
{
    return type == LAPI_COLL_INT64 || type == LAPI_COLL_UINT64 || type == LAPI_COLL_DOUBLE ? 8 : 4;
}

/* 1 if the operation exists for the type and was done. */
static inline int lapi_coll_combine(lapi_coll_type_t type, lapi_coll_op_t op, void *into, const void *from, size_t count)
{
    size_t i;

/* A sum or product of signed integers that is too large wraps round: unsigned
 * arithmetic says how. */
#define LAPI_COLL_EACH(T, EXPRESSION)                                  \
    for (i = 0; i < count; i++) {                                      \
        T a = ((T *)into)[i], b = ((const T *)from)[i];                \
        ((T *)into)[i] = (T)(EXPRESSION);                              \
    }                                                                  \
    return 1;
#define LAPI_COLL_ORDER(T)                                             \
    case LAPI_COLL_MIN: LAPI_COLL_EACH(T, b < a ? b : a)               \
    case LAPI_COLL_MAX: LAPI_COLL_EACH(T, b > a ? b : a)
#define LAPI_COLL_INTEGER(T, U)                                        \
    switch (op) {                                                      \
        LAPI_COLL_ORDER(T)                                             \
    case LAPI_COLL_SUM: LAPI_COLL_EACH(T, (U)a + (U)b)                 \
    case LAPI_COLL_PROD: LAPI_COLL_EACH(T, (U)a * (U)b)                \
    case LAPI_COLL_AND: LAPI_COLL_EACH(T, a & b)                       \
    case LAPI_COLL_OR: LAPI_COLL_EACH(T, a | b)                        \
    case LAPI_COLL_XOR: LAPI_COLL_EACH(T, a ^ b)                       \
    }                                                                  \
    return 0;
#define LAPI_COLL_REAL(T)                                              \
    switch (op) {                                                      \
        LAPI_COLL_ORDER(T)                                             \
    case LAPI_COLL_SUM: LAPI_COLL_EACH(T, a + b)                       \
    case LAPI_COLL_PROD: LAPI_COLL_EACH(T, a * b)                      \
    default: return 0;                                                 \
    }
    switch (type) {
    case LAPI_COLL_INT32: LAPI_COLL_INTEGER(int32_t, uint32_t)
    case LAPI_COLL_UINT32: LAPI_COLL_INTEGER(uint32_t, uint32_t)
    case LAPI_COLL_INT64: LAPI_COLL_INTEGER(int64_t, uint64_t)
    case LAPI_COLL_UINT64: LAPI_COLL_INTEGER(uint64_t, uint64_t)
    case LAPI_COLL_FLOAT: LAPI_COLL_REAL(float)
    case LAPI_COLL_DOUBLE: LAPI_COLL_REAL(double)
    }
    return 0;
#undef LAPI_COLL_EACH
#undef LAPI_COLL_ORDER
#undef LAPI_COLL_INTEGER
#undef LAPI_COLL_REAL
}

/* ---- for programs ---------------------------------------------------------------------------- */

/* Prepares collective calls on a handle. A piece of data that travels at once has `piece` bytes (0:
 * LAPI_COLL_PIECE); a task needs LAPI_COLL_SLOTS * 2 * ceil(log2(tasks)) + 1 times as much memory.
 * The handle is that of LAPI_Init. */
static inline int lapi_coll_init(lapi_coll_t *coll, lapi_handle_t hndl, size_t piece)
{
    int me, tasks, rc, direction;
    unsigned level, slot, task;

    memset(coll, 0, sizeof *coll);
    coll->hndl = hndl;
    if ((rc = LAPI_Qenv(hndl, TASK_ID, &me)) != LAPI_SUCCESS || (rc = LAPI_Qenv(hndl, NUM_TASKS, &tasks)) != LAPI_SUCCESS)
        return rc;
    coll->me = (unsigned)me;
    coll->tasks = (unsigned)tasks;
    while (coll->tasks > 1 && coll->levels < LAPI_COLL_LEVELS && (uint64_t)1 << coll->levels < coll->tasks)
        coll->levels++;
    /* Whole elements, at addresses that suit them. */
    coll->piece = ((piece ? piece : LAPI_COLL_PIECE) + 63) / 64 * 64;
    if ((coll->boards = (char **)calloc(coll->tasks, sizeof *coll->boards)) == NULL)
        return LAPI_ERR_MEMORY_EXHAUSTED;
    coll->board = (lapi_coll_board_t *)calloc(1, lapi_coll_slot(coll, 2, 0, 0) + coll->piece);
    if (coll->board != NULL) {
        coll->packed = (char *)coll->board + lapi_coll_slot(coll, 2, 0, 0);
        for (direction = 0; direction < 2; direction++) {
            for (level = 0; level < coll->levels && rc == LAPI_SUCCESS; level++) {
                for (slot = 0; slot < LAPI_COLL_SLOTS && rc == LAPI_SUCCESS; slot++)
                    rc = LAPI_Setcntr(hndl, &coll->board->full[direction][level][slot], 0);
                if (rc == LAPI_SUCCESS)
                    rc = LAPI_Setcntr(hndl, &coll->board->room[direction][level], LAPI_COLL_SLOTS);
            }
        }
        if (rc == LAPI_SUCCESS)
            rc = LAPI_Setcntr(hndl, &coll->board->sent, 0);
    }
    if (rc == LAPI_SUCCESS)
        rc = LAPI_Address_init(hndl, coll->board, (void **)coll->boards);
    /* A task without memory has told the others by an address of NULL. */
    for (task = 0; task < coll->tasks && rc == LAPI_SUCCESS; task++)
        if (coll->boards[task] == NULL)
            rc = LAPI_ERR_MEMORY_EXHAUSTED;
    return rc;
}

/* Returns when all tasks have called. */
static inline int lapi_coll_barrier(lapi_coll_t *coll)
{
    unsigned level;
    int rc = LAPI_SUCCESS;

    for (level = 0; level < coll->levels && rc == LAPI_SUCCESS; level++) {
        rc = lapi_coll_send(coll, LAPI_COLL_UP, level, NULL, 0);
        if (rc == LAPI_SUCCESS)
            rc = lapi_coll_take(coll, LAPI_COLL_UP, level, NULL, 0);
    }
    return rc;
}

/* Copies `bytes` bytes at `data` of the root to `data` of every task. */
static inline int lapi_coll_broadcast(lapi_coll_t *coll, void *data, size_t bytes, unsigned root)
{
    unsigned rank, level, first;
    size_t at, len;
    int rc = LAPI_SUCCESS;

    if (root >= coll->tasks)
        return LAPI_ERR_TGT;
    /* A task of rank r, counted from the root, gets the data from the rank without its highest bit,
     * and passes it on by the levels above that bit. */
    rank = (coll->me + coll->tasks - root) % coll->tasks;
    for (first = 0; rank >> first != 0; first++) {
    }
    for (at = 0; at < bytes && rc == LAPI_SUCCESS; at += len) {
        len = bytes - at < coll->piece ? bytes - at : coll->piece;
        if (rank != 0)
            rc = lapi_coll_take(coll, LAPI_COLL_UP, first - 1, (char *)data + at, len);
        for (level = first; level < coll->levels && rc == LAPI_SUCCESS; level++)
            if ((uint64_t)rank + ((uint64_t)1 << level) < coll->tasks)
                rc = lapi_coll_send(coll, LAPI_COLL_UP, level, (char *)data + at, len);
    }
    return rc;
}

/* Combines `count` elements of `size` bytes each of every task by `combine`, or by `op` if that is
 * NULL. `out` of the root, which may be `in`, gets the result; `out` of the others is scratch
 * memory of as many bytes. */
static inline int lapi_coll_reduce_with(lapi_coll_t *coll, const void *in, void *out, size_t count, size_t size,
                                        lapi_coll_combine_t combine, lapi_coll_type_t type, lapi_coll_op_t op, unsigned root)
{
    unsigned rank, level;
    size_t each, at, len;
    const void *piece;
    int rc = LAPI_SUCCESS;

    if (root >= coll->tasks)
        return LAPI_ERR_TGT;
    if (count == 0 || size == 0)
        return LAPI_SUCCESS;
    if (size > coll->piece)
        return LAPI_ERR_DATA_LEN;
    if (combine == NULL && !lapi_coll_combine(type, op, out, in, 0))
        return LAPI_ERR_SET_VAL;
    rank = (coll->me + coll->tasks - root) % coll->tasks;
    if (out != in)
        memcpy(out, in, count * size);
    each = coll->piece / size;
    for (at = 0; at < count && rc == LAPI_SUCCESS; at += len) {
        char *part = (char *)out + at * size;

        len = count - at < each ? count - at : each;
        for (level = 0; level < coll->levels && rc == LAPI_SUCCESS; level++) {
            if (rank >> level & 1) {
                rc = lapi_coll_send(coll, LAPI_COLL_DOWN, level, part, len * size);
                break;
            }
            if ((uint64_t)rank + ((uint64_t)1 << level) >= coll->tasks)
                continue;
            rc = lapi_coll_receive(coll, LAPI_COLL_DOWN, level, &piece);
            if (rc != LAPI_SUCCESS)
                break;
            if (combine != NULL)
                combine(part, piece, len);
            else
                lapi_coll_combine(type, op, part, piece, len);
            rc = lapi_coll_release(coll, LAPI_COLL_DOWN, level);
        }
    }
    return rc;
}

/* The same for elements of a known type. LAPI_ERR_SET_VAL: the operation does not exist
 * for the type. */
static inline int lapi_coll_reduce(lapi_coll_t *coll, const void *in, void *out, size_t count, lapi_coll_type_t type,
                                   lapi_coll_op_t op, unsigned root)
{
    return lapi_coll_reduce_with(coll, in, out, count, lapi_coll_element(type), NULL, type, op, root);
}

/* Every task gets the result, the same bits in all of them. `out` may be `in`. */
static inline int lapi_coll_allreduce(lapi_coll_t *coll, const void *in, void *out, size_t count, lapi_coll_type_t type,
                                      lapi_coll_op_t op)
{
    int rc = lapi_coll_reduce(coll, in, out, count, type, op, 0);

    return rc == LAPI_SUCCESS ? lapi_coll_broadcast(coll, out, count * lapi_coll_element(type), 0) : rc;
}

/* Of the blocks that a task collects, one after the other, the next bytes: the root writes them to
 * `out`, from `first` bytes behind its beginning to its end, and then at its beginning; the others
 * send them by `level`, in pieces. `*at` bytes of `all` have been there. */
static inline int lapi_coll_pass_on(lapi_coll_t *coll, unsigned level, const void *data, size_t bytes, void *out, size_t first,
                                    size_t all, size_t *at)
{
    const char *from = (const char *)data;
    size_t to, len;
    int rc = LAPI_SUCCESS;

    for (; bytes != 0 && rc == LAPI_SUCCESS; from += len, bytes -= len, *at += len) {
        if (level == coll->levels) {
            to = *at < all - first ? first + *at : *at - (all - first);
            len = bytes < all - to ? bytes : all - to;
            memmove((char *)out + to, from, len);
        } else {
            to = *at % coll->piece;
            len = bytes < coll->piece - to ? bytes : coll->piece - to;
            memcpy(coll->packed + to, from, len);
            if (to + len == coll->piece || *at + len == all)
                rc = lapi_coll_send(coll, LAPI_COLL_DOWN, level, coll->packed, to + len);
        }
    }
    return rc;
}

/* Copies `bytes` bytes at `in` of every task to `out` of the root, in the order of the tasks. `out`
 * of the others is not used. */
static inline int lapi_coll_gather(lapi_coll_t *coll, const void *in, size_t bytes, void *out, unsigned root)
{
    unsigned rank, level, below, held, first;
    size_t at, len, there, all, passed = 0;
    const void *piece;
    int rc;

    if (root >= coll->tasks)
        return LAPI_ERR_TGT;
    if (bytes == 0)
        return LAPI_SUCCESS;
    rank = (coll->me + coll->tasks - root) % coll->tasks;
    /* A task collects the blocks of the ranks from its own to below rank + 2^level, where level is
     * its lowest bit. Rank 0, the root, collects all. */
    for (level = 0; level < coll->levels && !(rank >> level & 1); level++) {
    }
    held = level < coll->levels && coll->tasks - rank > 1u << level ? 1u << level : coll->tasks - rank;
    all = held * bytes;
    rc = lapi_coll_pass_on(coll, level, in, bytes, out, root * bytes, all, &passed);
    for (below = 0; below < level && rc == LAPI_SUCCESS; below++) {
        if ((uint64_t)rank + ((uint64_t)1 << below) >= coll->tasks)
            break;
        first = 1u << below;
        there = (size_t)((held - first < first) ? held - first : first) * bytes;
        for (at = 0; at < there && rc == LAPI_SUCCESS; at += len) {
            len = there - at < coll->piece ? there - at : coll->piece;
            rc = lapi_coll_receive(coll, LAPI_COLL_DOWN, below, &piece);
            if (rc == LAPI_SUCCESS)
                rc = lapi_coll_pass_on(coll, level, piece, len, out, root * bytes, all, &passed);
            if (rc == LAPI_SUCCESS)
                rc = lapi_coll_release(coll, LAPI_COLL_DOWN, below);
        }
    }
    return rc;
}

/* Every task gets the blocks of all tasks. */
static inline int lapi_coll_allgather(lapi_coll_t *coll, const void *in, size_t bytes, void *out)
{
    int rc = lapi_coll_gather(coll, in, bytes, out, 0);

    return rc == LAPI_SUCCESS ? lapi_coll_broadcast(coll, out, coll->tasks * bytes, 0) : rc;
}

/* Memory of `bytes` bytes in every task, all 0, aligned as by malloc, and where it is in
 * the others. */
static inline int lapi_coll_malloc(lapi_coll_t *coll, size_t bytes, lapi_coll_memory_t *memory)
{
    int64_t missing;
    int rc;

    memory->local = calloc(1, bytes ? bytes : 1);
    memory->at = (void **)calloc(coll->tasks, sizeof *memory->at);
    missing = memory->local == NULL || memory->at == NULL;
    /* A task without memory must not leave the others waiting. */
    rc = lapi_coll_allreduce(coll, &missing, &missing, 1, LAPI_COLL_INT64, LAPI_COLL_MAX);
    if (rc == LAPI_SUCCESS && missing)
        rc = LAPI_ERR_MEMORY_EXHAUSTED;
    if (rc == LAPI_SUCCESS)
        rc = LAPI_Address_init(coll->hndl, memory->local, memory->at);
    if (rc != LAPI_SUCCESS) {
        free(memory->local);
        free(memory->at);
        memory->local = NULL;
        memory->at = NULL;
    }
    return rc;
}

/* Frees it when all tasks have called. What others still put there must have been waited for. */
static inline int lapi_coll_free(lapi_coll_t *coll, lapi_coll_memory_t *memory)
{
    int rc = lapi_coll_barrier(coll);

    free(memory->local);
    free(memory->at);
    memory->local = NULL;
    memory->at = NULL;
    return rc;
}

/* Ends it: all tasks have come here when this returns, and its memory is free. */
static inline int lapi_coll_end(lapi_coll_t *coll)
{
    /* Each of its messages is in place everywhere before the memory goes. */
    int rc = coll->boards != NULL ? LAPI_Gfence(coll->hndl) : LAPI_SUCCESS;

    free(coll->board);
    free(coll->boards);
    coll->board = NULL;
    coll->boards = NULL;
    return rc;
}

#ifdef __cplusplus
}
#endif
#endif

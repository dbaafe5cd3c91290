/*
 * Programs for the gather/scatter machine: made as trees of routines, written as code,
 * registered, and interpreted here from the tree, one copy after the other, for what a transfer
 * must have moved.
 */
#ifndef DGSP_PROGRAM_H
#define DGSP_PROGRAM_H

#include "../common/ltest.h"

#include <limits.h>
#include <stddef.h>

enum { MAX_OPS = 6, MAX_BLOCKS = 12, MAX_ROUTINES = 12, MAX_CODE = 4096 };

typedef struct {
    lapi_dgsm_opcode_t opcode;
    long bytes, offset;              /* COPY; offset also of GOSUB */
    int count;                       /* MCOPY */
    long len[MAX_BLOCKS], disp[MAX_BLOCKS];
    int routine, pad;                /* GOSUB; how many ints of no meaning it jumps over afterwards */
    long reps, stride;
    int operation, operand;          /* CONTROL */
} instruction;

typedef struct {
    instruction ops[MAX_OPS];
    int n;
} routine;

typedef struct {
    routine routines[MAX_ROUTINES]; /* 0 is the main program */
    int n, depth;
    long size, low, high; /* of one application */
    int code[MAX_CODE];
    lapi_dgsp_descr_t descr;
    lapi_dg_handle_t handle;
} program;

/* One copy: where, and what CONTROL says about it (operation LAPI_DGSM_NO_CTL: nothing). */
typedef struct {
    long at, len;
    int operation, operand;
} copy;

/* The effect of a program on this number of bytes. */
typedef struct {
    copy *list;
    long n, room, left;
    int operation, operand;
} trace;

/* --- making --- */

static inline program *p_new(void) {
    program *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->n = 1;
    return p;
}

static inline instruction *p_op(program *p, int r, lapi_dgsm_opcode_t opcode) {
    instruction *op;
    CHECK(r < MAX_ROUTINES && p->routines[r].n < MAX_OPS);
    if (r >= p->n) p->n = r + 1;
    op = &p->routines[r].ops[p->routines[r].n++];
    op->opcode = opcode;
    return op;
}

static inline void p_copy(program *p, int r, long bytes, long offset) {
    instruction *op = p_op(p, r, LAPI_DGSM_COPY);
    op->bytes = bytes;
    op->offset = offset;
}

static inline void p_gosub(program *p, int r, int to, long reps, long offset, long stride) {
    instruction *op = p_op(p, r, LAPI_DGSM_GOSUB);
    op->routine = to;
    op->reps = reps;
    op->offset = offset;
    op->stride = stride;
}

static inline void p_control(program *p, int r, int operation, int operand) {
    instruction *op = p_op(p, r, LAPI_DGSM_CONTROL);
    op->operation = operation;
    op->operand = operand;
}

/* --- the interpreter --- */

static inline void p_emit(trace *t, long at, long len) {
    if (len > t->left) len = t->left;
    if (len == 0) return;
    if (t->n == t->room) {
        t->room = 2 * t->room + 64;
        t->list = realloc(t->list, (size_t)t->room * sizeof *t->list);
        CHECK(t->list != NULL);
    }
    t->list[t->n].at = at;
    t->list[t->n].len = len;
    t->list[t->n].operation = t->operation;
    t->list[t->n++].operand = t->operand;
    t->left -= len;
}

static inline void p_run(const program *p, int r, long base, trace *t) {
    int i, b;
    long rep;
    for (i = 0; i < p->routines[r].n && t->left > 0; i++) {
        const instruction *op = &p->routines[r].ops[i];
        switch (op->opcode) {
        case LAPI_DGSM_COPY: p_emit(t, base + op->offset, op->bytes); break;
        case LAPI_DGSM_MCOPY:
            for (b = 0; b < op->count; b++) p_emit(t, base + op->disp[b], op->len[b]);
            break;
        case LAPI_DGSM_GOSUB:
            for (rep = 0; rep < op->reps && t->left > 0; rep++)
                p_run(p, op->routine, base + op->offset + rep * op->stride, t);
            break;
        default:
            t->operation = op->operation;
            t->operand = op->operand;
        }
    }
}

/* The copies of the first `bytes` bytes, the program applied again and again. */
static inline trace p_trace(const program *p, long bytes) {
    trace t;
    long base = 0, before;
    bzero(&t, sizeof t);
    t.left = bytes;
    t.operation = LAPI_DGSM_NO_CTL;
    while (t.left > 0) {
        before = t.left;
        p_run(p, 0, base, &t);
        CHECK(t.left < before);
        base += p->descr.extent;
    }
    return t;
}

/* The range of their offsets. */
static inline void p_bounds(const trace *t, long *low, long *high) {
    long i;
    *low = *high = t->n ? t->list[0].at : 0;
    for (i = 0; i < t->n; i++) {
        if (t->list[i].at < *low) *low = t->list[i].at;
        if (t->list[i].at + t->list[i].len > *high) *high = t->list[i].at + t->list[i].len;
    }
}

/* --- writing code --- */

static inline int p_length(const routine *r) {
    int i, ints = LAPI_DGSM_ITERATE_SIZE;
    for (i = 0; i < r->n; i++) switch (r->ops[i].opcode) {
        case LAPI_DGSM_COPY: ints += LAPI_DGSM_COPY_SIZE; break;
        case LAPI_DGSM_MCOPY: ints += LAPI_DGSM_MCOPY_SIZE + (r->ops[i].count - 1) * LAPI_DGSM_MCOPY_BLOCK_SIZE; break;
        case LAPI_DGSM_GOSUB: ints += LAPI_DGSM_GOSUB_SIZE + r->ops[i].pad; break;
        default: ints += LAPI_DGSM_CONTROL_SIZE;
        }
    return ints;
}

/* Writes the code, the routines behind the main program in an order that follows from the seed, and
 * the descriptor. */
static inline void p_write(program *p, long extent, uint64_t seed) {
    int order[MAX_ROUTINES], start[MAX_ROUTINES], i, r, b, at = 0;
    trace once;
    for (r = 0; r < p->n; r++) order[r] = r;
    for (r = p->n; r > 2; r--) {
        int j = 1 + (int)t_below(&seed, (uint64_t)r - 1), old = order[r - 1];
        order[r - 1] = order[j];
        order[j] = old;
    }
    for (r = 0; r < p->n; r++) {
        start[order[r]] = at;
        at += p_length(&p->routines[order[r]]) + (r > 0 ? (int)t_below(&seed, 2) : 0);
    }
    CHECK(at <= MAX_CODE);
    memset(p->code, 0x7f, sizeof p->code);
    for (r = 0; r < p->n; r++) {
        at = start[r];
        for (i = 0; i < p->routines[r].n; i++) {
            const instruction *op = &p->routines[r].ops[i];
            switch (op->opcode) {
            case LAPI_DGSM_COPY: {
                lapi_dgsm_copy_t copy;
                bzero(&copy, sizeof copy);
                copy.opcode = LAPI_DGSM_COPY;
                copy.bytes = op->bytes;
                copy.offset = op->offset;
                memcpy(&p->code[at], &copy, sizeof copy);
                at += LAPI_DGSM_COPY_SIZE;
                break;
            }
            case LAPI_DGSM_MCOPY: {
                union {
                    lapi_dgsm_mcopy_t mcopy;
                    char room[sizeof(lapi_dgsm_mcopy_t) + MAX_BLOCKS * sizeof(lapi_dgsm_block_t)];
                } u;
                int ints = LAPI_DGSM_MCOPY_SIZE + (op->count - 1) * LAPI_DGSM_MCOPY_BLOCK_SIZE;
                bzero(&u, sizeof u);
                u.mcopy.opcode = LAPI_DGSM_MCOPY;
                u.mcopy.count = op->count;
                for (b = 0; b < op->count; b++) {
                    lapi_dgsm_block_t block = {op->disp[b], op->len[b]};
                    size_t where = offsetof(lapi_dgsm_mcopy_t, block) + (size_t)b * sizeof block;
                    memcpy(u.room + where, &block, sizeof block);
                }
                memcpy(&p->code[at], &u, (size_t)ints * sizeof(int));
                at += ints;
                break;
            }
            case LAPI_DGSM_GOSUB: {
                lapi_dgsm_gosub_t gosub;
                bzero(&gosub, sizeof gosub);
                gosub.opcode = LAPI_DGSM_GOSUB;
                gosub.to_loc = start[op->routine] - at;
                gosub.ret_loc = LAPI_DGSM_GOSUB_SIZE + op->pad;
                gosub.reps = op->reps;
                gosub.offset = op->offset;
                gosub.stride = op->stride;
                memcpy(&p->code[at], &gosub, sizeof gosub);
                at += LAPI_DGSM_GOSUB_SIZE + op->pad;
                break;
            }
            default: {
                lapi_dgsm_control_t control;
                bzero(&control, sizeof control);
                control.opcode = LAPI_DGSM_CONTROL;
                control.operation = op->operation;
                control.operand = op->operand;
                memcpy(&p->code[at], &control, sizeof control);
                at += LAPI_DGSM_CONTROL_SIZE;
            }
            }
        }
        {
            lapi_dgsm_iterate_t iterate;
            bzero(&iterate, sizeof iterate);
            iterate.opcode = LAPI_DGSM_ITERATE;
            iterate.iter_loc = start[r] - at;
            memcpy(&p->code[at], &iterate, sizeof iterate);
        }
        at += LAPI_DGSM_ITERATE_SIZE;
        if (at > p->descr.code_size) p->descr.code_size = at;
    }
    bzero(&once, sizeof once);
    once.left = LONG_MAX;
    once.operation = LAPI_DGSM_NO_CTL;
    p_run(p, 0, 0, &once);
    p->size = LONG_MAX - once.left;
    p_bounds(&once, &p->low, &p->high);
    free(once.list);
    p->descr.code = p->code;
    p->descr.depth = p->depth ? p->depth : 1;
    p->descr.density = LAPI_DGSM_SPARSE;
    p->descr.size = p->size;
    p->descr.extent = extent;
    p->descr.lext = p->low;
    p->descr.rext = p->high;
}

/* --- LAPI_Util --- */

static inline int p_try(program *p) {
    lapi_util_t util;
    int result;
    bzero(&util, sizeof util);
    util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
    util.RegDgsp.idgsp = &p->descr;
    result = LAPI_Util(t_hndl, &util);
    if (result == LAPI_SUCCESS) p->handle = util.RegDgsp.dgsp_handle;
    return result;
}

static inline lapi_dg_handle_t p_register(program *p) {
    OK(p_try(p));
    CHECK(p->handle != NULL);
    return p->handle;
}

static inline int p_reserve(lapi_dg_handle_t handle) {
    lapi_util_t util;
    bzero(&util, sizeof util);
    util.ResvDgsp.Util_type = LAPI_RESERVE_DGSP;
    util.ResvDgsp.dgsp_handle = handle;
    return LAPI_Util(t_hndl, &util);
}

static inline int p_unreserve(lapi_dg_handle_t handle) {
    lapi_util_t util;
    bzero(&util, sizeof util);
    util.DrefDgsp.Util_type = LAPI_UNRESERVE_DGSP;
    util.DrefDgsp.dgsp_handle = handle;
    return LAPI_Util(t_hndl, &util);
}

static inline int p_ddm(lapi_handle_t hndl, ddm_func_t *function) {
    lapi_util_t util;
    bzero(&util, sizeof util);
    util.DdmFunc.Util_type = LAPI_REG_DDM_FUNC;
    util.DdmFunc.ddm_func = function;
    return LAPI_Util(hndl, &util);
}

/* --- random programs --- */

/* What a random program may be like. Lengths and distances are multiples of `atom`. */
typedef struct {
    int depth;
    long atom, longest, reach, largest; /* a copy, offsets and strides, one application; in bytes */
    int controls;
} taste;

static inline long p_multiple(uint64_t *random, long below, long atom) {
    return (long)t_below(random, (uint64_t)(below / atom) + 1) * atom;
}

static inline long p_offset(uint64_t *random, const taste *like) {
    return p_multiple(random, 2 * like->reach, like->atom) - like->reach / like->atom * like->atom;
}

static inline long p_some(uint64_t *random, const taste *like) {
    switch (t_below(random, 4)) {
    case 0: return like->atom * (1 + (long)t_below(random, 2));
    case 1: return t_below(random, 8) ? like->atom * 8 / (like->atom > 8 ? 8 : like->atom) : 0;
    default: return p_multiple(random, like->longest, like->atom);
    }
}

static inline void p_body(program *p, int r, int level, int depth, uint64_t *random, const taste *like) {
    int ops = 1 + (int)t_below(random, MAX_OPS - 2), deeper = level < depth ? (int)t_below(random, (uint64_t)ops) : -1;
    int i, b;
    p->n = r + 1;
    for (i = 0; i < ops; i++) {
        instruction *op;
        if (like->controls && p->routines[r].n + ops - i < MAX_OPS && t_below(random, 3) == 0)
            p_control(p, r, (int)t_below(random, 5) - 1, (int)t_below(random, 100) - 50);
        /* One call goes to a deeper level; others may call routines of deeper levels again. */
        if (i == deeper || (level < depth && p->n > r + 2 && t_below(random, 6) == 0)) {
            int to = i == deeper ? p->n : r + 1 + (int)t_below(random, (uint64_t)(p->n - r - 1));
            long stride = p_some(random, like) + like->atom;
            if (t_below(random, 3) == 0) stride = p_offset(random, like) / 8 / like->atom * like->atom;
            if (to < MAX_ROUTINES) {
                long reps = (long)t_below(random, level < 3 ? 6 : 4);
                p_gosub(p, r, to, i == deeper && reps == 0 ? 1 : reps, p_offset(random, like), stride);
                p->routines[r].ops[p->routines[r].n - 1].pad = t_below(random, 6) ? 0 : (int)t_below(random, 4);
                if (to == p->n) p_body(p, to, level + 1, depth, random, like);
                continue;
            }
        }
        if (t_below(random, 2)) {
            p_copy(p, r, p_some(random, like), p_offset(random, like));
            continue;
        }
        op = p_op(p, r, LAPI_DGSM_MCOPY);
        op->count = (int)t_below(random, MAX_BLOCKS + 1);
        for (b = 0; b < op->count; b++) {
            op->len[b] = p_some(random, like);
            op->disp[b] = t_below(random, 4) == 0 && b > 0 ? op->disp[b - 1] + op->len[b - 1] : p_offset(random, like);
        }
    }
}

static inline int p_depth(const program *p, int r) {
    int i, deepest = 0;
    for (i = 0; i < p->routines[r].n; i++)
        if (p->routines[r].ops[i].opcode == LAPI_DGSM_GOSUB) {
            int below = p_depth(p, p->routines[r].ops[i].routine);
            if (below > deepest) deepest = below;
        }
    return deepest + 1;
}

/* How many bytes a routine moves, in how many copies. */
static inline void p_weigh(const program *p, int r, double *bytes, double *copies) {
    int i, b;
    for (i = 0; i < p->routines[r].n; i++) {
        const instruction *op = &p->routines[r].ops[i];
        double inner_bytes = 0, inner_copies = 0;
        *copies += 1;
        if (op->opcode == LAPI_DGSM_COPY) *bytes += (double)op->bytes;
        for (b = 0; op->opcode == LAPI_DGSM_MCOPY && b < op->count; b++) *bytes += (double)op->len[b], *copies += 1;
        if (op->opcode != LAPI_DGSM_GOSUB) continue;
        p_weigh(p, op->routine, &inner_bytes, &inner_copies);
        *bytes += (double)op->reps * inner_bytes;
        *copies += (double)op->reps * inner_copies;
    }
}

/* A program that moves something. Every depth up to like->depth is as likely. */
static inline program *p_random(uint64_t *random, const taste *like) {
    int depth = 1 + (int)t_below(random, (uint64_t)like->depth);
    for (;;) {
        program *p = p_new();
        double bytes = 0, copies = 0;
        long extent;
        p_body(p, 0, 1, depth, random, like);
        p_weigh(p, 0, &bytes, &copies);
        p->depth = p_depth(p, 0);
        if (p->depth == depth && bytes > 0 && bytes <= like->largest && copies < 20000) {
            p_write(p, 0, t_random(random));
            extent = p->high - p->low + p_multiple(random, 64, like->atom);
            if (t_below(random, 3) == 0) extent = p_offset(random, like) / 4 / like->atom * like->atom;
            p->descr.extent = extent;
            return p;
        }
        free(p);
    }
}

#endif

/*
 * One side of a vector transfer: which bytes of an area it means, as a vector of any type, and what
 * must be there.
 *
 * Areas are filled with POISON. A side's data is what t_fill() makes, in the order of the pieces.
 */
#ifndef VECTORS_VEC_H
#define VECTORS_VEC_H

#include "../common/ltest.h"

#define POISON 0xee

typedef struct {
    lapi_vectype_t type;
    uint count;
    ulong *at, *len;     /* offset and length of each piece, or of each block of a strided vector */
    ulong block, stride; /* of a strided vector */
    ulong bytes;         /* all pieces together */
    ulong area;          /* how much of the area may be touched, what must not change included */
} side;

/* The layout of pieces: with gaps, contiguous, with gaps and unordered. */
enum { SPREAD, TOUCHING, SHUFFLED, PLACEMENTS };

#define VEC_GUARD 96

static inline void *v_alloc(size_t bytes) {
    void *memory = malloc(bytes + 1);
    CHECK(memory != NULL);
    return memory;
}

static inline side v_empty(lapi_vectype_t type, uint count) {
    side s;
    bzero(&s, sizeof s);
    s.type = type;
    s.count = count;
    s.at = v_alloc(count * sizeof *s.at);
    s.len = v_alloc(count * sizeof *s.len);
    return s;
}

/* Pieces of these lengths; gaps and order follow from the seed. */
static inline side v_pieces(lapi_vectype_t type, uint count, const ulong *len, int placement, uint64_t seed) {
    side s = v_empty(type, count);
    uint *order = v_alloc(count * sizeof *order), i;
    ulong end = VEC_GUARD + t_below(&seed, 8);
    for (i = 0; i < count; i++) order[i] = i;
    for (i = count; placement == SHUFFLED && i > 1; i--) {
        uint j = (uint)t_below(&seed, i), old = order[i - 1];
        order[i - 1] = order[j];
        order[j] = old;
    }
    for (i = 0; i < count; i++) {
        s.at[order[i]] = end;
        s.len[order[i]] = len[order[i]];
        s.bytes += len[order[i]];
        end += len[order[i]] + (placement == TOUCHING ? 0 : t_below(&seed, 24));
    }
    s.area = end + VEC_GUARD;
    free(order);
    return s;
}

static inline side v_strided(uint count, ulong block, ulong stride, ulong misalign) {
    side s = v_empty(LAPI_GEN_STRIDED_XFER, count);
    uint i;
    s.block = block;
    s.stride = stride;
    s.bytes = count * block;
    for (i = 0; i < count; i++) {
        s.at[i] = VEC_GUARD + misalign + i * stride;
        s.len[i] = block;
    }
    s.area = 2 * VEC_GUARD + misalign + count * stride;
    return s;
}

static inline void v_free(side *s) {
    free(s->at);
    free(s->len);
    s->at = s->len = NULL;
}

/* The vector that says so to LAPI, in an area at `base`. */
static inline lapi_vec_t *v_vector(const side *s, void *base) {
    lapi_vec_t *vec = v_alloc(sizeof *vec);
    uint i;
    bzero(vec, sizeof *vec);
    vec->vec_type = s->type;
    vec->num_vecs = s->count;
    if (s->type == LAPI_GEN_STRIDED_XFER) {
        vec->info = v_alloc(3 * sizeof *vec->info);
        vec->info[0] = (char *)base + (s->count ? s->at[0] : 0);
        vec->info[1] = (void *)s->block;
        vec->info[2] = (void *)s->stride;
        return vec;
    }
    vec->info = v_alloc(s->count * sizeof *vec->info);
    vec->len = v_alloc(s->count * sizeof *vec->len);
    for (i = 0; i < s->count; i++) {
        vec->info[i] = (char *)base + s->at[i];
        vec->len[i] = s->len[i];
    }
    return vec;
}

/* The same with addresses of 64 bits whatever the size of a pointer. */
static inline lapi_lvec_t *v_long_vector(const side *s, void *base) {
    lapi_lvec_t *vec = v_alloc(sizeof *vec);
    uint i, strided = s->type == LAPI_GEN_STRIDED_XFER;
    bzero(vec, sizeof *vec);
    vec->vec_type = s->type;
    vec->num_vecs = s->count;
    vec->info = v_alloc((strided ? 3 : s->count) * sizeof *vec->info);
    if (strided) {
        vec->info[0] = t_long((char *)base + (s->count ? s->at[0] : 0));
        vec->info[1] = s->block;
        vec->info[2] = s->stride;
        return vec;
    }
    vec->len = v_alloc(s->count * sizeof *vec->len);
    for (i = 0; i < s->count; i++) {
        vec->info[i] = t_long((char *)base + s->at[i]);
        vec->len[i] = s->len[i];
    }
    return vec;
}

/* The vector belongs to the program again: the test detects a late read by the library. */
static inline void v_spoil(lapi_vec_t *vec) {
    size_t entries = vec->vec_type == LAPI_GEN_STRIDED_XFER ? 3 : vec->num_vecs;
    memset(vec->info, 0x99, entries * sizeof *vec->info);
    if (vec->len != NULL) memset(vec->len, 0x99, entries * sizeof *vec->len);
    free(vec->info);
    free(vec->len);
    memset(vec, 0x99, sizeof *vec);
    free(vec);
}

static inline void v_spoil_long(lapi_lvec_t *vec) {
    size_t entries = vec->vec_type == LAPI_GEN_STRIDED_XFER ? 3 : vec->num_vecs;
    memset(vec->info, 0x99, entries * sizeof *vec->info);
    free(vec->info);
    free(vec->len);
    memset(vec, 0x99, sizeof *vec);
    free(vec);
}

static inline void v_poison(const side *s, void *base) { memset(base, POISON, s->area); }

static inline void v_fill(const side *s, void *base, uint64_t seed) {
    char *packed = v_alloc(s->bytes), *from = packed;
    uint i;
    t_fill(packed, s->bytes, seed);
    for (i = 0; i < s->count; i++) {
        memcpy((char *)base + s->at[i], from, s->len[i]);
        from += s->len[i];
    }
    free(packed);
}

/* Where the first `bytes` bytes of a side differ from its data; -1: nowhere. */
static inline long v_differs(const side *s, const void *base, ulong bytes, uint64_t seed) {
    char *packed = v_alloc(bytes);
    ulong done = 0, now;
    long where;
    uint i;
    for (i = 0; i < s->count && done < bytes; i++) {
        now = s->len[i] < bytes - done ? s->len[i] : bytes - done;
        memcpy(packed + done, (const char *)base + s->at[i], now);
        done += now;
    }
    CHECK(done == bytes);
    where = t_differs(packed, bytes, seed);
    free(packed);
    return where;
}

/* The first `bytes` bytes of a side hold its data, and nothing else of the area has changed.
 * Poisons the area. */
#define V_CHECK(s, base, bytes, seed) v_check(__FILE__, __LINE__, (s), (base), (bytes), (seed))
static inline void v_check(const char *file, int line, const side *s, void *base, ulong bytes, uint64_t seed) {
    unsigned char *area = base;
    long where = v_differs(s, base, bytes, seed);
    ulong done = 0, now, j;
    uint i;
    if (where >= 0)
        t_fail(file, line, "byte %ld of %lu in %u pieces (type %d) is not what was sent", where, bytes, s->count,
               s->type);
    for (i = 0; i < s->count && done < bytes; i++) {
        now = s->len[i] < bytes - done ? s->len[i] : bytes - done;
        memset(area + s->at[i], POISON, now);
        done += now;
    }
    if (area[0] == POISON && memcmp(area, area + 1, s->area - 1) == 0) return;
    for (j = 0; area[j] == POISON; j++)
        ;
    t_fail(file, line, "byte %lu of the area, in no piece, has changed: %lu bytes in %u pieces (type %d)", j, bytes,
           s->count, s->type);
}

#endif

/* Messages that programs of the gather/scatter machine describe at one end or at both. */
#ifndef DGSP_MESSAGE_H
#define DGSP_MESSAGE_H

#include "program.h"

#define AREA_GUARD 128

/* The layout of one end of a message in an area. */
typedef struct {
    program *p; /* none: the bytes are contiguous */
    trace t;
    long bytes, base, area; /* the place of offset 0 in the area, and the size of the area */
} end;

/* The first `bytes` bytes of a program, which the end takes over; or contiguous bytes. */
static inline end e_make(program *p, long bytes) {
    long low = 0, high = bytes;
    end e;
    bzero(&e, sizeof e);
    e.p = p;
    e.bytes = bytes;
    if (p != NULL) {
        e.t = p_trace(p, bytes);
        p_bounds(&e.t, &low, &high);
    } else {
        e.t.left = bytes;
        e.t.operation = LAPI_DGSM_NO_CTL;
        p_emit(&e.t, 0, bytes);
    }
    e.base = AREA_GUARD - low;
    e.area = high - low + 2 * AREA_GUARD;
    return e;
}

/* Leaves the first bytes of a program out: the message begins behind them. */
static inline void e_skip(end *e, long bytes) {
    copy *c = e->t.list;
    e->bytes -= bytes;
    for (; bytes > 0; c++) {
        long now = c->len < bytes ? c->len : bytes;
        c->at += now;
        c->len -= now;
        bytes -= now;
    }
}

static inline void e_free(end *e) {
    free(e->t.list);
    free(e->p);
    e->t.list = NULL;
    e->p = NULL;
}

static inline lapi_dg_handle_t e_register(end *e) { return e->p == NULL ? NULL : p_register(e->p); }
static inline void e_unreserve(end *e) {
    if (e->p != NULL) OK(p_unreserve(e->p->handle));
}

/* The address of offset 0, which may be outside the area. */
static inline void *e_base(const end *e, void *area) { return (void *)((uintptr_t)area + (uintptr_t)e->base); }

/* The bytes of an area in the order in which they are sent. */
static inline unsigned char *e_stream(const end *e, const unsigned char *area) {
    unsigned char *stream = malloc((size_t)e->bytes + 1), *to = stream;
    long i;
    CHECK(stream != NULL);
    for (i = 0; i < e->t.n; i++) {
        memcpy(to, area + e->base + e->t.list[i].at, (size_t)e->t.list[i].len);
        to += e->t.list[i].len;
    }
    CHECK(to == stream + e->bytes);
    return stream;
}

/*
 * Fails unless these bytes have been put into an area that t_fill() had filled, and nothing else
 * has changed. Where a program goes twice, one of the values must be there.
 */
static inline void e_check(const char *file, int line, const end *e, const unsigned char *area, uint64_t filled,
                           const unsigned char *stream) {
    unsigned char *written = calloc(1, (size_t)e->area), *before = malloc((size_t)e->area);
    long i, k, next = 0;
    CHECK(written != NULL && before != NULL);
    t_fill(before, (size_t)e->area, filled);
    for (i = 0; i < e->t.n; i++)
        for (k = 0; k < e->t.list[i].len; k++) {
            long at = e->base + e->t.list[i].at + k;
            written[at] |= stream[next++] == area[at] ? 3 : 1;
        }
    for (i = 0; i < e->area; i++) {
        if (written[i] == 1) t_fail(file, line, "byte %ld of an area of %ld is not what was sent", i, e->area);
        if (written[i] == 0 && area[i] != before[i])
            t_fail(file, line, "byte %ld of an area of %ld, which no copy reaches, has changed", i, e->area);
    }
    free(written);
    free(before);
}
#define E_CHECK(e, area, filled, stream) e_check(__FILE__, __LINE__, (e), (area), (filled), (stream))

#endif

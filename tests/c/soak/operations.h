/* What handlers must know of the operations that bring their messages. */
#ifndef SOAK_OPERATIONS_H
#define SOAK_OPERATIONS_H

#include "../vectors/vec.h"
#include "soak.h"

/* Kinds of operations, for the totals; tests/src/soak.rs has their names. */
enum { PUT, GET, AM, AM_LW, PUTV, GETV, AMV, DGSP, RMW, RMW64, XFER, BURST_OF, FENCE, TOGGLE, LOCKED, PACK, ASK, NOPOLL,
       FETCHED_BY_HANDLER, GFENCE, EXCHANGE, LOST };

typedef struct {
    uint32_t era, life;
    int src, worker;
    uint64_t seed;
    uint32_t len, round;
} light_t;

/* A layout at the target, in pieces. */
enum { PIECE = 56, APART = 80 };
extern lapi_dg_handle_t scattering;

/* One side of a vector transfer: it follows from the seed, the type, and which side it is. */
enum { ORIGIN, TARGET, HOME };
side shape(uint64_t seed, int type, int which);

#endif

/* What handlers use of the operations that send their messages. */
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

/* How a thread waits for a counter. The last three check themselves whether their
 * target is lost. */
enum { WAITCNTR, NOPOLL_WAIT, GETCNTR, MSGPOLL, PROBE };

typedef struct {
    int number;
    pthread_t tid;
    uint64_t random, operations;
    unsigned char out[LARGE], home[LARGE], vector[ROOM], vector_home[ROOM];
    lapi_cntr_t cntr, org;
    int style, status[BURST + 2], locked;
    atomic_uint_fast64_t handled;             /* by a completion handler at the origin: the number of the operation */
    atomic_uint_fast64_t reported, accepted;  /* send completion handlers */
    /* Under the mutex: the task for which it waits in LAPI_Waitcntr, so that it can be woken. */
    pthread_mutex_t mutex;
    int waits_for, count, rescued;
    /* What our words at each task are, if that is known. */
    int32_t word[MOST];
    uint64_t word_life[MOST];
} worker_t;

extern worker_t workers[WORKERS];

/* Before an operation that increments the thread's counter n times: sets it to 0, and selects how
 * the thread waits for it. */
void prepare(worker_t *w, int tgt, int n);
/* Waits until the counter is at n, and takes that off. 0: the target is lost, and it will
 * not get there. */
int settle(worker_t *w, int tgt, int n);
/*
 * Then waits for the origin counter, and for the send completion handlers, which are always called,
 * whatever happens to the target.
 */
void origin_settles(worker_t *w, int tgt, int n);
void look_around(worker_t *w);
/* Waits for a condition that no counter shows. 0: the target is lost. */
#define AWAIT(w, cond, tgt) \
    ({ \
        while (!(cond) && !lost[tgt]) look_around(w); \
        (cond); \
    })

/* The send completion handler of all; its parameter is the worker. */
void sending_is_over(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info);

note_t note_of(worker_t *w, int flavour, size_t len, uint64_t seed, int interest);
#define ARRIVAL (&arrivals[t_me][era % ERAS])

/* Operations return 0 when their target is lost; otherwise they are complete when they return. */
int do_vectors(worker_t *w, int tgt);
int do_vector_message(worker_t *w, int tgt);
int do_layout(worker_t *w, int tgt);

#endif

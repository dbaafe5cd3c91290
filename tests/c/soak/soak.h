/*
 * Declarations that the files of the soak share. soak.c is the main loop of a task, operations.c
 * has the operations of its threads, handlers.c the handlers at the target, board.c the
 * communication with the driver.
 */
#ifndef SOAK_H
#define SOAK_H

#include "../common/ltest.h"

#include <stdatomic.h>

enum { MOST = 16, WORKERS = 3, LARGE = 128 << 10, ROOM = 96 << 10, BURST = 8, ERAS = 16 };

/* ---- the board: one page that all tasks and their driver see, without LAPI
 * (tests/src/soak/board.rs has the same) ---- */

typedef struct {
    _Atomic uint64_t era;  /* how many deaths there have been */
    _Atomic uint64_t go;   /* all tasks are there for this era */
    _Atomic uint64_t stop; /* the soak shall end */
    uint64_t seed, unused[12];
    _Atomic uint64_t life[MOST];     /* how often each task has died; known before it dies */
    _Atomic uint64_t ready[MOST];    /* for which era each is ready */
    _Atomic uint64_t running[MOST];  /* in which era each has got going */
    _Atomic uint64_t phase[MOST];    /* the phase of each */
    _Atomic uint64_t progress[MOST]; /* incremented with every step of each */
    _Atomic uint64_t purged[MOST];   /* how many deaths each has dealt with */
    _Atomic uint64_t done[32];       /* operations by kind, of all tasks */
    _Atomic uint64_t bytes, rounds, purges, resumes, reported, stragglers, replies, drops, unused2[8];
    _Atomic uint64_t calls[MOST];   /* the era times CALLS, and the collective calls in it, when it is over for a task */
    _Atomic uint64_t most[MOST][4]; /* the most descriptors, mappings, threads, KiB of each */
    _Atomic uint64_t knows[MOST];   /* up to which era each knows of a death by LAPI */
} board_t;

enum { STARTING, WORKING, FENCING, EXCHANGING, CLAIMING, PARTING, COUNTING, MEETING, BEGINNING, ENDING };

extern board_t *board;
void board_open(void);
void at_phase(int phase);

/* ---- eras, rounds, and the tasks present ---- */

/*
 * Nothing of one era may arrive in another. In an era there are rounds, each of which ends with a
 * fence of all tasks.
 */
extern _Atomic uint64_t era, soak_round;
extern _Atomic uint64_t life[MOST]; /* of each task, the life that this one knows */
extern atomic_int reported[MOST];       /* the error handler or a call has reported that it is lost */
extern atomic_int lost[MOST];       /* purged */
extern atomic_int giving_up;        /* a task is lost: this era is over */

/* Whether the task is dead or purged: calls that name it may fail, and operations with it may
 * not complete. */
int gone(int task);
/* Checks a return code: 1 for success, 0 when the target is lost, which the call may report; any
 * other ends the soak. */
int went(const char *what, int code, int tgt);
#define WENT(call, tgt) went(#call, (call), (tgt))

/* ---- what messages say of themselves ---- */

enum { PLACED, OWN_BUFFER, TAKEN, BURIED, DROPPED, INLINE, FETCHING, LOOK, LOOK_BURST, SCATTERED, FLAVOURS, CLAIM, REPLY, LIGHT,
       PIECES };

typedef struct {
    uint64_t era, round, life, number, seed, len;
    int src, worker, flavour, interest;
} note_t;

/*
 * What one task has done to another in an era. Each side counts; the origin's claim must be what
 * the target has seen.
 */
typedef struct {
    _Atomic uint64_t counters, messages, light, added;
} account_t;

extern account_t sent[MOST];               /* of the present era */
extern account_t seen[MOST][ERAS];         /* by source and era */
extern _Atomic uint64_t replies[MOST][ERAS], replies_due[MOST];
extern lapi_cntr_t arrivals[MOST][ERAS];   /* target counters, likewise */
extern long long sums[MOST][ERAS];         /* read-modify-writes add here */

typedef struct {
    _Atomic uint64_t era, round, final; /* `era` is written last; plus 1: 0 for none */
    uint64_t counters, messages, light, added;
} claim_t;
extern claim_t claims[MOST];

/* Where the threads of each task write in others. */
typedef struct {
    unsigned char put[LARGE], message[LARGE], vector[ROOM], burst[BURST][256];
    int32_t word;
    long long wide;
} place_t;
extern place_t places[MOST][WORKERS];
extern unsigned char library[LARGE]; /* what gets fetch; the same in each task but for its number */
uint64_t library_seed(int task);

void *arrived(lapi_handle_t *, void *, uint *, ulong *, compl_hndlr_t **, void **);
lapi_vec_t *arrived_in_pieces(lapi_handle_t *, void *, uint *, ulong *, compl_hndlr_t **, void **);
void *claimed(lapi_handle_t *, void *, uint *, ulong *, compl_hndlr_t **, void **);
void handlers_init(void);
/* The task is purged: waits for its completion handlers that run, and throws away what had
 * not arrived. */
void handlers_part(int task);
enum { LIGHT_INDEX = 5, REPLY_INDEX = 6 };

/* ---- the workers ---- */

/* Lets each worker do this number of operations. */
void workers_start(int count);
/* Whether all are done. */
int workers_idle(void);
/* Wakes those that wait for a task that is lost. */
void workers_rescue(int task);
void workers_init(uint64_t seed);
void work_done(int kind, uint64_t bytes);

#endif

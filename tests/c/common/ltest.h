/*
 * What the C test programs share. Include it first.
 *
 * A check that fails prints where, in which task, what was found and what was expected, and ends
 * the task with status T_FAILED, which ends the whole job. A task in which all held prints one line
 * "PASS TASK" at t_done().
 */
#ifndef LTEST_H
#define LTEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <lapi.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The exit status of a failed check: 128 and above ends a job. */
#define T_FAILED 199

extern lapi_handle_t t_hndl; /* the handle of t_init() */
extern int t_me, t_tasks;    /* TASK_ID and NUM_TASKS of it */

#define T_FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)                                                                                              \
    do {                                                                                                         \
        if (!(cond)) T_FAIL("%s does not hold", #cond);                                                          \
    } while (0)
/* Like CHECK, with a printf message that says with which values. */
#define CHECK_FOR(cond, ...)                                                                                     \
    do {                                                                                                         \
        if (!(cond)) T_FAIL(__VA_ARGS__);                                                                        \
    } while (0)
#define CHECK_EQ(got, want) t_check_eq(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
#define CHECK_PTR(got, want) t_check_ptr(__FILE__, __LINE__, #got, (const void *)(got), (const void *)(want))
/* A call that must succeed. */
#define OK(call) t_returns(__FILE__, __LINE__, #call, (call), LAPI_SUCCESS)
/* A call that must return this code. */
#define RETURNS(call, code) t_returns(__FILE__, __LINE__, #call, (call), (code))

void t_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
void t_check_eq(const char *file, int line, const char *what, long long got, long long want);
void t_check_ptr(const char *file, int line, const char *what, const void *got, const void *want);
void t_returns(const char *file, int line, const char *call, int got, int want);

/* LAPI_Init without options; sets t_hndl, t_me and t_tasks. */
void t_init(void);
/* LAPI_Init with a filled-in structure. */
void t_init_with(lapi_info_t *info);
/* LAPI_Gfence, LAPI_Term, and the line that reports success. */
void t_done(void);
/* Only that line. */
void t_pass(void);

int t_query(lapi_query_t query);                 /* LAPI_Qenv */
void t_set(lapi_query_t attribute, int value);   /* LAPI_Senv */
void t_fence(void);                              /* LAPI_Gfence */
void **t_addresses(void *mine);                  /* LAPI_Address_init into a new table, never freed */
int t_value(lapi_cntr_t *cntr);                  /* LAPI_Getcntr */
int t_wait(lapi_cntr_t *cntr, int val);          /* LAPI_Waitcntr; returns the remaining value */
void t_wait_exact(lapi_cntr_t *cntr, int val);   /* LAPI_Waitcntr; the remaining value must be 0 */
void t_probe_until(volatile int *flag, int val); /* LAPI_Probe until *flag >= val */
lapi_long_t t_long(const void *pointer);
/* How many rounds a test has: fewer over the network (TEST_TRANSPORT), where a round trip takes a
 * hundred times as long. */
int t_rounds(int rounds);
/* The tasks that share memory with this one according to how the harness has placed them: from
 * *from to *to - 1. */
void t_sharing(int task, int *from, int *to);

/*
 * A task is still in LAPI_Gfence for a moment when another one has returned from it, and
 * can receive a message there. One that must find the task outside of LAPI waits until
 * that task says so.
 */
void **t_processes(void);             /* The process numbers of all tasks, for the functions below */
void t_leaves(void);                  /* This task, in its first thread, has made its last call, or its last one for now */
void t_until_outside(void *process);  /* Until that task has said so */
void t_until_ended(void *process);    /* Until its process has ended */
char t_state_of(void *process);       /* Its state as /proc has it: T is stopped, Z has ended, and X is not there any more */

/* Numbers from a seed (splitmix64). */
uint64_t t_random(uint64_t *state);
uint64_t t_below(uint64_t *state, uint64_t limit);
/* A hash of up to three numbers, for seeds. */
uint64_t t_seed(uint64_t a, uint64_t b, uint64_t c);

/* Fills memory with bytes that follow from the seed, and says where memory differs from them
 * (-1: nowhere). */
void t_fill(void *at, size_t len, uint64_t seed);
long t_differs(const void *at, size_t len, uint64_t seed);
#define CHECK_FILLED(at, len, seed) t_check_filled(__FILE__, __LINE__, (at), (len), (seed))
void t_check_filled(const char *file, int line, const void *at, size_t len, uint64_t seed);

/*
 * Memory between guards. A piece of an arena is chosen with t_place(): the T_GUARD bytes before it
 * and behind it are guards from then on, and t_guards() fails when one of them has changed.
 */
#define T_GUARD 64
typedef struct {
    unsigned char *memory; /* 4096-aligned, the same in every task only if the allocator says so */
    size_t room;
    unsigned char *at; /* the piece chosen last */
    size_t len;
} t_arena;
void t_arena_init(t_arena *arena, size_t largest);
/* Chooses `len` bytes at an address that is `misalign` modulo 64, fills them with a poison, sets
 * the guards. */
unsigned char *t_place(t_arena *arena, size_t len, unsigned misalign);
/* Where t_place() would put it in the arena of another task, whose memory begins at `memory`. */
unsigned char *t_place_at(void *memory, unsigned misalign);
#define CHECK_GUARDS(arena) t_check_guards(__FILE__, __LINE__, (arena))
void t_check_guards(const char *file, int line, const t_arena *arena);

/* The lengths 0, 1, 7, 8, 9 and every power of two from 16 up to `largest` with its two
 * neighbours. */
size_t t_lengths(size_t *list, size_t room, size_t largest);

#endif

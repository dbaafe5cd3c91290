/*
 * What the programs of this folder have in common: two processes on two hosts, the sizes, and the
 * way a figure is taken.
 *
 * Each system (LAPI, MPI, libfabric, sockets) implements the functions below and a list of
 * patterns. Process 0 measures: it runs the active part of a pattern, process 1 the passive one,
 * and both meet after each batch. A figure is the median over batches.
 * After the last batch of a figure the process that has received data compares it. Process 0 prints
 *
 *     pattern size usec_per_operation
 */
#ifndef NET_BENCH_H
#define NET_BENCH_H

#include <stddef.h>
#include <stdint.h>

#define KIB 1024ul
#define MIB (1024ul * 1024ul)
#define LARGEST (16 * MIB)
/* Messages on their way, and bytes: the smaller one holds. */
#define WINDOW 16
#define WINDOW_BYTES (16 * MIB)

struct pattern {
    /* message: one way, two-sided; put, get: until the origin knows that the data is in place;
     * *_stream: a window of them */
    const char *name;
    void (*active)(size_t size);  /* one round on process 0 */
    void (*passive)(size_t size); /* one round on process 1; NULL: it waits in system_meet */
    int messages;                 /* a round has this number of operations; 0: the window */
    int receiver;                 /* the process that has the data at the end */
    size_t longest;               /* sizes above it are left out; 0: none is */
};

/* LARGEST bytes each: what is sent, and what is received. */
extern unsigned char *net_source, *net_target;

void net_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
size_t net_window(size_t size);

/* Of the system. */
extern const struct pattern system_patterns[]; /* ends with a name of NULL */
int system_start(int *argc, char ***argv);     /* returns the number of this process */
void system_meet(void);                        /* both processes are here; serves the other one meanwhile */
uint64_t system_share(uint64_t value);         /* the value of process 0 */
void system_end(void);

#endif

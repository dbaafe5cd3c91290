/*
 * The layouts that are measured, in terms of no library: blocks of bytes, applied at the points of
 * a grid, and all of that `repeat` times, `extent` bytes apart.
 */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <stddef.h>

#define MAX_DIMS 3

struct block {
    long offset, len;
};

struct layout {
    const char *name;
    long element;               /* what it consists of: 1, 2, 4, 8 or 16 bytes */
    long blocks;
    const struct block *block;  /* `blocks` of them */
    long dims;
    long count[MAX_DIMS];       /* outermost first */
    long stride[MAX_DIMS];
    long repeat, extent;
    long size;                  /* bytes of one application */
    long low, high;             /* its bounds */
    /* hand-written loops */
    void (*gather)(const struct layout *, const char *memory, char *packed);
    void (*scatter)(const struct layout *, char *memory, const char *packed);
};

/* What a library has to offer; each is written in a file of its own and linked into a program
 * of its own. */
extern const char *const system_name;
void system_start(int *argc, char ***argv);
void *system_prepare(const struct layout *);
void system_gather(void *prepared, const struct layout *, const char *memory, char *packed);
void system_scatter(void *prepared, const struct layout *, char *memory, const char *packed);
void system_release(void *prepared);
void system_end(void);

#endif

/*
 * Packs and unpacks common layouts by a library, by the loop that one would write by hand for the
 * layout, and by memcpy of as many bytes; in turns, so that the three see the same machine.
 *
 *     dgsp_bench [-t MILLISECONDS] [-k KIBIBYTES] [LAYOUT]
 *
 * prints one line for each layout and direction: system, layout, direction, bytes, and the
 * nanoseconds of the library, of the loop and of memcpy. A figure is the lower quartile of many
 * short batches: most of them see no interruption even when others use the machine. Every result is
 * compared with the loop's first.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layouts.h"

#define BATCHES 120

/* What the loops see is known at run time only, but for the type of the elements. */
#define STRIDED(type, name)                                                                                          \
    static void gather_##name(const struct layout *l, const char *memory, char *packed)                             \
    {                                                                                                                \
        const long n = l->count[0], stride = l->stride[0] / sizeof(type);                                            \
        const type *from = (const type *)memory;                                                                     \
        type *to = (type *)packed;                                                                                   \
        for (long i = 0; i < n; i++)                                                                                 \
            to[i] = from[i * stride];                                                                                \
    }                                                                                                                \
    static void scatter_##name(const struct layout *l, char *memory, const char *packed)                            \
    {                                                                                                                \
        const long n = l->count[0], stride = l->stride[0] / sizeof(type);                                            \
        const type *from = (const type *)packed;                                                                     \
        type *to = (type *)memory;                                                                                   \
        for (long i = 0; i < n; i++)                                                                                 \
            to[i * stride] = from[i];                                                                                \
    }

typedef struct {
    double re, im;
} complex16;

STRIDED(uint8_t, 1)
STRIDED(uint16_t, 2)
STRIDED(uint32_t, 4)
STRIDED(double, 8)
STRIDED(complex16, 16)

/* Every other element: here the compiler knows the stride. */
static void gather_other(const struct layout *l, const char *memory, char *packed)
{
    const double *from = (const double *)memory;
    double *to = (double *)packed;
    for (long i = 0; i < l->count[0]; i++)
        to[i] = from[2 * i];
}

static void scatter_other(const struct layout *l, char *memory, const char *packed)
{
    const double *from = (const double *)packed;
    double *to = (double *)memory;
    for (long i = 0; i < l->count[0]; i++)
        to[2 * i] = from[i];
}

/* Rows of a matrix. */
static void gather_rows(const struct layout *l, const char *memory, char *packed)
{
    const long row = l->block[0].len;
    for (long i = 0; i < l->count[0]; i++)
        memcpy(packed + i * row, memory + i * l->stride[0], row);
}

static void scatter_rows(const struct layout *l, char *memory, const char *packed)
{
    const long row = l->block[0].len;
    for (long i = 0; i < l->count[0]; i++)
        memcpy(memory + i * l->stride[0], packed + i * row, row);
}

/* A block of three dimensions, element by element. */
static void gather_cube(const struct layout *l, const char *memory, char *packed)
{
    const long row = l->block[0].len / sizeof(double);
    double *to = (double *)packed;
    for (long i = 0; i < l->count[0]; i++)
        for (long j = 0; j < l->count[1]; j++) {
            const double *from = (const double *)(memory + i * l->stride[0] + j * l->stride[1]);
            for (long k = 0; k < row; k++)
                *to++ = from[k];
        }
}

static void scatter_cube(const struct layout *l, char *memory, const char *packed)
{
    const long row = l->block[0].len / sizeof(double);
    const double *from = (const double *)packed;
    for (long i = 0; i < l->count[0]; i++)
        for (long j = 0; j < l->count[1]; j++) {
            double *to = (double *)(memory + i * l->stride[0] + j * l->stride[1]);
            for (long k = 0; k < row; k++)
                to[k] = *from++;
        }
}

/* Columns of a matrix, one after the other: a transposition. */
static void gather_columns(const struct layout *l, const char *memory, char *packed)
{
    double *to = (double *)packed;
    for (long i = 0; i < l->count[0]; i++)
        for (long j = 0; j < l->count[1]; j++)
            *to++ = *(const double *)(memory + i * l->stride[0] + j * l->stride[1]);
}

static void scatter_columns(const struct layout *l, char *memory, const char *packed)
{
    const double *from = (const double *)packed;
    for (long i = 0; i < l->count[0]; i++)
        for (long j = 0; j < l->count[1]; j++)
            *(double *)(memory + i * l->stride[0] + j * l->stride[1]) = *from++;
}

struct record {
    int id;
    double value;
    short kind;
};

static void gather_record(const struct layout *l, const char *memory, char *packed)
{
    const struct record *from = (const struct record *)memory;
    for (long i = 0; i < l->repeat; i++, packed += 14) {
        memcpy(packed, &from[i].id, 4);
        memcpy(packed + 4, &from[i].value, 8);
        memcpy(packed + 12, &from[i].kind, 2);
    }
}

static void scatter_record(const struct layout *l, char *memory, const char *packed)
{
    struct record *to = (struct record *)memory;
    for (long i = 0; i < l->repeat; i++, packed += 14) {
        memcpy(&to[i].id, packed, 4);
        memcpy(&to[i].value, packed + 4, 8);
        memcpy(&to[i].kind, packed + 12, 2);
    }
}

/* Doubles anywhere. */
static void gather_points(const struct layout *l, const char *memory, char *packed)
{
    double *to = (double *)packed;
    for (long i = 0; i < l->blocks; i++)
        to[i] = *(const double *)(memory + l->block[i].offset);
}

static void scatter_points(const struct layout *l, char *memory, const char *packed)
{
    const double *from = (const double *)packed;
    for (long i = 0; i < l->blocks; i++)
        *(double *)(memory + l->block[i].offset) = from[i];
}

/* Blocks of any length anywhere. */
static void gather_blocks(const struct layout *l, const char *memory, char *packed)
{
    for (long i = 0; i < l->blocks; packed += l->block[i++].len)
        memcpy(packed, memory + l->block[i].offset, l->block[i].len);
}

static void scatter_blocks(const struct layout *l, char *memory, const char *packed)
{
    for (long i = 0; i < l->blocks; packed += l->block[i++].len)
        memcpy(memory + l->block[i].offset, packed, l->block[i].len);
}

static uint64_t seed = 88172645463325252ull;

static long below(long bound)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % bound;
}

/* Blocks at random places that do not overlap, in any order. */
static struct block *scattered(long n, long least, long most)
{
    struct block *blocks = malloc(n * sizeof *blocks);
    long at = 0;

    for (long i = 0; i < n; i++) {
        blocks[i].offset = at;
        blocks[i].len = 8 * (least + below(most - least + 1));
        at += blocks[i].len + 8 * (1 + below(4));
    }
    for (long i = n - 1; i > 0; i--) {
        long j = below(i + 1);
        struct block other = blocks[i];
        blocks[i] = blocks[j];
        blocks[j] = other;
    }
    return blocks;
}

static struct block *block(long len)
{
    struct block *one = calloc(1, sizeof *one);
    one->len = len;
    return one;
}

#define LOOPS(name) .gather = gather_##name, .scatter = scatter_##name
#define ELEMENTS(label, bytes, gap, loops)                                                                           \
    {.name = label, .element = bytes, .blocks = 1, .block = block(bytes), .dims = 1, .count = {total / (bytes)},       \
     .stride = {gap}, LOOPS(loops)}

/* About `total` bytes each; returns how many there are. */
static size_t layouts(struct layout *all, long total)
{
    static const struct block fields[] = {{0, 4}, {8, 8}, {16, 2}};
    const long side = 64;
    struct layout list[] = {
        {.name = "contiguous", .element = 8, .blocks = 1, .block = block(total), .dims = 1, .count = {1},
         .stride = {total}, LOOPS(rows)},
        ELEMENTS("1_byte_of_3", 1, 3, 1),
        ELEMENTS("2_bytes_of_6", 2, 6, 2),
        ELEMENTS("4_bytes_of_12", 4, 12, 4),
        ELEMENTS("8_bytes_of_16", 8, 16, other),
        ELEMENTS("8_bytes_of_24", 8, 24, 8),
        ELEMENTS("16_bytes_of_48", 16, 48, 16),
        {.name = "2d_rows_of_512", .element = 8, .blocks = 1, .block = block(512), .dims = 1, .count = {total / 512},
         .stride = {1536}, LOOPS(rows)},
        {.name = "3d_rows_of_64", .element = 8, .blocks = 1, .block = block(64), .dims = 2,
         .count = {total / 64 / 16, 16}, .stride = {192 * 24, 192}, LOOPS(cube)},
        {.name = "3d_rows_of_256", .element = 8, .blocks = 1, .block = block(256), .dims = 2,
         .count = {total / 256 / 16, 16}, .stride = {768 * 24, 768}, LOOPS(cube)},
        {.name = "transposed", .element = 8, .blocks = 1, .block = block(8), .dims = 2,
         .count = {total / 8 / side, side}, .stride = {8, total / side}, LOOPS(columns)},
        {.name = "record_4_8_2", .element = 1, .blocks = 3, .block = fields, .repeat = total / 14,
         .extent = sizeof(struct record), LOOPS(record)},
        {.name = "indexed_8", .element = 8, .blocks = total / 8, .block = scattered(total / 8, 1, 1), LOOPS(points)},
        {.name = "indexed_8_to_96", .element = 8, .blocks = total / 52, .block = scattered(total / 52, 1, 12),
         LOOPS(blocks)},
    };
    const size_t n = sizeof list / sizeof *list;

    for (size_t i = 0; i < n; i++) {
        struct layout *l = &list[i];
        l->low = l->block[0].offset;
        for (long b = 0; b < l->blocks; b++) {
            const struct block *one = &l->block[b];
            l->size += one->len;
            l->low = one->offset < l->low ? one->offset : l->low;
            l->high = one->offset + one->len > l->high ? one->offset + one->len : l->high;
        }
        for (long d = 0; d < l->dims; d++) {
            l->size *= l->count[d];
            l->high += (l->count[d] - 1) * l->stride[d];
        }
        if (l->repeat == 0)
            l->repeat = 1, l->extent = l->high;
        all[i] = *l;
    }
    return n;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct {
    const struct layout *l;
    void *prepared;
    char *memory, *packed;
} job;

static void library_gathers(void) { system_gather(job.prepared, job.l, job.memory, job.packed); }
static void library_scatters(void) { system_scatter(job.prepared, job.l, job.memory, job.packed); }
static void loop_gathers(void) { job.l->gather(job.l, job.memory, job.packed); }
static void loop_scatters(void) { job.l->scatter(job.l, job.memory, job.packed); }
static void copies(void) { memcpy(job.packed, job.memory, job.l->size * job.l->repeat); }

static double batch(void (*run)(void), long rounds)
{
    const double start = now();
    for (long i = 0; i < rounds; i++) {
        run();
        __asm__ volatile("" ::: "memory");
    }
    return (now() - start) / rounds;
}

static void measure(const char *direction, double ms, void (*library)(void), void (*loop)(void))
{
    void (*const run[3])(void) = {library, loop, copies};
    double times[3][BATCHES];
    long rounds[3];

    for (int r = 0; r < 3; r++) {
        batch(run[r], 2);
        rounds[r] = ms * 1e6 / BATCHES / 3 / batch(run[r], 3) + 1;
    }
    for (int b = 0; b < BATCHES; b++)
        for (int r = 0; r < 3; r++)
            times[r][b] = batch(run[r], rounds[r]);
    for (int r = 0; r < 3; r++)
        qsort(times[r], BATCHES, sizeof **times, by_value);
    printf("%s %s %s %ld %.0f %.0f %.0f\n", system_name, job.l->name, direction, job.l->size * job.l->repeat,
           times[0][BATCHES / 4], times[1][BATCHES / 4], times[2][BATCHES / 4]);
    fflush(stdout);
}

static void same(const char *a, const char *b, size_t bytes, const char *what)
{
    if (memcmp(a, b, bytes) != 0) {
        fprintf(stderr, "%s: %s %s is wrong\n", system_name, job.l->name, what);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct layout all[32];
    double ms = 60;
    long total = 64 << 10;
    int option;

    system_start(&argc, &argv);
    while ((option = getopt(argc, argv, "t:k:")) != -1) {
        if (option == 't')
            ms = atof(optarg);
        else if (option == 'k')
            total = atol(optarg) << 10;
        else
            return 2;
    }
    if (total < 4 << 10) {
        fprintf(stderr, "dgsp_bench: the layouts need 4 KiB or more\n");
        return 2;
    }
    size_t n = layouts(all, total);
    for (size_t i = 0; i < n; i++) {
        const struct layout *l = &all[i];
        if (optind < argc && strcmp(argv[optind], l->name) != 0)
            continue;
        const size_t packed = l->size * l->repeat, memory = l->extent * l->repeat + l->high + packed;
        char *expected = malloc(memory), *buffer = malloc(packed);

        job.l = l;
        job.prepared = system_prepare(l);
        job.memory = aligned_alloc(64, (memory + 63) & ~63ul);
        job.packed = aligned_alloc(64, (packed + 63) & ~63ul);
        for (size_t b = 0; b < memory; b++)
            job.memory[b] = below(256);
        loop_gathers();
        memcpy(buffer, job.packed, packed);
        memset(job.packed, 0, packed);
        library_gathers();
        same(job.packed, buffer, packed, "gathered");
        measure("gather", ms, library_gathers, loop_gathers);

        for (size_t b = 0; b < packed; b++)
            job.packed[b] = buffer[b] = below(256);
        memset(job.memory, 7, memory);
        loop_scatters();
        memcpy(expected, job.memory, memory);
        memset(job.memory, 7, memory);
        library_scatters();
        same(job.memory, expected, memory, "scattered");
        measure("scatter", ms, library_scatters, loop_scatters);

        system_release(job.prepared);
        free(job.memory), free(job.packed), free(expected), free(buffer);
    }
    system_end();
    return 0;
}

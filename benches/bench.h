/*
 * Common code of the programs of this folder: a page that both processes map, the way a figure is
 * taken, and the line in which it is printed.
 *
 * A figure is the median over batches. A batch is long enough for the clock, and short enough that
 * most batches see no interruption. Directly before and after the batches the two processes bounce
 * one cache line, because the distance of the two processors may change under a virtual machine,
 * and two figures are comparable only when it was the same for both.
 *
 *     name size median_usec best_usec line_ns_before line_ns_after
 */
#ifndef BENCH_H
#define BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* no program here uses all of these functions */
#pragma GCC diagnostic ignored "-Wunused-function"

#define KIB 1024ul
#define MIB (1024ul * 1024ul)
#define MAX_BATCHES 64
#define LINE_ROUNDS 400
#define PEER_TIMEOUT_NS 20e9

/* Mapped by both processes. Each word that is written while timing runs has two cache lines of its
 * own (processors fetch lines in pairs). */
struct page {
    _Alignas(128) volatile uint64_t line;     /* the cache line that is bounced */
    _Alignas(128) volatile uint64_t phase[2]; /* how many times each process has reached bench_meet */
    _Alignas(128) volatile uint64_t rounds;   /* rounds that process 0 has chosen, as epoch << 32 | rounds */
    _Alignas(128) volatile uint64_t stop;     /* epoch of the last one-sided measurement that has ended */
    _Alignas(128) volatile uint64_t exchange[2];
};

struct bench {
    int rank;
    struct page *page;
    void (*progress)(void); /* keeps the library moving while this process waits on the page */
    double budget_ns;       /* time for the batches of one figure */
    const char *only;       /* measure only names that begin with this */
    uint64_t line_seq, phase, epoch;
};

/* One round as seen by this process; the sizes and buffers are the program's. */
typedef void (*round_fn)(size_t size);

static void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(1);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Process 0 on processor 0, process 1 on processor 1; BENCH_CPUS="a,b" names others. */
static void bench_pin(int rank)
{
    int cpu[2] = {0, 1};
    cpu_set_t set;
    const char *named = getenv("BENCH_CPUS");
    if (named && sscanf(named, "%d,%d", &cpu[0], &cpu[1]) != 2)
        bench_die("BENCH_CPUS=%s: two processor numbers with a comma are needed", named);
    CPU_ZERO(&set);
    CPU_SET(cpu[rank], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_die("cannot pin process %d to processor %d: %s", rank, cpu[rank], strerror(errno));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Waits for a word of the page to change from `old`, and ends the program when the peer has exited.
 * Without a pause instruction: it would add its own time to the figure. */
static uint64_t await_change(volatile uint64_t *word, uint64_t old, void (*progress)(void))
{
    double limit = 0;
    for (uint32_t spins = 1;; spins++) {
        uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (value != old)
            return value;
        if (progress)
            progress();
        if (spins % (1u << 16) == 0) {
            double now = now_ns();
            if (limit == 0)
                limit = now + PEER_TIMEOUT_NS;
            if (now > limit)
                bench_die("the other process did not reply within %.0f s", PEER_TIMEOUT_NS / 1e9);
        }
    }
}

/* Both processes are here. */
static void bench_meet(struct bench *b)
{
    b->phase++;
    __atomic_store_n(&b->page->phase[b->rank], b->phase, __ATOMIC_RELEASE);
    while (__atomic_load_n(&b->page->phase[!b->rank], __ATOMIC_ACQUIRE) < b->phase)
        await_change(&b->page->phase[!b->rank], b->phase - 1, b->progress);
}

/* Gives a word to the other process and takes one from it. */
static uint64_t bench_exchange(struct bench *b, uint64_t mine)
{
    b->page->exchange[b->rank] = mine;
    bench_meet(b);
    uint64_t theirs = b->page->exchange[!b->rank];
    bench_meet(b);
    return theirs;
}

/* Nanoseconds for one cache line to cross once. Both processes call it, while the
 * library is idle. */
static double bench_line(struct bench *b)
{
    double batch[5];
    volatile uint64_t *line = &b->page->line;
    bench_meet(b);
    for (int i = 0; i < 5; i++) {
        double start = now_ns();
        for (int r = 0; r < LINE_ROUNDS; r++) {
            if (b->rank == 0) {
                __atomic_store_n(line, b->line_seq + 1, __ATOMIC_RELEASE);
                await_change(line, b->line_seq + 1, NULL);
            } else {
                await_change(line, b->line_seq, NULL);
                __atomic_store_n(line, b->line_seq + 2, __ATOMIC_RELEASE);
            }
            b->line_seq += 2;
        }
        batch[i] = (now_ns() - start) / (2.0 * LINE_ROUNDS);
    }
    bench_meet(b);
    return median(batch, 5);
}

static int bench_skips(const struct bench *b, const char *name)
{
    return b->only && strncmp(name, b->only, strlen(b->only)) != 0;
}

static void bench_print(const char *name, size_t size, double median_ns, double best_ns, double before, double after)
{
    printf("%s %zu %.4f %.4f %.1f %.1f\n", name, size, median_ns / 1e3, best_ns / 1e3, before, after);
    fflush(stdout);
}

/* Batches by process 0: it measures the cost of one round, and how many fit the budget. */
struct plan {
    uint32_t rounds; /* in a batch */
    uint32_t batches;
};

static struct plan plan_batches(const struct bench *b, double round_ns)
{
    double batch_ns = b->budget_ns / 40;
    struct plan p;
    p.rounds = round_ns >= batch_ns ? 1 : (uint32_t)(batch_ns / round_ns) + 1;
    double batches = b->budget_ns / (p.rounds * round_ns);
    p.batches = batches > MAX_BATCHES ? MAX_BATCHES : batches < 5 ? 5 : (uint32_t)batches;
    return p;
}

static double rounds_ns(round_fn round, size_t size, uint32_t n)
{
    double start = now_ns();
    for (uint32_t i = 0; i < n; i++)
        round(size);
    return now_ns() - start;
}

/* Both processes do their half of every round; `parts` one-way trips or messages make a round.
 * Process 0 prints. */
static void bench_together(struct bench *b, const char *name, size_t size, double parts, round_fn mine)
{
    uint32_t warm = 8;
    double before = bench_line(b), after, batch[MAX_BATCHES];
    rounds_ns(mine, size, warm);
    double round_ns = rounds_ns(mine, size, warm) / warm;
    struct plan p = plan_batches(b, round_ns);
    uint64_t chosen = bench_exchange(b, (uint64_t)p.rounds << 32 | p.batches);
    if (b->rank == 1)
        p = (struct plan){.rounds = chosen >> 32, .batches = (uint32_t)chosen};
    for (uint32_t i = 0; i < p.batches; i++)
        batch[i] = rounds_ns(mine, size, p.rounds) / (p.rounds * parts);
    after = bench_line(b);
    if (b->rank == 0) {
        double middle = median(batch, p.batches);
        bench_print(name, size, middle, batch[0], before, after);
    }
}

/* Process 0 does rounds, process 1 only keeps its library moving until they are over. */
static void bench_one_sided(struct bench *b, const char *name, size_t size, double parts, round_fn mine)
{
    double before = bench_line(b), after, batch[MAX_BATCHES];
    struct plan p = {0, 0};
    b->epoch++;
    if (b->rank == 0) {
        rounds_ns(mine, size, 8);
        p = plan_batches(b, rounds_ns(mine, size, 8) / 8);
        for (uint32_t i = 0; i < p.batches; i++)
            batch[i] = rounds_ns(mine, size, p.rounds) / (p.rounds * parts);
        __atomic_store_n(&b->page->stop, b->epoch, __ATOMIC_RELEASE);
    } else {
        await_change(&b->page->stop, b->epoch - 1, b->progress);
    }
    after = bench_line(b);
    if (b->rank == 0) {
        double middle = median(batch, p.batches);
        bench_print(name, size, middle, batch[0], before, after);
    }
}

/* Bytes that depend on position and seed; `bench_check` ends the program when one is wrong. */
static void bench_fill(void *buffer, size_t size, uint32_t seed)
{
    unsigned char *bytes = buffer;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 13 | 1);
}

static void bench_check(const char *name, const void *buffer, size_t size, uint32_t seed)
{
    const unsigned char *bytes = buffer;
    for (size_t i = 0; i < size; i++) {
        unsigned char expected = (unsigned char)((i * 2654435761u + seed * 40503u) >> 13 | 1);
        if (bytes[i] != expected)
            bench_die("%s of %zu bytes: byte %zu is %u and should be %u", name, size, i, bytes[i], expected);
    }
}

/* Messages in flight while bandwidth and rates are measured: what lapi_perf has when no
 * number is given. */
static int window_of(size_t size)
{
    size_t fit = 16 * MIB / size;
    return fit > 64 ? 64 : (int)fit;
}

static const size_t latency_sizes[] = {8, 64, 256, KIB, 8 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB};
static const size_t stream_sizes[] = {8, KIB, 8 * KIB, 64 * KIB, MIB, 4 * MIB};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Reads the options that the two-process programs share and leaves the others to `other`. */
static void bench_options(struct bench *b, int argc, char **argv, const char *letters, void (*other)(int, const char *))
{
    char all[64];
    int letter;
    snprintf(all, sizeof all, "t:o:%s", letters);
    b->budget_ns = 12e6;
    while ((letter = getopt(argc, argv, all)) != -1) {
        if (letter == 't')
            b->budget_ns = atof(optarg) * 1e6;
        else if (letter == 'o')
            b->only = optarg;
        else if (letter != '?' && other)
            other(letter, optarg);
        else
            bench_die("options: -t ms-per-figure  -o name-prefix  %s", letters);
    }
}

#endif

/* The common part: see net_bench.h. Usage: PROGRAM [-t ms for each figure] [-o beginning of a
 * pattern's name] [-s size] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net_bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 9

unsigned char *net_source, *net_target;
static int rank;

void net_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "net_bench, process %d: ", rank);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(1);
}

size_t net_window(size_t size)
{
    return size * WINDOW <= WINDOW_BYTES ? WINDOW : WINDOW_BYTES / size;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* This thread on its own processor; threads of the system stay where they are. */
static void pin(void)
{
    cpu_set_t all, one;
    int seen = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && seen++ == rank) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}

/* The time of some rounds, in microseconds; the two processes are together before and after. */
static double batch(const struct pattern *p, size_t size, uint64_t rounds)
{
    double from = 0, to = 0;
    system_meet();
    if (rank == 0) {
        from = now_us();
        for (uint64_t i = 0; i < rounds; i++)
            p->active(size);
        to = now_us();
    } else if (p->passive) {
        for (uint64_t i = 0; i < rounds; i++)
            p->passive(size);
    }
    system_meet();
    return to - from;
}

static void compare(const struct pattern *p, size_t size)
{
    for (size_t at = 0; at < size && rank == p->receiver; at++)
        if (net_target[at] != (unsigned char)(at * 7 + at / 251 + !rank))
            net_die("%s, %zu bytes: byte %zu is wrong", p->name, size, at);
}

/* The figure of one pattern and size, which is printed if it is `wanted`. */
static void figure(const struct pattern *p, size_t size, double budget_us, int wanted)
{
    double taken, each[BATCHES];
    uint64_t rounds = 1;
    memset(net_target, 0, size);
    batch(p, size, 4);
    /* enough rounds for the clock, and for a batch's part of the budget */
    for (taken = batch(p, size, rounds);; taken = batch(p, size, rounds)) {
        uint64_t more = 0;
        if (rank == 0 && taken < budget_us / BATCHES / 2)
            more = taken > 0 && taken * 8 > budget_us / BATCHES ? rounds * 2 : rounds * 8;
        more = system_share(more);
        if (more == 0)
            break;
        rounds = more;
    }
    for (int i = 0; i < BATCHES; i++)
        each[i] = batch(p, size, rounds);
    compare(p, size);
    if (rank == 0 && wanted) {
        qsort(each, BATCHES, sizeof *each, by_value);
        size_t messages = p->messages ? (size_t)p->messages : net_window(size);
        printf("%s %zu %.3f\n", p->name, size, each[BATCHES / 2] / (double)(rounds * messages));
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8, 64, 512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB};
    double budget_us = 20000;
    const char *only = "";
    size_t size = 0;
    int option;
    net_source = aligned_alloc(4096, LARGEST);
    net_target = aligned_alloc(4096, LARGEST);
    if (!net_source || !net_target)
        net_die("no memory");
    rank = system_start(&argc, &argv);
    while ((option = getopt(argc, argv, "t:o:s:")) != -1) {
        if (option == 't' && atof(optarg) > 0)
            budget_us = atof(optarg) * 1000;
        else if (option == 'o')
            only = optarg;
        else if (option == 's')
            size = strtoul(optarg, NULL, 10);
        else
            net_die("usage: %s [-t ms for each figure] [-o beginning of a pattern's name] [-s size]", argv[0]);
    }
    pin();
    for (size_t at = 0; at < LARGEST; at++)
        net_source[at] = (unsigned char)(at * 7 + at / 251 + rank);
    memset(net_target, 0, LARGEST);
    /* A fresh connection over TCP carries messages of 4 KiB and more in 3 us less than one that has
     * carried some thousands, whichever side sends them: no figure is that of a fresh one. */
    for (size_t i = 0; sizes[i] <= 16 * KIB; i++)
        figure(system_patterns, sizes[i], budget_us, 0);
    for (const struct pattern *p = system_patterns; p->name; p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && strncmp(p->name, only, strlen(only)) == 0; i++)
            if ((size == 0 || size == sizes[i]) && (p->longest == 0 || sizes[i] <= p->longest))
                figure(p, sizes[i], budget_us, 1);
    system_meet();
    system_end();
    return 0;
}

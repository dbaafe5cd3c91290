/*
 * How long rpmem_persist takes: rpmem TARGET SET SIZE BYTES THREADS COUNT
 *
 * Each thread persists BYTES bytes of a pool of SIZE bytes COUNT times, in a lane and a part of the
 * pool of its own. Prints the microseconds of a call, of all threads together, and MB/s.
 */
#include <librpmem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { HEADER = 4096, MOST = 64 };

static RPMEMpool *pool;
static char *local;
static size_t bytes, share;
static long count;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rpmem_errormsg());
    exit(1);
}

static void *persist(void *given)
{
    unsigned lane = (unsigned)(size_t)given;
    size_t begin = HEADER + lane * share, at = begin;
    for (long i = 0; i < count; i++) {
        local[at]++;
        if (rpmem_persist(pool, at, bytes, lane, 0) != 0)
            fail("rpmem_persist");
        at += bytes;
        if (at + bytes > begin + share)
            at = begin;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct rpmem_pool_attr attributes = {.signature = "BENCH", .major = 1};
    pthread_t threads[MOST];
    if (argc != 7) {
        fprintf(stderr, "rpmem TARGET SET SIZE BYTES THREADS COUNT\n");
        return 2;
    }
    size_t size = strtoull(argv[3], NULL, 0);
    bytes = strtoull(argv[4], NULL, 0);
    unsigned number = (unsigned)atoi(argv[5]), lanes = number;
    count = atol(argv[6]);
    local = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    share = (size - HEADER) / number / 64 * 64;
    if (local == MAP_FAILED || number > MOST || share < bytes)
        return 2;
    /* What nobody has written is one page of zeros, which the caches hold. */
    memset(local, 7, size);
    pool = rpmem_create(argv[1], argv[2], local, size, &lanes, &attributes);
    if (!pool || lanes < number)
        fail("rpmem_create");
    for (int turn = 0; turn < 2; turn++) {
        double begun = seconds();
        for (size_t i = 0; i < number; i++)
            if (pthread_create(&threads[i], NULL, persist, (void *)i) != 0)
                return 1;
        for (size_t i = 0; i < number; i++)
            pthread_join(threads[i], NULL);
        double each = (seconds() - begun) / (double)(count * number);
        /* The first turn touches the pages of the replica. */
        if (turn == 1)
            printf("persist %zu %u %.3f %.1f\n", bytes, number, each * 1e6, (double)bytes / each / 1e6);
    }
    if (rpmem_close(pool) != 0 || rpmem_remove(argv[1], argv[2], 0) != 0)
        fail("the end");
    return 0;
}

/*
 * A job's put and get, beside which those of doors are measured: from LAPI_Put until the target has
 * the data (cmpl_cntr), from LAPI_Get until it is here (org_cntr); and a message of 8 bytes to and
 * fro (LAPI_Amsend, LAPI_Waitcntr), one way. Prints microseconds, the median over batches, and
 * MB/s; and what it takes besides until as many bytes of memory have left the caches, by the
 * instruction that rpmemd chooses. Beside a persist stand a put and a flush, each in turns over as
 * much memory as the pool has ("around"): more than the caches.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <emmintrin.h>
#endif

enum { BATCHES = 31, MOST = 1 << 20, AROUND = 32 << 20 };

/* They begin with a line of the cache. */
static char memory[AROUND] __attribute__((aligned(64))), out[MOST] __attribute__((aligned(64)));

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#ifdef __x86_64__
/* Prints the median time until this many bytes, which were just written, have left the caches. */
static void flush(long bytes)
{
    static double each[BATCHES * 8];
    enum { TURNS = sizeof each / sizeof *each };
    unsigned a, b = 0, c, d;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    memset(memory, 1, AROUND);
    for (int turn = 0; turn < TURNS; turn++) {
        char *from = memory + turn * bytes % AROUND;
        memset(from, turn, (size_t)bytes);
        double begun = now();
        for (long at = 0; at < bytes; at += 64) {
            if (b & bit_CLWB)
                __asm__ volatile("clwb %0" : "+m"(from[at]));
            else if (b & bit_CLFLUSHOPT)
                __asm__ volatile("clflushopt %0" : "+m"(from[at]));
            else
                _mm_clflush(from + at);
        }
        _mm_sfence();
        each[turn] = now() - begun;
    }
    qsort(each, TURNS, sizeof *each, by_value);
    printf("flush %ld: %.3f us (best %.3f)\n", bytes, each[TURNS / 2], each[0]);
}
#else
static void flush(long bytes) { (void)bytes; }
#endif

static lapi_handle_t handle;
static lapi_cntr_t complete;
static void *places[2];

static void put(long bytes)
{
    LAPI_Put(handle, 1, (ulong)bytes, places[1], out, NULL, NULL, &complete);
}

static void put_around(long bytes)
{
    static long at;
    at = at + 2 * bytes > AROUND ? 0 : at + bytes;
    LAPI_Put(handle, 1, (ulong)bytes, (char *)places[1] + at, out, NULL, NULL, &complete);
}

static void get(long bytes)
{
    LAPI_Get(handle, 1, (ulong)bytes, places[1], out, NULL, &complete);
}

static void measure(const char *what, void (*begin)(long), long bytes, int count)
{
    double batch[BATCHES];
    int left;
    for (int b = 0; b < BATCHES; b++) {
        double begun = now();
        for (int n = 0; n < count; n++) {
            begin(bytes);
            LAPI_Waitcntr(handle, &complete, 1, &left);
        }
        batch[b] = (now() - begun) / count;
    }
    qsort(batch, BATCHES, sizeof *batch, by_value);
    printf("lapi %s %ld: %.3f us (best %.3f), %.0f MB/s\n", what, bytes, batch[BATCHES / 2], batch[0],
           (double)bytes / batch[BATCHES / 2]);
}

static lapi_cntr_t arrived;
static void *arrivals[2], *handlers[2];

static void *on_arrival(lapi_handle_t *unused, void *header, uint *length, ulong *bytes, compl_hndlr_t **completion,
                        void **parameter)
{
    (void)unused, (void)header, (void)length, (void)bytes, (void)parameter;
    *completion = NULL;
    return NULL;
}

static void pingpong(int task)
{
    enum { ROUNDS = 2000 };
    double batch[BATCHES];
    long header = 5;
    int left;
    for (int b = 0; b < BATCHES; b++) {
        double begun = now();
        for (int n = 0; n < ROUNDS; n++) {
            if (task == 1)
                LAPI_Waitcntr(handle, &arrived, 1, &left);
            LAPI_Amsend(handle, (uint)(1 - task), handlers[1 - task], &header, sizeof header, NULL, 0, arrivals[1 - task],
                        NULL, NULL);
            if (task == 0)
                LAPI_Waitcntr(handle, &arrived, 1, &left);
        }
        batch[b] = (now() - begun) / (2.0 * ROUNDS);
    }
    qsort(batch, BATCHES, sizeof *batch, by_value);
    if (task == 0)
        printf("lapi amsend 8: %.3f us (best %.3f) one way\n", batch[BATCHES / 2], batch[0]);
}

int main(void)
{
    static lapi_info_t info;
    static const struct {
        long bytes;
        int count;
    } sizes[] = {{8, 2000}, {4096, 1000}, {MOST, 40}};
    lapi_cntr_t over;
    void *counters[2];
    int task, left;
    if (LAPI_Init(&handle, &info) != LAPI_SUCCESS)
        return 1;
    LAPI_Qenv(handle, TASK_ID, &task);
    LAPI_Setcntr(handle, &complete, 0);
    LAPI_Setcntr(handle, &over, 0);
    /* What nobody has written is one page of zeros, which the caches hold. */
    memset(out, 7, MOST);
    LAPI_Setcntr(handle, &arrived, 0);
    LAPI_Address_init(handle, memory, places);
    LAPI_Address_init(handle, &over, counters);
    LAPI_Address_init(handle, &arrived, arrivals);
    LAPI_Address_init(handle, (void *)on_arrival, handlers);
    pingpong(task);
    for (unsigned i = 0; task == 0 && i < sizeof sizes / sizeof *sizes; i++) {
        measure("put", put, sizes[i].bytes, sizes[i].count);
        measure("get", get, sizes[i].bytes, sizes[i].count);
    }
    if (task == 0) {
        measure("put around", put_around, 8, 2000);
        measure("put around", put_around, MOST, 40);
        flush(8), flush(MOST);
        LAPI_Put(handle, 1, 0, places[1], NULL, counters[1], NULL, NULL);
    } else {
        LAPI_Waitcntr(handle, &over, 1, &left);
    }
    LAPI_Gfence(handle);
    LAPI_Term(handle);
    return 0;
}

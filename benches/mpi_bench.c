/*
 * The patterns of lapi_perf on MPI, as fast as its interface allows: MPI_THREAD_SINGLE, windows
 * that are locked for all and without checks.
 *
 * Two processes, started by MPI's launcher and pinned here. The target of put, get and
 * fetch-and-add is ordinary memory (malloc, then MPI_Win_create) and, under names that end in
 * "_alloc", memory of MPI_Win_allocate.
 *
 *     am            MPI_Send and MPI_Recv: the receiver names the buffer before the message arrives
 *     put_seen      the receiver polls the last 8 bytes of the data, moving its library as it polls
 *     put_notify    the data, a flush, then a put of an 8-byte flag that the receiver polls
 *     get, fetch_add          a round trip, while the target only moves its library
 *     barrier       MPI_Barrier
 *     put_stream, get_stream, am_stream      a window of operations, until all are complete; time per message
 *
 * Options: -t ms-per-figure, -o name-prefix.
 */
#include "bench.h"

#include <mpi.h>

#define LARGEST (4 * MIB)
/* Layout of a region: data, then what notifies and what is added to. */
#define FLAG_OFFSET LARGEST
#define ADD_OFFSET (LARGEST + 256)
#define REGION_BYTES (LARGEST + 4096)

enum { DATA, REPLY, NEVER_SENT };

struct region {
    unsigned char *mine;
    MPI_Win window;
};

static struct bench b;
static unsigned char *source, *sink;
static struct region plain, alloc, *at;
static uint64_t seen_seq, notify_seq;

static void must(int code, const char *what)
{
    if (code != MPI_SUCCESS)
        bench_die("%s: error %d", what, code);
}

/* MPI moves only while it is called. */
static void progress(void)
{
    int found;
    must(MPI_Iprobe(!b.rank, NEVER_SENT, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

static void send_message(size_t size)
{
    must(MPI_Send(source, (int)size, MPI_BYTE, !b.rank, DATA, MPI_COMM_WORLD), "MPI_Send");
}

static void receive_message(size_t size)
{
    must(MPI_Recv(sink, (int)size, MPI_BYTE, !b.rank, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
}

static void flush(void) { must(MPI_Win_flush(!b.rank, at->window), "MPI_Win_flush"); }

static void put_at(const void *from, size_t size, size_t offset)
{
    must(MPI_Put(from, (int)size, MPI_BYTE, !b.rank, (MPI_Aint)offset, (int)size, MPI_BYTE, at->window), "MPI_Put");
}

static void get(size_t size)
{
    must(MPI_Get(sink, (int)size, MPI_BYTE, !b.rank, 0, (int)size, MPI_BYTE, at->window), "MPI_Get");
}

/* Waits until a put of the other process has written this value. */
static void await_word(size_t offset, uint64_t value)
{
    volatile uint64_t *word = (volatile uint64_t *)(at->mine + offset);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
        progress();
}

static void seen_send(size_t size)
{
    *(uint64_t *)(source + size - 8) = seen_seq + 1;
    put_at(source, size, 0);
    flush();
}

static void seen_wait(size_t size) { await_word(size - 8, seen_seq + 1); }

static void notify_send(size_t size)
{
    static uint64_t flag;
    put_at(source, size, 0);
    flush();
    flag = notify_seq + 1;
    put_at(&flag, 8, FLAG_OFFSET);
    flush();
}

static void notify_wait(size_t size)
{
    (void)size;
    await_word(FLAG_OFFSET, notify_seq + 1);
}

/* Process 0 sends, then waits; process 1 the other way round. */
static void turn(round_fn send, round_fn wait, size_t size)
{
    if (b.rank == 0)
        send(size), wait(size);
    else
        wait(size), send(size);
}

static void am_round(size_t size) { turn(send_message, receive_message, size); }
static void seen_round(size_t size) { turn(seen_send, seen_wait, size), seen_seq++; }
static void notify_round(size_t size) { turn(notify_send, notify_wait, size), notify_seq++; }
static void get_round(size_t size) { get(size), flush(); }

static void fetch_add_round(size_t size)
{
    static uint64_t one = 1, before;
    (void)size;
    must(MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, !b.rank, ADD_OFFSET, MPI_SUM, at->window), "MPI_Fetch_and_op");
    flush();
}

static void barrier_round(size_t size)
{
    (void)size;
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

static void put_stream(size_t size)
{
    for (int i = 0; i < window_of(size); i++)
        put_at(source, size, 0);
    flush();
}

static void get_stream(size_t size)
{
    for (int i = 0; i < window_of(size); i++)
        get(size);
    flush();
}

/* The receiver replies once, when it has all messages of the round. */
static void am_stream(size_t size)
{
    MPI_Request requests[64];
    int window = window_of(size);
    for (int i = 0; i < window; i++) {
        if (b.rank == 0)
            must(MPI_Isend(source, (int)size, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[i]), "MPI_Isend");
        else
            must(MPI_Irecv(sink, (int)size, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &requests[i]), "MPI_Irecv");
    }
    must(MPI_Waitall(window, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    if (b.rank == 0)
        must(MPI_Recv(NULL, 0, MPI_BYTE, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    else
        must(MPI_Send(NULL, 0, MPI_BYTE, 0, REPLY, MPI_COMM_WORLD), "MPI_Send");
}

/* One transfer of a known pattern before a size is measured. */
static void check_am(size_t size)
{
    bench_fill(source, size, b.rank + size);
    memset(sink, 0, size);
    bench_meet(&b);
    am_round(size);
    bench_check("am", sink, size, !b.rank + size);
    bench_meet(&b);
}

static void check_put_and_get(size_t size)
{
    bench_fill(source, size, b.rank + size);
    memset(at->mine, 0, size);
    bench_meet(&b);
    put_at(source, size, 0);
    flush();
    bench_meet(&b);
    bench_check("put", at->mine, size, !b.rank + size);
    memset(sink, 0, size);
    get_round(size);
    bench_check("get", sink, size, b.rank + size);
    bench_meet(&b);
}

static void together(const char *name, size_t size, double parts, round_fn round)
{
    if (!bench_skips(&b, name))
        bench_together(&b, name, size, parts, round);
}

static void one_sided(const char *name, size_t size, double parts, round_fn round)
{
    if (!bench_skips(&b, name))
        bench_one_sided(&b, name, size, parts, round);
}

static void measure_region(struct region *region, const char *suffix)
{
    char name[32];
#define NAME(base) (snprintf(name, sizeof name, "%s%s", base, suffix), name)
    at = region;
    for (size_t i = 0; i < COUNT(latency_sizes); i++) {
        size_t size = latency_sizes[i];
        check_put_and_get(size);
        together(NAME("put_seen"), size, 2, seen_round);
        together(NAME("put_notify"), size, 2, notify_round);
        one_sided(NAME("get"), size, 1, get_round);
    }
    volatile uint64_t *sum = (volatile uint64_t *)(at->mine + ADD_OFFSET);
    uint64_t before = *sum;
    bench_meet(&b);
    one_sided(NAME("fetch_add"), 8, 1, fetch_add_round);
    if (b.rank == 1 && !bench_skips(&b, NAME("fetch_add")) && *sum == before)
        bench_die("fetch_add: nothing was added");
    for (size_t i = 0; i < COUNT(stream_sizes); i++) {
        size_t size = stream_sizes[i];
        one_sided(NAME("put_stream"), size, window_of(size), put_stream);
        one_sided(NAME("get_stream"), size, window_of(size), get_stream);
    }
}

static void open_region(struct region *region, int of_mpi)
{
    if (of_mpi)
        must(MPI_Win_allocate(REGION_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &region->mine, &region->window), "MPI_Win_allocate");
    else {
        region->mine = aligned_alloc(4096, REGION_BYTES);
        if (!region->mine)
            bench_die("no memory");
        must(MPI_Win_create(region->mine, REGION_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &region->window), "MPI_Win_create");
    }
    memset(region->mine, 0, REGION_BYTES);
    must(MPI_Win_lock_all(MPI_MODE_NOCHECK, region->window), "MPI_Win_lock_all");
}

static void close_region(struct region *region)
{
    must(MPI_Win_unlock_all(region->window), "MPI_Win_unlock_all");
    must(MPI_Win_free(&region->window), "MPI_Win_free");
}

int main(int argc, char **argv)
{
    int tasks, unit;
    MPI_Aint length;
    MPI_Win shared;
    must(MPI_Init(&argc, &argv), "MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (tasks != 2)
        bench_die("two processes are needed, not %d", tasks);
    bench_options(&b, argc, argv, "", NULL);
    bench_pin(b.rank);
    must(MPI_Win_allocate_shared(b.rank == 0 ? sizeof *b.page : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b.page, &shared),
         "MPI_Win_allocate_shared");
    must(MPI_Win_shared_query(shared, 0, &length, &unit, &b.page), "MPI_Win_shared_query");
    if (b.rank == 0)
        memset(b.page, 0, sizeof *b.page);
    MPI_Barrier(MPI_COMM_WORLD);
    b.progress = progress;
    source = aligned_alloc(4096, LARGEST);
    sink = aligned_alloc(4096, LARGEST);
    if (!source || !sink)
        bench_die("no memory");
    open_region(&plain, 0);
    open_region(&alloc, 1);

    for (size_t i = 0; i < COUNT(latency_sizes); i++) {
        check_am(latency_sizes[i]);
        together("am", latency_sizes[i], 2, am_round);
    }
    together("barrier", 0, 1, barrier_round);
    for (size_t i = 0; i < COUNT(stream_sizes); i++)
        together("am_stream", stream_sizes[i], window_of(stream_sizes[i]), am_stream);
    measure_region(&plain, "");
    measure_region(&alloc, "_alloc");

    close_region(&plain);
    close_region(&alloc);
    must(MPI_Win_free(&shared), "MPI_Win_free");
    MPI_Finalize();
    return 0;
}

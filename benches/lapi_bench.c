/*
 * Latency, bandwidth and rates of LAPI between two tasks: poe lapi_bench -procs 2 [options].
 *
 *     am            LAPI_Amsend; the header handler gives a buffer, the receiver waits on the target counter
 *     am_inplace    the header handler looks at the data where the library has it and buries the message
 *     am_lw         the light-weight active message of LAPI_Xfer, handler by index
 *     put_seen      LAPI_Put; the receiver polls the last 8 bytes of the data, calling LAPI_Probe as it polls
 *     put_notify    LAPI_Put; the receiver waits on the target counter
 *     get, fetch_add, fetch_add_32     a round trip, while the target only calls LAPI_Probe
 *     barrier       LAPI_Gfence
 *     put_stream, get_stream, am_stream      a window of operations in flight; time per message
 *
 * Data is in ordinary memory. ERROR_CHK is off. ucx_bench.c has the same patterns under the same names.
 *
 * Options: -i 1 for INTERRUPT_SET on (0 is the default here), -x for LAPI_Xfer in place of the single
 * calls, -t ms-per-figure, -o name-prefix.
 */
#include "bench.h"

#include <fcntl.h>
#include <lapi.h>
#include <sys/mman.h>

#define LARGEST (4 * MIB)
#define LW_LARGEST 64
#define HANDLER_INPLACE 1
#define HANDLER_LW 2

/* What the other task aims at. Counters keep to lines of their own, as in a program that minds its speed. */
struct region {
    _Alignas(128) lapi_cntr_t arrived;
    _Alignas(256) lapi_cntr_t signalled;
    _Alignas(128) long long sum;
    _Alignas(128) int sum_32;
    _Alignas(4096) unsigned char data[LARGEST];
    _Alignas(4096) unsigned char sink[LARGEST];
};

static struct bench b;
static lapi_handle_t hndl;
static uint peer;
static struct region *mine, *theirs;
static unsigned char *source;
static void *copy_handler[2];
static lapi_cntr_t sent;
static volatile uint64_t inplace, lightweight;
static uint64_t inplace_due, lightweight_due, seen_seq;
static int interrupt_mode, use_xfer;

static void must(int code, const char *what)
{
    if (code != LAPI_SUCCESS) {
        char text[LAPI_MAX_ERR_STRING];
        LAPI_Msg_string(code, text);
        bench_die("%s: %d, %s", what, code, text);
    }
}

static void progress(void)
{
    must(LAPI_Probe(hndl), "LAPI_Probe");
}

static void *on_am_copy(lapi_handle_t *handle, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo)
{
    (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return mine->sink;
}

static void *bury(ulong *msg_len, volatile uint64_t *count)
{
    lapi_return_info_t *info = (lapi_return_info_t *)msg_len;
    if (info->udata_one_pkt_ptr == NULL)
        bench_die("a message of %lu bytes did not arrive in one packet", info->msg_len);
    info->ctl_flags = LAPI_BURY_MSG;
    ++*count;
    return NULL;
}

static void *on_am_inplace(lapi_handle_t *handle, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo)
{
    (void)handle, (void)uhdr, (void)uhdr_len, (void)uinfo;
    *comp_h = NULL;
    return bury(msg_len, &inplace);
}

static void *on_am_lw(lapi_handle_t *handle, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo)
{
    (void)handle, (void)uhdr, (void)uhdr_len, (void)uinfo;
    *comp_h = NULL;
    return bury(msg_len, &lightweight);
}

static void put(size_t size, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr)
{
    if (use_xfer) {
        lapi_xfer_t x = {.Put = {
            .Xfer_type = LAPI_PUT_XFER, .tgt = peer, .tgt_addr = (lapi_long_t)(ulong)theirs->data, .org_addr = source,
            .len = size, .tgt_cntr = (lapi_long_t)(ulong)tgt_cntr, .org_cntr = org_cntr}};
        must(LAPI_Xfer(hndl, &x), "LAPI_Xfer of a put");
    } else {
        must(LAPI_Put(hndl, peer, size, theirs->data, source, tgt_cntr, org_cntr, NULL), "LAPI_Put");
    }
}

static void get(size_t size)
{
    if (use_xfer) {
        lapi_xfer_t x = {.Get = {
            .Xfer_type = LAPI_GET_XFER, .tgt = peer, .tgt_addr = (lapi_long_t)(ulong)theirs->data, .org_addr = mine->sink,
            .len = size, .org_cntr = &sent}};
        must(LAPI_Xfer(hndl, &x), "LAPI_Xfer of a get");
    } else {
        must(LAPI_Get(hndl, peer, size, theirs->data, mine->sink, NULL, &sent), "LAPI_Get");
    }
}

static void send_am(void *handler, size_t size, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr)
{
    if (use_xfer) {
        lapi_xfer_t x = {.Am = {
            .Xfer_type = LAPI_AM_XFER, .tgt = peer, .hdr_hdl = (lapi_long_t)(ulong)handler, .udata = source,
            .udata_len = size, .tgt_cntr = (lapi_long_t)(ulong)tgt_cntr, .org_cntr = org_cntr}};
        must(LAPI_Xfer(hndl, &x), "LAPI_Xfer of an active message");
    } else {
        must(LAPI_Amsend(hndl, peer, handler, NULL, 0, source, size, tgt_cntr, org_cntr, NULL), "LAPI_Amsend");
    }
}

static void wait_counter(lapi_cntr_t *counter, int value)
{
    must(LAPI_Waitcntr(hndl, counter, value, NULL), "LAPI_Waitcntr");
}

static void await(volatile uint64_t *count, uint64_t due)
{
    while (*count < due)
        progress();
}

/* Half a round: send, or wait for the other's. The reply implies that the sender's buffer is free again,
 * so no origin counter is requested. */
static void am_send(size_t size) { send_am(copy_handler[peer], size, &theirs->arrived, NULL); }
static void arrived_wait(size_t size) { (void)size, wait_counter(&mine->arrived, 1); }
static void inplace_send(size_t size) { send_am((void *)HANDLER_INPLACE, size, NULL, NULL); }
static void inplace_wait(size_t size) { (void)size, await(&inplace, ++inplace_due); }
static void lw_wait(size_t size) { (void)size, await(&lightweight, ++lightweight_due); }
static void notify_send(size_t size) { put(size, &theirs->arrived, NULL); }

static void lw_send(size_t size)
{
    lapi_xfer_t x;
    memset(&x, 0, sizeof x.Am);
    x.Am.Xfer_type = LAPI_AM_LW_XFER;
    x.Am.tgt = peer;
    x.Am.hdr_hdl = HANDLER_LW;
    x.Am.udata = source;
    x.Am.udata_len = size;
    must(LAPI_Xfer(hndl, &x), "LAPI_Xfer of a light-weight message");
}

static void seen_send(size_t size)
{
    *(uint64_t *)(source + size - 8) = seen_seq + 1;
    put(size, NULL, NULL);
}

static void seen_wait(size_t size)
{
    volatile uint64_t *last = (volatile uint64_t *)(mine->data + size - 8);
    while (*last != seen_seq + 1)
        progress();
}

/* Task 0 sends, then waits; task 1 the other way round. */
static void turn(round_fn send, round_fn wait, size_t size)
{
    if (b.rank == 0)
        send(size), wait(size);
    else
        wait(size), send(size);
}

static void am_round(size_t size) { turn(am_send, arrived_wait, size); }
static void inplace_round(size_t size) { turn(inplace_send, inplace_wait, size); }
static void lw_round(size_t size) { turn(lw_send, lw_wait, size); }
static void notify_round(size_t size) { turn(notify_send, arrived_wait, size); }
static void seen_round(size_t size) { turn(seen_send, seen_wait, size), seen_seq++; }
static void get_round(size_t size) { get(size), wait_counter(&sent, 1); }
static void barrier_round(size_t size) { (void)size, must(LAPI_Gfence(hndl), "LAPI_Gfence"); }

static void fetch_add_round(size_t size)
{
    static long long one = 1, before;
    (void)size;
    if (use_xfer) {
        lapi_xfer_t x = {.Rmw = {
            .Xfer_type = LAPI_RMW_XFER, .op = FETCH_AND_ADD, .tgt = peer, .size = 64,
            .tgt_var = (lapi_long_t)(ulong)&theirs->sum, .in_val = &one, .prev_tgt_val = &before, .org_cntr = &sent}};
        must(LAPI_Xfer(hndl, &x), "LAPI_Xfer of a fetch-and-add");
    } else {
        must(LAPI_Rmw64(hndl, FETCH_AND_ADD, peer, &theirs->sum, &one, &before, &sent), "LAPI_Rmw64");
    }
    wait_counter(&sent, 1);
}

static void fetch_add_32_round(size_t size)
{
    static int one = 1, before;
    (void)size;
    must(LAPI_Rmw(hndl, FETCH_AND_ADD, peer, &theirs->sum_32, &one, &before, &sent), "LAPI_Rmw");
    wait_counter(&sent, 1);
}

/* Keeps up to a window of `operation` in flight; all of them have left the origin when it returns. */
static void stream(size_t size, round_fn operation)
{
    int in_flight = 0, window = window_of(size);
    for (int i = 0; i < stream_of(size); i++) {
        if (in_flight == window) {
            wait_counter(&sent, window / 2);
            in_flight -= window / 2;
        }
        operation(size);
        in_flight++;
    }
    wait_counter(&sent, in_flight);
}

static void put_counted(size_t size) { put(size, NULL, &sent); }
static void am_counted(size_t size) { send_am(copy_handler[peer], size, &theirs->arrived, &sent); }

static void put_stream(size_t size)
{
    stream(size, put_counted);
    must(LAPI_Fence(hndl), "LAPI_Fence");
}

static void get_stream(size_t size)
{
    stream(size, get);
}

/* The receiver replies once, when it has all messages of the round. */
static void am_stream(size_t size)
{
    if (b.rank == 0) {
        stream(size, am_counted);
        wait_counter(&mine->signalled, 1);
    } else {
        wait_counter(&mine->arrived, stream_of(size));
        must(LAPI_Put(hndl, peer, 0, NULL, NULL, &theirs->signalled, NULL, NULL), "LAPI_Put");
    }
}

/* One transfer of a known pattern each way before a size is measured. */
static void check(size_t size)
{
    bench_fill(source, size, b.rank + size);
    memset(mine->data, 0, size);
    memset(mine->sink, 0, size);
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    am_round(size);
    bench_check("am", mine->sink, size, peer + size);
    notify_round(size);
    bench_check("put", mine->data, size, peer + size);
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    memset(mine->sink, 0, size);
    get_round(size);
    bench_check("get", mine->sink, size, b.rank + size);
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
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

static void run(void)
{
    for (size_t i = 0; i < COUNT(latency_sizes); i++) {
        size_t size = latency_sizes[i];
        check(size);
        together("am", size, 2, am_round);
        if (size <= KIB)
            together("am_inplace", size, 2, inplace_round);
        if (size <= LW_LARGEST)
            together("am_lw", size, 2, lw_round);
        together("put_seen", size, 2, seen_round);
        together("put_notify", size, 2, notify_round);
        one_sided("get", size, 1, get_round);
    }
    mine->sum = mine->sum_32 = 0;
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    one_sided("fetch_add", 8, 1, fetch_add_round);
    one_sided("fetch_add_32", 4, 1, fetch_add_32_round);
    if (b.rank == 1 && ((!bench_skips(&b, "fetch_add") && mine->sum == 0) || (!bench_skips(&b, "fetch_add_32") && mine->sum_32 == 0)))
        bench_die("fetch_add: nothing was added");
    together("barrier", 0, 1, barrier_round);
    for (size_t i = 0; i < COUNT(stream_sizes); i++) {
        size_t size = stream_sizes[i];
        together("am_stream", size, stream_of(size), am_stream);
        one_sided("put_stream", size, stream_of(size), put_stream);
        one_sided("get_stream", size, stream_of(size), get_stream);
    }
}

/* The page of the measurement itself: memory of task 0 without a name, which task 1 opens through its process. */
static struct page *map_page(int rank)
{
    lapi_long_t where[2];
    char path[64];
    int fd = -1;
    if (rank == 0) {
        fd = memfd_create("bench", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, sizeof(struct page)) != 0)
            bench_die("no shared page: %s", strerror(errno));
    }
    must(LAPI_Address_init64(hndl, (lapi_long_t)getpid() << 32 | (uint)fd, where), "LAPI_Address_init64");
    if (rank == 1) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)(where[0] >> 32), (int)(uint)where[0]);
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            bench_die("%s: %s", path, strerror(errno));
    }
    void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        bench_die("no shared page: %s", strerror(errno));
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    close(fd);
    return page;
}

static void other_option(int letter, const char *value)
{
    if (letter == 'i')
        interrupt_mode = atoi(value);
    else
        use_xfer = 1;
}

int main(int argc, char **argv)
{
    lapi_info_t info;
    void *regions[2];
    int rank, tasks;
    bench_options(&b, argc, argv, "i:x", other_option);
    memset(&info, 0, sizeof info);
    must(LAPI_Init(&hndl, &info), "LAPI_Init");
    must(LAPI_Qenv(hndl, TASK_ID, &rank), "LAPI_Qenv");
    must(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks != 2)
        bench_die("two tasks are needed, these are %d: poe lapi_bench -procs 2", tasks);
    b.rank = rank;
    peer = !rank;
    bench_pin(rank);
    must(LAPI_Senv(hndl, ERROR_CHK, 0), "LAPI_Senv");
    must(LAPI_Senv(hndl, INTERRUPT_SET, interrupt_mode), "LAPI_Senv");
    must(LAPI_Addr_set(hndl, (void *)on_am_inplace, HANDLER_INPLACE), "LAPI_Addr_set");
    must(LAPI_Addr_set(hndl, (void *)on_am_lw, HANDLER_LW), "LAPI_Addr_set");

    mine = aligned_alloc(4096, sizeof *mine);
    source = aligned_alloc(4096, LARGEST);
    if (!mine || !source)
        bench_die("no memory");
    memset(mine, 0, sizeof *mine);
    memset(source, 1, LARGEST);
    must(LAPI_Address_init(hndl, mine, regions), "LAPI_Address_init");
    must(LAPI_Address_init(hndl, (void *)on_am_copy, copy_handler), "LAPI_Address_init");
    theirs = regions[peer];
    b.page = map_page(rank);
    b.progress = progress;

    run();
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    must(LAPI_Term(hndl), "LAPI_Term");
    return 0;
}

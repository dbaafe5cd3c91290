/*
 * The patterns of lapi_perf on UCX's ucp layer, as fast as its interface allows: one thread
 * per worker, no user header, no attributes beyond the callback, so that short messages take
 * the inline path.
 *
 * Two processes, forked here and pinned. Which transports UCX uses is said by UCX_TLS. The target
 * of put, get and fetch-and-add is ordinary memory (malloc, then ucp_mem_map) and, under names that
 * end in "_alloc", memory that UCX itself has allocated and both processes have mapped.
 *
 *     am            data is copied to a buffer of the receiver
 *     am_inplace    the receiver looks at the data where the library has it (messages that arrive whole)
 *     put_seen      the receiver polls the last 8 bytes of the data, moving its library as it polls
 *     put_notify    the data, a fence, then a put of an 8-byte flag that the receiver polls
 *     get, fetch_add          a round trip, while the target only moves its library
 *     barrier       each flushes what it sent, sends the other an active message, waits for the other's
 *     put_stream, get_stream, am_stream      a window of operations, until all are complete; time per message
 *
 * Options: -t ms-per-figure, -o name-prefix.
 */
#include "bench.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#define LARGEST (4 * MIB)

enum { AM_COPY = 1, AM_INPLACE, AM_SIGNAL };

/* What an operation aims at: the other process's memory, and the same memory of this process. */
struct region {
    unsigned char *mine;
    uint64_t theirs;
    ucp_mem_h memh;
    ucp_rkey_h rkey;
};

/* Layout of a region: data, then what notifies and what is added to. */
#define FLAG_OFFSET LARGEST
#define ADD_OFFSET (LARGEST + 256)
#define REGION_BYTES (LARGEST + 4096)

static struct bench b;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static unsigned char *source, *sink;
static struct region plain, alloc, *at;
static int peer_socket;
static volatile uint64_t copied, inplace, signals, pending;
static uint64_t copied_due, inplace_due, signals_due, seen_seq, notify_seq;

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        bench_die("%s: %s", what, ucs_status_string(status));
}

static void progress(void)
{
    ucp_worker_progress(worker);
}

static void on_sent(void *request, ucs_status_t status, void *user)
{
    (void)user;
    must(status, "a send");
    pending--;
    ucp_request_free(request);
}

static const ucp_request_param_t plain_send = {
    .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
    .cb.send = on_sent,
};

/* Counts an operation that has not ended at once. */
static void posted(ucs_status_ptr_t request, const char *what)
{
    if (UCS_PTR_IS_ERR(request))
        bench_die("%s: %s", what, ucs_status_string(UCS_PTR_STATUS(request)));
    if (request != NULL)
        pending++;
}

static void wait_pending(uint64_t most)
{
    while (pending > most)
        progress();
}

static void flush(void)
{
    posted(ucp_ep_flush_nbx(ep, &plain_send), "ucp_ep_flush_nbx");
    wait_pending(0);
}

static void on_fetched(void *request, ucs_status_t status, size_t length, void *user)
{
    (void)length;
    (void)user;
    must(status, "ucp_am_recv_data_nbx");
    copied++;
    ucp_request_free(request);
}

static ucs_status_t on_am_copy(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    (void)arg, (void)header, (void)header_length;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(sink, data, length);
        copied++;
        return UCS_OK;
    }
    ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv_am = on_fetched};
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker, data, sink, length, &fetch);
    if (UCS_PTR_IS_ERR(request))
        bench_die("ucp_am_recv_data_nbx: %s", ucs_status_string(UCS_PTR_STATUS(request)));
    if (request == NULL)
        copied++;
    return UCS_INPROGRESS;
}

static ucs_status_t on_am_inplace(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                  const ucp_am_recv_param_t *param)
{
    (void)arg, (void)header, (void)header_length, (void)length, (void)data;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        bench_die("am_inplace: the message did not arrive whole");
    inplace++;
    return UCS_OK;
}

static ucs_status_t on_am_signal(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                 const ucp_am_recv_param_t *param)
{
    (void)arg, (void)header, (void)header_length, (void)data, (void)length, (void)param;
    signals++;
    return UCS_OK;
}

static void send_am(unsigned id, size_t size)
{
    posted(ucp_am_send_nbx(ep, id, NULL, 0, source, size, &plain_send), "ucp_am_send_nbx");
}

static void await(volatile uint64_t *count, uint64_t due)
{
    while (*count < due)
        progress();
}

static void put(size_t size)
{
    posted(ucp_put_nbx(ep, source, size, at->theirs, at->rkey, &plain_send), "ucp_put_nbx");
}

/* Half a round: send, or wait for the other's. A sender also waits until its own buffer is free. */
static void am_send(size_t size) { send_am(AM_COPY, size), wait_pending(0); }
static void am_wait(size_t size) { (void)size, await(&copied, ++copied_due); }
static void inplace_send(size_t size) { send_am(AM_INPLACE, size), wait_pending(0); }
static void inplace_wait(size_t size) { (void)size, await(&inplace, ++inplace_due); }

static void seen_send(size_t size)
{
    *(uint64_t *)(source + size - 8) = seen_seq + 1;
    put(size);
    wait_pending(0);
}

static void seen_wait(size_t size)
{
    volatile uint64_t *last = (volatile uint64_t *)(at->mine + size - 8);
    while (*last != seen_seq + 1)
        progress();
}

static void notify_send(size_t size)
{
    static uint64_t flag;
    put(size);
    must(ucp_worker_fence(worker), "ucp_worker_fence");
    flag = notify_seq + 1;
    posted(ucp_put_nbx(ep, &flag, 8, at->theirs + FLAG_OFFSET, at->rkey, &plain_send), "ucp_put_nbx");
    wait_pending(0);
}

static void notify_wait(size_t size)
{
    volatile uint64_t *flag = (volatile uint64_t *)(at->mine + FLAG_OFFSET);
    (void)size;
    while (*flag != notify_seq + 1)
        progress();
}

/* Process 0 sends, then waits; process 1 the other way round. */
static void turn(round_fn send, round_fn wait, size_t size)
{
    if (b.rank == 0)
        send(size), wait(size);
    else
        wait(size), send(size);
}

static void am_round(size_t size) { turn(am_send, am_wait, size); }
static void inplace_round(size_t size) { turn(inplace_send, inplace_wait, size); }
static void seen_round(size_t size) { turn(seen_send, seen_wait, size), seen_seq++; }
static void notify_round(size_t size) { turn(notify_send, notify_wait, size), notify_seq++; }

static void get_round(size_t size)
{
    posted(ucp_get_nbx(ep, sink, size, at->theirs, at->rkey, &plain_send), "ucp_get_nbx");
    wait_pending(0);
}

static void fetch_add_round(size_t size)
{
    static uint64_t one = 1, before;
    ucp_request_param_t fetch = plain_send;
    (void)size;
    fetch.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_DATATYPE;
    fetch.datatype = ucp_dt_make_contig(8);
    fetch.reply_buffer = &before;
    posted(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1, at->theirs + ADD_OFFSET, at->rkey, &fetch), "ucp_atomic_op_nbx");
    wait_pending(0);
}

static void barrier_round(size_t size)
{
    (void)size;
    flush();
    send_am(AM_SIGNAL, 0);
    wait_pending(0);
    await(&signals, ++signals_due);
}

static void put_stream(size_t size)
{
    for (int i = 0; i < window_of(size); i++)
        put(size);
    flush();
}

static void get_stream(size_t size)
{
    for (int i = 0; i < window_of(size); i++)
        posted(ucp_get_nbx(ep, sink, size, at->theirs, at->rkey, &plain_send), "ucp_get_nbx");
    wait_pending(0);
}

/* The receiver replies once, when it has all messages of the round. */
static void am_stream(size_t size)
{
    if (b.rank == 0) {
        for (int i = 0; i < window_of(size); i++)
            send_am(AM_COPY, size);
        await(&signals, ++signals_due);
    } else {
        copied_due += window_of(size);
        await(&copied, copied_due);
        send_am(AM_SIGNAL, 0);
    }
    wait_pending(0);
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
    put(size);
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
    uint64_t *sum = (uint64_t *)(at->mine + ADD_OFFSET), before = *sum;
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

static void run(void)
{
    for (size_t i = 0; i < COUNT(latency_sizes); i++) {
        size_t size = latency_sizes[i];
        check_am(size);
        together("am", size, 2, am_round);
        if (size <= KIB)
            together("am_inplace", size, 2, inplace_round);
    }
    together("barrier", 0, 1, barrier_round);
    for (size_t i = 0; i < COUNT(stream_sizes); i++)
        together("am_stream", stream_sizes[i], window_of(stream_sizes[i]), am_stream);
    measure_region(&plain, "");
    measure_region(&alloc, "_alloc");
}

/* A block with its length, to the other process, and the other's block back. */
static void *swap_block(const void *mine, size_t length)
{
    size_t other;
    if (send(peer_socket, &length, sizeof length, 0) != sizeof length ||
        send(peer_socket, mine, length, 0) != (ssize_t)length ||
        recv(peer_socket, &other, sizeof other, MSG_WAITALL) != sizeof other)
        bench_die("the other process has gone");
    void *block = malloc(other);
    if (!block || recv(peer_socket, block, other, MSG_WAITALL) != (ssize_t)other)
        bench_die("the other process has gone");
    return block;
}

static void set_am(unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = id,
        .cb = handler,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
    };
    must(ucp_worker_set_am_recv_handler(worker, &param), "ucp_worker_set_am_recv_handler");
}

static void connect_peer(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64,
        .estimated_num_eps = 1,
    };
    ucp_worker_params_t worker_params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    ucp_address_t *address;
    size_t length;
    must(ucp_init(&params, NULL, &context), "ucp_init");
    must(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    set_am(AM_COPY, on_am_copy);
    set_am(AM_INPLACE, on_am_inplace);
    set_am(AM_SIGNAL, on_am_signal);
    must(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    ucp_address_t *peer = swap_block(address, length);
    ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = peer};
    must(ucp_ep_create(worker, &ep_params, &ep), "ucp_ep_create");
    ucp_worker_release_address(worker, address);
    free(peer);
}

static void map_region(struct region *region, void *memory)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .address = memory,
        .length = REGION_BYTES,
        .flags = memory ? 0 : UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    void *packed;
    size_t length;
    must(ucp_mem_map(context, &params, &region->memh), "ucp_mem_map");
    must(ucp_mem_query(region->memh, &attr), "ucp_mem_query");
    region->mine = attr.address;
    memset(region->mine, 0, REGION_BYTES);
    must(ucp_rkey_pack(context, region->memh, &packed, &length), "ucp_rkey_pack");
    void *peer = swap_block(packed, length);
    must(ucp_ep_rkey_unpack(ep, peer, &region->rkey), "ucp_ep_rkey_unpack");
    ucp_rkey_buffer_release(packed);
    free(peer);
    region->theirs = bench_exchange(&b, (uint64_t)region->mine);
}

static void unmap_region(struct region *region)
{
    ucp_rkey_destroy(region->rkey);
    must(ucp_mem_unmap(context, region->memh), "ucp_mem_unmap");
}

int main(int argc, char **argv)
{
    int sockets[2];
    pid_t child;
    bench_options(&b, argc, argv, "", NULL);
    b.page = mmap(NULL, sizeof *b.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b.page == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 || (child = fork()) < 0)
        bench_die("no second process: %s", strerror(errno));
    b.rank = child == 0;
    peer_socket = sockets[b.rank];
    close(sockets[!b.rank]);
    bench_pin(b.rank);
    b.progress = progress;
    connect_peer();

    void *ordinary = aligned_alloc(4096, REGION_BYTES);
    source = aligned_alloc(4096, LARGEST);
    sink = aligned_alloc(4096, LARGEST);
    if (!ordinary || !source || !sink)
        bench_die("no memory");
    memset(source, 1, LARGEST);
    memset(sink, 1, LARGEST);
    map_region(&plain, ordinary);
    map_region(&alloc, NULL);
    run();

    flush();
    bench_meet(&b);
    unmap_region(&plain);
    unmap_region(&alloc);
    /* an endpoint may be closed when the other side has no operation left; both have
     * flushed and met */
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t closing = ucp_ep_close_nbx(ep, &force);
    while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS)
        progress();
    if (UCS_PTR_IS_PTR(closing))
        ucp_request_free(closing);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    if (b.rank == 0) {
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            bench_die("the second process failed");
    }
    return 0;
}

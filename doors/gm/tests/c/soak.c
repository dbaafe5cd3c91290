/*
 * A node of a soak by hand: soak SEED
 *
 * Every node sends numbered messages of both priorities to every other one, until SIGUSR1; then it
 * says what was delivered last, and goes on to receive until SIGTERM, when it says what has come
 * last. Nodes may be killed, and others take their places. Before some messages goes a put, which
 * is there when the message is.
 *
 * A message has the number of its run and one within the run. A run ends by a failure; the next one
 * begins with 0. So within a run nothing may be missing, come twice, or come in another order. All
 * processes have the memory for puts at the same address, so that none needs to send it.
 */
#define _GNU_SOURCE
#include "gm.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 2, LEAST = 6, GREATEST = 13, WINDOW = 4, BUFFERS = 6, MOST = 8, PAUSE_US = 20000 };
/* The most bytes of a put, and places for those of one stream: more than there are buffers for its
 * messages, and messages under way. */
enum { BLOCK = 8192, PLACES = 64 };
#define LANDING ((unsigned char *)0x200000000000)

struct header {
    gm_u64_t sender;
    gm_u32_t node, run, index, length;
    /* Bytes of the put before it, 0: there is none. It has this header, too. */
    gm_u32_t put, none;
};

/* A message that is sent, and its memory. */
struct slot {
    struct stream *stream;
    struct slot *next;
    struct header *memory, *block;
};

/* What goes to one node with one priority. */
struct stream {
    struct gm_port *port;
    unsigned node, under_way;
    enum gm_priority priority;
    gm_u32_t run, index;
    /* What was delivered last: run and index, and how many in all. */
    gm_u32_t last_run, last_index;
    gm_u64_t delivered;
    int failed;
    gm_u64_t again_at;
    struct slot *free;
};

/* What has come from one node with one priority. */
struct source {
    gm_u64_t sender, received, puts;
    gm_u32_t run, index;
};

static struct stream streams[MOST + 1][2];
static struct source sources[MOST + 1][2];
static unsigned own, nodes;
static gm_u64_t born;
static volatile sig_atomic_t stops, ends;

static void stop(int number) { (number == SIGUSR1 ? &stops : &ends)[0] = 1; }

static gm_u64_t now_us(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (gm_u64_t)now.tv_sec * 1000000 + (gm_u64_t)now.tv_nsec / 1000;
}

static unsigned char byte_of(const struct header *header, gm_u32_t at) {
    return (unsigned char)(header->sender + header->run * 7 + header->index * 31 + at * 131);
}

static unsigned char byte_of_put(const struct header *header, gm_u32_t at) { return byte_of(header, at * 3 + 77); }

/* Where the put of a node lands at its target. */
static struct header *place(const struct header *header, unsigned priority) {
    gm_size_t stream = header->node * 2 + priority;
    return (struct header *)(LANDING + (stream * PLACES + header->index % PLACES) * BLOCK);
}

static void fault(const char *what, const struct header *header, unsigned priority) {
    struct source *source = &sources[header->node][priority];
    fprintf(stderr, "node %u: %s: from node %u, priority %u: %u.%u of %llu after %u.%u of %llu\n", own, what, header->node,
            priority, header->run, header->index, (unsigned long long)header->sender, source->run, source->index,
            (unsigned long long)source->sender);
    abort();
}

static void received(const struct header *header, unsigned length, unsigned priority) {
    struct source *source = &sources[header->node][priority];
    const unsigned char *bytes = (const unsigned char *)(header + 1);
    gm_u32_t at;
    if (length != header->length || header->node == 0 || header->node > nodes)
        fault("not what was sent", header, priority);
    for (at = 0; at < length - sizeof *header; at++)
        if (bytes[at] != byte_of(header, at))
            fault("other bytes", header, priority);
    if (header->put != 0) {
        const struct header *put = place(header, priority);
        if (memcmp(put, header, sizeof *header) != 0)
            fault("the put before it is not there", header, priority);
        bytes = (const unsigned char *)(put + 1);
        for (at = 0; at < header->put - sizeof *header; at++)
            if (bytes[at] != byte_of_put(header, at))
                fault("other bytes were put", header, priority);
        source->puts++;
    }
    if (header->sender == source->sender && header->run == source->run) {
        if (header->index != source->index + 1)
            fault("another one is next", header, priority);
    } else if (header->sender == source->sender ? header->run < source->run : header->sender < source->sender) {
        fault("an old one", header, priority);
    } else if (header->index != 0 && (header->sender == source->sender || header->sender > born)) {
        /* Only of a sender that is older than this process the first ones were another's. */
        fault("some are missing", header, priority);
    }
    source->sender = header->sender;
    source->run = header->run;
    source->index = header->index;
    source->received++;
}

static void dropped(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)status;
    ((struct stream *)context)->failed = 0;
}

/* Nothing goes to the node until everything that was to be sent is dropped; then a run begins. */
static void failed(struct gm_port *port, struct stream *stream, gm_status_t status) {
    if (status == GM_SEND_DROPPED)
        return;
    if (status != GM_SEND_TARGET_NODE_UNREACHABLE && status != GM_SEND_TARGET_PORT_CLOSED) {
        gm_perror("soak: a send", status);
        abort();
    }
    if (stream->failed)
        return;
    stream->failed = 1;
    stream->run++;
    stream->index = 0;
    stream->again_at = now_us(CLOCK_MONOTONIC) + PAUSE_US;
    gm_drop_sends(port, stream->priority, stream->node, PORT, dropped, stream);
}

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    struct slot *slot = (struct slot *)context;
    struct stream *stream = slot->stream;
    stream->under_way--;
    slot->next = stream->free;
    stream->free = slot;
    if (status == GM_SUCCESS) {
        stream->last_run = slot->memory->run;
        stream->last_index = slot->memory->index;
        stream->delivered++;
        return;
    }
    failed(port, stream, status);
}

static void has_put(struct gm_port *port, void *context, gm_status_t status) {
    struct stream *stream = ((struct slot *)context)->stream;
    stream->under_way--;
    /* A process that has begun takes no puts yet. */
    if (status != GM_SUCCESS)
        failed(port, stream, status == GM_SEND_REJECTED ? GM_SEND_TARGET_PORT_CLOSED : status);
}

static void post(struct stream *stream) {
    struct slot *slot = stream->free;
    unsigned size = LEAST + (unsigned)gm_rand_mod(GREATEST - LEAST + 1);
    gm_u32_t most = (gm_u32_t)gm_max_length_for_size(size), at;
    struct header *header = slot->memory;
    stream->free = slot->next;
    header->sender = born;
    header->node = own;
    header->run = stream->run;
    header->index = stream->index++;
    header->length = (gm_u32_t)sizeof *header + (gm_u32_t)gm_rand_mod(most - sizeof *header + 1);
    header->put = 0;
    header->none = 0;
    if (gm_rand_mod(3) == 0) {
        struct header *block = slot->block;
        header->put = (gm_u32_t)sizeof *header + (gm_u32_t)gm_rand_mod(BLOCK - sizeof *header + 1);
        *block = *header;
        for (at = 0; at < header->put - sizeof *header; at++)
            ((unsigned char *)(block + 1))[at] = byte_of_put(header, at);
        stream->under_way++;
        gm_put(stream->port, block, (gm_remote_ptr_t)(gm_up_t)place(header, stream->priority), header->put,
               stream->priority, stream->node, PORT, has_put, slot);
    }
    for (at = 0; at < header->length - sizeof *header; at++)
        ((unsigned char *)(header + 1))[at] = byte_of(header, at);
    stream->under_way++;
    gm_send_with_callback(stream->port, header, size, header->length, stream->priority, stream->node, PORT, sent, slot);
}

static int turn(struct gm_port *port) {
    gm_recv_event_t *event = gm_receive(port);
    unsigned type = GM_RECV_EVENT_TYPE(event);
    if (type == GM_NO_RECV_EVENT)
        return 0;
    if (type == GM_RECV_EVENT || type == GM_HIGH_RECV_EVENT) {
        void *buffer = gm_ntohp(event->recv.buffer);
        unsigned size = gm_ntohc(event->recv.size), priority = type == GM_HIGH_RECV_EVENT;
        received((struct header *)buffer, gm_ntohl(event->recv.length), priority);
        gm_provide_receive_buffer(port, buffer, size, priority ? GM_HIGH_PRIORITY : GM_LOW_PRIORITY);
    } else {
        gm_unknown(port, event);
    }
    return 1;
}

int main(int argc, char **argv) {
    struct gm_port *port;
    unsigned node, priority, size, i, under_way;
    int said = 0;
    born = now_us(CLOCK_REALTIME);
    if (argc != 2 || signal(SIGUSR1, stop) == SIG_ERR || signal(SIGTERM, stop) == SIG_ERR)
        return 2;
    if (mmap(LANDING, (gm_size_t)(MOST + 1) * 2 * PLACES * BLOCK, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != LANDING)
        return 3;
    if (gm_init() != GM_SUCCESS || gm_open(&port, 0, PORT, "soak", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    if (gm_allow_remote_memory_access(port) != GM_SUCCESS)
        return 1;
    gm_get_node_id(port, &own);
    gm_max_node_id_in_use(port, &nodes);
    gm_srand(atoi(argv[1]));
    for (priority = 0; priority < 2; priority++) {
        for (size = LEAST; size <= GREATEST; size++)
            for (i = 0; i < BUFFERS; i++)
                gm_provide_receive_buffer(port, gm_dma_malloc(port, 1UL << size), size,
                                          priority ? GM_HIGH_PRIORITY : GM_LOW_PRIORITY);
        for (node = 1; node <= nodes; node++) {
            struct stream *stream = &streams[node][priority];
            stream->port = port;
            stream->node = node;
            stream->priority = priority ? GM_HIGH_PRIORITY : GM_LOW_PRIORITY;
            for (i = 0; i < WINDOW; i++) {
                struct slot *slot = (struct slot *)gm_calloc(1, sizeof *slot);
                slot->stream = stream;
                slot->memory = (struct header *)gm_dma_malloc(port, 1UL << GREATEST);
                slot->block = (struct header *)gm_dma_malloc(port, BLOCK);
                slot->next = stream->free;
                stream->free = slot;
            }
        }
    }
    printf("runs\n");
    fflush(stdout);
    while (!ends) {
        int moved = turn(port);
        for (node = 1, under_way = 0; node <= nodes; node++)
            for (priority = 0; priority < 2; priority++) {
                struct stream *stream = &streams[node][priority];
                if (node != own && !stops && !stream->failed && stream->free &&
                    (!stream->again_at || now_us(CLOCK_MONOTONIC) >= stream->again_at)) {
                    post(stream);
                    stream->again_at = 0;
                }
                under_way += stream->under_way + (unsigned)stream->failed;
            }
        if (stops && !under_way && !said) {
            for (node = 1; node <= nodes; node++)
                for (priority = 0; priority < 2; priority++)
                    printf("to %u %u %llu %u.%u %llu\n", node, priority, (unsigned long long)born,
                           streams[node][priority].last_run, streams[node][priority].last_index,
                           (unsigned long long)streams[node][priority].delivered);
            printf("quiet\n");
            fflush(stdout);
            said = 1;
        }
        if (!moved)
            usleep(100);
    }
    while (turn(port))
        ;
    for (node = 1; node <= nodes; node++)
        for (priority = 0; priority < 2; priority++)
            printf("from %u %u %llu %u.%u %llu %llu\n", node, priority,
                   (unsigned long long)sources[node][priority].sender, sources[node][priority].run,
                   sources[node][priority].index, (unsigned long long)sources[node][priority].received,
                   (unsigned long long)sources[node][priority].puts);
    gm_close(port);
    gm_finalize();
    return 0;
}

/*
 * libfabric itself: FI_EP_RDM, messages and remote access, on the provider that RAW_PROVIDER names
 * (tcp;ofi_rxm) and the domain that RAW_DOMAIN names. RAW_RANK is 0 or 1, RAW_FOLDER is a folder
 * that both processes see, for their addresses.
 */
#include "net_bench.h"

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Receives are posted for messages of control (a few bytes) and of data alike, in the order in
 * which the peer sends. */
struct card {
    unsigned char name[64];
    size_t length;
    uint64_t target, source; /* where the memory is, as remote access wants it */
    uint64_t target_key, source_key;
};

static int me;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fid_av *addresses;
static struct fid_cq *queue;
static struct fid_mr *target_region, *source_region, *control_region;
static fi_addr_t peer;
static struct card there;
static uint64_t control[2]; /* sent, received */
static uint64_t sent, received; /* completions */
static uint64_t to_send, to_receive;

static void must(int code, const char *what)
{
    if (code < 0)
        net_die("%s: %s", what, fi_strerror(-code));
}

static void poll_queue(void)
{
    struct fi_cq_msg_entry entry[16];
    ssize_t count = fi_cq_read(queue, entry, 16);
    if (count == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(queue, &error, 0);
        net_die("an operation failed: %s", fi_strerror(error.err));
    }
    if (count < 0 && count != -FI_EAGAIN)
        net_die("fi_cq_read: %s", fi_strerror((int)-count));
    /* A machine that does other work as well must run the peer. */
    static unsigned empty;
    if (count > 0)
        empty = 0;
    else if (++empty % 4096 == 0)
        sched_yield();
    for (ssize_t i = 0; i < count; i++)
        ++*(entry[i].flags & FI_RECV ? &received : &sent);
}

static void wait_sent(void) { while (sent < to_send) poll_queue(); }
static void wait_received(void) { while (received < to_receive) poll_queue(); }

#define RETRY(call)                                                                                                \
    do {                                                                                                           \
        ssize_t code_;                                                                                             \
        while ((code_ = (call)) == -FI_EAGAIN)                                                                     \
            poll_queue();                                                                                          \
        must((int)code_, #call);                                                                                   \
    } while (0)

static void post_receive(void *buffer, size_t size, struct fid_mr *region)
{
    static struct fi_context context[WINDOW + 2];
    RETRY(fi_recv(endpoint, buffer, size, region ? fi_mr_desc(region) : NULL, peer, &context[to_receive % (WINDOW + 2)]));
    to_receive++;
}

static void send_message(const void *buffer, size_t size, struct fid_mr *region)
{
    static struct fi_context context[WINDOW + 2];
    if (size <= info->tx_attr->inject_size) {
        RETRY(fi_inject(endpoint, buffer, size, peer));
        return;
    }
    RETRY(fi_send(endpoint, buffer, size, region ? fi_mr_desc(region) : NULL, peer, &context[to_send % (WINDOW + 2)]));
    to_send++;
}

static void write_card(const char *folder, const struct card *own)
{
    char name[512], other[512];
    snprintf(name, sizeof name, "%s/raw%d.new", folder, me);
    snprintf(other, sizeof other, "%s/raw%d", folder, me);
    FILE *file = fopen(name, "w");
    if (!file || fwrite(own, sizeof *own, 1, file) != 1 || fclose(file) != 0 || rename(name, other) != 0)
        net_die("%s: %s", name, strerror(errno));
}

static void read_card(const char *folder)
{
    char name[512];
    snprintf(name, sizeof name, "%s/raw%d", folder, !me);
    for (int tries = 0; tries < 2000; tries++) {
        FILE *file = fopen(name, "r");
        if (file) {
            size_t got = fread(&there, sizeof there, 1, file);
            fclose(file);
            if (got == 1)
                return;
        }
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
    }
    net_die("%s has not come", name);
}

static struct fid_mr *registered(void *memory, size_t size, uint64_t key)
{
    struct fid_mr *region;
    must(fi_mr_reg(domain, memory, size, FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0,
                   &region, NULL),
         "fi_mr_reg");
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        must(fi_mr_bind(region, &endpoint->fid, 0), "fi_mr_bind");
        must(fi_mr_enable(region), "fi_mr_enable");
    }
    return region;
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        net_die("%s is not set", name);
    return value;
}

int system_start(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *folder = setting("RAW_FOLDER");
    me = atoi(setting("RAW_RANK"));
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->name = strdup(setting("RAW_DOMAIN"));
    hints->fabric_attr->prov_name = strdup(setting("RAW_PROVIDER"));
    hints->addr_format = FI_SOCKADDR_IN;
    must(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info), "fi_getinfo");
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    struct fi_cq_attr queue_attr = {.format = FI_CQ_FORMAT_MSG, .size = 1024};
    must(fi_cq_open(domain, &queue_attr, &queue, NULL), "fi_cq_open");
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    must(fi_av_open(domain, &av_attr, &addresses, NULL), "fi_av_open");
    must(fi_endpoint(domain, info, &endpoint, NULL), "fi_endpoint");
    must(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
    must(fi_enable(endpoint), "fi_enable");
    target_region = registered(net_target, LARGEST, 1);
    source_region = registered(net_source, LARGEST, 2);
    control_region = registered(control, sizeof control, 3);
    int virtual = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    struct card own = {.length = sizeof own.name,
                       .target = virtual ? (uint64_t)net_target : 0,
                       .source = virtual ? (uint64_t)net_source : 0,
                       .target_key = fi_mr_key(target_region),
                       .source_key = fi_mr_key(source_region)};
    must(fi_getname(&endpoint->fid, own.name, &own.length), "fi_getname");
    write_card(folder, &own);
    read_card(folder);
    if (fi_av_insert(addresses, there.name, 1, &peer, 0, NULL) != 1)
        net_die("the address of the peer is not taken");
    return me;
}

static void control_send(uint64_t value)
{
    control[0] = value;
    send_message(&control[0], 8, control_region);
    wait_sent();
}

static uint64_t control_receive(void)
{
    post_receive(&control[1], 8, control_region);
    wait_received();
    return control[1];
}

void system_meet(void)
{
    if (me == 0) {
        control_send(0);
        control_receive();
    } else {
        control_receive();
        control_send(0);
    }
}

uint64_t system_share(uint64_t value)
{
    if (me == 0)
        control_send(value);
    else
        value = control_receive();
    return value;
}

void system_end(void)
{
    fi_close(&endpoint->fid);
    fi_close(&target_region->fid);
    fi_close(&source_region->fid);
    fi_close(&control_region->fid);
    fi_close(&queue->fid);
    fi_close(&addresses->fid);
    fi_close(&domain->fid);
    fi_close(&fabric->fid);
    fi_freeinfo(info);
}

static void message_active(size_t size)
{
    post_receive(net_target, size, target_region);
    send_message(net_source, size, source_region);
    wait_received();
    wait_sent();
}

static void message_passive(size_t size)
{
    post_receive(net_target, size, target_region);
    wait_received();
    send_message(net_source, size, source_region);
    wait_sent();
}

static void stream_active(size_t size)
{
    for (size_t i = net_window(size); i > 0; i--)
        send_message(net_source, size, source_region);
    wait_sent();
    control_receive();
}

static void stream_passive(size_t size)
{
    for (size_t i = net_window(size); i > 0; i--)
        post_receive(net_target, size, target_region);
    wait_received();
    control_send(0);
}

/* Delivery complete: as a completion counter, the completion says that the data is in place. */
static void put(size_t size)
{
    static struct fi_context context[WINDOW + 2];
    struct iovec piece = {net_source, size};
    void *description = fi_mr_desc(source_region);
    struct fi_rma_iov to = {there.target, size, there.target_key};
    struct fi_msg_rma message = {&piece, &description, 1, peer, &to, 1, &context[to_send % (WINDOW + 2)], 0};
    RETRY(fi_writemsg(endpoint, &message, FI_DELIVERY_COMPLETE));
    to_send++;
}

static void put_active(size_t size)
{
    put(size);
    wait_sent();
}

static void put_stream_active(size_t size)
{
    for (size_t i = net_window(size); i > 0; i--)
        put(size);
    wait_sent();
}

static void get_active(size_t size)
{
    static struct fi_context context;
    RETRY(fi_read(endpoint, net_target, size, fi_mr_desc(target_region), peer, there.source, there.source_key, &context));
    to_send++;
    wait_sent();
}

const struct pattern system_patterns[] = {
    {"message", message_active, message_passive, 2, 1, 0},
    {"message_stream", stream_active, stream_passive, 0, 1, 0},
    {"put", put_active, NULL, 1, 1, 0},
    {"put_stream", put_stream_active, NULL, 0, 1, 0},
    {"get", get_active, NULL, 1, 0, 0},
    {NULL, NULL, NULL, 0, 0, 0},
};

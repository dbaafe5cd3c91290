#include "desk.h"

int task, tasks;
struct desk mine;
const unsigned ports[4] = {2, 4, 5, 6};
static struct desk *desks[8];

unsigned port_of(int other) { return ports[other]; }

unsigned node_of(struct desk *desk, int other) {
    unsigned highest;
    CHECK(gm_max_node_id_in_use(desk->port, &highest) == GM_SUCCESS);
    CHECK(highest == 1 || highest == (unsigned)tasks);
    return highest == 1 ? 1 : (unsigned)other + 1;
}

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void note(struct gm_port *port, void *context, gm_status_t status) {
    struct desk *desk = desks[gm_get_port_id(port)];
    CHECK(desk->in_unknown);
    if (context == (void *)desk) {
        /* By hand: the other process has not started yet. */
        CHECK(status == GM_SUCCESS || (getenv("LAPI_GM_MAP") && status == GM_SEND_TARGET_NODE_UNREACHABLE));
        desk->failed |= status != GM_SUCCESS;
        desk->tells--;
        return;
    }
    CHECK(desk->ends < MOST);
    desk->ended[desk->ends].context = context;
    desk->ended[desk->ends++].status = status;
}

void open_desk(struct desk *desk, unsigned number) {
    int i;
    memset(desk, 0, sizeof *desk);
    CHECK(gm_open(&desk->port, 0, number, "conformance", (enum gm_api_version)GM_API_VERSION) == GM_SUCCESS);
    CHECK(gm_get_port_id(desk->port) == number);
    desks[number] = desk;
    desk->who = task;
    CHECK(gm_register_memory(desk->port, &desk->who, sizeof desk->who) == GM_SUCCESS);
    for (i = 0; i < BUFFERS; i++)
        gm_provide_receive_buffer_with_tag(desk->port, gm_malloc(1 << TELL), TELL, GM_HIGH_PRIORITY, 77);
}

void turn(struct desk *desk, gm_recv_event_t *event) {
    struct arrived *arrived;
    switch (GM_RECV_EVENT_TYPE(event)) {
    case GM_NO_RECV_EVENT:
        break;
    case GM_RECV_EVENT:
    case GM_HIGH_RECV_EVENT:
        if (gm_ntohc(event->recv.tag) == 77) {
            void *buffer = gm_ntohp(event->recv.buffer);
            CHECK(gm_ntohl(event->recv.length) == sizeof(int));
            desk->told[*(int *)buffer]++;
            gm_provide_receive_buffer_with_tag(desk->port, buffer, TELL, GM_HIGH_PRIORITY, 77);
            break;
        }
        CHECK(desk->arrivals < MOST);
        arrived = &desk->arrived[desk->arrivals++];
        arrived->buffer = gm_ntohp(event->recv.buffer);
        CHECK(gm_ntohp(event->recv.message) == arrived->buffer);
        arrived->length = gm_ntohl(event->recv.length);
        arrived->size = gm_ntohc(event->recv.size);
        arrived->tag = gm_ntohc(event->recv.tag);
        arrived->node = gm_ntohs(event->recv.sender_node_id);
        arrived->port = gm_ntohc(event->recv.sender_port_id);
        arrived->type = GM_RECV_EVENT_TYPE(event);
        break;
    case GM_SENT_EVENT: {
        void **list = (void **)gm_ntohp(event->sent.message_list);
        for (; *list; list++)
            desk->sent++;
        break;
    }
    default:
        desk->in_unknown = 1;
        gm_unknown(desk->port, event);
        desk->in_unknown = 0;
    }
}

void until(struct desk *desk, const int *number, int least) {
    while (*number < least)
        turn(desk, gm_blocking_receive(desk->port));
}

static void while_telling(struct desk *desk) {
    while (desk->tells)
        turn(desk, gm_blocking_receive(desk->port));
}

void tell(struct desk *desk, int other) {
    unsigned node = node_of(desk, other);
    for (;;) {
        desk->tells = 1;
        desk->failed = 0;
        gm_send_with_callback(desk->port, &desk->who, TELL, sizeof desk->who, GM_HIGH_PRIORITY, node, port_of(other), note,
                              desk);
        while_telling(desk);
        if (!desk->failed)
            return;
        desk->tells = 1;
        gm_resume_sending(desk->port, GM_HIGH_PRIORITY, node, port_of(other), note, desk);
        while_telling(desk);
        usleep(50000);
    }
}

void await(struct desk *desk, int other) {
    until(desk, &desk->told[other], 1);
    desk->told[other]--;
}

void post(struct desk *desk, int other, void *message, unsigned size, unsigned length, long number) {
    gm_send_with_callback(desk->port, message, size, length, GM_LOW_PRIORITY, node_of(desk, other), port_of(other),
                          note, (void *)number);
}

void *buffer(unsigned size, unsigned tag) {
    void *memory = gm_dma_malloc(mine.port, 1UL << size);
    CHECK(memory);
    gm_provide_receive_buffer_with_tag(mine.port, memory, size, GM_LOW_PRIORITY, tag);
    return memory;
}

void ended(int at, long number, gm_status_t status) {
    until(&mine, &mine.ends, at + 1);
    if (mine.ended[at].context != (void *)number || mine.ended[at].status != status)
        fprintf(stderr, "task %d: end %d is of %ld: %s\n", task, at, (long)mine.ended[at].context,
                gm_strerror(mine.ended[at].status));
    CHECK(mine.ended[at].context == (void *)number);
    CHECK(mine.ended[at].status == status);
}

void together(void) {
    int other;
    for (other = 0; other < tasks; other++)
        if (other != task)
            tell(&mine, other);
    for (other = 0; other < tasks; other++)
        if (other != task)
            await(&mine, other);
}

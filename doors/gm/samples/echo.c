/* A server that no launcher has started, and its clients: LAPI_GM_MAP=MAP LAPI_GM_NODE=1 ./echo
 *
 * Node 1 of the map is the server, which returns what it gets. Any other node is a client:
 * LAPI_GM_MAP=MAP LAPI_GM_NODE=2 ./echo TEXT */
#include "gm.h"

enum { PORT = 2, SIZE = 8, CLIENTS = 16 };

static int under_way;
static gm_status_t outcome;

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    outcome = status;
    under_way--;
}

/* A client that is gone does no harm: what waits for it is forgotten. */
static void returned(struct gm_port *port, void *buffer, gm_status_t status) {
    if (status != GM_SUCCESS && buffer)
        gm_drop_sends(port, GM_LOW_PRIORITY, *(unsigned *)((char *)buffer + (1 << SIZE)), PORT, returned, NULL);
    if (buffer)
        gm_provide_receive_buffer(port, buffer, SIZE, GM_LOW_PRIORITY);
}

static void serve(struct gm_port *port) {
    int i;
    for (i = 0; i < CLIENTS; i++)
        gm_provide_receive_buffer(port, gm_dma_malloc(port, (1 << SIZE) + sizeof(unsigned)), SIZE, GM_LOW_PRIORITY);
    printf("serving\n");
    fflush(stdout);
    for (;;) {
        gm_recv_event_t *event = gm_blocking_receive_no_spin(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT) {
            char *buffer = gm_ntohp(event->recv.buffer);
            unsigned node = gm_ntohs(event->recv.sender_node_id);
            *(unsigned *)(buffer + (1 << SIZE)) = node;
            gm_send_with_callback(port, buffer, SIZE, gm_ntohl(event->recv.length), GM_LOW_PRIORITY, node,
                                  gm_ntohc(event->recv.sender_port_id), returned, buffer);
        } else {
            gm_unknown(port, event);
        }
    }
}

static int call(struct gm_port *port, const char *text) {
    char *out = gm_dma_malloc(port, 1 << SIZE);
    const char *answer = NULL;
    gm_strncpy(out, text, (int)gm_max_length_for_size(SIZE) - 1);
    gm_provide_receive_buffer(port, gm_dma_calloc(port, 1, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    under_way = 1;
    gm_send_with_callback(port, out, SIZE, gm_strlen(out) + 1, GM_LOW_PRIORITY, 1, PORT, sent, NULL);
    while (under_way || (outcome == GM_SUCCESS && !answer)) {
        gm_recv_event_t *event = gm_blocking_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
            answer = gm_ntohp(event->recv.buffer);
        else
            gm_unknown(port, event);
    }
    if (!answer) {
        gm_perror("echo", outcome);
        return 1;
    }
    printf("echo: %s\n", answer);
    return 0;
}

int main(int argc, char **argv) {
    struct gm_port *port;
    unsigned node;
    int status = 0;
    if (gm_init() != GM_SUCCESS || gm_open(&port, 0, PORT, "echo", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    gm_get_node_id(port, &node);
    if (node == 1)
        serve(port);
    else
        status = call(port, argc > 1 ? argv[1] : "hello");
    gm_close(port);
    gm_finalize();
    return status;
}

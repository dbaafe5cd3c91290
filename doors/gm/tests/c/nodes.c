/* Messages go round through all nodes, each of which is a task, whatever has started them. */
#include "gm.h"

enum { PORT = 2, SIZE = 6, ROUNDS = 50 };

static int ends, arrivals, last;

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    if (status != GM_SUCCESS) {
        gm_perror("a send", status);
        exit(1);
    }
    ends++;
}

int main(void) {
    struct gm_port *port;
    unsigned own, nodes;
    int *out, *in, round;
    if (gm_init() != GM_SUCCESS || gm_open(&port, 0, PORT, "nodes", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    gm_get_node_id(port, &own);
    gm_max_node_id_in_use(port, &nodes);
    out = (int *)gm_dma_malloc(port, 1 << SIZE);
    in = (int *)gm_dma_malloc(port, 1 << SIZE);
    for (round = 1; round <= ROUNDS; round++) {
        gm_provide_receive_buffer(port, in, SIZE, GM_LOW_PRIORITY);
        *out = (int)own * 1000 + round;
        gm_send_with_callback(port, out, SIZE, sizeof *out, GM_LOW_PRIORITY, own % nodes + 1, PORT, sent, NULL);
        while (ends < round || arrivals < round) {
            gm_recv_event_t *event = gm_blocking_receive(port);
            if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
                arrivals++, last = *in;
            else
                gm_unknown(port, event);
        }
        if (last != (int)((own + nodes - 2) % nodes + 1) * 1000 + round)
            return 2;
    }
    gm_close(port);
    gm_finalize();
    printf("OK nodes %u of %u\n", own, nodes);
    return 0;
}

/* A message goes round through all tasks of the job: poe ./ring -procs 4
 *
 * Each task has another port, so that this works where all are on one node. */
#include "gm.h"

static const unsigned ports[] = {2, 4, 5, 6, 7};
static int under_way;

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    if (status != GM_SUCCESS) {
        gm_perror("ring: a send", status);
        exit(1);
    }
    under_way = 0;
}

/* Takes events until one is a message; returns what it has. */
static int next_message(struct gm_port *port) {
    for (;;) {
        gm_recv_event_t *event = gm_blocking_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
            return *(int *)gm_ntohp(event->recv.buffer);
        gm_unknown(port, event);
    }
}

int main(void) {
    int task = getenv("MP_CHILD") ? atoi(getenv("MP_CHILD")) : 0;
    int tasks = getenv("MP_PROCS") ? atoi(getenv("MP_PROCS")) : 1;
    int next = (task + 1) % tasks, *out, number;
    unsigned nodes, node;
    struct gm_port *port;
    gm_status_t status;

    if (tasks > (int)GM_NUM_ELEM(ports)) {
        fprintf(stderr, "ring: at most %d tasks\n", (int)GM_NUM_ELEM(ports));
        return 2;
    }
    if (gm_init() != GM_SUCCESS)
        return 1;
    status = gm_open(&port, 0, ports[task], "ring", GM_API_VERSION_2_0);
    if (status != GM_SUCCESS) {
        gm_perror("ring: gm_open", status);
        return 1;
    }
    out = gm_dma_malloc(port, sizeof *out);
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 16), 4, GM_LOW_PRIORITY);
    gm_max_node_id_in_use(port, &nodes);
    node = nodes == (unsigned)tasks ? (unsigned)next + 1 : 1;

    number = task == 0 ? 0 : next_message(port);
    *out = number + 1;
    under_way = 1;
    gm_send_with_callback(port, out, gm_min_size_for_length(sizeof *out), sizeof *out, GM_LOW_PRIORITY, node,
                          ports[next], sent, NULL);
    if (task == 0)
        printf("the message has passed %d tasks\n", next_message(port));
    while (under_way)
        gm_unknown(port, gm_blocking_receive(port));
    gm_close(port);
    gm_finalize();
    return 0;
}

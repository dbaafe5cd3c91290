/* Node 1 of a map takes a datagram and leaves, while the others send it one after the other. */
#include "gm.h"

enum { PORT = 2, SIZE = 8 };

static unsigned tokens;

static void ended(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    (void)status;
    tokens++;
}

int main(void) {
    struct gm_port *port;
    unsigned node;
    void *memory;
    if (gm_init() != GM_SUCCESS || gm_open(&port, 0, PORT, "flood", GM_API_VERSION_2_0) != GM_SUCCESS ||
        gm_get_node_id(port, &node) != GM_SUCCESS)
        return 1;
    memory = gm_dma_calloc(port, 1, 1 << SIZE);
    if (node == 1) {
        gm_provide_receive_buffer(port, memory, SIZE, GM_LOW_PRIORITY);
        while (GM_RECV_EVENT_TYPE(gm_blocking_receive(port)) != GM_RECV_EVENT)
            ;
        gm_finalize();
        printf("left\n");
        return 0;
    }
    tokens = gm_num_send_tokens(port);
    for (;;) {
        while (tokens) {
            tokens--;
            gm_datagram_send(port, memory, SIZE, 8, GM_LOW_PRIORITY, 1, PORT, ended, NULL);
        }
        gm_unknown(port, gm_blocking_receive(port));
    }
}

/*
 * The second task takes a message of the first, and then has no time for GM: by `computes` it waits
 * outside of GM until the first one knows that the message is delivered, by `leaves` it returns
 * from main without closing its port.
 */
#include "gm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), abort()))

enum { PORT = 2, SIZE = 6 };

static int ends;

static void ended(struct gm_port *port, void *context, gm_status_t status)
{
    (void)port, (void)context;
    CHECK(status == GM_SUCCESS);
    ends++;
}

int main(int argc, char **argv)
{
    struct gm_port *port;
    gm_recv_event_t *event;
    unsigned node;
    CHECK(argc == 3 && gm_init() == GM_SUCCESS);
    CHECK(gm_open(&port, 0, PORT, "words", GM_API_VERSION_2_0) == GM_SUCCESS);
    CHECK(gm_get_node_id(port, &node) == GM_SUCCESS);
    if (node == 1) {
        void *message = gm_dma_calloc(port, 1, 1 << SIZE);
        gm_send_with_callback(port, message, SIZE, 8, GM_LOW_PRIORITY, 2, PORT, ended, NULL);
        while (ends == 0)
            gm_unknown(port, gm_receive(port));
        fclose(fopen(argv[2], "w"));
        printf("delivered\n");
        gm_close(port);
        gm_finalize();
        return 0;
    }
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    for (;;) {
        event = gm_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
            break;
        gm_unknown(port, event);
    }
    if (strcmp(argv[1], "leaves") == 0)
        return 0;
    while (access(argv[2], F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    gm_close(port);
    gm_finalize();
    return 0;
}

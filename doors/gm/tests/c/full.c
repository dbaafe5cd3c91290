/* A server as samples/echo.c, that has no descriptor left until it gets SIGUSR1. */
#include "gm.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { PORT = 2, SIZE = 8, MOST = 4096 };

static volatile sig_atomic_t goes_on;
static void go_on(int number) { goes_on = number; }

static void returned(struct gm_port *port, void *buffer, gm_status_t status) {
    if (status != GM_SUCCESS)
        abort();
    gm_provide_receive_buffer(port, buffer, SIZE, GM_LOW_PRIORITY);
}

int main(void) {
    static int held[MOST];
    int count = 0;
    struct gm_port *port;
    if (signal(SIGUSR1, go_on) == SIG_ERR || gm_init() != GM_SUCCESS ||
        gm_open(&port, 0, PORT, "full", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    while (count < MOST && (held[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    if (count == MOST || errno != EMFILE)
        return 2;
    printf("full\n");
    fflush(stdout);
    while (!goes_on)
        usleep(1000);
    while (count)
        close(held[--count]);
    for (;;) {
        gm_recv_event_t *event = gm_blocking_receive_no_spin(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT) {
            void *buffer = gm_ntohp(event->recv.buffer);
            gm_send_with_callback(port, buffer, SIZE, gm_ntohl(event->recv.length), GM_LOW_PRIORITY,
                                  gm_ntohs(event->recv.sender_node_id), gm_ntohc(event->recv.sender_port_id), returned,
                                  buffer);
        } else {
            gm_unknown(port, event);
        }
    }
}

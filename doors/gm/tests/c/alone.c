/* A server as samples/echo.c, for which the system has no further thread until it gets SIGUSR1.
 * Before that it sends to node 3, in vain. */
#define _GNU_SOURCE
#include "gm.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { PORT = 2, SIZE = 8 };

static volatile sig_atomic_t is_alone;
static void go_on(int number) {
    (void)number;
    is_alone = 0;
}

/* Instead of the C library's, also for libgm.so. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *with) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (is_alone)
        return EAGAIN;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attr, run, with);
}

static gm_status_t outcome = GM_SUCCESS;
static int under_way = 1;
static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    outcome = status;
    under_way = 0;
}

static void returned(struct gm_port *port, void *buffer, gm_status_t status) {
    if (status != GM_SUCCESS)
        abort();
    gm_provide_receive_buffer(port, buffer, SIZE, GM_LOW_PRIORITY);
}

int main(void) {
    struct gm_port *port;
    if (signal(SIGUSR1, go_on) == SIG_ERR || gm_init() != GM_SUCCESS ||
        gm_open(&port, 0, PORT, "alone", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    is_alone = 1;
    gm_send_with_callback(port, gm_dma_calloc(port, 1, 1 << SIZE), SIZE, 8, GM_LOW_PRIORITY, 3, PORT, sent, NULL);
    while (under_way)
        gm_unknown(port, gm_blocking_receive_no_spin(port));
    printf("nobody: %s\n", outcome == GM_SEND_TARGET_NODE_UNREACHABLE ? "GM_SEND_TARGET_NODE_UNREACHABLE" : "?");
    fflush(stdout);
    while (is_alone)
        usleep(1000);
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    printf("serving\n");
    fflush(stdout);
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

/* A client of the server of samples/echo.c: it calls a few times, says so, and stays. */
#include "gm.h"
#include <unistd.h>

enum { PORT = 2, SIZE = 8, CALLS = 3 };

static int under_way;

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    if (status != GM_SUCCESS) {
        gm_perror("a call", status);
        exit(1);
    }
    under_way--;
}

int main(void) {
    struct gm_port *port;
    char *out, *in;
    int i;
    if (gm_init() != GM_SUCCESS || gm_open(&port, 0, PORT, "anew", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    out = gm_dma_malloc(port, 1 << SIZE);
    in = gm_dma_malloc(port, 1 << SIZE);
    for (i = 0; i < CALLS; i++) {
        int answers = 0;
        sprintf(out, "call %d of %d", i, (int)getpid());
        gm_provide_receive_buffer(port, in, SIZE, GM_LOW_PRIORITY);
        under_way = 1;
        gm_send_with_callback(port, out, SIZE, gm_strlen(out) + 1, GM_LOW_PRIORITY, 1, PORT, sent, NULL);
        while (under_way || !answers) {
            gm_recv_event_t *event = gm_blocking_receive(port);
            if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
                answers++;
            else
                gm_unknown(port, event);
        }
        if (gm_strcmp(in, out))
            return 2;
    }
    printf("%d answers\n", CALLS);
    fflush(stdout);
    for (;;)
        pause();
}

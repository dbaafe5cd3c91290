/* Every task sends to every one, and each has a single buffer: who finds it taken waits for its
 * turn. poe ./alltoall -procs 3 */
#include "gm.h"

enum { MESSAGES = 10 };

static const unsigned ports[] = {2, 4, 5, 6, 7};
static int under_way;

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    if (status != GM_SUCCESS) {
        gm_perror("alltoall: a send", status);
        exit(1);
    }
    under_way--;
}

int main(void) {
    int task = getenv("MP_CHILD") ? atoi(getenv("MP_CHILD")) : 0;
    int tasks = getenv("MP_PROCS") ? atoi(getenv("MP_PROCS")) : 1;
    int i, other, received = 0, sum = 0, *out;
    unsigned nodes;
    struct gm_port *port;

    if (tasks > (int)GM_NUM_ELEM(ports) || gm_init() != GM_SUCCESS)
        return 1;
    if (gm_open(&port, 0, ports[task], "alltoall", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 16), 4, GM_LOW_PRIORITY);
    gm_max_node_id_in_use(port, &nodes);
    out = gm_dma_malloc(port, sizeof *out);
    *out = task + 1;
    for (i = 0; i < MESSAGES; i++)
        for (other = 0; other < tasks; other++, under_way++)
            gm_send_with_callback(port, out, 4, sizeof *out, GM_LOW_PRIORITY,
                                  nodes == (unsigned)tasks ? (unsigned)other + 1 : 1, ports[other], sent, NULL);
    while (under_way || received < MESSAGES * tasks) {
        gm_recv_event_t *event = gm_blocking_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT) {
            void *buffer = gm_ntohp(event->recv.buffer);
            sum += *(int *)buffer;
            received++;
            gm_provide_receive_buffer(port, buffer, 4, GM_LOW_PRIORITY);
        } else {
            gm_unknown(port, event);
        }
    }
    printf("task %d has received %d messages, whose sum is %d\n", task, received, sum);
    gm_close(port);
    gm_finalize();
    return 0;
}

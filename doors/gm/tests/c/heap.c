/* Two tasks that send small messages to and fro: how often they take memory of the heap once all is
 * warm. */
#define _GNU_SOURCE
#include "gm.h"
#include <time.h>

enum { PORT = 2, SIZE = 11, WARM = 500, ROUNDS = 2000 };

static __thread int counts;
static __thread long taken;
static int ends, arrivals;

/* The C library's functions, counted. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    taken += counts;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    taken += counts;
    return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
    taken += counts;
    return __libc_realloc(memory, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
    taken += counts;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}

static void sent(struct gm_port *port, void *context, gm_status_t status) {
    (void)port;
    (void)context;
    if (status != GM_SUCCESS)
        abort();
    ends++;
}

static void until(struct gm_port *port, const int *number, int least) {
    while (*number < least) {
        gm_recv_event_t *event = gm_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT) {
            arrivals++;
            gm_provide_receive_buffer(port, gm_ntohp(event->recv.buffer), SIZE, GM_LOW_PRIORITY);
        } else {
            gm_unknown(port, event);
        }
    }
}

int main(void) {
    struct gm_port *port;
    unsigned own, peer;
    int round;
    char *out;
    if (gm_init() != GM_SUCCESS || gm_open(&port, 0, PORT, "heap", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    gm_get_node_id(port, &own);
    peer = 3 - own;
    out = (char *)gm_dma_calloc(port, 1, 1 << SIZE);
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    /* What is counted is counted. */
    counts = 1;
    free(gm_malloc(1));
    counts = 0;
    if (taken == 0)
        return 2;
    taken = 0;
    for (round = 1; round <= WARM + ROUNDS; round++) {
        unsigned long length = round % 2 ? 8 : 1024;
        counts = round > WARM;
        /* Longer than a sender waits before it asks what has become of a message: that is warm,
         * too, for a busy machine may hold up a task at any time. */
        if (round <= WARM && round % (WARM / 4) == 0 && own == 1 + (unsigned)round / (WARM / 4) % 2)
            nanosleep(&(struct timespec){0, 50000000}, NULL);
        if (own == 2)
            until(port, &arrivals, round);
        gm_send_with_callback(port, out, SIZE, length, GM_LOW_PRIORITY, peer, PORT, sent, NULL);
        if (own == 1)
            until(port, &arrivals, round);
        until(port, &ends, round);
        counts = 0;
    }
    gm_close(port);
    gm_finalize();
    printf("heap %u: %ld\n", own, taken);
    return 0;
}

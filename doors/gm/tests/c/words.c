/*
 * The second task takes a message of the first, and then has no time for GM: by `computes` it waits
 * outside of GM until the first one knows that the message is delivered, by `leaves` it returns
 * from main without closing its port. By `late` it has no buffer at first, and the first one sends
 * a put behind the message: then both wait outside of GM until the put has come.
 */
#include "gm.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), abort()))

enum { PORT = 2, SIZE = 6 };

static int ends;
static const char *what;

static void wait_for(const char *file)
{
    while (access(file, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Takes the next message. */
static void *received(struct gm_port *port)
{
    for (;;) {
        gm_recv_event_t *event = gm_blocking_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
            return gm_ntohp(event->recv.buffer);
        gm_unknown(port, event);
    }
}

static void ended(struct gm_port *port, void *context, gm_status_t status)
{
    (void)port, (void)context;
    if (status != GM_SUCCESS)
        fprintf(stderr, "%s: a send ends with status %d\n", what, (int)status);
    CHECK(status == GM_SUCCESS);
    ends++;
}

static void send(struct gm_port *port, void *message, unsigned node)
{
    gm_send_with_callback(port, message, SIZE, 8, GM_LOW_PRIORITY, node, PORT, ended, NULL);
}

static void wait_for_ends(struct gm_port *port, int count)
{
    while (ends < count)
        gm_unknown(port, gm_receive(port));
}

static void provide(struct gm_port *port)
{
    gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
}

static void late(struct gm_port *port, unsigned node, const char *known)
{
    gm_remote_ptr_t *message = gm_dma_calloc(port, 1, 1 << SIZE);
    volatile char *memory = gm_dma_calloc(port, 1, 8);
    if (node == 1) {
        provide(port);
        memcpy(message, received(port), sizeof(*message));
        memory[0] = 1;
        send(port, message, 2);
        gm_directed_send_with_callback(port, (void *)memory, *message, 8, GM_LOW_PRIORITY, 2, PORT, ended, NULL);
        wait_for(known);
        wait_for_ends(port, 2);
        printf("delivered\n");
        return;
    }
    CHECK(gm_allow_remote_memory_access(port) == GM_SUCCESS);
    *message = (gm_remote_ptr_t)(uintptr_t)memory;
    send(port, message, 1);
    wait_for_ends(port, 1);
    /* The message and the put come while there is no buffer. */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    provide(port);
    received(port);
    while (*memory == 0)
        ;
    fclose(fopen(known, "w"));
}

/* By hand: both processes are there before one sends something to the other. */
static void meet(unsigned node, const char *known)
{
    char file[200];
    snprintf(file, sizeof(file), "%s.%u", known, node);
    fclose(fopen(file, "w"));
    snprintf(file, sizeof(file), "%s.%u", known, 3 - node);
    wait_for(file);
}

int main(int argc, char **argv)
{
    struct gm_port *port;
    unsigned node;
    CHECK(argc == 3 && gm_init() == GM_SUCCESS);
    what = argv[1];
    CHECK(gm_open(&port, 0, PORT, "words", GM_API_VERSION_2_0) == GM_SUCCESS);
    CHECK(gm_get_node_id(port, &node) == GM_SUCCESS);
    if (getenv("LAPI_GM_MAP"))
        meet(node, argv[2]);
    if (strcmp(what, "late") == 0) {
        late(port, node, argv[2]);
    } else if (node == 1) {
        send(port, gm_dma_calloc(port, 1, 1 << SIZE), 2);
        wait_for_ends(port, 1);
        fclose(fopen(argv[2], "w"));
        printf("delivered\n");
    } else {
        provide(port);
        received(port);
        if (strcmp(what, "leaves") == 0)
            return 0;
        wait_for(argv[2]);
    }
    gm_close(port);
    gm_finalize();
    return 0;
}

/*
 * GM by libgm.so and LAPI by liblapi_r.so in one process: both FIRST LAST
 *
 * FIRST (gm or lapi) is begun first, LAST is ended last. In each round a task puts to the next one
 * by LAPI, and then sends it a message by GM that says what it has put: the put is complete before.
 */
#include "gm.h"
#include <lapi.h>
#include <unistd.h>

enum { PORT = 2, SIZE = 6, ROUNDS = 50, MOST = 8 };

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

static struct gm_port *port;
static lapi_handle_t handle;
static lapi_info_t info;
static int ends, arrivals;
static long place[512];
static void *last;

static void begin_gm(void) {
    int i;
    CHECK(gm_init() == GM_SUCCESS);
    CHECK(gm_open(&port, 0, PORT, "both", GM_API_VERSION_2_0) == GM_SUCCESS);
    for (i = 0; i < 4; i++)
        gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
}

static void begin_lapi(void) { CHECK(LAPI_Init(&handle, &info) == LAPI_SUCCESS); }

static void end_gm(void) {
    gm_close(port);
    gm_finalize();
}

static void end_lapi(void) {
    CHECK(LAPI_Gfence(handle) == LAPI_SUCCESS);
    CHECK(LAPI_Term(handle) == LAPI_SUCCESS);
}

static void sent(struct gm_port *unused, void *context, gm_status_t status) {
    (void)unused;
    (void)context;
    CHECK(status == GM_SUCCESS);
    ends++;
}

static void turn(void) {
    gm_recv_event_t *event = gm_blocking_receive(port);
    if (GM_RECV_EVENT_TYPE(event) != GM_RECV_EVENT) {
        gm_unknown(port, event);
        return;
    }
    arrivals++;
    last = gm_ntohp(event->recv.buffer);
}

int main(int argc, char **argv) {
    int task, tasks, round;
    static long out[512], *message;
    void *places[MOST];
    lapi_cntr_t complete;
    CHECK(argc == 3);
    (strcmp(argv[1], "gm") ? begin_lapi : begin_gm)();
    (strcmp(argv[1], "gm") ? begin_gm : begin_lapi)();
    CHECK(LAPI_Qenv(handle, TASK_ID, &task) == LAPI_SUCCESS);
    CHECK(LAPI_Qenv(handle, NUM_TASKS, &tasks) == LAPI_SUCCESS && tasks <= MOST);
    CHECK(LAPI_Address_init(handle, place, places) == LAPI_SUCCESS);
    CHECK(LAPI_Setcntr(handle, &complete, 0) == LAPI_SUCCESS);
    message = (long *)gm_dma_malloc(port, 1 << SIZE);
    for (round = 1; round <= ROUNDS; round++) {
        int next = (task + 1) % tasks, left;
        int length = round % 2 ? 8 : (int)sizeof out;
        out[0] = out[511] = task * 1000L + round;
        CHECK(LAPI_Put(handle, (uint)next, (ulong)length, places[next], out, NULL, NULL, &complete) == LAPI_SUCCESS);
        CHECK(LAPI_Waitcntr(handle, &complete, 1, &left) == LAPI_SUCCESS && left == 0);
        *message = out[0];
        gm_send_with_callback(port, message, SIZE, sizeof *message, GM_LOW_PRIORITY, (unsigned)next + 1, PORT, sent, NULL);
        while (ends < round || arrivals < round)
            turn();
        CHECK(*(long *)last == (task + tasks - 1) % tasks * 1000L + round);
        CHECK(place[0] == *(long *)last && (round % 2 || place[511] == place[0]));
        gm_provide_receive_buffer(port, last, SIZE, GM_LOW_PRIORITY);
        /* What was put is read before the next put comes. */
        CHECK(LAPI_Gfence(handle) == LAPI_SUCCESS);
    }
    (strcmp(argv[2], "gm") ? end_gm : end_lapi)();
    (strcmp(argv[2], "gm") ? end_lapi : end_gm)();
    printf("OK both %d of %d\n", task, tasks);
    return 0;
}

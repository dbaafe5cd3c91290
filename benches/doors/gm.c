/*
 * GM beside LAPI, in one process of each of two tasks (LAPI_GM_NODES=task).
 *
 * gm pingpong: a message of 8 bytes goes to and fro, by GM (gm_send_with_callback, gm_receive) and
 * by LAPI (LAPI_Amsend, LAPI_Waitcntr), in turns. Prints microseconds one way, the medians over the
 * turns, and their ratio.
 *
 * gm send, gm receive: task 0 sends, or takes, COUNT messages of 8 bytes in a function named
 * measured, for callgrind.
 */
#include "gm.h"
#include <lapi.h>
#include <time.h>

enum { PORT = 2, SIZE = 6, TURNS = 41, ROUNDS = 2000, COUNT = 2000 };

static struct gm_port *port;
static lapi_handle_t handle;
static int task, ends, arrivals;
static lapi_cntr_t arrived;
static void *out, *counters[2], *handlers[2];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void sent(struct gm_port *unused, void *context, gm_status_t status)
{
    (void)unused, (void)context;
    if (status != GM_SUCCESS)
        abort();
    ends++;
}

static int take(gm_recv_event_t *event)
{
    if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT) {
        arrivals++;
        gm_provide_receive_buffer(port, gm_ntohp(event->recv.buffer), SIZE, GM_LOW_PRIORITY);
        return 1;
    }
    gm_unknown(port, event);
    return 0;
}

static void until(const int *number, int least)
{
    while (*number < least)
        take(gm_receive(port));
}

static void send(void)
{
    gm_send_with_callback(port, out, SIZE, 8, GM_LOW_PRIORITY, (unsigned)(2 - task), PORT, sent, NULL);
}

__attribute__((noinline)) void measured_send(void) { send(); }
__attribute__((noinline)) gm_recv_event_t *measured_receive(void) { return gm_receive(port); }

static double by_gm(void)
{
    double begun = now();
    for (int round = 0; round < ROUNDS; round++) {
        int next = arrivals + 1;
        if (task == 1)
            until(&arrivals, next);
        send();
        if (task == 0)
            until(&arrivals, next);
    }
    until(&ends, arrivals);
    return (now() - begun) / (2.0 * ROUNDS);
}

static void *on_arrival(lapi_handle_t *unused, void *header, uint *length, ulong *bytes, compl_hndlr_t **completion,
                        void **parameter)
{
    (void)unused, (void)header, (void)length, (void)bytes, (void)parameter;
    *completion = NULL;
    return NULL;
}

static double by_lapi(void)
{
    double begun = now();
    long header = 5;
    int left;
    for (int round = 0; round < ROUNDS; round++) {
        if (task == 1)
            LAPI_Waitcntr(handle, &arrived, 1, &left);
        LAPI_Amsend(handle, (uint)(1 - task), handlers[1 - task], &header, sizeof header, NULL, 0, counters[1 - task], NULL,
                    NULL);
        if (task == 0)
            LAPI_Waitcntr(handle, &arrived, 1, &left);
    }
    return (now() - begun) / (2.0 * ROUNDS);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static lapi_info_t info;
    static double gm[TURNS], lapi[TURNS];
    if (argc != 2 || LAPI_Init(&handle, &info) != LAPI_SUCCESS || gm_init() != GM_SUCCESS ||
        gm_open(&port, 0, PORT, "bench", GM_API_VERSION_2_0) != GM_SUCCESS)
        return 1;
    LAPI_Qenv(handle, TASK_ID, &task);
    LAPI_Setcntr(handle, &arrived, 0);
    LAPI_Address_init(handle, &arrived, counters);
    LAPI_Address_init(handle, (void *)on_arrival, handlers);
    out = gm_dma_calloc(port, 1, 1 << SIZE);
    for (int i = 0; i < 4; i++)
        gm_provide_receive_buffer(port, gm_dma_malloc(port, 1 << SIZE), SIZE, GM_LOW_PRIORITY);
    LAPI_Gfence(handle);
    if (!strcmp(argv[1], "pingpong")) {
        by_gm(), by_lapi();
        for (int turn = 0; turn < TURNS; turn++) {
            gm[turn] = by_gm();
            lapi[turn] = by_lapi();
        }
        qsort(gm, TURNS, sizeof *gm, by_value);
        qsort(lapi, TURNS, sizeof *lapi, by_value);
        if (task == 0)
            printf("gm pingpong 8: %.3f us; LAPI_Amsend: %.3f us; ratio %.2f (best %.3f, %.3f: %.2f)\n", gm[TURNS / 2],
                   lapi[TURNS / 2], gm[TURNS / 2] / lapi[TURNS / 2], gm[0], lapi[0], gm[0] / lapi[0]);
    } else if (!strcmp(argv[1], task == 0 ? "send" : "receive")) {
        for (int i = 1; i <= COUNT; i++) {
            measured_send();
            until(&ends, i);
            /* One at a time: the other task has taken it. */
            until(&arrivals, i);
        }
    } else {
        for (int i = 1; i <= COUNT; i++) {
            while (!gm_receive_pending(port))
                ;
            take(measured_receive());
            send();
            until(&ends, i);
        }
    }
    LAPI_Gfence(handle);
    gm_close(port);
    gm_finalize();
    LAPI_Term(handle);
    return 0;
}

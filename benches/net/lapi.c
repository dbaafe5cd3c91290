/* LAPI: LAPI_Amsend and LAPI_Put with target counters, LAPI_Put with a completion
 * counter, LAPI_Get. */
#include "net_bench.h"

#include <lapi.h>
#include <stdio.h>
#include <string.h>

static lapi_handle_t hndl;
static int me;
/* Incremented by the other task, and by this task's own operations. */
static lapi_cntr_t arrived, acknowledged, mine;
static uint64_t shared;
static void *there_target[2], *there_source[2], *there_arrived[2], *there_acknowledged[2], *there_shared[2], *there_handler[2];

static void must(int code, const char *what)
{
    char text[LAPI_MAX_ERR_STRING];
    if (code == LAPI_SUCCESS)
        return;
    LAPI_Msg_string(code, text);
    net_die("%s: %s", what, text);
}

static void wait_for(lapi_cntr_t *counter, size_t value) { must(LAPI_Waitcntr(hndl, counter, (int)value, NULL), "LAPI_Waitcntr"); }

static void *header_handler(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **ch, void **info)
{
    (void)h, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *ch = NULL;
    *info = NULL;
    return net_target;
}

static void share_address(void *address, void **all) { must(LAPI_Address_init(hndl, address, all), "LAPI_Address_init"); }

int system_start(int *argc, char ***argv)
{
    lapi_info_t info;
    int tasks;
    (void)argc, (void)argv;
    memset(&info, 0, sizeof info);
    must(LAPI_Init(&hndl, &info), "LAPI_Init");
    must(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    must(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks != 2)
        net_die("two tasks are needed, not %d", tasks);
    must(LAPI_Senv(hndl, INTERRUPT_SET, 0), "LAPI_Senv");
    share_address(net_target, there_target);
    share_address(net_source, there_source);
    share_address(&arrived, there_arrived);
    share_address(&acknowledged, there_acknowledged);
    share_address(&shared, there_shared);
    share_address((void *)header_handler, there_handler);
    return me;
}

void system_meet(void) { must(LAPI_Gfence(hndl), "LAPI_Gfence"); }

uint64_t system_share(uint64_t value)
{
    shared = value;
    system_meet();
    if (me == 1) {
        must(LAPI_Get(hndl, 0, sizeof shared, there_shared[0], &shared, NULL, &mine), "LAPI_Get");
        wait_for(&mine, 1);
    }
    system_meet();
    return shared;
}

void system_end(void) { must(LAPI_Term(hndl), "LAPI_Term"); }

static void amsend(size_t size)
{
    must(LAPI_Amsend(hndl, !me, there_handler[!me], NULL, 0, net_source, size, there_arrived[!me], &mine, NULL), "LAPI_Amsend");
}

static void message_active(size_t size)
{
    amsend(size);
    wait_for(&arrived, 1);
    wait_for(&mine, 1);
}

static void message_passive(size_t size)
{
    wait_for(&arrived, 1);
    amsend(size);
    wait_for(&mine, 1);
}

static void put_to(size_t size, lapi_cntr_t *counter, lapi_cntr_t *completion)
{
    must(LAPI_Put(hndl, !me, size, there_target[!me], net_source, counter, completion ? NULL : &mine, completion), "LAPI_Put");
}

static void put_notify_active(size_t size)
{
    put_to(size, there_arrived[!me], NULL);
    wait_for(&arrived, 1);
    wait_for(&mine, 1);
}

static void put_notify_passive(size_t size)
{
    wait_for(&arrived, 1);
    put_to(size, there_arrived[!me], NULL);
    wait_for(&mine, 1);
}

/* The acknowledgement of a window: no data, one counter. */
static void acknowledge(void)
{
    must(LAPI_Put(hndl, !me, 0, NULL, NULL, there_acknowledged[!me], NULL, NULL), "LAPI_Put");
}

static void stream_active(size_t size)
{
    size_t messages = net_window(size);
    for (size_t i = 0; i < messages; i++)
        amsend(size);
    wait_for(&mine, messages);
    wait_for(&acknowledged, 1);
}

static void stream_passive(size_t size)
{
    wait_for(&arrived, net_window(size));
    acknowledge();
}

static void put_notify_stream_active(size_t size)
{
    size_t messages = net_window(size);
    for (size_t i = 0; i < messages; i++)
        put_to(size, there_arrived[!me], NULL);
    wait_for(&mine, messages);
    wait_for(&acknowledged, 1);
}

static void put_active(size_t size)
{
    put_to(size, NULL, &mine);
    wait_for(&mine, 1);
}

static void put_stream_active(size_t size)
{
    size_t messages = net_window(size);
    for (size_t i = 0; i < messages; i++)
        put_to(size, NULL, &mine);
    wait_for(&mine, messages);
}

static void get_active(size_t size)
{
    must(LAPI_Get(hndl, 1, size, there_source[1], net_target, NULL, &mine), "LAPI_Get");
    wait_for(&mine, 1);
}

const struct pattern system_patterns[] = {
    {"message", message_active, message_passive, 2, 1, 0},
    {"put_notify", put_notify_active, put_notify_passive, 2, 1, 0},
    {"message_stream", stream_active, stream_passive, 0, 1, 0},
    {"put_notify_stream", put_notify_stream_active, stream_passive, 0, 1, 0},
    {"put", put_active, NULL, 1, 1, 0},
    {"put_stream", put_stream_active, NULL, 0, 1, 0},
    {"get", get_active, NULL, 1, 0, 0},
    {NULL, NULL, NULL, 0, 0, 0},
};

/* Puts, gets, and which memory they may use. */
#include "cases.h"

/* Puts arrive in order with messages, and need gm_allow_remote_memory_access. */
void case_put(void) {
    static gm_u64_t place[512], from[512], address;
    int i;
    if (task == 0) {
        gm_remote_ptr_t remote;
        buffer(6, 0);
        together();
        until(&mine, &mine.arrivals, 1);
        remote = *(gm_u64_t *)mine.arrived[0].buffer;
        gm_put(mine.port, from, remote, 8, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)1);
        ended(0, 1, GM_SEND_REJECTED);
        gm_get(mine.port, remote, from, 8, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)2);
        ended(1, 2, GM_SEND_REJECTED);
        gm_resume_sending(mine.port, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)3);
        ended(2, 3, GM_SUCCESS);
        together();
        together();
        for (i = 0; i < 512; i++)
            from[i] = (gm_u64_t)i * i;
        for (i = 0; i < 8; i++) {
            gm_directed_send_with_callback(mine.port, from + 64 * i, remote + 512 * (gm_u64_t)i, 512, GM_LOW_PRIORITY,
                                           node_of(&mine, 1), port_of(1), note, (void *)(10L + i));
            post(&mine, 1, &from[i], 6, 8, 20 + i);
        }
        for (i = 0; i < 8; i++) {
            ended(3 + 2 * i, 10 + i, GM_SUCCESS);
            ended(4 + 2 * i, 20 + i, GM_SUCCESS);
        }
        memset(from, 0, sizeof from);
        for (i = 7; i >= 0; i--)
            gm_get(mine.port, remote + 512 * (gm_u64_t)i, from + 64 * i, 512, GM_HIGH_PRIORITY, node_of(&mine, 1),
                   port_of(1), note, (void *)(30L + i));
        for (i = 7; i >= 0; i--)
            ended(19 + 7 - i, 30 + i, GM_SUCCESS);
        for (i = 0; i < 512; i++)
            CHECK(from[i] == (gm_u64_t)i * i);
        gm_directed_send(mine.port, from, remote, 8, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1));
        until(&mine, &mine.sent, 1);
    } else {
        address = (gm_u64_t)(uintptr_t)place;
        together();
        post(&mine, 0, &address, 6, sizeof address, 1);
        ended(0, 1, GM_SUCCESS);
        together();
        CHECK(gm_allow_remote_memory_access(mine.port) == GM_SUCCESS);
        for (i = 0; i < 8; i++)
            buffer(6, 0);
        /* From here on the other task may put. */
        together();
        for (i = 0; i < 8; i++) {
            /* What was put before the message is there. */
            until(&mine, &mine.arrivals, i + 1);
            CHECK(place[64 * i + 63] == (gm_u64_t)(64 * i + 63) * (64 * i + 63));
        }
    }
    together();
}

/* LAPI_GM_CHECK=yes: memory that was not registered is not used. */
void case_check(void) {
    static char plain[64], place[64];
    static gm_u64_t address;
    int peer = 1 - task;
    void *memory = gm_dma_calloc(mine.port, 4, 16);
    CHECK(gm_register_memory(mine.port, &address, sizeof address) == GM_SUCCESS);
    CHECK(gm_allow_remote_memory_access(mine.port) == GM_SUCCESS);
    gm_provide_receive_buffer(mine.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    gm_provide_receive_buffer(mine.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    together();
    post(&mine, peer, plain, 6, 8, 1);
    ended(0, 1, GM_MEMORY_FAULT);
    post(&mine, peer, (char *)memory + 8, 6, 56, 2);
    ended(1, 2, GM_SUCCESS);
    address = (gm_u64_t)(uintptr_t)place;
    post(&mine, peer, &address, 6, 8, 3);
    ended(2, 3, GM_SUCCESS);
    until(&mine, &mine.arrivals, 2);
    gm_put(mine.port, memory, *(gm_u64_t *)mine.arrived[1].buffer, 8, GM_LOW_PRIORITY, node_of(&mine, peer), port_of(peer),
           note, (void *)4);
    ended(3, 4, GM_MEMORY_FAULT);
    CHECK(gm_deregister_memory(mine.port, &address, sizeof address) == GM_SUCCESS);
    CHECK(gm_deregister_memory(mine.port, &address, sizeof address) == GM_INVALID_PARAMETER);
    together();
}

/* Memory that is none ends its put or get, and does no harm. */
void case_absurd(void) {
    static int number = 5;
    void *context = (void *)1;
    gm_remote_ptr_t remote = (gm_remote_ptr_t)(uintptr_t)&number;
    buffer(6, 0);
    CHECK(gm_allow_remote_memory_access(mine.port) == GM_SUCCESS);
    together();
    if (task == 0) {
        gm_put(mine.port, &number, remote, (gm_size_t)-1, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, context);
        ended(0, 1, GM_INVALID_PARAMETER);
        gm_get(mine.port, remote, &number, (gm_size_t)1 << 63, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note,
               context);
        ended(1, 1, GM_INVALID_PARAMETER);
        gm_put(mine.port, NULL, remote, 4, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, context);
        ended(2, 1, GM_INVALID_PARAMETER);
        gm_get(mine.port, 0, &number, 4, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, context);
        ended(3, 1, GM_MEMORY_FAULT);
        post(&mine, 1, &number, 6, sizeof number, 2);
        ended(4, 2, GM_SUCCESS);
    } else {
        until(&mine, &mine.arrivals, 1);
    }
    together();
}

/* Messages that arrive: their events, their order, and what they wait for. */
#include "cases.h"

/* A message: its event, its buffer, and its callback. */
void case_message(void) {
    int peer = 1 - task;
    char *first = (char *)buffer(6, 9), *second = (char *)buffer(7, 255);
    char text[] = "forty two";
    static char full[120];
    together();
    memset(full, 'f', sizeof full);
    post(&mine, peer, text, 6, sizeof text, 1);
    post(&mine, peer, full, 7, sizeof full, 2);
    ended(0, 1, GM_SUCCESS);
    ended(1, 2, GM_SUCCESS);
    until(&mine, &mine.arrivals, 2);
    CHECK(mine.arrived[0].buffer == first && mine.arrived[0].length == sizeof text);
    CHECK(mine.arrived[0].size == 6 && mine.arrived[0].tag == 9 && mine.arrived[0].type == GM_RECV_EVENT);
    CHECK(mine.arrived[0].node == node_of(&mine, peer) && mine.arrived[0].port == port_of(peer));
    CHECK(mine.arrived[1].buffer == second && mine.arrived[1].tag == 255 && mine.arrived[1].length == 120);
    CHECK(!memcmp(first, text, sizeof text) && !memcmp(second, full, sizeof full));
    /* High priority has buffers of its own, and events of its own. */
    gm_provide_receive_buffer(mine.port, first, 6, GM_HIGH_PRIORITY);
    gm_send_with_callback(mine.port, text, 6, 0, GM_HIGH_PRIORITY, node_of(&mine, peer), port_of(peer), note, (void *)3);
    ended(2, 3, GM_SUCCESS);
    until(&mine, &mine.arrivals, 3);
    CHECK(mine.arrived[2].type == GM_HIGH_RECV_EVENT && mine.arrived[2].length == 0 && mine.arrived[2].tag == 0);
    /* What does not fit its size ends by its callback, and nothing stands still. */
    buffer(6, 1);
    together();
    post(&mine, peer, full, 6, 57, 4);
    ended(3, 4, GM_INVALID_PARAMETER);
    post(&mine, peer, full, 6, 56, 5);
    ended(4, 5, GM_SUCCESS);
    gm_send_with_callback(mine.port, text, 6, 1, 2, node_of(&mine, peer), port_of(peer), note, (void *)6);
    ended(5, 6, GM_INVALID_PARAMETER);
    gm_send_with_callback(mine.port, text, 6, 1, 0, node_of(&mine, peer), 8, note, (void *)7);
    ended(6, 7, GM_INVALID_PARAMETER);
    gm_send_with_callback(mine.port, text, 6, 1, 0, 999, 2, note, (void *)8);
    ended(7, 8, GM_SEND_TARGET_NODE_UNREACHABLE);
    /* Sizes end at 31. */
    post(&mine, peer, text, 32, 1, 9);
    ended(8, 9, GM_INVALID_PARAMETER);
    gm_datagram_send(mine.port, text, 1U << 31, 1, GM_LOW_PRIORITY, node_of(&mine, peer), port_of(peer), note, (void *)10);
    ended(9, 10, GM_INVALID_PARAMETER);
    together();
    until(&mine, &mine.arrivals, 4);
}

/* Messages of a connection arrive in their order, whatever their sizes are and when buffers
 * come. */
void case_order(void) {
    enum { COUNT = 2000, WINDOW = 60 };
    static int numbers[COUNT];
    int i, seen = 0, given[3] = {0, 0, 0};
    if (task == 0) {
        for (i = 0; i < COUNT; i++) {
            numbers[i] = i;
            until(&mine, &mine.ends, i - WINDOW);
            post(&mine, 1, &numbers[i], 4 + (unsigned)i * 7 % 3, sizeof i, i);
        }
        for (i = 0; i < COUNT; i++)
            ended(i, i, GM_SUCCESS);
    } else {
        while (seen < COUNT) {
            /* Buffers of a size come one at a time, and late. */
            unsigned size = 4 + (unsigned)gm_rand_mod(3);
            if (given[size - 4] < 3) {
                buffer(size, size);
                given[size - 4]++;
            }
            turn(&mine, gm_receive(mine.port));
            for (; seen < mine.arrivals; seen++) {
                CHECK(*(int *)mine.arrived[seen].buffer == seen);
                CHECK(mine.arrived[seen].size == 4 + (unsigned)seen * 7 % 3);
                given[mine.arrived[seen].size - 4]--;
                gm_dma_free(mine.port, mine.arrived[seen].buffer);
            }
        }
    }
    together();
}

/* A send waits for a buffer: it is not lost, and those behind it wait, too. */
void case_wait(void) {
    static int numbers[4] = {1, 2, 3, 4};
    int i;
    if (task == 0) {
        post(&mine, 1, &numbers[0], 5, sizeof(int), 1);
        post(&mine, 1, &numbers[1], 6, sizeof(int), 2);
        together();
        CHECK(mine.ends == 0);
        together();
        ended(0, 1, GM_SUCCESS);
        ended(1, 2, GM_SUCCESS);
    } else {
        buffer(6, 6);
        together();
        for (i = 0; i < 1000; i++)
            turn(&mine, gm_receive(mine.port));
        CHECK(mine.arrivals == 0);
        buffer(5, 5);
        until(&mine, &mine.arrivals, 2);
        CHECK(mine.arrived[0].tag == 5 && mine.arrived[1].tag == 6);
        together();
    }
    together();
}

/* Two tasks send to a third that has one buffer at a time: each gets its turn. */
void case_turns(void) {
    enum { COUNT = 50 };
    static int numbers[COUNT];
    int i, seen[4] = {0, 0, 0, 0};
    if (task == 0) {
        void *only = buffer(6, 0);
        for (i = 0; i < COUNT * (tasks - 1); i++) {
            int from;
            until(&mine, &mine.arrivals, i + 1);
            for (from = 1; mine.arrived[i].port != port_of(from); from++)
                ;
            CHECK(*(int *)only == seen[from]++);
            gm_provide_receive_buffer(mine.port, only, 6, GM_LOW_PRIORITY);
        }
    } else {
        for (i = 0; i < COUNT; i++) {
            numbers[i] = i;
            post(&mine, 0, &numbers[i], 6, sizeof i, i);
        }
        for (i = 0; i < COUNT; i++)
            ended(i, i, GM_SUCCESS);
    }
    together();
}

/* gm_send and gm_send_to_peer have no callback, but an event with a list of messages. */
void case_sent(void) {
    static char text[8];
    gm_provide_receive_buffer(mine.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    together();
    gm_send(mine.port, text, 6, 8, GM_LOW_PRIORITY, node_of(&mine, 1 - task), port_of(1 - task));
    until(&mine, &mine.sent, 1);
    until(&mine, &mine.arrivals, 1);
    /* To the port of the same number: here, this one. */
    gm_provide_receive_buffer(mine.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    gm_provide_receive_buffer(mine.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    gm_send_to_peer(mine.port, text, 6, 4, GM_LOW_PRIORITY, node_of(&mine, task));
    gm_send_to_peer_with_callback(mine.port, text, 6, 5, GM_LOW_PRIORITY, node_of(&mine, task), note, (void *)1);
    ended(0, 1, GM_SUCCESS);
    until(&mine, &mine.sent, 2);
    until(&mine, &mine.arrivals, 3);
    CHECK(mine.arrived[1].length == 4 && mine.arrived[2].length == 5);
    CHECK(mine.arrived[2].port == port_of(task) && mine.arrived[2].node == node_of(&mine, task));
    together();
}

/* Long messages come whole, into the buffer itself. */
void case_long(void) {
    enum { SIZE = 23 };
    unsigned i, words = ((1U << SIZE) - 8) / 4;
    unsigned *out = (unsigned *)gm_dma_malloc(mine.port, 1UL << SIZE), *in = (unsigned *)buffer(SIZE, 1);
    for (i = 0; i < words; i++)
        out[i] = i * 2654435761U + (unsigned)task;
    together();
    post(&mine, 1 - task, out, SIZE, words * 4, 1);
    ended(0, 1, GM_SUCCESS);
    until(&mine, &mine.arrivals, 1);
    CHECK(mine.arrived[0].buffer == in && mine.arrived[0].length == words * 4);
    for (i = 0; i < words; i++)
        CHECK(in[i] == i * 2654435761U + 1 - (unsigned)task);
    together();
    gm_dma_free(mine.port, in);
    gm_dma_free(mine.port, out);
}

/* Datagrams: lost without a buffer, and no longer than gm_mtu. */
void case_datagram(void) {
    static char text[5000] = "x";
    unsigned node = node_of(&mine, 1 - task), port = port_of(1 - task);
    together();
    gm_datagram_send(mine.port, text, 9, 8, 0, node, port, note, (void *)1);
    ended(0, 1, GM_SUCCESS);
    gm_datagram_send(mine.port, text, 13, gm_mtu(mine.port) + 1, 0, node, port, note, (void *)2);
    ended(1, 2, GM_INVALID_PARAMETER);
    buffer(6, 3);
    together();
    gm_datagram_send(mine.port, text, 6, 2, 0, node, port, note, (void *)3);
    ended(2, 3, GM_SUCCESS);
    until(&mine, &mine.arrivals, 1);
    CHECK(mine.arrived[0].tag == 3 && mine.arrived[0].length == 2);
    together();
    CHECK(mine.arrivals == 1);
}

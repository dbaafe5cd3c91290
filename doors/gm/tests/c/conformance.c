/* One case for each statement about GM: conformance CASE, with as many tasks as the case wants. */
#include "conformance.h"

static struct desk mine;

static void *buffer(unsigned size, unsigned tag) {
    void *memory = gm_dma_malloc(mine.port, 1UL << size);
    CHECK(memory);
    gm_provide_receive_buffer_with_tag(mine.port, memory, size, GM_LOW_PRIORITY, tag);
    return memory;
}

static void ended(int at, long number, gm_status_t status) {
    until(&mine, &mine.ends, at + 1);
    if (mine.ended[at].context != (void *)number || mine.ended[at].status != status)
        fprintf(stderr, "task %d: end %d is of %ld: %s\n", task, at, (long)mine.ended[at].context,
                gm_strerror(mine.ended[at].status));
    CHECK(mine.ended[at].context == (void *)number);
    CHECK(mine.ended[at].status == status);
}

/* All tasks wait for each other. */
static void together(void) {
    int other;
    for (other = 0; other < tasks; other++)
        if (other != task)
            tell(&mine, other);
    for (other = 0; other < tasks; other++)
        if (other != task)
            await(&mine, other);
}

/* gm_open: units, numbers, versions, and a port that is taken. */
static void case_open(void) {
    struct gm_port *port = NULL, *again = NULL;
    unsigned node, highest;
    CHECK(gm_open(&port, 0, 0, "x", gm_api_version_2_0) == GM_BUSY);
    CHECK(gm_open(&port, 0, 1, "x", gm_api_version_1_0) == GM_BUSY);
    CHECK(gm_open(&port, 0, 3, "x", gm_api_version_1_6) == GM_BUSY);
    CHECK(gm_open(&port, 0, port_of(task), "x", gm_api_version_2_0_12) == GM_BUSY);
    CHECK(gm_open(&port, 1, 7, "x", gm_api_version_2_0_16) == GM_NO_SUCH_DEVICE);
    CHECK(gm_open(&port, 0, 8, "x", gm_api_version_2_0_16) == GM_INVALID_PORT_NUMBER);
    CHECK(gm_open(&port, 0, 7, "x", (enum gm_api_version)5) == GM_INCOMPATIBLE_LIB_AND_DRIVER);
    CHECK(gm_open(NULL, 0, 7, "x", gm_api_version_2_0_16) == GM_INVALID_PARAMETER);
    together();
    gm_max_node_id_in_use(mine.port, &highest);
    if (task == 0) {
        CHECK(gm_open(&port, 0, 7, "x", gm_api_version_2_0_6) == GM_SUCCESS && port);
        CHECK(gm_open(&again, 0, 7, "x", gm_api_version_2_0_6) == GM_BUSY && !again);
    }
    together();
    if (task == 1) {
        /* A node has each port once, whichever process opens it. */
        gm_status_t status = gm_open(&again, 0, 7, "x", gm_api_version_2_0_6);
        CHECK(status == (highest == 1 ? GM_BUSY : GM_SUCCESS));
        if (status == GM_SUCCESS)
            gm_close(again);
    }
    together();
    if (task == 0) {
        gm_close(port);
        CHECK(gm_open(&port, 0, 7, "x", gm_api_version_2_0_6) == GM_SUCCESS);
        gm_close(port);
    }
    CHECK(gm_get_node_id(mine.port, &node) == GM_SUCCESS && node == node_of(&mine, task));
    CHECK(gm_get_node_id(mine.port, NULL) == GM_INVALID_PARAMETER);
    CHECK(gm_num_ports(mine.port) == 8);
    CHECK(gm_init() == GM_SUCCESS);
    gm_finalize();
    together();
}

/* A message: its event, its buffer, and its callback. */
static void case_message(void) {
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
static void case_order(void) {
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
static void case_wait(void) {
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
static void case_turns(void) {
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

/* Without a buffer a send ends after LAPI_GM_TIMEOUT, and the connection stands still until
 * gm_resume_sending; what has failed is not sent. */
static void case_resume(void) {
    static int numbers[3] = {1, 2, 3};
    int i;
    if (task == 0) {
        for (i = 0; i < 3; i++)
            post(&mine, 1, &numbers[i], 5 + (unsigned)i, sizeof(int), i + 1);
        ended(0, 1, GM_SEND_TIMED_OUT);
        together();
        for (i = 0; i < 10000; i++)
            turn(&mine, gm_receive(mine.port));
        CHECK(mine.ends == 1);
        gm_resume_sending(mine.port, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)9);
        until(&mine, &mine.ends, 4);
        /* Its own callback comes at once. */
        ended(1, 9, GM_SUCCESS);
        ended(2, 2, GM_SUCCESS);
        ended(3, 3, GM_SUCCESS);
    } else {
        together();
        buffer(5, 5);
        buffer(6, 6);
        buffer(7, 7);
        until(&mine, &mine.arrivals, 2);
        CHECK(mine.arrived[0].tag == 6 && mine.arrived[1].tag == 7);
    }
    together();
    CHECK(task == 0 || mine.arrivals == 2);
}

/* gm_drop_sends ends all that waits, in order, and its own callback comes last. */
static void case_drop(void) {
    static int numbers[4] = {1, 2, 3, 4};
    int i;
    if (task == 0) {
        for (i = 0; i < 3; i++)
            post(&mine, 1, &numbers[i], 5, sizeof(int), i + 1);
        ended(0, 1, GM_SEND_TIMED_OUT);
        gm_drop_sends(mine.port, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)9);
        ended(1, 2, GM_SEND_DROPPED);
        ended(2, 3, GM_SEND_DROPPED);
        ended(3, 9, GM_SUCCESS);
        together();
        post(&mine, 1, &numbers[3], 5, sizeof(int), 4);
        ended(4, 4, GM_SUCCESS);
    } else {
        together();
        buffer(5, 5);
        until(&mine, &mine.arrivals, 1);
        CHECK(*(int *)mine.arrived[0].buffer == 4);
    }
    together();
}

/* A size that the target does not accept is rejected at once. */
static void case_rejected(void) {
    static int number = 5;
    if (task == 0) {
        together();
        post(&mine, 1, &number, 6, sizeof number, 1);
        ended(0, 1, GM_SEND_REJECTED);
        post(&mine, 1, &number, 5, sizeof number, 2);
        gm_resume_sending(mine.port, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)3);
        ended(1, 3, GM_SUCCESS);
        ended(2, 2, GM_SUCCESS);
    } else {
        buffer(5, 5);
        buffer(6, 6);
        CHECK(gm_set_acceptable_sizes(mine.port, GM_LOW_PRIORITY, 1UL << 5) == GM_SUCCESS);
        CHECK(gm_set_acceptable_sizes(mine.port, (enum gm_priority)2, 0) == GM_INVALID_PARAMETER);
        together();
        until(&mine, &mine.arrivals, 1);
        CHECK(mine.arrived[0].size == 5);
    }
    together();
}

/* A port that was closed says so at once; one that was never opened does after LAPI_GM_TIMEOUT, and
 * takes what waits when it is opened before. */
static void case_closed(void) {
    static int number = 5;
    static struct desk second;
    double begun;
    unsigned node = node_of(&mine, 1);
    if (task == 0) {
        gm_send_with_callback(mine.port, &number, 6, sizeof number, 0, node, 7, note, (void *)1);
        together();
        ended(0, 1, GM_SUCCESS);
        /* It waits in vain for a buffer, and the port is closed meanwhile. */
        gm_send_with_callback(mine.port, &number, 9, sizeof number, 0, node, 7, note, (void *)2);
        together();
        ended(1, 2, GM_SEND_TARGET_PORT_CLOSED);
        gm_resume_sending(mine.port, GM_LOW_PRIORITY, node, 7, note, (void *)3);
        gm_send_with_callback(mine.port, &number, 6, sizeof number, 0, node, 7, note, (void *)4);
        ended(2, 3, GM_SUCCESS);
        ended(3, 4, GM_SEND_TARGET_PORT_CLOSED);
        tell(&mine, 1);
        await(&mine, 1);
        /* It is open again. */
        gm_drop_sends(mine.port, GM_LOW_PRIORITY, node, 7, note, (void *)5);
        gm_send_with_callback(mine.port, &number, 6, sizeof number, 0, node, 7, note, (void *)6);
        ended(4, 5, GM_SUCCESS);
        ended(5, 6, GM_SUCCESS);
        begun = seconds();
        gm_send_with_callback(mine.port, &number, 6, sizeof number, 0, node, 6, note, (void *)7);
        ended(6, 7, GM_SEND_TARGET_PORT_CLOSED);
        CHECK(seconds() - begun > 0.5);
    } else {
        together();
        open_desk(&second, 7);
        gm_provide_receive_buffer(second.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
        until(&second, &second.arrivals, 1);
        together();
        gm_close(second.port);
        /* The other task knows of that when it has told this one so. */
        await(&mine, 0);
        open_desk(&second, 7);
        gm_provide_receive_buffer(second.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
        tell(&mine, 0);
        until(&second, &second.arrivals, 1);
        gm_close(second.port);
    }
    together();
}

/* A target that dies: its sends end, and other targets do not notice. */
static void case_death(void) {
    static int numbers[2] = {1, 2};
    buffer(6, 0);
    together();
    if (task == 1)
        kill(getpid(), SIGKILL);
    if (task == 0) {
        post(&mine, 1, &numbers[0], 9, sizeof(int), 1);
        post(&mine, 2, &numbers[1], 6, sizeof(int), 2);
        until(&mine, &mine.ends, 2);
        CHECK(mine.ended[0].context == (void *)2 && mine.ended[0].status == GM_SUCCESS);
        CHECK(mine.ended[1].context == (void *)1);
        /* A node with other tasks lives. */
        if (node_of(&mine, 1) != node_of(&mine, 2))
            CHECK(mine.ended[1].status == GM_SEND_TARGET_NODE_UNREACHABLE);
        else
            CHECK(mine.ended[1].status == GM_SEND_TARGET_NODE_UNREACHABLE
                  || mine.ended[1].status == GM_SEND_TARGET_PORT_CLOSED);
        gm_resume_sending(mine.port, GM_LOW_PRIORITY, node_of(&mine, 1), port_of(1), note, (void *)3);
        post(&mine, 1, &numbers[0], 9, sizeof(int), 4);
        ended(2, 3, GM_SUCCESS);
        until(&mine, &mine.ends, 4);
        CHECK(mine.ended[3].status == mine.ended[1].status || mine.ended[3].status == GM_SEND_TARGET_PORT_CLOSED);
        tell(&mine, 2);
    }
    if (task == 2) {
        until(&mine, &mine.arrivals, 1);
        await(&mine, 0);
    }
    printf("PASS death %d\n", task);
}

/* A task that has waited for a buffer leaves in order: the next one is for those who are there. */
static void case_left(void) {
    static int number = 5;
    if (task == 0) {
        static int own;
        own = (int)getpid();
        together();
        post(&mine, 1, &own, 6, sizeof own, 1);
        post(&mine, 1, &number, 9, sizeof number, 2);
        ended(0, 1, GM_SUCCESS);
        ended(1, 2, GM_SEND_TIMED_OUT);
        return;
    }
    if (task == 1) {
        int other;
        buffer(6, 0);
        together();
        until(&mine, &mine.arrivals, 1);
        other = *(int *)mine.arrived[0].buffer;
        while (!kill((pid_t)other, 0))
            turn(&mine, gm_receive(mine.port));
        buffer(9, 0);
        tell(&mine, 2);
        until(&mine, &mine.arrivals, 2);
        await(&mine, 2);
    } else {
        together();
        await(&mine, 1);
        post(&mine, 1, &number, 9, sizeof number, 1);
        ended(0, 1, GM_SUCCESS);
        tell(&mine, 1);
    }
}

/* A sender that has nothing under way while its target is closed and opened again does not
 * notice. */
static void case_reopened(void) {
    static int numbers[6] = {0, 1, 2, 3, 4, 5};
    static struct desk second;
    unsigned node = node_of(&mine, 1);
    int i, half;
    for (half = 0; half < 2; half++) {
        if (task == 1) {
            open_desk(&second, 7);
            for (i = 0; i < 3; i++)
                gm_provide_receive_buffer(second.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
        }
        together();
        for (i = 3 * half; i < 3 * half + 3 && task == 0; i++)
            gm_send_with_callback(mine.port, &numbers[i], 6, sizeof(int), 0, node, 7, note, (void *)(long)i);
        for (i = 3 * half; i < 3 * half + 3 && task == 0; i++)
            ended(i, i, GM_SUCCESS);
        if (task == 1) {
            until(&second, &second.arrivals, 3);
            for (i = 0; i < 3; i++)
                CHECK(*(int *)second.arrived[i].buffer == 3 * half + i);
        }
        together();
        if (task == 1)
            gm_close(second.port);
    }
    together();
}

/* Memory that is none ends its put or get, and harms nobody. */
static void case_absurd(void) {
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

/* Puts arrive in order with messages, and need gm_allow_remote_memory_access. */
static void case_put(void) {
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
        for (i = 0; i < 8; i++) {
            /* What was put before the message is there. */
            until(&mine, &mine.arrivals, i + 1);
            CHECK(place[64 * i + 63] == (gm_u64_t)(64 * i + 63) * (64 * i + 63));
        }
    }
    together();
}

/* gm_send and gm_send_to_peer have no callback, but an event with a list of messages. */
static void case_sent(void) {
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
static void case_long(void) {
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
static void case_datagram(void) {
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

/* Tokens are counted for the program: it has all of them at first. */
static void case_tokens(void) {
    unsigned i, half = gm_num_send_tokens(mine.port) / 2;
    CHECK(gm_num_send_tokens(mine.port) == 64 && gm_num_receive_tokens(mine.port) == 256);
    CHECK(!gm_send_token_available(mine.port, GM_LOW_PRIORITY) && !gm_alloc_send_token(mine.port, GM_LOW_PRIORITY));
    gm_free_send_tokens(mine.port, GM_LOW_PRIORITY, half);
    gm_free_send_token(mine.port, GM_HIGH_PRIORITY);
    for (i = 0; i < half; i++) {
        CHECK(gm_send_token_available(mine.port, GM_LOW_PRIORITY));
        CHECK(gm_alloc_send_token(mine.port, GM_LOW_PRIORITY));
    }
    CHECK(!gm_alloc_send_token(mine.port, GM_LOW_PRIORITY) && gm_alloc_send_token(mine.port, GM_HIGH_PRIORITY));
    CHECK(!gm_alloc_send_token(mine.port, 2));
    /* Sizes. */
    CHECK(gm_max_length_for_size(3) == 0 && gm_max_length_for_size(4) == 8 && gm_max_length_for_size(31) == 2147483640);
    CHECK(gm_min_size_for_length(0) == 3 && gm_min_size_for_length(1) == 4 && gm_min_size_for_length(8) == 4);
    CHECK(gm_min_size_for_length(9) == 5 && gm_min_size_for_length(2147483640) == 31);
    CHECK(gm_min_message_size(mine.port) == 3 && gm_mtu(mine.port) == 4096);
}

static int alarms;
static void ring(void *context) { alarms += *(int *)context; }

/* Alarms come as events, in their order, and wake a receive that sleeps. */
static void case_alarm(void) {
    static int one = 1, ten = 10;
    gm_alarm_t first, second;
    gm_recv_event_t *event;
    gm_u64_t begun = gm_ticks(mine.port);
    gm_initialize_alarm(&first);
    gm_initialize_alarm(&second);
    gm_cancel_alarm(&first);
    gm_set_alarm(mine.port, &first, 60000, ring, &ten);
    gm_set_alarm(mine.port, &second, 20000, ring, &one);
    event = gm_blocking_receive_no_spin(mine.port);
    CHECK(GM_RECV_EVENT_TYPE(event) == GM_ALARM_EVENT);
    gm_unknown(mine.port, event);
    CHECK(alarms == 1 && gm_ticks(mine.port) - begun >= 2 * 20000);
    event = gm_blocking_receive(mine.port);
    CHECK(GM_RECV_EVENT_TYPE(event) == GM_ALARM_EVENT);
    gm_unknown(mine.port, event);
    gm_unknown(mine.port, event);
    CHECK(alarms == 11);
    /* One that is taken back does not come, and one that is set again comes once. */
    gm_set_alarm(mine.port, &first, 1, ring, &ten);
    gm_cancel_alarm(&first);
    gm_set_alarm(mine.port, &first, 1, ring, &ten);
    gm_flush_alarm(mine.port);
    gm_set_alarm(mine.port, &second, 1, ring, &ten);
    gm_set_alarm(mine.port, &second, 3000, ring, &one);
    turn(&mine, gm_blocking_receive(mine.port));
    CHECK(alarms == 12 && gm_receive_pending(mine.port) == 0);
}

/* gm_blocking_receive sleeps; gm_next_event_peek and gm_receive_pending take nothing. */
static void case_blocking(void) {
    static char text[8] = "text";
    gm_u16_t sender = 0;
    if (task == 0) {
        struct timespec spent[2];
        buffer(6, 6);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent[0]);
        turn(&mine, gm_blocking_receive_no_spin(mine.port));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent[1]);
        CHECK(mine.arrivals == 1);
        /* Half a second of waiting is little work. */
        CHECK(spent[1].tv_sec - spent[0].tv_sec + (spent[1].tv_nsec - spent[0].tv_nsec) / 1e9 < 0.25);
        CHECK(gm_next_event_peek(mine.port, &sender) == GM_NO_RECV_EVENT && !gm_receive_pending(mine.port));
        buffer(6, 6);
        while (!gm_receive_pending(mine.port))
            ;
        CHECK(gm_next_event_peek(mine.port, &sender) == GM_RECV_EVENT && sender == node_of(&mine, 1));
        CHECK(gm_next_event_peek(mine.port, NULL) == GM_RECV_EVENT && gm_receive_pending(mine.port));
        turn(&mine, gm_receive(mine.port));
        CHECK(mine.arrivals == 2);
    } else {
        usleep(500000);
        post(&mine, 0, text, 6, 5, 1);
        post(&mine, 0, text, 6, 5, 2);
        ended(1, 2, GM_SUCCESS);
    }
    together();
}

static void *thread_of_port(void *given) {
    struct desk *desk = (struct desk *)given;
    enum { COUNT = 500 };
    static char text[8];
    unsigned own = gm_get_port_id(desk->port), other = own == 7 ? port_of(task) : 7;
    int i;
    for (i = 0; i < 8; i++)
        gm_provide_receive_buffer(desk->port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    for (i = 0; i < COUNT; i++) {
        gm_send_with_callback(desk->port, text, 6, 8, 0, node_of(desk, task), other, note, (void *)1);
        until(desk, &desk->arrivals, i + 1);
        gm_provide_receive_buffer(desk->port, desk->arrived[i].buffer, 6, GM_LOW_PRIORITY);
    }
    until(desk, &desk->ends, COUNT);
    return NULL;
}

/* Two ports of a process, each with a thread of its own. */
static void case_threads(void) {
    static struct desk second;
    pthread_t thread;
    if (task == 0) {
        open_desk(&second, 7);
        CHECK(pthread_create(&thread, NULL, thread_of_port, &second) == 0);
        thread_of_port(&mine);
        CHECK(pthread_join(thread, NULL) == 0);
        gm_close(second.port);
    }
    together();
}

/* The target computes, and calls nothing: what it has buffers for is delivered all the same. */
static void case_busy(void) {
    static int number = 7;
    static int *at;
    if (task == 0) {
        together();
        post(&mine, 1, &number, 6, sizeof number, 1);
        ended(0, 1, GM_SUCCESS);
    } else {
        at = (int *)buffer(6, 0);
        *at = 0;
        together();
        while (*(volatile int *)at != number)
            ;
    }
    together();
}

/* LAPI_GM_CHECK=yes: memory that was not registered is not used. */
static void case_check(void) {
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

/* Nodes and their names. */
static void case_names(void) {
    char name[GM_MAX_HOST_NAME_LEN], again[GM_MAX_HOST_NAME_LEN + 1], unique[6];
    unsigned node, own = node_of(&mine, task), peer = node_of(&mine, 1 - task);
    CHECK(gm_get_host_name(mine.port, name) == GM_SUCCESS && gm_strlen(name) > 0);
    CHECK(gm_node_id_to_host_name_ex(mine.port, 5000000, peer, &again) == GM_SUCCESS && gm_strlen(again) > 0);
    CHECK(!gm_strcmp(gm_node_id_to_host_name(mine.port, own), name));
    CHECK(gm_node_id_to_host_name(mine.port, 999) == NULL);
    CHECK(gm_node_id_to_host_name_ex(mine.port, 5000000, 999, &again) == GM_INVALID_PARAMETER);
    CHECK(gm_host_name_to_node_id(mine.port, name) >= 1);
    CHECK(gm_host_name_to_node_id(mine.port, (char *)"no such host") == GM_NO_SUCH_NODE_ID);
    CHECK(gm_host_name_to_node_id_ex(mine.port, 5000000, name, &node) == GM_SUCCESS && node >= 1);
    CHECK(gm_host_name_to_node_id_ex(mine.port, 5000000, "no such host", &node) == GM_INVALID_PARAMETER);
    CHECK(gm_node_id_to_unique_id(mine.port, peer, unique) == GM_SUCCESS);
    CHECK(gm_unique_id_to_node_id(mine.port, unique, &node) == GM_SUCCESS && node == peer);
    unique[0]++;
    CHECK(gm_unique_id_to_node_id(mine.port, unique, &node) == GM_INVALID_PARAMETER);
    CHECK(gm_node_id_to_unique_id(mine.port, 0, unique) == GM_INVALID_PARAMETER);
    CHECK(gm_global_id_to_node_id(mine.port, peer, &node) == GM_SUCCESS && node == peer);
    CHECK(gm_node_id_to_global_id(mine.port, peer, &node) == GM_SUCCESS && node == peer);
    CHECK(gm_node_id_to_global_id(mine.port, 999, &node) == GM_INVALID_PARAMETER);
    CHECK(gm_max_node_id(mine.port, &node) == GM_SUCCESS && node == 65535);
    together();
}

static void at_end(gm_status_t status, void *argument) { printf("end %d %s\n", (int)status, (char *)argument); }

/* The helpers. */
static void case_helpers(void) {
    char text[16];
    struct gm_mutex *mutex = gm_create_mutex();
    void *page = gm_page_alloc(), *pages = gm_alloc_pages(10000);
    unsigned i;
    CHECK(!strcmp(gm_strerror(GM_SUCCESS), "success") && strcmp(gm_strerror(GM_BUSY), gm_strerror(GM_FAILURE)));
    CHECK(gm_crc("123456789", 9) == 0xcbf43926 && gm_crc_str("123456789") == 0xcbf43926 && gm_crc_str("") == 0);
    CHECK(gm_log2_roundup(0) == 0 && gm_log2_roundup(1) == 0 && gm_log2_roundup(5) == 3 && gm_log2_roundup(8) == 3);
    for (i = 1; i < 1000; i++)
        CHECK(gm_rand_mod(i) < i);
    CHECK(gm_rand_mod(0) == 0);
    gm_srand(5);
    i = (unsigned)gm_rand();
    gm_srand(5);
    CHECK(i == (unsigned)gm_rand());
    CHECK(page && pages && (uintptr_t)page % GM_PAGE_LEN == 0 && (uintptr_t)pages % GM_PAGE_LEN == 0);
    gm_page_free(page);
    gm_free_pages(pages, 10000);
    gm_mutex_enter(mutex);
    gm_mutex_exit(mutex);
    gm_destroy_mutex(mutex);
    CHECK(gm_strncpy(text, "abcdef", 7) == text && gm_strlen(text) == 6 && !gm_strncmp(text, "abcxxx", 3));
    CHECK(!gm_strncasecmp(text, "ABCDEF", 6) && gm_strcmp(text, "abcdeg") < 0 && gm_memcmp(text, "abd", 3) < 0);
    gm_bcopy(text, text + 1, 6);
    CHECK(!gm_memcmp(text, "aabcdef", 7));
    gm_bzero(text, 2);
    CHECK(text[0] == 0 && text[1] == 0 && text[2] == 'b' && gm_memset(text, 'z', 3) == text && text[2] == 'z');
    CHECK(gm_memorize_message(text, text, 3) == text && gm_memorize_message(text, &i, 4) == (void *)&i);
    CHECK(gm_isprint('a') && !gm_isprint('\n') && !gm_isprint(4000) && gm_getpid() == (int)getpid());
    CHECK(GM_NUM_ELEM(text) == 16 && GM_POWER_OF_TWO(8) && !GM_POWER_OF_TWO(9) && gm_sleep(0) == 0);
    CHECK(GM_RECV_EVENT_TYPE(gm_receive((struct gm_port *)4)) == GM_NO_RECV_EVENT);
    gm_free(gm_strdup("x"));
    gm_free(gm_calloc(3, 5));
    gm_printf("printed %d\n", 5);
    gm_eprintf("error %d\n", 6);
    gm_perror("perror", GM_BUSY);
    gm_hex_dump("OpenLAPI and GM in one line", 27);
    gm_on_exit(at_end, (void *)"first");
    gm_on_exit(at_end, (void *)"second");
    gm_close(mine.port);
    gm_finalize();
    gm_exit(GM_BUSY);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"open", case_open},         {"message", case_message}, {"order", case_order},   {"wait", case_wait},
    {"turns", case_turns},       {"resume", case_resume},   {"drop", case_drop},     {"rejected", case_rejected},
    {"closed", case_closed},     {"death", case_death},     {"put", case_put},       {"sent", case_sent},
    {"long", case_long},         {"datagram", case_datagram}, {"tokens", case_tokens}, {"alarm", case_alarm},
    {"blocking", case_blocking}, {"threads", case_threads}, {"busy", case_busy},     {"check", case_check},
    {"names", case_names},       {"left", case_left},     {"reopened", case_reopened}, {"absurd", case_absurd},           {"helpers", case_helpers},
};

int main(int argc, char **argv) {
    unsigned i;
    struct gm_port *port;
    task = getenv("MP_CHILD") ? atoi(getenv("MP_CHILD")) : 0;
    tasks = getenv("MP_PROCS") ? atoi(getenv("MP_PROCS")) : 1;
    CHECK(gm_open(&port, 0, 2, "early", gm_api_version_2_0) == GM_UNATTACHED);
    CHECK(gm_init() == GM_SUCCESS);
    open_desk(&mine, port_of(task));
    if (getenv("LAPI_GM_MAP"))
        together();
    for (i = 0; i < GM_NUM_ELEM(cases); i++)
        if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            gm_close(mine.port);
            gm_finalize();
            printf("OK %s %d\n", cases[i].name, task);
            return 0;
        }
    fprintf(stderr, "no such case\n");
    return 2;
}

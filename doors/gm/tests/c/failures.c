/* Sends that fail, ports that close, and tasks that leave or die. */
#include "cases.h"

/* Without a buffer a send ends after LAPI_GM_TIMEOUT, and the connection stands still until
 * gm_resume_sending; what has failed is not sent. */
void case_resume(void) {
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
        together();
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
        together();
        until(&mine, &mine.arrivals, 2);
        CHECK(mine.arrived[0].tag == 6 && mine.arrived[1].tag == 7);
    }
    together();
    CHECK(task == 0 || mine.arrivals == 2);
}

/* gm_drop_sends ends all that waits, in order, and its own callback comes last. */
void case_drop(void) {
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
        together();
        post(&mine, 1, &numbers[3], 5, sizeof(int), 4);
        ended(4, 4, GM_SUCCESS);
    } else {
        together();
        buffer(5, 5);
        together();
        until(&mine, &mine.arrivals, 1);
        CHECK(*(int *)mine.arrived[0].buffer == 4);
    }
    together();
}

/* A size that the target does not accept is rejected at once. */
void case_rejected(void) {
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
void case_closed(void) {
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
        /* The other task knows of that when it has said so. */
        await(&mine, 0);
        open_desk(&second, 7);
        gm_provide_receive_buffer(second.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
        tell(&mine, 0);
        until(&second, &second.arrivals, 1);
        gm_close(second.port);
    }
    together();
}

/* A sender that has nothing under way while its target is closed and opened again does not
 * notice. */
void case_reopened(void) {
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

/* A port that one task of a node has closed and another one has opened: gets and datagrams find it
 * after one was refused. */
void case_moved(void) {
    static gm_u64_t number, address, place;
    static struct desk second;
    unsigned highest;
    int has, sent = 0;
    CHECK(gm_max_node_id_in_use(mine.port, &highest) == GM_SUCCESS);
    for (has = 0; has < 2 && highest == 1; has++) {
        if (task == has) {
            number = 70 + (gm_u64_t)has;
            address = (gm_u64_t)(uintptr_t)&number;
            open_desk(&second, 7);
            CHECK(gm_allow_remote_memory_access(second.port) == GM_SUCCESS);
            gm_provide_receive_buffer(second.port, gm_malloc(64), 6, GM_LOW_PRIORITY);
            post(&mine, 2, &address, 6, sizeof address, 1);
            until(&second, &second.arrivals, 1);
            tell(&mine, 2);
        }
        if (task == 2) {
            buffer(6, 0);
            until(&mine, &mine.arrivals, has + 1);
            while (place != 70 + (gm_u64_t)has) {
                gm_get(mine.port, *(gm_u64_t *)mine.arrived[has].buffer, &place, 8, GM_LOW_PRIORITY, 1, 7, note,
                       (void *)1);
                until(&mine, &mine.ends, ++sent);
            }
            while (!mine.told[has]) {
                gm_datagram_send(mine.port, &number, 6, 8, 0, 1, 7, note, (void *)2);
                until(&mine, &mine.ends, ++sent);
                usleep(10000);
            }
            await(&mine, has);
        }
        together();
        if (task == has)
            gm_close(second.port);
        together();
    }
    together();
}

/* A task that has waited for a buffer leaves in order: the next one is for those who are there. */
void case_left(void) {
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

/* A target that dies: its sends end, and other targets do not notice. */
void case_death(void) {
    static int numbers[2] = {1, 2};
    buffer(6, 0);
    together();
    if (task == 1) {
        /* The others learn that what they have sent to it is delivered. */
        for (int i = 0; i < 100; i++)
            turn(&mine, gm_receive(mine.port));
        kill(getpid(), SIGKILL);
    }
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

/* A node whose tasks have left has no name any more, and hides no other one. */
void case_gone(void) {
    static int process;
    char name[GM_MAX_HOST_NAME_LEN + 1];
    unsigned node, left = node_of(&mine, 0), own = node_of(&mine, task);
    if (task != 0)
        buffer(6, 6);
    together();
    if (task == 0) {
        process = (int)getpid();
        post(&mine, 1, &process, 6, sizeof process, 1);
        post(&mine, 2, &process, 6, sizeof process, 2);
        until(&mine, &mine.ends, 2);
        return;
    }
    until(&mine, &mine.arrivals, 1);
    while (kill(*(int *)mine.arrived[0].buffer, 0) == 0)
        usleep(1000);
    /* By hand names are those of the map. */
    if (getenv("LAPI_GM_MAP"))
        return;
    CHECK(gm_node_id_to_host_name_ex(mine.port, 20000000, left, &name)
          == (left == own ? GM_SUCCESS : GM_SEND_TARGET_NODE_UNREACHABLE));
    CHECK(gm_host_name_to_node_id_ex(mine.port, 20000000, "no such host", &node) == GM_INVALID_PARAMETER);
    CHECK(gm_get_host_name(mine.port, name) == GM_SUCCESS);
    CHECK(gm_host_name_to_node_id_ex(mine.port, 20000000, name, &node) == GM_SUCCESS);
    CHECK(node == (left == own ? left : left + 1));
}

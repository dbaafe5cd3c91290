/*
 * Processes that exit in a handler of a signal, which comes in the middle of any call: each is a
 * child that opens a port and sends to itself. A child that hangs is killed by SIGALRM.
 */
#include "gm.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), abort()))

enum { PORT = 2, SIZE = 6, PATIENCE = 20 };

static void leave(int number)
{
    (void)number;
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE);
    exit(0);
}

static void ended(struct gm_port *port, void *context, gm_status_t status)
{
    (void)port, (void)status;
    ++*(int *)context;
}

static void child(int microseconds)
{
    static char text[8];
    struct itimerval timer = {.it_value = {.tv_usec = microseconds}};
    struct gm_port *port;
    unsigned node;
    int sent = 0, ends = 0;
    CHECK(gm_init() == GM_SUCCESS);
    CHECK(gm_open(&port, 0, PORT, "exits", (enum gm_api_version)GM_API_VERSION) == GM_SUCCESS);
    CHECK(gm_get_node_id(port, &node) == GM_SUCCESS);
    gm_provide_receive_buffer(port, gm_malloc(1 << SIZE), SIZE, GM_LOW_PRIORITY);
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        gm_recv_event_t *event = gm_receive(port);
        if (GM_RECV_EVENT_TYPE(event) == GM_RECV_EVENT)
            gm_provide_receive_buffer(port, gm_ntohp(event->recv.buffer), SIZE, GM_LOW_PRIORITY);
        else
            gm_unknown(port, event);
        if (sent - ends < 4) {
            sent++;
            gm_send_with_callback(port, text, SIZE, 8, GM_LOW_PRIORITY, node, PORT, ended, &ends);
        }
    }
}

int main(int argc, char **argv)
{
    int turn, turns = argc > 1 ? atoi(argv[1]) : 1;
    for (turn = 0; turn < turns; turn++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child(1 + turn * 7919 % 5000);
        CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "child %d ends with %#x\n", turn, status);
            return 1;
        }
    }
    printf("all have left\n");
    return 0;
}

/* What the cases have in common: a port, its events, and a second channel by which tasks tell each
 * other that they are ready. C and C++. */
#ifndef DESK_H
#define DESK_H

#include "gm.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "task %d: %s:%d: %s\n", task, __FILE__, __LINE__, #condition);     \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

/* Messages by which tasks tell each other something: high priority, of this size. */
#define TELL 5
#define BUFFERS 8

enum { MOST = 4096 };

/* An end of a send, in the order in which callbacks ran. */
struct ended {
    void *context;
    gm_status_t status;
};

/* A message that has arrived. */
struct arrived {
    void *buffer;
    unsigned length, size, tag, node, port, type;
};

struct desk {
    struct gm_port *port;
    struct ended ended[MOST];
    int ends;
    struct arrived arrived[MOST];
    int arrivals;
    int told[8];
    int sent;
    int tells;
    int failed;
    /* This task's number, as others are told it. */
    int who;
    int in_unknown;
};

extern int task, tasks;
/* The desk of the port that main opens. */
extern struct desk mine;
extern const unsigned ports[4];

/* The node and the port of a task. */
unsigned node_of(struct desk *desk, int other);
unsigned port_of(int other);

/* Opens the port of this task, with buffers for what others tell. */
void open_desk(struct desk *desk, unsigned number);
/* Takes one event, if there is one; what is there is counted. */
void turn(struct desk *desk, gm_recv_event_t *event);
/* Takes events until the number at the address is at least this. */
void until(struct desk *desk, const int *number, int least);
/* Tells another task something; waits until another one has told this one something. */
void tell(struct desk *desk, int other);
void await(struct desk *desk, int other);
/* Sends, with a number as context. */
void post(struct desk *desk, int other, void *message, unsigned size, unsigned length, long number);
void note(struct gm_port *port, void *context, gm_status_t status);
double seconds(void);
/* All tasks wait for each other. */
void together(void);
/* Provides a buffer of low priority on this task's port, and returns it. */
void *buffer(unsigned size, unsigned tag);
/* Waits for the end at this place, which is of the send with this number and has this status. */
void ended(int at, long number, gm_status_t status);

#endif

/* What the C++ headers of this folder are made of. Programs use those. Ours: netio3 has no such
 * interface. Nothing is thrown, and no function may be called in two threads at once with one
 * object. */
#ifndef OPENLAPI_NETIO3_H
#define OPENLAPI_NETIO3_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define OLNETIO3_SLOTS 256         /* messages of a connection that can be under way */
#define OLNETIO3_SLOT_LENGTH 512   /* bytes of the longest header */
#define OLNETIO3_OVER (-1)         /* the connection is over; olnetio3_error says why */
#define OLNETIO3_CLOSED (-2)       /* the other side has closed it in order */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct olnetio3_connection olnetio3_connection;
typedef struct olnetio3_listener olnetio3_listener;
typedef struct olnetio3_receiver olnetio3_receiver;

/* What failed last in this thread; valid until the next call in it. */
const char *olnetio3_error(void);

/* Connections. ADDRESS is "unix:PATH", or "tcp:HOST:PORT" with a key file, otherwise "". WAYS:
 * 1 shared memory, 2 libfabric, 4 UDP, added; 0: all. olnetio3_send starts to send pieces of
 * memory, of which the first one is the header: 1 when the message is under way, 0 when
 * OLNETIO3_SLOTS have been sent since one that is, -1 when it cannot be sent. olnetio3_completed
 * returns the slot, any number from 0 on, of a message that the other side has, or -1.
 * olnetio3_progress and olnetio3_arm are for event loops: arm returns 1 when the loop may sleep on
 * the descriptor; progress follows in any case. olnetio3_close waits until all messages have ended.
 * olnetio3_abandon: messages must not be read any more, which ends the connection where some are
 * under way. */
olnetio3_connection *olnetio3_connect(const char *address, const char *key_file, unsigned ways, unsigned patience_ms);
void olnetio3_connection_free(olnetio3_connection *connection);
int olnetio3_send(olnetio3_connection *connection, const struct iovec *pieces, size_t count, int64_t slot);
int64_t olnetio3_completed(olnetio3_connection *connection);
int olnetio3_progress(olnetio3_connection *connection);
int olnetio3_arm(olnetio3_connection *connection);
int olnetio3_descriptor(const olnetio3_connection *connection);
int olnetio3_close(olnetio3_connection *connection);
void olnetio3_abandon(olnetio3_connection *connection);

/* The side that receives. A message of more than LONGEST bytes, header included, is refused.
 * Times are in milliseconds; negative: without limit. olnetio3_receive returns 1 with a message,
 * which is valid until the next call, 0 when none has come in time, or a number above. */
olnetio3_listener *olnetio3_listen(const char *address, const char *key_file, unsigned ways, unsigned patience_ms,
                                   size_t longest);
const char *olnetio3_listener_address(const olnetio3_listener *listener);
int olnetio3_listener_descriptor(const olnetio3_listener *listener);
int olnetio3_accept(olnetio3_listener *listener, int ms, olnetio3_receiver **receiver);
void olnetio3_listener_free(olnetio3_listener *listener);
int olnetio3_receive(olnetio3_receiver *receiver, int ms, const uint8_t **bytes, size_t *length, size_t *header);
int olnetio3_receiver_arm(olnetio3_receiver *receiver);
int olnetio3_receiver_descriptor(const olnetio3_receiver *receiver);
void olnetio3_receiver_free(olnetio3_receiver *receiver);

#ifdef __cplusplus
}
#endif

#endif

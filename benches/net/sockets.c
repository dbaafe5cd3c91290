/*
 * Sockets: a datagram each way, and a TCP stream. SOCKETS_RANK is 0 or 1, SOCKETS_PEER the IPv4
 * address of the other process; process 1 listens. Both processes poll, as the other systems do.
 */
#include "net_bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 47810, LONGEST_DATAGRAM = 65000 };

static int me;
static int control, stream, datagrams;

static void check(ssize_t code, const char *what)
{
    if (code < 0)
        net_die("%s: %s", what, strerror(errno));
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        net_die("%s is not set", name);
    return value;
}

/* A machine that does other work as well must run the peer. */
static void await_more(void)
{
    static unsigned empty;
    if (++empty % 4096 == 0)
        sched_yield();
}

static void send_all(int to, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t now = send(to, (const char *)from + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (now < 0 && errno != EAGAIN)
            check(now, "send");
        if (now < 0)
            await_more();
        else
            done += (size_t)now;
    }
}

static void receive_all(int from, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t now = recv(from, (char *)to + done, size - done, MSG_DONTWAIT);
        if (now < 0 && errno != EAGAIN)
            check(now, "recv");
        if (now == 0)
            net_die("the other process has ended");
        if (now < 0)
            await_more();
        else
            done += (size_t)now;
    }
}

static int connected(struct sockaddr_in *peer)
{
    int one = 1, made = -1;
    for (int tries = 0; tries < 2000; tries++) {
        struct timespec pause = {0, 10000000};
        made = socket(AF_INET, SOCK_STREAM, 0);
        check(made, "socket");
        if (connect(made, (struct sockaddr *)peer, sizeof *peer) == 0) {
            check(setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
            return made;
        }
        close(made);
        nanosleep(&pause, NULL);
    }
    net_die("the other process does not listen: %s", strerror(errno));
}

int system_start(int *argc, char ***argv)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in peer = own;
    int one = 1, room = 8 << 20;
    (void)argc, (void)argv;
    me = atoi(setting("SOCKETS_RANK"));
    if (inet_pton(AF_INET, setting("SOCKETS_PEER"), &peer.sin_addr) != 1)
        net_die("SOCKETS_PEER is no address");
    datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    check(datagrams, "socket");
    check(setsockopt(datagrams, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), "SO_RCVBUF");
    check(bind(datagrams, (struct sockaddr *)&own, sizeof own), "bind");
    check(connect(datagrams, (struct sockaddr *)&peer, sizeof peer), "connect");
    if (me == 0) {
        control = connected(&peer);
        stream = connected(&peer);
    } else {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        check(listener, "socket");
        check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
        check(bind(listener, (struct sockaddr *)&own, sizeof own), "bind");
        check(listen(listener, 2), "listen");
        check(control = accept(listener, NULL, NULL), "accept");
        check(stream = accept(listener, NULL, NULL), "accept");
        check(setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
        check(setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
        close(listener);
    }
    return me;
}

void system_meet(void)
{
    char byte = 0;
    send_all(control, &byte, 1);
    receive_all(control, &byte, 1);
}

uint64_t system_share(uint64_t value)
{
    if (me == 0)
        send_all(control, &value, sizeof value);
    else
        receive_all(control, &value, sizeof value);
    return value;
}

void system_end(void)
{
    close(control);
    close(stream);
    close(datagrams);
}

static void send_datagram(size_t size)
{
    ssize_t sent;
    while ((sent = send(datagrams, net_source, size, MSG_DONTWAIT)) < 0 && (errno == EAGAIN || errno == ENOBUFS))
        await_more();
    check(sent, "send");
}

static void receive_datagram(size_t size)
{
    ssize_t received;
    while ((received = recv(datagrams, net_target, size, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        await_more();
    check(received, "recv");
}

static void datagram_active(size_t size)
{
    send_datagram(size);
    receive_datagram(size);
}

static void datagram_passive(size_t size)
{
    receive_datagram(size);
    send_datagram(size);
}

static void message_active(size_t size)
{
    send_all(stream, net_source, size);
    receive_all(stream, net_target, size);
}

static void message_passive(size_t size)
{
    receive_all(stream, net_target, size);
    send_all(stream, net_source, size);
}

static void stream_active(size_t size)
{
    char byte;
    for (size_t i = net_window(size); i > 0; i--)
        send_all(stream, net_source, size);
    receive_all(stream, &byte, 1);
}

static void stream_passive(size_t size)
{
    char byte = 0;
    for (size_t i = net_window(size); i > 0; i--)
        receive_all(stream, net_target, size);
    send_all(stream, &byte, 1);
}

const struct pattern system_patterns[] = {
    {"datagram", datagram_active, datagram_passive, 2, 1, LONGEST_DATAGRAM},
    {"message", message_active, message_passive, 2, 1, 0},
    {"message_stream", stream_active, stream_passive, 0, 1, 0},
    {NULL, NULL, NULL, 0, 0, 0},
};

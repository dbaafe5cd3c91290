/* A library for LD_PRELOAD: streams and files give and take a few bytes at a time, and each third
 * call is interrupted by a signal. Datagrams and counters (eventfd, signalfd) are left whole. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 977 };

/* How many bytes the next call may move; 0: it is interrupted. */
static size_t most(int fd, size_t wanted) {
    static atomic_uint calls;
    struct stat about;
    int type, error = errno;
    socklen_t size = sizeof type;
    int whole = fstat(fd, &about) != 0 || !(S_ISFIFO(about.st_mode) || S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode));
    if (!whole && S_ISSOCK(about.st_mode))
        whole = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM;
    errno = error;
    if (whole || wanted < 2) return wanted;
    unsigned call = atomic_fetch_add(&calls, 1);
    if (call % 3 == 2) return 0;
    return wanted < MOST ? (wanted + 1) / 2 : MOST;
}

#define CUT(result, name, parameters, arguments)                       \
    result name parameters {                                           \
        static result(*next) parameters;                               \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);          \
        size_t allowed = most(fd, length);                             \
        if (allowed == 0 && length != 0) return errno = EINTR, -1;     \
        length = allowed;                                              \
        return next arguments;                                         \
    }

CUT(ssize_t, read, (int fd, void *to, size_t length), (fd, to, length))
CUT(ssize_t, write, (int fd, const void *from, size_t length), (fd, from, length))
CUT(ssize_t, recv, (int fd, void *to, size_t length, int flags), (fd, to, length, flags))
CUT(ssize_t, send, (int fd, const void *from, size_t length, int flags), (fd, from, length, flags))

/* The first part that has bytes, as far as it may go. */
static ssize_t one(int fd, const struct iovec *parts, int count, int writes) {
    for (; count > 1 && parts->iov_len == 0; count--) parts++;
    if (count < 1) return 0;
    return writes ? write(fd, parts->iov_base, parts->iov_len) : read(fd, parts->iov_base, parts->iov_len);
}

#define VECTOR(name, writes)                                                                    \
    ssize_t name(int fd, const struct iovec *parts, int count) {                                \
        static ssize_t (*next)(int, const struct iovec *, int);                                 \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                   \
        if (most(fd, (size_t)-1) == (size_t)-1) return next(fd, parts, count);                  \
        return one(fd, parts, count, writes);                                                   \
    }

VECTOR(readv, 0)
VECTOR(writev, 1)

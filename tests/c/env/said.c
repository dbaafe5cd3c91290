/*
 * What the library writes to standard error: said CASE
 *
 *   ended       calls with a handle that this process has ended a moment ago, and with one that never was
 *   unhandled   an error that no call can return, in a program without an error handler
 *   nothing     LAPI_Init and LAPI_Term
 *   probe       LAPI_Util with a type that it does not have
 *   unread      a message on a standard error whose reader has gone, where SIGPIPE ends a program
 *   full        a message on a standard error that is non-blocking and full, until another thread reads it
 */
#include <errno.h>
#include <fcntl.h>
#include <lapi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lapi_handle_t hndl;

static void is(int code, int expected, const char *what) {
    if (code == expected) return;
    printf("%s: %d instead of %d\n", what, code, expected);
    exit(1);
}

static void start(void) {
    lapi_info_t info;
    memset(&info, 0, sizeof info);
    is(LAPI_Init(&hndl, &info), LAPI_SUCCESS, "LAPI_Init");
}

/* Makes a pipe standard error, and returns the end that its reader has. */
static int redirected(void) {
    int ends[2];
    is(pipe(ends), 0, "pipe");
    is(dup2(ends[1], 2), 2, "dup2");
    close(ends[1]);
    return ends[0];
}

static void unread(void) {
    struct sigaction action;
    sigset_t signals;
    close(redirected());
    signal(SIGPIPE, SIG_DFL);
    is(LAPI_Fence(hndl + 64), LAPI_ERR_HNDL_INVALID, "LAPI_Fence");
    is(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL, 1, "its action");
    is(pthread_sigmask(SIG_BLOCK, NULL, &signals) == 0 && sigismember(&signals, SIGPIPE), 0, "its mask");
    printf("goes on\n");
}

static char text[1 << 20];

static void *reader(void *end) {
    size_t length = 0;
    ssize_t got;
    /* The message shall find the pipe full. */
    usleep(300000);
    while (length < sizeof text - 1 && (got = read(*(int *)end, text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)got;
    }
    return NULL;
}

static void full(void) {
    pthread_t thread;
    int end = redirected(), flags = fcntl(2, F_GETFL);
    is(fcntl(2, F_SETFL, flags | O_NONBLOCK), 0, "fcntl");
    while (write(2, ".", 1) == 1) continue;
    is(errno, EAGAIN, "write");
    is(pthread_create(&thread, NULL, reader, &end), 0, "pthread_create");
    is(LAPI_Fence(hndl + 64), LAPI_ERR_HNDL_INVALID, "LAPI_Fence");
    close(2);
    is(pthread_join(thread, NULL), 0, "pthread_join");
    printf("%s", text + strspn(text, "."));
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    start();
    if (strcmp(which, "unhandled") == 0) {
        int me;
        /* Nothing is registered under the index. */
        is(LAPI_Qenv(hndl, TASK_ID, &me), LAPI_SUCCESS, "LAPI_Qenv");
        is(LAPI_Amsend(hndl, (uint)me, (void *)9, NULL, 0, NULL, 0, NULL, NULL, NULL), LAPI_SUCCESS, "LAPI_Amsend");
        return 2; /* not reached */
    }
    if (strcmp(which, "probe") == 0) {
        lapi_util_t util;
        memset(&util, 0, sizeof util);
        util.Util_type = (lapi_util_type_t)9999;
        is(LAPI_Util(hndl, &util), LAPI_ERR_UTIL_CMD, "LAPI_Util");
    }
    if (strcmp(which, "unread") == 0) unread();
    if (strcmp(which, "full") == 0) full();
    is(LAPI_Term(hndl), LAPI_SUCCESS, "LAPI_Term");
    if (strcmp(which, "ended") == 0) {
        is(LAPI_Probe(hndl), LAPI_ERR_HNDL_INVALID, "LAPI_Probe");
        is(LAPI_Term(hndl), LAPI_ERR_HNDL_INVALID, "LAPI_Term again");
        is(LAPI_Fence(hndl + 64), LAPI_ERR_HNDL_INVALID, "LAPI_Fence");
    }
    return 0;
}

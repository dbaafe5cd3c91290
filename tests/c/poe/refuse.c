/* To be preloaded: calls of libc that fail as on a system that has reached a limit. REFUSE
 * says which. And forks that wait while a file is there: HOLD_FORKS names it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refused(const char *what) {
    const char *asked = getenv("REFUSE");
    return asked && !strcmp(asked, what);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (refused("thread")) return EAGAIN;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, argument);
}

pid_t fork(void) {
    static int forks; /* of this process, and of those that it is a copy of */
    pid_t (*real)(void);
    const char *hold = getenv("HOLD_FORKS");
    forks++;
    while (hold && forks > 2 && !access(hold, F_OK)) usleep(10000);
    if (refused("fork")) {
        errno = EAGAIN;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "fork");
    return real();
}

int posix_openpt(int flags) {
    int (*real)(int);
    if (refused("terminal")) {
        errno = ENOSPC;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "posix_openpt");
    return real(flags);
}

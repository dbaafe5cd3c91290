/*
 * To be preloaded: the system's clock jumps, each tenth of a second, to an hour ahead, to an hour
 * back, or to the right time.
 */
#define _GNU_SOURCE

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    struct timespec steady;
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
        now->tv_sec += 3600 * ((steady.tv_nsec / 100000000) % 3 - 1);
    }
    return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now != NULL) *now = time.tv_sec;
    return time.tv_sec;
}

// Stages of a program: it says where it is, and goes on when the test says so by SIGUSR1.
#ifndef OPENLAPI_FAM_STAGES_H
#define OPENLAPI_FAM_STAGES_H

#include "conformance.h"

#include <csignal>

// That signal alone.
inline sigset_t go_on() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    return signals;
}

// Before the program has threads.
inline void block_the_signal() {
    sigset_t signals = go_on();
    CHECK(sigprocmask(SIG_BLOCK, &signals, nullptr) == 0);
}

// Says where the program is, and waits.
inline void wait_for_the_test(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    sigset_t signals = go_on();
    int received;
    CHECK(sigwait(&signals, &received) == 0);
}

#endif

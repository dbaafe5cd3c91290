/*
 * What a program has set before LAPI_Init is the same after it, and after LAPI_Term:
 * unchanged own|default
 *
 * own: the program has handlers, a stack for them, and descriptors. default: it has none. Also a
 * library: for Java, for Python, and for a program that opens it. Returns 0 if nothing has changed.
 */
#include "state.h"
#include <lapi.h>

static void own(int number) {
    (void)number;
}

static void set_own(void) {
    static char stack[1 << 16];
    struct sigaction action = {.sa_handler = own, .sa_flags = SA_ONSTACK};
    stack_t own_stack = {.ss_sp = stack, .ss_size = sizeof stack};
    sigset_t mask;
    for (int n = 1; n < 65; n++) sigaction(n, &action, NULL);
    sigaltstack(&own_stack, NULL);
    sigemptyset(&mask), sigaddset(&mask, SIGALRM), sigaddset(&mask, SIGRTMIN + 3);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    fesetround(FE_UPWARD), feenableexcept(FE_DIVBYZERO);
    umask(027), setlocale(LC_ALL, "C.UTF-8");
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
    dup2(ends[1], 110), dup3(ends[0], 111, O_CLOEXEC);
}

int unchanged(void) {
    lapi_handle_t handle;
    lapi_info_t info;
    int me, tasks, one, changes;
    char *before = state();
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&handle, &info)) return 100;
    changes = compare(before, "after LAPI_Init");
    LAPI_Qenv(handle, TASK_ID, &me), LAPI_Qenv(handle, NUM_TASKS, &tasks);
    void *addresses[64];
    LAPI_Address_init(handle, &one, addresses);
    LAPI_Put(handle, (me + 1) % tasks, sizeof me, addresses[(me + 1) % tasks], &me, NULL, NULL, NULL);
    LAPI_Gfence(handle);
    if (one != (me + tasks - 1) % tasks) return 101;
    changes += compare(before, "after the calls");
    if (LAPI_Term(handle)) return 102;
    return changes + compare(before, "after LAPI_Term");
}

int Java_Unchanged_unchanged(void *environment, void *class) {
    (void)environment, (void)class;
    return unchanged();
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "own")) set_own();
    return unchanged() != 0;
}

/*
 * A program that has closed its descriptors 0 to 2, as a daemon does, prints between LAPI's calls,
 * and opens a file where its output should go. What it finds wrong it writes into the file that is
 * named by its argument, or "good".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int log_to;

static void print_much(void) {
    for (int n = 0; n < 1000; n++) printf("line %d of a program that prints where nothing is open\n", n);
    fflush(stdout), clearerr(stdout);
    for (int n = 0; n < 100; n++) fprintf(stderr, "and another one\n");
    if (write(1, "x", 1) != -1 || errno != EBADF) dprintf(log_to, "1 can be written\n"), exit(3);
    if (write(2, "x", 1) != -1 || errno != EBADF) dprintf(log_to, "2 can be written\n"), exit(3);
    if (read(0, (char[1]){0}, 1) != -1 || errno != EBADF) dprintf(log_to, "0 can be read\n"), exit(3);
}

int main(int count, char **arguments) {
    static char from[100000], into[100000];
    lapi_handle_t handle;
    lapi_info_t info = {0};
    lapi_cntr_t arrived, completed;
    int me, tasks, code;
    char name[4096];
    void *counters[64], *buffers[64];
    if (count < 2 || !getenv("MP_CHILD")) return 2;
    snprintf(name, sizeof name, "%s.%s", arguments[1], getenv("MP_CHILD"));
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    log_to = fcntl(file, F_DUPFD_CLOEXEC, 200), close(file);
    close(0), close(1), close(2);
    if ((code = LAPI_Init(&handle, &info))) return dprintf(log_to, "LAPI_Init: %d\n", code), 3;
    print_much();
    LAPI_Qenv(handle, TASK_ID, &me), LAPI_Qenv(handle, NUM_TASKS, &tasks);
    LAPI_Setcntr(handle, &arrived, 0), LAPI_Setcntr(handle, &completed, 0);
    LAPI_Address_init(handle, into, buffers), LAPI_Address_init(handle, &arrived, counters);
    int next = (me + 1) % tasks;
    for (int turn = 1; turn <= 20; turn++) {
        memset(from, turn, sizeof from);
        LAPI_Put(handle, next, sizeof from, buffers[next], from, counters[next], NULL, &completed);
        print_much();
        LAPI_Waitcntr(handle, &arrived, 1, NULL), LAPI_Waitcntr(handle, &completed, 1, NULL);
        for (size_t n = 0; n < sizeof into; n++)
            if (into[n] != turn) return dprintf(log_to, "byte %zu is %d, not %d\n", n, into[n], turn), 3;
        LAPI_Gfence(handle);
    }
    /* A program that wants its output in a file closes the number, and opens the file. */
    close(1);
    if ((code = open("/dev/null", O_WRONLY)) != 1) return dprintf(log_to, "%d was opened for 1\n", code), 3;
    if (printf("x\n") != 2 || fflush(stdout)) return dprintf(log_to, "nothing can be printed\n"), 3;
    LAPI_Gfence(handle);
    /* What it executes finds them closed. */
    code = system("for n in 0 2; do test ! -e /proc/self/fd/$n || exit $((n + 10)); done");
    if (code) return dprintf(log_to, "a shell finds descriptor %d\n", (code >> 8) - 10), 3;
    if ((code = LAPI_Term(handle))) return dprintf(log_to, "LAPI_Term: %d\n", code), 3;
    dprintf(log_to, "good\n");
    return 0;
}

/*
 * Tasks that a fault ends, each in its own way: crash CASE
 *
 *   put       task 0 puts 8 bytes to address 0x10 of task 1
 *   counter   task 0 puts to task 1, with a target counter at address 0x18
 *   get       task 0 gets from address 0x20 of task 1
 *   rmw       task 0 adds to a variable at address 0x28 of task 1
 *   handler   the header handler of a message of task 0 writes to address 0x30 in task 1
 *   nowhere   it returns address 0x38 for the data of the message
 *   own       task 1 writes to address 0x40 by itself
 *   shorter   task 1 reads memory of a file that has become shorter
 *   far       task 1 reads where a processor of x86 has no address
 *   wild      task 1 calls a function at address 0x48
 *   closed    task 1 writes to address 0x40, and its standard error has no reader
 *   smashed   task 1 calls abort where its stack is overwritten
 *   abort     task 1 calls abort
 *   divide    task 1 divides by zero
 *   stack     task 1 calls itself without end
 *   handled   task 1 has a handler of its own, which exits with status 3
 *   kill      task 1 sends itself SIGSEGV
 */
#include "../common/ltest.h"

#include <signal.h>
#include <sys/mman.h>

static lapi_cntr_t never, here;
static volatile int zero;

static void own(int number) {
    (void)number;
    _exit(3);
}

static void *header_handler(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len, compl_hndlr_t **compl, void **arg) {
    (void)hndl, (void)uhdr_len, (void)len, (void)arg;
    *compl = NULL;
    if (*(int *)uhdr) return (void *)0x38;
    *(volatile int *)0x30 = 1;
    return NULL;
}

/* A function whose name no symbol table of a stripped program has. */
static int down(int depth) {
    volatile char much[4096];
    much[0] = (char)depth;
    return down(depth + 1) + much[0];
}

static void *volatile no_code = (void *)0x48;

static int __attribute__((noinline)) wild(void) {
    return ((int (*)(void))no_code)() + 1;
}

static volatile char *shorter(void) {
    FILE *file = tmpfile();
    void *memory;
    if (file == NULL || ftruncate(fileno(file), 4096) != 0) exit(1);
    memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    if (memory == MAP_FAILED || ftruncate(fileno(file), 0) != 0) exit(1);
    return memory;
}

static void *volatile top;

/* What the guard of the stack does, after the frames above were overwritten. */
static void __attribute__((noinline)) smashed(void) {
    volatile char *here = __builtin_frame_address(0);
    for (int i = 0; here + i < (volatile char *)top; i++) here[i] = 0x41;
    abort();
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    static long data, result, one = 1;
    int header = strcmp(which, "nowhere") == 0;
    if (strcmp(which, "handled") == 0) signal(SIGSEGV, own);
    t_init();
    t_fence();
    if (t_me == 0) {
        if (strcmp(which, "put") == 0)
            OK(LAPI_Put(t_hndl, 1, sizeof data, (void *)0x10, &data, NULL, NULL, NULL));
        if (strcmp(which, "counter") == 0)
            OK(LAPI_Put(t_hndl, 1, sizeof data, &data, &data, (lapi_cntr_t *)0x18, NULL, NULL));
        if (strcmp(which, "get") == 0)
            OK(LAPI_Get(t_hndl, 1, sizeof data, (void *)0x20, &result, NULL, &here));
        if (strcmp(which, "rmw") == 0)
            OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, 1, (long long *)0x28, (long long *)&one, NULL, NULL));
        if (strcmp(which, "handler") == 0 || header)
            OK(LAPI_Amsend(t_hndl, 1, (void *)header_handler, &header, sizeof header, &data, sizeof data, NULL, NULL, NULL));
    } else if (strcmp(which, "own") == 0 || strcmp(which, "handled") == 0) {
        *(volatile int *)0x40 = 1;
    } else if (strcmp(which, "shorter") == 0) {
        printf("%d\n", *shorter());
    } else if (strcmp(which, "far") == 0) {
        printf("%d\n", *(volatile int *)0x8000000000000000);
    } else if (strcmp(which, "wild") == 0) {
        printf("%d\n", wild());
    } else if (strcmp(which, "closed") == 0) {
        int ends[2];
        if (pipe(ends) != 0 || dup2(ends[1], 2) != 2) return 1;
        close(ends[0]);
        close(ends[1]);
        *(volatile int *)0x40 = 1;
    } else if (strcmp(which, "smashed") == 0) {
        top = (char *)__builtin_frame_address(0) + 32;
        smashed();
    } else if (strcmp(which, "abort") == 0) {
        abort();
    } else if (strcmp(which, "divide") == 0) {
        printf("%d\n", 100 / zero);
    } else if (strcmp(which, "stack") == 0) {
        printf("%d\n", down(0));
    } else if (strcmp(which, "kill") == 0) {
        kill(getpid(), SIGSEGV);
    }
    OK(LAPI_Waitcntr(t_hndl, &never, 1, NULL));
    return 0;
}

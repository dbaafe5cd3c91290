/*
 * Bad addresses: badaddr WHICH WHERE BYTES
 *
 * Task 0 puts to task 1 ("source", "target": whose place is bad), or gets from it ("there",
 * "here"). WHERE: "closed": its second page may not be accessed, "opened": and the program's
 * handler of SIGSEGV opens it, as a collector or a checkpointer does; "truncated": it maps a file
 * of which only one page is left.
 */
#define _GNU_SOURCE
#include <lapi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static lapi_handle_t hndl;
static lapi_cntr_t org, cmpl;
static char *good, *bad;
static size_t len;
static int me;
static volatile int opened;

#define CHECK(what) ((what) ? (void)0 : (printf("task %d: not so: %s\n", me, #what), fflush(stdout), _exit(199)))

static void on_error(lapi_handle_t *h, int *code, lapi_err_t *type, int *task, int *src) {
    (void)h, (void)type, (void)task;
    printf("task %d: error %d blames task %d\n", me, *code, *src);
    fflush(stdout);
    _exit(199);
}

static void open_page(int signal, siginfo_t *info, void *context) {
    char *at = (char *)((unsigned long)info->si_addr & ~4095ul);
    (void)signal, (void)context;
    if (at < bad || at >= bad + len || mprotect(at, 4096, PROT_READ | PROT_WRITE) != 0) _exit(198);
    opened++;
}

int main(int argc, char **argv) {
    lapi_info_t info;
    struct sigaction action;
    int opens, truncated, here, get, file;
    size_t i;
    CHECK(argc == 4);
    get = strcmp(argv[1], "there") == 0 || strcmp(argv[1], "here") == 0;
    opens = *argv[2] == 'o', truncated = *argv[2] == 't', here = *argv[1] == 's' || *argv[1] == 'h', len = strtoul(argv[3], NULL, 10);
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    CHECK(LAPI_Init(&hndl, &info) == LAPI_SUCCESS && LAPI_Qenv(hndl, TASK_ID, &me) == LAPI_SUCCESS);
    void *goods[2], *bads[2];
    CHECK((good = malloc(len)) != NULL);
    CHECK((file = truncated ? memfd_create("file", 0) : -1) == -1 || ftruncate(file, len) == 0);
    bad = mmap(NULL, len, PROT_READ | PROT_WRITE, truncated ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    CHECK(bad != MAP_FAILED);
    memset(good, 'g', len), memset(bad, 'b', len);
    if (me == !here) {
        bzero(&action, sizeof action);
        action.sa_sigaction = open_page, action.sa_flags = SA_SIGINFO;
        if (opens) CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
        CHECK(truncated ? ftruncate(file, 4096) == 0 : mprotect(bad + 4096, 4096, PROT_NONE) == 0);
    }
    CHECK(LAPI_Address_init(hndl, good, goods) == LAPI_SUCCESS && LAPI_Address_init(hndl, bad, bads) == LAPI_SUCCESS);
    if (me == 0) {
        char *local = here ? bad : good;
        void *remote = here ? goods[1] : bads[1];
        if (get)
            CHECK(LAPI_Get(hndl, 1, len, remote, local, NULL, &org) == LAPI_SUCCESS);
        else
            CHECK(LAPI_Put(hndl, 1, len, remote, local, NULL, NULL, &org) == LAPI_SUCCESS);
        CHECK(LAPI_Waitcntr(hndl, &org, 1, NULL) == LAPI_SUCCESS);
    }
    CHECK(LAPI_Gfence(hndl) == LAPI_SUCCESS);
    char want = here == !get ? 'b' : 'g', *placed = get ? (here ? bad : good) : (here ? good : bad);
    if (me == !get)
        for (i = 0; i < len; i++) CHECK(placed[i] == want);
    CHECK(LAPI_Gfence(hndl) == LAPI_SUCCESS);
    /* The connection has not suffered. */
    if (me == 0) {
        CHECK(LAPI_Put(hndl, 1, 8, goods[1], good, NULL, NULL, &cmpl) == LAPI_SUCCESS);
        CHECK(LAPI_Waitcntr(hndl, &cmpl, 1, NULL) == LAPI_SUCCESS);
    }
    CHECK(LAPI_Gfence(hndl) == LAPI_SUCCESS && LAPI_Term(hndl) == LAPI_SUCCESS);
    printf("PASS %d\n", me);
    return 0;
}

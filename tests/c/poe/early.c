/* A LAPI program in which task 1 leaves early; the first argument says how. The others say what
 * LAPI_Init returns. */
#define _GNU_SOURCE
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void await_file(const char *file) {
    while (access(file, F_OK) != 0) usleep(1000);
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    int me = atoi(getenv("MP_CHILD")), it = me == (argc > 3 ? atoi(argv[3]) : 1);
    lapi_handle_t handle;
    lapi_info_t info;
    int code;
    memset(&info, 0, sizeof info);
    if (!strcmp(what, "never") && it) return atoi(argv[2]);
    if (!strcmp(what, "never-late")) {
        if (it) {
            printf("%d\n", (int)getpid());
            return 0;
        }
        await_file(argv[2]);
    }
    if (!strcmp(what, "full") && it) {
        struct rlimit none;
        getrlimit(RLIMIT_NOFILE, &none);
        none.rlim_cur = none.rlim_max = 6; /* enough for the line to poe, not for LAPI_Init */
        setrlimit(RLIMIT_NOFILE, &none);
    }
    if (!strcmp(what, "late") && it) {
        printf("task 1 waits\n");
        fflush(stdout);
        await_file(argv[2]);
    }
    if (!strcmp(what, "invalid") && it) setenv("MP_INFOLEVEL", "much", 1);
    code = LAPI_Init(&handle, &info);
    if (!strcmp(what, "invalid") && code != LAPI_SUCCESS) return it ? atoi(argv[2]) : 5;
    if (!strcmp(what, "refused")) return code == LAPI_SUCCESS;
    if (code != LAPI_SUCCESS) {
        printf("task %d: LAPI_Init returns %d\n", me, code);
        return 1;
    }
    if (!strcmp(what, "noterm-both") || (!strcmp(what, "noterm") && it)) exit(0);
    if (LAPI_Gfence(handle) != LAPI_SUCCESS) return 2;
    if (LAPI_Term(handle) != LAPI_SUCCESS) return 3;
    if (!strcmp(what, "left")) {
        if (it) {
            printf("task 1 waits\n");
            fflush(stdout);
        }
        await_file(argv[2]);
    }
    printf("PASS %d\n", me);
    return 0;
}

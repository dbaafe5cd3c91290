/*
 * A library for LD_PRELOAD: in task 1 the exchange of addresses whose number FAILS_AT gives takes
 * place, and is an error to this task.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* LAPI_ERR_UNKNOWN of lapi.h, whose types the function has. */
enum { FAILED = 400 };

int LAPI_Address_init64(unsigned handle, uint64_t own, uint64_t *all) {
    static int calls;
    int (*next)(unsigned, uint64_t, uint64_t *);
    *(void **)&next = dlsym(RTLD_NEXT, "LAPI_Address_init64");
    int code = next(handle, own, all);
    const char *task = getenv("MP_CHILD"), *at = getenv("FAILS_AT");
    if (!task || strcmp(task, "1") || !at || ++calls != atoi(at)) return code;
    return code ? code : FAILED;
}

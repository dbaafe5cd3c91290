/*
 * LAPI_Init with little address space left: scarce
 *
 * It is refused and changes nothing, whatever room there is below what a start takes; with room it
 * works.
 */
#include "common.h"

#include <sys/resource.h>

static rlim_t taken(void) {
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (kib == 0 && fgets(line, sizeof line, file) != NULL) sscanf(line, "VmSize: %lu", &kib);
    fclose(file);
    CHECK(kib != 0);
    return (rlim_t)kib << 10;
}

int main(void) {
    struct rlimit before, limit;
    lapi_handle_t h;
    int kib;
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    /* The first bytes that are printed take a buffer. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (kib = 1900; kib > 0; kib -= 200) {
        lapi_info_t info = zeroed();
        limit = before;
        limit.rlim_cur = taken() + ((rlim_t)kib << 10);
        CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
        RETURNS(LAPI_Init(&h, &info), LAPI_ERR_MEMORY_EXHAUSTED);
        CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    }
    t_init();
    traffic(t_hndl, 1);
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}

/* One case for each statement about GM: conformance CASE, with as many tasks as the case wants.
 * Without a case: the list of them. */
#include "cases.h"

#define LISTED(name, tasks, timeout) {#name, tasks, timeout, case_##name},
static const struct {
    const char *name;
    int tasks, timeout;
    void (*run)(void);
} cases[] = {CASES(LISTED)};

int main(int argc, char **argv) {
    unsigned i;
    struct gm_port *port;
    if (argc < 2) {
        for (i = 0; i < GM_NUM_ELEM(cases); i++)
            printf("%s %d %d\n", cases[i].name, cases[i].tasks, cases[i].timeout);
        return 0;
    }
    task = getenv("MP_CHILD") ? atoi(getenv("MP_CHILD")) : 0;
    tasks = getenv("MP_PROCS") ? atoi(getenv("MP_PROCS")) : 1;
    CHECK(gm_open(&port, 0, 2, "early", gm_api_version_2_0) == GM_UNATTACHED);
    CHECK(gm_init() == GM_SUCCESS);
    open_desk(&mine, port_of(task));
    if (getenv("LAPI_GM_MAP"))
        together();
    for (i = 0; i < GM_NUM_ELEM(cases); i++)
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            gm_close(mine.port);
            gm_finalize();
            printf("OK %s %d\n", cases[i].name, task);
            return 0;
        }
    fprintf(stderr, "no such case\n");
    return 2;
}

/*
 * What an MPI library does that finds no launcher, before LAPI_Init: singleton TASKS
 *
 * It makes the process a job of its own and says so in PMIx's variables. The LAPI job is the
 * same as without.
 */
#include "../common/ltest.h"

int main(int argc, char **argv) {
    char own[32];
    CHECK(argc == 2);
    snprintf(own, sizeof own, "%d", (int)getpid());
    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_NAMESPACE", own, 1);
    t_init();
    CHECK_EQ(t_tasks, atoi(argv[1]));
    t_done();
    return 0;
}

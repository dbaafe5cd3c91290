/*
 * Jobs that run at the same time stay apart: apart ROUNDS NAME [FOLDER OTHER...]
 *
 * Each round is a LAPI job from LAPI_Init to LAPI_Term in which every task puts the name of its job
 * into every other:
 * a task of a job of another name would be found out. With a FOLDER the rounds begin only when a
 * task of each OTHER
 * job is there too.
 */
#include "../common/ltest.h"

#include <fcntl.h>

enum { NAME = 32, MOST = 64 };

static char came[MOST][NAME];

/* Says in the folder that this job is here, and waits until the other is. */
static void gather(const char *folder, const char *name) {
    char path[4096];
    int fd;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK_FOR(fd >= 0, "%s cannot be made", path);
    close(fd);
}

static void await(const char *folder, const char *other) {
    char path[4096];
    int tries;
    snprintf(path, sizeof path, "%s/%s", folder, other);
    for (tries = 0; access(path, F_OK) != 0; tries++) {
        CHECK_FOR(tries < 30000, "job %s did not come", other);
        usleep(1000);
    }
}

static void one_round(const char *name, int round) {
    char mine[NAME];
    void **there;
    int task, was = t_me, were = t_tasks;

    t_init();
    CHECK(t_tasks <= MOST);
    if (round > 0) {
        CHECK_EQ(t_me, was);
        CHECK_EQ(t_tasks, were);
    }
    memset(mine, 0, sizeof mine);
    snprintf(mine, sizeof mine, "%s.%d", name, round);
    there = t_addresses(came);
    for (task = 0; task < t_tasks; task++)
        OK(LAPI_Put(t_hndl, (uint)task, NAME, (char *)there[task] + t_me * NAME, mine, NULL, NULL, NULL));
    t_fence();
    for (task = 0; task < t_tasks; task++)
        CHECK_FOR(strcmp(came[task], mine) == 0, "job %s, round %d: \"%s\" came from task %d", name, round, came[task],
                  task);
    free(there);
    t_fence();
    OK(LAPI_Term(t_hndl));
}

int main(int argc, char **argv) {
    int rounds, i;
    CHECK_FOR(argc >= 3, "apart ROUNDS NAME [FOLDER OTHER...]");
    rounds = atoi(argv[1]);
    if (argc > 3) gather(argv[3], argv[2]);
    for (i = 4; i < argc; i++) await(argv[3], argv[i]);
    for (i = 0; i < rounds; i++) one_round(argv[2], i);
    printf("task %d of %d in job %s\n", t_me, t_tasks, argv[2]);
    t_pass();
    return 0;
}

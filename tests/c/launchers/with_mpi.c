/*
 * LAPI and MPI in one process: with_mpi FIRST LAST
 *
 * FIRST (lapi or mpi) is initialised first, LAST is terminated last. Rank in MPI and TASK_ID are
 * the same, and traffic of both goes side by side.
 */
#include "../common/ltest.h"

#include <mpi.h>

enum { ROUNDS = 50, LONG = 40000 };

static int inbox[LONG], outbox[LONG];
static lapi_cntr_t full;

static int is(const char *text, const char *word) {
    CHECK_FOR(strcmp(text, "lapi") == 0 || strcmp(text, "mpi") == 0, "%s is neither lapi nor mpi", text);
    return strcmp(text, word) == 0;
}

/* Around the ring by LAPI_Put, and checked by MPI: no task continues before all have their data. */
static void ring(void **inboxes, void **counters, int round) {
    uint next = (uint)((t_me + 1) % t_tasks);
    int before = (t_me + t_tasks - 1) % t_tasks;
    int len = round % 2 ? LONG : 8, wrong = 0, all_wrong = -1, sum = -1, i;

    for (i = 0; i < len; i++) outbox[i] = t_me * 1000003 + round * 1009 + i;
    OK(LAPI_Put(t_hndl, next, (ulong)len * sizeof *outbox, inboxes[next], outbox, counters[next], NULL, NULL));
    CHECK_EQ(MPI_Allreduce(&t_me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(sum, t_tasks * (t_tasks - 1) / 2);
    t_wait_exact(&full, 1);
    for (i = 0; i < len; i++) wrong += inbox[i] != before * 1000003 + round * 1009 + i;
    CHECK_EQ(MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_FOR(all_wrong == 0, "round %d: %d words are wrong here, %d in all", round, wrong, all_wrong);
    t_fence();
}

int main(int argc, char **argv) {
    void **inboxes, **counters;
    int rank = -1, size = -1, round;

    CHECK_FOR(argc == 3, "with_mpi FIRST LAST");
    if (is(argv[1], "lapi")) t_init();
    CHECK_EQ(MPI_Init(&argc, &argv), MPI_SUCCESS);
    if (is(argv[1], "mpi")) t_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ(t_me, rank);
    CHECK_EQ(t_tasks, size);

    inboxes = t_addresses(inbox);
    counters = t_addresses(&full);
    for (round = 0; round < ROUNDS; round++) ring(inboxes, counters, round);

    if (is(argv[2], "mpi")) OK(LAPI_Term(t_hndl));
    CHECK_EQ(MPI_Finalize(), MPI_SUCCESS);
    if (is(argv[2], "lapi")) {
        t_fence();
        OK(LAPI_Term(t_hndl));
    }
    printf("task %d of %d has rank %d of %d\n", t_me, t_tasks, rank, size);
    t_pass();
    return 0;
}

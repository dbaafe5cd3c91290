/*
 * The time of a barrier of all tasks: gfence_bench ROUNDS
 *
 * Compiled with -DUSE_MPI it measures MPI_Barrier, otherwise LAPI_Gfence. Task 0 prints the number
 * of tasks and the mean time in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef USE_MPI
#include <mpi.h>
#else
#include <lapi.h>

static lapi_handle_t hndl;
#endif

static int me, tasks;

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "gfence_bench: %s failed\n", what);
    exit(1);
}

#ifdef USE_MPI
static void begin(int *argc, char ***argv) {
    must(MPI_Init(argc, argv) == MPI_SUCCESS, "MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
}

static void barrier(void) { must(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "MPI_Barrier"); }
static void end(void) { MPI_Finalize(); }
#else
static void begin(int *argc, char ***argv) {
    lapi_info_t info;
    (void)argc, (void)argv;
    memset(&info, 0, sizeof info);
    must(LAPI_Init(&hndl, &info) == LAPI_SUCCESS, "LAPI_Init");
    LAPI_Qenv(hndl, TASK_ID, &me);
    LAPI_Qenv(hndl, NUM_TASKS, &tasks);
}

static void barrier(void) { must(LAPI_Gfence(hndl) == LAPI_SUCCESS, "LAPI_Gfence"); }
static void end(void) { LAPI_Term(hndl); }
#endif

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
    int rounds, round;
    double from, to;
    begin(&argc, &argv);
    must(argc == 2 && (rounds = atoi(argv[1])) > 0, "gfence_bench ROUNDS");
    for (round = 0; round < rounds / 10 + 10; round++) barrier();
    from = now();
    for (round = 0; round < rounds; round++) barrier();
    to = now();
    if (me == 0) printf("%d %.3f\n", tasks, (to - from) / rounds);
    end();
    return 0;
}

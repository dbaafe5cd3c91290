/*
 * victim STOP [ENDS]: a job that checks all of its data, and that its memory does not grow, until
 * the file STOP exists. Then each task prints what LAPI has refused: "TASK refused N duplicates N".
 * Task 0 writes into the file ENDS when each round has ended, in microseconds of the monotonic
 * clock, a line for each.
 */
#include "../common/ltest.h"

#include <time.h>

#define LEN 40000
#define MOST_ENDS (1 << 20)

static int64_t turns;
static long long ends[MOST_ENDS];

static long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static long resident(void) {
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &all, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void write_ends(const char *path, uint64_t count) {
    FILE *file = fopen(path, "w");
    uint64_t at;
    CHECK(file != NULL);
    for (at = 0; at < count && at < MOST_ENDS; at++) fprintf(file, "%lld\n", ends[at]);
    CHECK_EQ(fclose(file), 0);
}

int main(int argc, char **argv) {
    static char from[LEN], to[LEN], got[LEN];
    lapi_statistics_t counts;
    lapi_cntr_t arrived, there, fetched;
    uint next, before;
    uint64_t round;
    long at_first = 0, now;
    void **tos, **froms, **arriveds, **turnss;
    CHECK(argc == 2 || argc == 3);
    t_init();
    next = (uint)((t_me + 1) % t_tasks);
    before = (uint)((t_me + t_tasks - 1) % t_tasks);
    OK(LAPI_Setcntr(t_hndl, &arrived, 0));
    OK(LAPI_Setcntr(t_hndl, &there, 0));
    OK(LAPI_Setcntr(t_hndl, &fetched, 0));
    tos = t_addresses(to);
    froms = t_addresses(from);
    arriveds = t_addresses(&arrived);
    turnss = t_addresses(&turns);
    for (round = 0;; round++) {
        long long before_turn, one = 1;
        lapi_long_t stop[64], own = 0;
        t_fill(from, LEN, t_seed(round, (uint64_t)t_me, 1));
        memset(to, 0, LEN);
        memset(got, 0, LEN);
        t_fence();
        OK(LAPI_Put(t_hndl, next, LEN, tos[next], from, (lapi_cntr_t *)arriveds[next], NULL, &there));
        OK(LAPI_Get(t_hndl, before, LEN, froms[before], got, NULL, &fetched));
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, 0, turnss[0], &one, &before_turn, &fetched));
        t_wait_exact(&fetched, 2);
        t_wait_exact(&arrived, 1);
        t_wait_exact(&there, 1);
        CHECK_FILLED(got, LEN, t_seed(round, before, 1));
        CHECK_FILLED(to, LEN, t_seed(round, before, 1));
        if (t_me == 0) own = access(argv[1], F_OK) == 0;
        CHECK(t_tasks <= 64);
        OK(LAPI_Address_init64(t_hndl, own, stop));
        if (t_me == 0) CHECK_EQ(turns, (long long)(round + 1) * t_tasks);
        if (round < MOST_ENDS) ends[round] = microseconds();
        if (round == 20) at_first = resident();
        if (stop[0] && round > 20) break;
    }
    now = resident();
    CHECK_FOR(now - at_first < (32L << 20), "after %llu rounds %ld bytes, %ld at first", (unsigned long long)round, now, at_first);
    OK(LAPI_Qenv(t_hndl, QUERY_STATISTICS, (int *)&counts));
    printf("%d refused %llu duplicates %llu\n", t_me, counts.Tot_gho_pkt_cnt, counts.Tot_dup_pkt_cnt);
    if (t_me == 0 && argc == 3) write_ends(argv[2], round);
    t_done();
    return 0;
}

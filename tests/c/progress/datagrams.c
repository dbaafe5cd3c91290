/*
 * How many datagrams a burst of small operations takes: datagrams LEAST MOST
 *
 * Both tasks are alone in a network namespace, whose datagrams the kernel counts. Of the bursts of
 * each kind the one with the fewest counts: the tasks may be stopped between two operations.
 */
#include "../common/ltest.h"

#include <limits.h>

enum { BURST = 16, ROUNDS = 200 };

static long long here[BURST], there[BURST];

/* The datagrams that have left sockets of this namespace. */
static long left(void) {
    char names[1024], values[1024];
    long in, unknown, errors, out;
    FILE *file = fopen("/proc/self/net/snmp", "r");
    CHECK(file != NULL);
    do {
        CHECK(fgets(names, sizeof names, file) != NULL);
    } while (strncmp(names, "Udp: InDatagrams NoPorts InErrors OutDatagrams", 46) != 0);
    CHECK(fgets(values, sizeof values, file) != NULL);
    CHECK_EQ(sscanf(values, "Udp: %ld %ld %ld %ld", &in, &unknown, &errors, &out), 4);
    fclose(file);
    return out;
}

static void start(int kind, int i, void **all, lapi_cntr_t *done) {
    char *at = (char *)all[1] + (size_t)i * sizeof there[0];
    long long one = 1;
    if (kind == 0)
        OK(LAPI_Get(t_hndl, 1, sizeof here[0], at, &here[i], NULL, done));
    else if (kind == 1)
        OK(LAPI_Put(t_hndl, 1, sizeof here[0], at, &here[i], NULL, NULL, done));
    else
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, 1, (long long *)(void *)at, &one, &here[i], done));
}

int main(int argc, char **argv) {
    long least = argc > 1 ? atol(argv[1]) : 0, most = argc > 2 ? atol(argv[2]) : 0;
    lapi_cntr_t done;
    void **all;
    t_init();
    all = t_addresses(there);
    OK(LAPI_Setcntr(t_hndl, &done, 0));
    for (int i = 0; i < BURST; i++) there[i] = 1000 * t_me + i;
    OK(LAPI_Gfence(t_hndl));
    for (int kind = 0; kind < 3 && t_me == 0; kind++) {
        long fewest = LONG_MAX;
        for (int round = 0; round < ROUNDS; round++) {
            long before = left(), taken;
            for (int i = 0; i < BURST; i++) start(kind, i, all, &done);
            t_wait_exact(&done, BURST);
            taken = left() - before;
            if (taken < fewest) fewest = taken;
            for (int i = 0; i < BURST; i++) CHECK_EQ(here[i], 1000 + i + (kind == 2 ? round : 0));
        }
        CHECK_FOR(least <= fewest && fewest <= most, "kind %d: %ld datagrams", kind, fewest);
    }
    OK(LAPI_Gfence(t_hndl));
    t_done();
    return 0;
}

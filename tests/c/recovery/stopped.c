/*
 * Task 0 stops task 1 while it reads and writes its memory, gives it up, and uses its own memory
 * for other things; then task 1 continues, and both resume each other. stopped ROUNDS SEED
 *
 * What task 1 sends late must not be seen. Task 2 passes on how far the two are: its own messages
 * with both continue.
 */
#include "../common/ltest.h"

#include <signal.h>

enum { LARGE = 300000, EACH = 3 };

static const ulong LENS[] = {8, 100, 4096, 30000, LARGE};
enum { SIZES = sizeof LENS / sizeof *LENS };

static unsigned char from[LARGE], into[LARGE], read_into[SIZES * EACH][LARGE];
static lapi_cntr_t together, go;
static int pid, *pids;
static void **places;

/* Task 1 may have begun to reply. */
static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type;
    CHECK_EQ(t_me, 1);
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*task, 1);
    CHECK_EQ(*src, 0);
}

/* Waits until the other one of tasks 0 and 1 has reached this point, too. */
static void meet(void) {
    if (t_me == 2) {
        t_wait_exact(&together, 2);
        OK(LAPI_Put(t_hndl, 0, 0, NULL, NULL, &go, NULL, NULL));
        OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, &go, NULL, NULL));
        return;
    }
    OK(LAPI_Put(t_hndl, 2, 0, NULL, NULL, &together, NULL, NULL));
    t_wait_exact(&go, 1);
}

/* Everything arrives. */
static void exchange(uint64_t seed) {
    lapi_cntr_t done;
    int i, other = 1 - t_me;
    if (t_me != 2) {
        bzero(&done, sizeof done);
        t_fill(from, LARGE, seed);
        for (i = 0; i < SIZES; i++) {
            OK(LAPI_Put(t_hndl, (uint)other, LENS[i], places[other], from, NULL, NULL, &done));
            t_wait_exact(&done, 1);
        }
        meet();
        CHECK_FILLED(into, LARGE, seed);
        for (i = 0; i < SIZES; i++) {
            bzero(read_into[i], LENS[i]);
            OK(LAPI_Get(t_hndl, (uint)other, LENS[i], places[other], read_into[i], NULL, &done));
            t_wait_exact(&done, 1);
            CHECK_FILLED(read_into[i], LENS[i], seed);
        }
    } else meet();
    meet();
}

/* Task 0: what is under way when task 1 is given up. */
static void give_up(uint64_t *seed) {
    static lapi_cntr_t got[SIZES * EACH], put;
    int i, count = 1 + (int)t_below(seed, SIZES * EACH), before[SIZES * EACH];
    unsigned char mark = (unsigned char)(1 + t_below(seed, 255));
    CHECK_EQ(kill(pids[1], SIGSTOP), 0);
    bzero(got, sizeof got), bzero(&put, sizeof put);
    for (i = 0; i < count; i++) {
        ulong len = LENS[t_below(seed, SIZES)];
        OK(LAPI_Get(t_hndl, 1, len, places[1], read_into[i], NULL, &got[i]));
        if (t_below(seed, 2)) OK(LAPI_Put(t_hndl, 1, LENS[t_below(seed, SIZES)], places[1], from, NULL, NULL, &put));
    }
    OK(LAPI_Purge_totask(t_hndl, 1));
    /* Through shared memory some have ended: that needs no help of the stopped task. */
    for (i = 0; i < count; i++) before[i] = got[i].cntr;
    memset(read_into, mark, sizeof read_into);
    /* The other way round where the turn is odd: task 1 runs again only when task 0 awaits it. */
    if (t_below(seed, 2)) OK(LAPI_Resume_totask(t_hndl, 1));
    CHECK_EQ(kill(pids[1], SIGCONT), 0);
    for (i = 0; i < 300; i++) {
        OK(LAPI_Probe(t_hndl));
        usleep(1000);
    }
    for (i = 0; i < SIZES * EACH; i++) {
        ulong at;
        for (at = 0; at < LARGE; at++) CHECK_EQ(read_into[i][at], mark);
    }
    for (i = 0; i < count; i++) CHECK_EQ(got[i].cntr, before[i]);
    LAPI_Resume_totask(t_hndl, 1);
}

int main(int argc, char **argv) {
    int round;
    uint64_t seed;
    lapi_info_t info;
    CHECK_EQ(argc, 3);
    seed = strtoull(argv[2], NULL, 0);
    pid = (int)getpid();
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
    CHECK_EQ(t_tasks, 3);
    t_set(INTERRUPT_SET, 0);
    places = t_addresses(into);
    pids = malloc(sizeof *pids * 3);
    {
        void **numbers = t_addresses((void *)(intptr_t)pid);
        int i;
        for (i = 0; i < 3; i++) pids[i] = (int)(intptr_t)numbers[i];
    }
    t_fence();
    for (round = 0; round < atoi(argv[1]); round++) {
        exchange((uint64_t)round);
        if (t_me == 0) give_up(&seed);
        meet();
        if (t_me == 1) {
            OK(LAPI_Purge_totask(t_hndl, 0));
            OK(LAPI_Resume_totask(t_hndl, 0));
        }
        meet();
    }
    exchange(99);
    t_done();
    return 0;
}

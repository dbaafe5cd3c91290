/*
 * One task purges another one, which lives, and resumes it; the other one has not done the same.
 * parted A B CASE
 *
 *   waits   task B waits for task A: this ends with an error. It purges and resumes task A, and they communicate again
 *   sends   the same, of messages only whose sender waits for nothing
 *   quiet   task B waits for nothing from task A: its error handler is not called until it has purged and resumed it
 *
 * Task C = 3 - A - B passes on how far the two are. It is not concerned: its own messages with
 * both continue.
 */
#include "../common/ltest.h"

#include <time.h>

enum { LARGE = 300000, SMALL = 64 };

static unsigned char from[LARGE], into[LARGE], at_handler[LARGE];
static lapi_cntr_t together, go, landed, fetched, taken, lost;
static volatile int reports, shared;
static int a, b, c, concerned;

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type;
    CHECK_EQ(t_me, b);
    CHECK(concerned);
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*task, b);
    CHECK_EQ(*src, a);
    reports++;
}

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = NULL;
    *uinfo = NULL;
    return at_handler;
}

/* Waits until the other one of A and B has reached this point, too. */
static void meet(void) {
    if (t_me == c) {
        t_wait_exact(&together, 2);
        OK(LAPI_Put(t_hndl, (uint)a, 0, NULL, NULL, &go, NULL, NULL));
        OK(LAPI_Put(t_hndl, (uint)b, 0, NULL, NULL, &go, NULL, NULL));
        return;
    }
    OK(LAPI_Put(t_hndl, (uint)c, 0, NULL, NULL, &together, NULL, NULL));
    t_wait_exact(&go, 1);
}

/* Everything arrives, between A and B. */
static void exchange(uint64_t seed) {
    lapi_cntr_t cmpl;
    int one = 1, before;
    uint other = (uint)(a + b - t_me);
    if (t_me == c) return;
    bzero(&cmpl, sizeof cmpl);
    t_fill(from, LARGE, seed);
    OK(LAPI_Put(t_hndl, other, LARGE, into, from, &landed, NULL, &cmpl));
    OK(LAPI_Amsend(t_hndl, other, (void *)header, &one, sizeof one, from, LARGE, &landed, NULL, &cmpl));
    OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, other, (int *)&shared, &one, &before, &taken));
    t_wait_exact(&taken, 1);
    t_wait_exact(&cmpl, 2);
    t_wait_exact(&landed, 2);
    CHECK_FILLED(into, LARGE, seed);
    CHECK_FILLED(at_handler, LARGE, seed);
    OK(LAPI_Get(t_hndl, other, LARGE, from, at_handler, NULL, &fetched));
    t_wait_exact(&fetched, 1);
    CHECK_FILLED(at_handler, LARGE, seed);
    OK(LAPI_Fence(t_hndl));
}

/* What does not reach task A any more. The fence ends when the loss is known. */
static void in_vain(int waits) {
    int i, code = LAPI_SUCCESS;
    concerned = 1;
    if (waits) code = LAPI_Get(t_hndl, (uint)a, SMALL, from, at_handler, NULL, &lost);
    while (reports == 0) {
        if (!waits) code = LAPI_Put(t_hndl, (uint)a, SMALL, into, from, NULL, NULL, NULL);
        /* Refused where it is known already; the report follows. */
        CHECK(code == LAPI_SUCCESS || code == LAPI_ERR_NO_CONNECTIVITY);
        if (code != LAPI_SUCCESS) {
            OK(LAPI_Probe(t_hndl));
            usleep(1000);
        }
        LAPI_Fence(t_hndl);
    }
    RETURNS(LAPI_Put(t_hndl, (uint)a, SMALL, into, from, NULL, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    for (i = 0; i < 20; i++) LAPI_Fence(t_hndl);
    CHECK_EQ(reports, 1);
    CHECK_EQ(lost.cntr, 0);
}

static void look_around(void) {
    time_t end = time(NULL) + 2;
    while (time(NULL) < end) {
        OK(LAPI_Fence(t_hndl));
        OK(LAPI_Probe(t_hndl));
        usleep(1000);
    }
}

int main(int argc, char **argv) {
    enum { ROUNDS = 3 };
    int round, quiet;
    lapi_info_t info;
    CHECK_EQ(argc, 4);
    (a = atoi(argv[1])), (b = atoi(argv[2])), (c = 3 - a - b);
    quiet = strcmp(argv[3], "quiet") == 0;
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
    CHECK_EQ(t_tasks, 3);
    t_fence();
    for (round = 0; round < ROUNDS; round++) {
        exchange((uint64_t)round);
        meet();
        if (t_me == a) {
            OK(LAPI_Purge_totask(t_hndl, (uint)b));
            OK(LAPI_Resume_totask(t_hndl, (uint)b));
        }
        meet();
        if (t_me == b) {
            if (quiet) look_around();
            else in_vain(strcmp(argv[3], "waits") == 0);
            OK(LAPI_Purge_totask(t_hndl, (uint)a));
            OK(LAPI_Resume_totask(t_hndl, (uint)a));
            concerned = 0;
            reports = 0;
        }
        exchange((uint64_t)(100 + round));
        /* Neither fills what the other one still reads or checks. */
        meet();
    }
    t_done();
    return 0;
}

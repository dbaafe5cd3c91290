/*
 * LAPI_Msgpoll reports every reception, whichever call has served it: msgpoll CASE ...
 *
 *   kept                a message is received by another call, then comes LAPI_Waitcntr of a counter that is up, or LAPI_Fence
 *   pingpong MODE LEN WAIT ROUNDS
 *                       the manual's ping-pong (chapter 12). Before it polls, each side waits for its own message by WAIT:
 *                       none, org, cmpl or fence
 *   written LEN ROUNDS  a put without a target counter is a reception, whatever its origin does when it is complete
 *   threads ROUNDS      one thread polls for receptions, others call LAPI_Waitcntr, LAPI_Fence and LAPI_Setcntr
 */
#include "../common/ltest.h"

enum { LARGEST = 200000 };

static unsigned char from[LARGEST], to[LARGEST];
static int variable;
static volatile int handled;
static void **handlers, **variables;

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return *msg_len ? to : NULL;
}

static void poll_for_reception(uint count) {
    lapi_msg_info_t info;
    info.status = 0;
    while (!(info.status & LAPI_RECV_COMPLETE)) OK(LAPI_Msgpoll(t_hndl, count, &info));
}

static void send_to(int tgt, ulong len, lapi_cntr_t *org_cntr, lapi_cntr_t *cmpl_cntr) {
    OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], NULL, 0, len ? from : NULL, len, NULL, org_cntr, cmpl_cntr));
}

static void kept(void) {
    lapi_cntr_t done, up;
    int round, value, one = 1;
    bzero(&done, sizeof done), bzero(&up, sizeof up);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    for (round = 0; round < 20; round++) {
        if (t_me == 1) {
            send_to(0, 8, NULL, NULL);
            OK(LAPI_Put(t_hndl, 0, sizeof one, variables[0], &one, NULL, NULL, NULL));
        } else if (t_me == 0) {
            /* Only calls other than LAPI_Msgpoll receive: the message is here when the put
             * after it is. */
            while (!*(volatile int *)&variable) {
                OK(LAPI_Get(t_hndl, 1, sizeof value, variables[1], &value, NULL, &done));
                t_wait_exact(&done, 1);
            }
            CHECK_EQ(handled, round + 1);
            if (round % 2) {
                OK(LAPI_Fence(t_hndl));
            } else {
                OK(LAPI_Setcntr(t_hndl, &up, 1));
                t_wait_exact(&up, 1);
            }
            poll_for_reception(10);
            variable = 0;
        }
        t_fence();
    }
}

static void pingpong(const char *mode, ulong len, const char *wait, int rounds) {
    static lapi_cntr_t org_cntr, cmpl_cntr;
    int round, peer = 1 - t_me;
    t_set(INTERRUPT_SET, strcmp(mode, "interrupts") == 0);
    t_fence();
    for (round = 0; round < rounds; round++) {
        if (t_me == 1) poll_for_reception(1);
        send_to(peer, len, strcmp(wait, "org") ? NULL : &org_cntr, strcmp(wait, "cmpl") ? NULL : &cmpl_cntr);
        if (strcmp(wait, "org") == 0) t_wait_exact(&org_cntr, 1);
        if (strcmp(wait, "cmpl") == 0) t_wait_exact(&cmpl_cntr, 1);
        if (strcmp(wait, "fence") == 0) OK(LAPI_Fence(t_hndl));
        if (t_me == 0) poll_for_reception(1);
    }
    t_fence();
}

static void written(ulong len, int rounds) {
    static lapi_cntr_t complete, next;
    void **places = t_addresses(to), **nexts = t_addresses(&next);
    int round;
    t_set(INTERRUPT_SET, 0);
    t_fence();
    for (round = 0; round < rounds; round++) {
        if (t_me == 0) {
            t_fill(from, len, (uint64_t)round);
            OK(LAPI_Put(t_hndl, 1, len, places[1], from, NULL, NULL, &complete));
            t_wait_exact(&complete, 1);
            /* By turns it goes on, computes, or calls LAPI. */
            if (round % 3 == 1) usleep(20000);
            if (round % 3 == 2) OK(LAPI_Fence(t_hndl));
            t_wait_exact(&next, 1);
        } else if (t_me == 1) {
            poll_for_reception(100);
            CHECK_FILLED(to, len, (uint64_t)round);
            OK(LAPI_Put(t_hndl, 0, 0, NULL, NULL, nexts[0], NULL, NULL));
        }
    }
    t_fence();
}

static volatile int stop;

static void *disturb(void *what) {
    lapi_cntr_t cntr;
    bzero(&cntr, sizeof cntr);
    while (!stop) {
        switch (*(int *)what) {
        case 0: t_wait(&cntr, 0); break;
        case 1: OK(LAPI_Fence(t_hndl)); break;
        default: OK(LAPI_Setcntr(t_hndl, &cntr, 1));
        }
        if (*(int *)what == 2) usleep(50);
    }
    return NULL;
}

static void threads(int rounds) {
    static int which[] = {0, 1, 2};
    pthread_t others[3];
    int round, i, peer = 1 - t_me;
    t_set(INTERRUPT_SET, 0);
    t_fence();
    for (i = 0; i < 3; i++) CHECK_EQ(pthread_create(&others[i], NULL, disturb, &which[i]), 0);
    for (round = 0; round < rounds; round++) {
        if (t_me == 1) poll_for_reception(1);
        send_to(peer, 8, NULL, NULL);
        if (t_me == 0) poll_for_reception(1);
    }
    stop = 1;
    for (i = 0; i < 3; i++) CHECK_EQ(pthread_join(others[i], NULL), 0);
    t_fence();
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    t_init();
    handlers = t_addresses((void *)arrived);
    variables = t_addresses(&variable);
    if (strcmp(which, "kept") == 0) kept();
    else if (strcmp(which, "pingpong") == 0 && argc == 6)
        pingpong(argv[2], strtoul(argv[3], NULL, 0), argv[4], atoi(argv[5]));
    else if (strcmp(which, "written") == 0 && argc == 4) written(strtoul(argv[2], NULL, 0), atoi(argv[3]));
    else if (strcmp(which, "threads") == 0 && argc == 3) threads(atoi(argv[2]));
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

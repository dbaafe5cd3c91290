/*
 * Work during which somebody will be killed: victim CASE
 *
 *   idle      every task waits for a message that never comes
 *   transfer  everybody puts large messages to everybody, without end
 *   gfence    LAPI_Gfence without end
 *   absent    tasks other than 1 wait for an answer of task 1, which computes
 *
 * Each task prints "TASK PID" when it is in the middle of it.
 */
#include "../common/ltest.h"

static lapi_cntr_t tgt_cntr, org_cntr;

int main(int argc, char **argv) {
    enum { LARGE = 4 << 20 };
    const char *which = argc == 2 ? argv[1] : "";
    static unsigned char from[LARGE], to[LARGE];
    void **tos;
    t_init();
    tos = t_addresses(to);
    t_fence();
    printf("%d %d\n", t_me, (int)getpid());
    if (strcmp(which, "idle") == 0) {
        for (;;) OK(LAPI_Waitcntr(t_hndl, &tgt_cntr, 1, NULL));
    } else if (strcmp(which, "transfer") == 0) {
        for (;;) {
            int tgt;
            for (tgt = 0; tgt < t_tasks; tgt++)
                OK(LAPI_Put(t_hndl, (uint)tgt, LARGE, tos[tgt], from, NULL, NULL, &org_cntr));
            OK(LAPI_Waitcntr(t_hndl, &org_cntr, t_tasks, NULL));
        }
    } else if (strcmp(which, "gfence") == 0) {
        for (;;) t_fence();
    } else if (strcmp(which, "absent") == 0) {
        t_set(INTERRUPT_SET, 0);
        if (t_me == 1)
            for (;;) pause();
        OK(LAPI_Get(t_hndl, 1, LARGE, tos[1], from, NULL, &org_cntr));
        OK(LAPI_Waitcntr(t_hndl, &org_cntr, 1, NULL));
        for (;;) OK(LAPI_Waitcntr(t_hndl, &tgt_cntr, 1, NULL));
    }
    T_FAIL("there is no case \"%s\"", which);
    return 0;
}

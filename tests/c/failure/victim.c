/*
 * Work during which the test kills a task: victim CASE
 *
 *   idle      every task waits for a message that never arrives
 *   transfer  every task puts large messages to every task, without end
 *   gfence    LAPI_Gfence without end
 *   absent    tasks other than 1 wait for a reply from task 1, which computes
 *
 *   owing     task 0 makes a request to task 1, which computes without interrupts and must itself reply:
 *             a message whose handler must run there; with an error handler that prints "ERROR CODE TASK SRC" and exits
 *   gone      task 1 exits with status 0; then task 0 does the same
 *
 * Each task prints "TASK PID" when it is in the middle of it.
 */
#include "../common/ltest.h"

static lapi_cntr_t tgt_cntr, org_cntr;

static void say_and_exit(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK((int)*type >= GET_ERR && (int)*type <= TMR_ERR);
    printf("ERROR %d %d %d\n", *code, *task, *src);
    fflush(stdout);
    _exit(0);
}

static void *never_run(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                       void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)comp_h, (void)uinfo;
    T_FAIL("the header handler has run");
}

int main(int argc, char **argv) {
    enum { LARGE = 4 << 20 };
    const char *which = argc == 2 ? argv[1] : "";
    static unsigned char from[LARGE], to[LARGE];
    void **tos;
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.err_hndlr = strcmp(which, "owing") == 0 || strcmp(which, "gone") == 0 ? say_and_exit : NULL;
    t_init_with(&info);
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
    if (strcmp(which, "owing") == 0 || strcmp(which, "gone") == 0) {
        void **handlers = t_addresses((void *)never_run), **processes = t_processes();
        t_set(INTERRUPT_SET, 0);
        t_fence();
        if (t_me == 1 && strcmp(which, "gone") == 0) _exit(0);
        if (t_me == 1) {
            t_leaves();
            for (;;) pause();
        }
        if (strcmp(which, "gone") == 0) t_until_ended(processes[1]);
        else t_until_outside(processes[1]);
        OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, NULL, 0, NULL, NULL, &org_cntr));
        OK(LAPI_Waitcntr(t_hndl, &org_cntr, 1, NULL));
        T_FAIL("a message whose handler cannot run is complete");
    }
    T_FAIL("there is no case \"%s\"", which);
    return 0;
}

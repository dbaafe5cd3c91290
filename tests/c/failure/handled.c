/*
 * Tasks die one after the other, and what waits for them ends when the error handler has returned.
 * Run with "poe -on_death continue".
 *
 * Task 0 puts something to a task that computes without interrupts, and kills it. A thread of the
 * library may notice that. Task 0 calls LAPI_Fence or LAPI_Gfence before the error handler is
 * called, or while it runs: the handler has returned when the call returns.
 */
#include "../common/ltest.h"

#include <signal.h>

static volatile int entered, returned, victim;

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*type, INT_ERR);
    CHECK_EQ(*task, 0);
    CHECK_EQ(*src, victim);
    __sync_add_and_fetch(&entered, 1);
    usleep(50000);
    __sync_add_and_fetch(&returned, 1);
}

int main(void) {
    static lapi_cntr_t done, never;
    static int place;
    lapi_info_t info;
    void **processes, **places;
    int number = 1;
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
    processes = t_processes();
    places = t_addresses(&place);
    if (t_me != 0) t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me != 0) {
        t_leaves();
        t_until_ended(processes[0]);
        T_FAIL("task 0 has ended before this one");
    }
    for (victim = 1; victim < t_tasks; victim++) {
        t_until_outside(processes[victim]);
        OK(LAPI_Put(t_hndl, (uint)victim, sizeof number, places[victim], &number, NULL, &done, &never));
        CHECK_EQ(kill((pid_t)(intptr_t)processes[victim], SIGKILL), 0);
        if (victim % 3 != 0)
            while (entered != victim) usleep(1000);
        if (victim % 3 == 2) RETURNS(LAPI_Gfence(t_hndl), LAPI_ERR_NO_CONNECTIVITY);
        else OK(LAPI_Fence(t_hndl));
        CHECK_EQ(returned, victim);
        CHECK_EQ(entered, victim);
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}

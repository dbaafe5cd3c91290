/*
 * The error handler takes a mutex that another thread holds around LAPI_Fence and LAPI_Gfence. Run
 * with two tasks and "poe -on_death continue".
 *
 * Task 0 puts something to task 1, which computes without interrupts, and kills it. A thread of the
 * library notices that, and its error handler waits for the mutex: the calls return all the same.
 */
#include "../common/ltest.h"

#include <pthread.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int entered, returned;

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type, (void)task;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*src, 1);
    entered = 1;
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    returned = 1;
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

int main(void) {
    static lapi_cntr_t never;
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
    t_until_outside(processes[1]);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    OK(LAPI_Put(t_hndl, 1, sizeof number, places[1], &number, NULL, NULL, &never));
    CHECK_EQ(kill((pid_t)(intptr_t)processes[1], SIGKILL), 0);
    while (!entered) usleep(1000);
    OK(LAPI_Fence(t_hndl));
    RETURNS(LAPI_Gfence(t_hndl), LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(returned, 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    while (!returned) usleep(1000);
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}

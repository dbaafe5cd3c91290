/*
 * The last link between two tasks is lost for good: each of them waits for the other, and learns
 * within TIMEOUT that it does not reply.
 */
#include "../common/ltest.h"

#define SIZE 3000000

static volatile int reported;

static void lost(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, 1 - t_me);
    CHECK_EQ(*code, LAPI_ERR_TIMEOUT);
    CHECK_EQ(*type, TMR_ERR);
    __atomic_store_n(&reported, 1, __ATOMIC_RELEASE);
}

int main(void) {
    lapi_info_t info;
    static unsigned char in[SIZE], out[SIZE];
    lapi_cntr_t cmpl;
    void **ins;
    int peer, done;

    bzero(&info, sizeof info);
    info.err_hndlr = lost;
    t_init_with(&info);
    CHECK_EQ(t_tasks, 2);
    peer = 1 - t_me;
    t_set(TIMEOUT, 10);
    OK(LAPI_Setcntr(t_hndl, &cmpl, 0));
    ins = t_addresses(in);
    OK(LAPI_Put(t_hndl, (uint)peer, sizeof in, ins[peer], out, NULL, NULL, &cmpl));
    t_wait_exact(&cmpl, 1);
    t_fence();
    printf("begins\n");
    fflush(stdout);
    /* Puts until the link is lost, and then until that is reported. */
    for (done = 1; !reported; ) {
        if (done && LAPI_Put(t_hndl, (uint)peer, sizeof in, ins[peer], out, NULL, NULL, &cmpl) != LAPI_SUCCESS) break;
        OK(LAPI_Getcntr(t_hndl, &cmpl, &done));
        if (done) t_wait_exact(&cmpl, 1);
        else OK(LAPI_Probe(t_hndl)), usleep(100);
    }
    t_probe_until(&reported, 1);
    RETURNS(LAPI_Put(t_hndl, (uint)peer, 8, ins[peer], out, NULL, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    t_pass();
    fflush(stdout);
    /* The other task learns it by its own TIMEOUT, and not by the end of this process. */
    sleep(10);
    _exit(0);
}

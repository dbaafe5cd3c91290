/*
 * A task whose error handler takes a second, while messages have come and other threads wait:
 * handler MODE (polling or interrupts). Nothing can be served before the handler returns, so the
 * other threads use hardly any processor time.
 *
 * MODE switched: no thread waits; the handler, which runs in LAPI_Probe, turns interrupts on, so
 * that the thread of interrupt mode finds the messages.
 */
#include "../common/ltest.h"

#include <signal.h>
#include <time.h>

static lapi_cntr_t first, second;
static volatile double used = -1;
static int switched;
static void **processes;

static double processor_time(void) {
    struct timespec at;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at), 0);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    double before = processor_time();
    (void)hndl, (void)type, (void)task, (void)src;
    CHECK_EQ(*code, LAPI_ERR_HDR_HNDLR_NULL);
    if (switched) t_set(INTERRUPT_SET, 1);
    CHECK_EQ(kill((pid_t)(intptr_t)processes[0], SIGUSR1), 0);
    sleep(1);
    used = processor_time() - before;
}

static void *wait_too(void *arg) {
    (void)arg;
    t_wait_exact(&second, 1);
    return NULL;
}

int main(int argc, char **argv) {
    lapi_info_t info;
    void **firsts, **seconds;
    sigset_t begun;
    int number;
    CHECK(argc == 2);
    CHECK(sigemptyset(&begun) == 0 && sigaddset(&begun, SIGUSR1) == 0);
    /* Before LAPI starts threads. */
    CHECK_EQ(sigprocmask(SIG_BLOCK, &begun, NULL), 0);
    switched = strcmp(argv[1], "switched") == 0;
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
    firsts = t_addresses(&first);
    seconds = t_addresses(&second);
    processes = t_processes();
    t_set(INTERRUPT_SET, strcmp(argv[1], "interrupts") == 0);
    t_fence();
    if (t_me == 0) {
        lapi_xfer_t xfer;
        usleep(200000); /* the threads of the other task sleep */
        memset(&xfer, 0, sizeof xfer);
        xfer.Am.Xfer_type = LAPI_AM_XFER;
        xfer.Am.hdr_hdl = 7; /* which is not set there */
        xfer.Am.tgt = 1;
        OK(LAPI_Xfer(t_hndl, &xfer));
        /* The message waits for LAPI_Addr_set; then the handler begins. */
        CHECK_EQ(sigwait(&begun, &number), 0);
        OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, firsts[1], NULL, NULL));
        OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, seconds[1], NULL, NULL));
    } else {
        pthread_t other;
        while (switched && used < 0) OK(LAPI_Probe(t_hndl));
        CHECK_EQ(pthread_create(&other, NULL, wait_too, NULL), 0);
        t_wait_exact(&first, 1);
        CHECK_EQ(pthread_join(other, NULL), 0);
        CHECK_FOR(used >= 0 && used < 0.1, "%.3f s of processor time in one second of the handler", used);
    }
    t_done();
    return 0;
}

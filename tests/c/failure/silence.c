/*
 * Tasks that are alive and do not reply: silence CASE
 *
 *   roles    four tasks: 0 has operations with all others, with TIMEOUT 10; 1 is stopped by a signal; 2 is merely slow, its
 *            completion handler takes longer than TIMEOUT; 3 computes without interrupts until task 0 has given it up
 *   computes two tasks: 0 computes with interrupts on, and has no error handler; 1 is stopped
 *   probes   two tasks: 0 has interrupts off and calls LAPI_Probe regularly; 1 is stopped
 *   fences   two tasks that only fence for longer than TIMEOUT: 1, which has interrupts off, always comes last
 *   patient  two tasks, with MP_DEBUG_NOTIMEOUT: 1 is stopped for longer than TIMEOUT, and then continues
 *   cut      two tasks on two hosts: the link between them is taken down after "CUT"; 0 gives 1 up
 *   killed   any number of tasks: all compute with interrupts on but task 1, which is killed; "DIES MS" and "REPORTED MS" are the times
 */
#include "../common/ltest.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { SECONDS = 10, LONG = SECONDS + 4, LARGE = 1 << 20 };

static unsigned char area[LARGE], other[LARGE];
static int variable, late_value;
static lapi_cntr_t late, done, slow, never;
static void **areas, **variables, **lates, **late_values, **processes, **handlers;

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what LAPI reports to task 0 ---- */

static volatile int losses[4], expected_code = LAPI_ERR_TIMEOUT, expected_type = TMR_ERR;
static volatile long reported_at;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*task, t_me);
    CHECK(*src >= 0 && *src < t_tasks && *src != t_me);
    if (t_me == 0) {
        CHECK_EQ(*code, expected_code);
        CHECK_EQ(*type, expected_type);
    }
    reported_at = now_ms();
    __atomic_fetch_add(&losses[*src], 1, __ATOMIC_RELEASE);
}

static int was_reported(int src) { return __atomic_load_n(&losses[src], __ATOMIC_ACQUIRE); }

static volatile int reported, failed;

static void sent(lapi_handle_t *hndl, void *nothing, lapi_sh_info_t *info) {
    (void)hndl, (void)nothing;
    CHECK_FOR(info->reason == 0 || (int)info->reason == expected_code, "reason %u", info->reason);
    __atomic_fetch_add(&failed, info->reason != 0, __ATOMIC_RELEASE);
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELEASE);
}

/* ---- handlers ---- */

static volatile int handled;

static void takes_long(lapi_handle_t *hndl, void *uinfo) {
    (void)hndl, (void)uinfo;
    sleep(LONG);
    __atomic_store_n(&handled, 1, __ATOMIC_RELEASE);
}

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = takes_long;
    *uinfo = NULL;
    return NULL;
}

/* ---- operations ---- */

static void update(int tgt, lapi_cntr_t *cntr) {
    static int previous[4], one = 1;
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    xfer.Rmw.Xfer_type = LAPI_RMW_XFER;
    xfer.Rmw.op = FETCH_AND_ADD;
    xfer.Rmw.tgt = (uint)tgt;
    xfer.Rmw.size = 32;
    xfer.Rmw.tgt_var = t_long(variables[tgt]);
    xfer.Rmw.in_val = &one;
    xfer.Rmw.prev_tgt_val = &previous[tgt];
    xfer.Rmw.org_cntr = cntr;
    xfer.Rmw.shdlr = sent;
    OK(LAPI_Xfer(t_hndl, &xfer));
}

static void put(int tgt, ulong len) {
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.tgt = (uint)tgt;
    xfer.Put.tgt_addr = t_long(areas[tgt]);
    xfer.Put.org_addr = area;
    xfer.Put.len = len;
    xfer.Put.shdlr = sent;
    xfer.Put.cmpl_cntr = &never;
    OK(LAPI_Xfer(t_hndl, &xfer));
}

static void refused(int tgt) {
    int value = 7;
    RETURNS(LAPI_Put(t_hndl, (uint)tgt, sizeof value, late_values[tgt], &value, NULL, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    RETURNS(LAPI_Get(t_hndl, (uint)tgt, 8, areas[tgt], other, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    RETURNS(LAPI_Rmw(t_hndl, SWAP, (uint)tgt, variables[tgt], &value, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
}

/* ---- stopped tasks ---- */

static int pid_of(int task) { return (int)(intptr_t)processes[task]; }

static void until_stopped(int task) {
    while (t_state_of(processes[task]) != 'T') usleep(1000);
}

static void *go_on_later(void *nothing) {
    (void)nothing;
    sleep(SECONDS + 3);
    kill(pid_of(1), SIGCONT);
    return NULL;
}

/* ---- a host that cannot be reached ---- */

static int link_is_up(void) {
    char line[16] = "";
    FILE *file = fopen("/sys/class/net/rail0/operstate", "r");
    CHECK(file != NULL);
    CHECK(fgets(line, sizeof line, file) != NULL);
    fclose(file);
    return strncmp(line, "up", 2) == 0;
}

static void cut(void) {
    long start;
    CHECK_EQ(t_tasks, 2);
    if (t_me == 1) {
        while (kill(pid_of(0), 0) == 0) usleep(10000);
        _exit(0);
    }
    printf("CUT\n");
    fflush(stdout);
    while (link_is_up()) usleep(1000);
    t_set(TIMEOUT, SECONDS);
    start = now_ms();
    put(1, LARGE);
    put(1, 8);
    update(1, &never);
    OK(LAPI_Get(t_hndl, 1, LARGE, areas[1], other, NULL, &never));
    OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, NULL, 0, NULL, NULL, &never));
    OK(LAPI_Fence(t_hndl));
    CHECK_EQ(was_reported(1), 1);
    while (__atomic_load_n(&reported, __ATOMIC_ACQUIRE) < 3) OK(LAPI_Probe(t_hndl));
    refused(1);
    printf("given up after %ld ms of %d s\n", reported_at - start, SECONDS);
    fflush(stdout);
    while (!link_is_up()) usleep(1000);
    OK(LAPI_Term(t_hndl));
    t_pass();
}

/* ---- a task that is killed ---- */

static void killed(void) {
    int task;
    if (t_me == 1) {
        /* In its last fence it would still reply to an update. */
        t_leaves();
        for (task = 0; task < t_tasks; task++)
            if (task != t_me) t_until_outside(processes[task]);
        usleep(300000);
        printf("DIES %ld\n", now_ms());
        fflush(stdout);
        raise(SIGKILL);
    }
    t_until_outside(processes[1]);
    update(1, &never);
    t_leaves();
    while (!was_reported(1)) usleep(10);
    printf("REPORTED %ld\n", reported_at);
    OK(LAPI_Term(t_hndl));
    t_pass();
}

/* ---- the four roles ---- */

static void wants_something_of_all(void) {
    long start;
    int code;
    until_stopped(1);
    t_until_outside(processes[3]);
    /* To the stopped task every operation, more than its ring holds; to the busy one those to which
     * it must reply. */
    put(1, LARGE);
    put(1, 8);
    update(1, &never);
    update(3, &never);
    OK(LAPI_Get(t_hndl, 1, 8, areas[1], other, NULL, &never));
    OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, NULL, 0, NULL, NULL, &never));
    OK(LAPI_Amsend(t_hndl, 2, handlers[2], NULL, 0, NULL, 0, NULL, NULL, &slow));
    usleep(1500000);
    CHECK(was_reported(1) == 0 && was_reported(3) == 0);
    t_set(TIMEOUT, SECONDS);
    start = now_ms();
    OK(LAPI_Fence(t_hndl));
    printf("given up after %ld ms of %d s\n", reported_at - start, SECONDS);
    CHECK_EQ(was_reported(1), 1);
    CHECK_EQ(was_reported(3), 1);
    while (__atomic_load_n(&reported, __ATOMIC_ACQUIRE) < 4) OK(LAPI_Probe(t_hndl));
    CHECK_FOR(failed >= 2, "%d read-modify-writes and puts have failed", failed);
    refused(1);
    refused(3);
    kill(pid_of(3), SIGUSR1);
    /* Packets that the stopped task sends when it continues are dropped, also after it
     * has exited. */
    kill(pid_of(1), SIGCONT);
    while (t_state_of(processes[1]) != 'Z' && t_state_of(processes[1]) != 'X') OK(LAPI_Probe(t_hndl));
    for (code = 0; code < 1000; code++) OK(LAPI_Probe(t_hndl));
    CHECK_EQ(t_value(&late), 0);
    CHECK_EQ(late_value, 0);
    /* The slow one has been busy all the time, and no task has declared it lost. */
    t_wait_exact(&slow, 1);
    RETURNS(LAPI_Gfence(t_hndl), LAPI_ERR_TIMEOUT);
    CHECK_EQ(was_reported(1), 1);
    CHECK_EQ(was_reported(2), 0);
    CHECK_EQ(was_reported(3), 1);
}

static void leave(int number) {
    (void)number;
    _exit(0);
}

static void roles(void) {
    int value = 7, code;
    CHECK_EQ(t_tasks, 4);
    switch (t_me) {
    case 0: wants_something_of_all(); break;
    case 1:
        raise(SIGSTOP);
        OK(LAPI_Put(t_hndl, 0, sizeof value, late_values[0], &value, lates[0], NULL, NULL));
        _exit(0);
    case 2:
        while (!__atomic_load_n(&handled, __ATOMIC_ACQUIRE)) usleep(1000);
        code = LAPI_Gfence(t_hndl);
        CHECK_FOR(code == LAPI_ERR_TIMEOUT || code == LAPI_ERR_NO_CONNECTIVITY, "LAPI_Gfence: %d", code);
        break;
    default:
        CHECK(signal(SIGUSR1, leave) != SIG_ERR);
        t_leaves();
        for (;;) pause();
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
}

int main(int argc, char **argv) {
    lapi_info_t info;
    const char *which = argc == 2 ? argv[1] : "";
    pthread_t thread;
    bzero(&info, sizeof info);
    if (strcmp(which, "computes") != 0) info.err_hndlr = error_handler;
    if (strcmp(which, "killed") == 0) {
        /* The report may come as soon as the task that is killed is connected. */
        expected_code = LAPI_ERR_NO_CONNECTIVITY;
        expected_type = INT_ERR;
    }
    t_init_with(&info);
    areas = t_addresses(area);
    variables = t_addresses(&variable);
    lates = t_addresses(&late);
    late_values = t_addresses(&late_value);
    handlers = t_addresses((void *)header);
    processes = t_processes();
    if (strcmp(which, "roles") == 0 ? t_me == 3 : strcmp(which, "probes") == 0 || (strchr("kf", *which) && t_me == 1))
        t_set(INTERRUPT_SET, 0);
    t_fence();
    if (strcmp(which, "roles") == 0) {
        roles();
    } else if (strcmp(which, "fences") == 0) {
        t_set(TIMEOUT, SECONDS);
        for (int n = 0; n < LONG * 10; n++) {
            if (t_me == 1) usleep(100000);
            t_fence();
        }
        t_done();
        CHECK_EQ(was_reported(1 - t_me), 0);
    } else if (strcmp(which, "cut") == 0) {
        cut();
    } else if (strcmp(which, "killed") == 0) {
        killed();
    } else if (t_me == 1) {
        raise(SIGSTOP);
        t_done();
    } else {
        until_stopped(1);
        t_set(TIMEOUT, SECONDS);
        update(1, &done);
        OK(LAPI_Get(t_hndl, 1, LARGE, areas[1], other, NULL, &done));
        if (strcmp(which, "computes") == 0)
            for (;;) usleep(10);
        if (strcmp(which, "probes") == 0) {
            while (!was_reported(1)) {
                OK(LAPI_Probe(t_hndl));
                usleep(1000);
            }
            refused(1);
            OK(LAPI_Term(t_hndl));
            t_pass();
            kill(pid_of(1), SIGKILL);
            return 0;
        }
        CHECK(strcmp(which, "patient") == 0);
        CHECK_EQ(pthread_create(&thread, NULL, go_on_later, NULL), 0);
        t_wait_exact(&done, 2);
        t_done();
        CHECK_EQ(was_reported(1), 0);
    }
    return 0;
}

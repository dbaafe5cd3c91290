/*
 * The calls of the manual's chapter 19 in two tasks or more: return codes, statuses,
 * wake-ups. codes CASE
 *
 *   codes     every return code, and LAPI_ERR_TGT_PURGED from every call that names a task
 *   level     L1_LIB has no such counters
 *   statuses  LAPI_Setcntr_wstatus's statuses, with messages and purges in every order
 *   waiters   threads in LAPI_Nopoll_wait, and a purge
 *
 * Every task purges the one above it: no other task purges it.
 */
#include "../common/ltest.h"

static uint other;
static char buffer[64];
static lapi_cntr_t arrived;

static void *header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = NULL;
    *uinfo = NULL;
    return buffer;
}

static void *pieces[1] = {buffer};
static ulong lens[1] = {8};
static lapi_vec_t vec = {LAPI_GEN_IOVECTOR, 1, pieces, lens};

static lapi_vec_t *vector_header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec,
                                 compl_hndlr_t **comp_h, void **uinfo) {
    header(hndl, uhdr, uhdr_len, len_vec, comp_h, uinfo);
    return &vec;
}

/* Every call that names a task, with parameters that are right. */
static void every_call(int code) {
    lapi_xfer_t xfer;
    int in = 1, prev;
    long long in64 = 1, prev64;
    lapi_cntr_t done;
    bzero(&done, sizeof done);
    RETURNS(LAPI_Put(t_hndl, other, 8, buffer, buffer, NULL, &done, NULL), code);
    RETURNS(LAPI_Put(t_hndl, other, 0, NULL, NULL, NULL, &done, NULL), code);
    RETURNS(LAPI_Get(t_hndl, other, 8, buffer, buffer, NULL, &done), code);
    RETURNS(LAPI_Amsend(t_hndl, other, (void *)header, NULL, 0, buffer, 8, NULL, &done, NULL), code);
    RETURNS(LAPI_Putv(t_hndl, other, &vec, &vec, NULL, &done, NULL), code);
    RETURNS(LAPI_Getv(t_hndl, other, &vec, &vec, NULL, &done), code);
    RETURNS(LAPI_Amsendv(t_hndl, other, (void *)vector_header, NULL, 0, &vec, NULL, &done, NULL), code);
    RETURNS(LAPI_Rmw(t_hndl, FETCH_AND_ADD, other, (int *)buffer, &in, &prev, &done), code);
    RETURNS(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, other, (long long *)buffer, &in64, &prev64, &done), code);
    bzero(&xfer, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.tgt = other;
    xfer.Put.tgt_addr = t_long(buffer);
    xfer.Put.org_addr = buffer;
    xfer.Put.len = 8;
    xfer.Put.org_cntr = &done;
    RETURNS(LAPI_Xfer(t_hndl, &xfer), code);
    if (code == LAPI_SUCCESS) t_wait_exact(&done, 10);
    CHECK_EQ(done.cntr, 0);
}

static void codes(void) {
    uint list[1] = {other};
    int status[1], left = 77;
    lapi_handle_t wrong = t_hndl + 1;
    RETURNS(LAPI_Purge_totask(wrong, other), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Resume_totask(wrong, other), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Setcntr_wstatus(wrong, &arrived, 1, list, status), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Nopoll_wait(wrong, &arrived, 1, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Purge_totask(t_hndl, (uint)t_tasks), LAPI_ERR_TGT);
    RETURNS(LAPI_Resume_totask(t_hndl, (uint)t_tasks), LAPI_ERR_TGT);
    RETURNS(LAPI_Purge_totask(t_hndl, (uint)t_me), LAPI_ERR_TGT);
    RETURNS(LAPI_Setcntr_wstatus(t_hndl, NULL, 1, list, status), LAPI_ERR_CNTR_NULL);
    RETURNS(LAPI_Setcntr_wstatus(t_hndl, &arrived, 1, list, NULL), LAPI_ERR_RET_PTR_NULL);
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, 1, NULL, NULL));
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, 1, NULL, status));
    RETURNS(LAPI_Nopoll_wait(t_hndl, NULL, 1, NULL), LAPI_ERR_CNTR_NULL);
    RETURNS(LAPI_Nopoll_wait(t_hndl, &arrived, 0, &left), LAPI_ERR_CNTR_VAL);
    RETURNS(LAPI_Nopoll_wait(t_hndl, &arrived, -1, &left), LAPI_ERR_CNTR_VAL);
    CHECK_EQ(left, 77);
    arrived.cntr = 5;
    OK(LAPI_Nopoll_wait(t_hndl, &arrived, 2, &left));
    CHECK_EQ(left, 3);
    OK(LAPI_Nopoll_wait(t_hndl, &arrived, 3, NULL));
    CHECK_EQ(arrived.cntr, 0);
    OK(LAPI_Resume_totask(t_hndl, other)); /* it was not purged: no effect */
    every_call(LAPI_SUCCESS);
    t_fence();
    OK(LAPI_Purge_totask(t_hndl, other));
    OK(LAPI_Purge_totask(t_hndl, other));
    every_call(LAPI_ERR_TGT_PURGED);
    OK(LAPI_Fence(t_hndl));
}

struct waiter {
    lapi_cntr_t *cntr;
    int val;
    volatile int code;
    int left;
    pthread_t thread;
};

static void *wait_in_thread(void *of) {
    struct waiter *waiter = of;
    __atomic_store_n(&waiter->code, LAPI_Nopoll_wait(t_hndl, waiter->cntr, waiter->val, &waiter->left), __ATOMIC_RELEASE);
    return NULL;
}

static void statuses(void) {
    enum { SLOTS = 4 };
    uint before = (uint)(t_me + t_tasks - 1) % (uint)t_tasks;
    uint list[SLOTS] = {before, other, before, (uint)t_tasks};
    int status[SLOTS] = {77, 77, 77, 77}, left;
    static lapi_cntr_t once;
    int one = 77;
    struct waiter alone = {.cntr = &arrived, .val = 1, .code = -1}, second = {.cntr = &once, .val = 2, .code = -1};
    t_fence();
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, SLOTS, list, status));
    CHECK_EQ(status[0], LAPI_MSG_INITIAL);
    CHECK_EQ(status[1], LAPI_MSG_INITIAL);
    CHECK_EQ(status[3], LAPI_MSG_INVALID);
    t_fence();
    /* Each gets one report of the task before it: of both tasks of the job, when these are two. */
    OK(LAPI_Put(t_hndl, other, 0, NULL, NULL, &arrived, NULL, NULL));
    OK(LAPI_Nopoll_wait(t_hndl, &arrived, 1, &left));
    CHECK_EQ(left, 0);
    CHECK_EQ(status[0], LAPI_MSG_RECVD);
    CHECK_EQ(status[1], LAPI_MSG_INITIAL * (t_tasks != 2));
    CHECK_EQ(status[2], LAPI_MSG_INITIAL);
    t_fence();
    /* More messages than entries: a task whose entry has its message sends another one. */
    OK(LAPI_Setcntr_wstatus(t_hndl, &once, 1, list, &one));
    t_fence();
    OK(LAPI_Put(t_hndl, other, 0, NULL, NULL, &once, NULL, NULL));
    t_fence();
    CHECK_EQ(one, LAPI_MSG_RECVD);
    CHECK_EQ(pthread_create(&second.thread, NULL, wait_in_thread, &second), 0);
    usleep(50000);
    CHECK_EQ(second.code, -1);
    t_fence();
    OK(LAPI_Put(t_hndl, other, 0, NULL, NULL, &once, NULL, NULL));
    CHECK_EQ(pthread_join(second.thread, NULL), 0);
    CHECK_EQ(second.code, LAPI_SUCCESS);
    t_fence();
    OK(LAPI_Purge_totask(t_hndl, before));
    CHECK_EQ(status[0], LAPI_MSG_PURGED_RCVD);
    CHECK_EQ(status[2], LAPI_MSG_PURGED);
    CHECK_EQ(status[1], t_tasks == 2 ? LAPI_MSG_PURGED : LAPI_MSG_INITIAL);
    if (t_tasks != 2) OK(LAPI_Purge_totask(t_hndl, other));
    CHECK_EQ(status[1], LAPI_MSG_PURGED);
    /* No remaining task can increment it. */
    RETURNS(LAPI_Nopoll_wait(t_hndl, &arrived, 1, &left), LAPI_ERR_TGT_PURGED);
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, SLOTS, list, status));
    CHECK_EQ(status[0], LAPI_MSG_INVALID);
    CHECK_EQ(status[1], LAPI_MSG_INVALID);
    RETURNS(LAPI_Nopoll_wait(t_hndl, &arrived, 1, &left), LAPI_ERR_TGT_PURGED);
    /* A task's messages to itself count like others. */
    list[0] = (uint)t_me;
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, 2, list, status));
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &arrived, NULL, NULL));
    OK(LAPI_Nopoll_wait(t_hndl, &arrived, 1, NULL));
    CHECK_EQ(status[0], LAPI_MSG_RECVD);
    /* An empty list is none: a thread waits as without a list. */
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, 0, list, status));
    CHECK_EQ(pthread_create(&alone.thread, NULL, wait_in_thread, &alone), 0);
    usleep(50000);
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &arrived, NULL, NULL));
    CHECK_EQ(pthread_join(alone.thread, NULL), 0);
    CHECK_EQ(alone.code, LAPI_SUCCESS);
    /* LAPI_Setcntr takes the list away. */
    OK(LAPI_Setcntr_wstatus(t_hndl, &arrived, 1, list, status));
    OK(LAPI_Setcntr(t_hndl, &arrived, 1));
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &arrived, NULL, NULL));
    OK(LAPI_Nopoll_wait(t_hndl, &arrived, 2, NULL));
    CHECK_EQ(status[0], LAPI_MSG_INITIAL);
}

/* Of two threads one waits: the other one has been refused because of that. Returns the one
 * that waits. */
static struct waiter *one_that_waits(struct waiter two[2]) {
    int i;
    for (i = 0; i < 2; i++) CHECK_EQ(pthread_create(&two[i].thread, NULL, wait_in_thread, &two[i]), 0);
    while (__atomic_load_n(&two[0].code, __ATOMIC_ACQUIRE) == -1 && __atomic_load_n(&two[1].code, __ATOMIC_ACQUIRE) == -1)
        usleep(1000);
    i = two[0].code == -1;
    CHECK_EQ(two[i].code, LAPI_ERR_MULTIPLE_WAITERS);
    CHECK_EQ(two[i].left, -1);
    CHECK_EQ(pthread_join(two[i].thread, NULL), 0);
    CHECK_EQ(two[1 - i].code, -1);
    return &two[1 - i];
}

static void waiters(void) {
    static lapi_cntr_t unlisted, concerned, unconcerned;
    static lapi_cntr_t *const cntrs[3] = {&unlisted, &concerned, &unconcerned};
    struct waiter both[3][2], *of[3];
    uint list[2] = {other, (uint)t_me};
    int status[2], i;
    OK(LAPI_Setcntr_wstatus(t_hndl, &concerned, 2, list, status));
    OK(LAPI_Setcntr_wstatus(t_hndl, &unconcerned, 1, list + 1, status + 1));
    for (i = 0; i < 3; i++) {
        both[i][0] = both[i][1] = (struct waiter){.cntr = cntrs[i], .val = 1, .code = -1, .left = -1};
        of[i] = one_that_waits(both[i]);
    }
    RETURNS(LAPI_Nopoll_wait(t_hndl, &unlisted, 1, NULL), LAPI_ERR_MULTIPLE_WAITERS);
    RETURNS(LAPI_Nopoll_wait(t_hndl, &unconcerned, 1, NULL), LAPI_ERR_MULTIPLE_WAITERS);
    OK(LAPI_Purge_totask(t_hndl, other));
    CHECK_EQ(pthread_join(of[0]->thread, NULL), 0);
    CHECK_EQ(pthread_join(of[1]->thread, NULL), 0);
    CHECK_EQ(of[0]->code, LAPI_ERR_TGT_PURGED);
    CHECK_EQ(of[1]->code, LAPI_ERR_TGT_PURGED);
    CHECK_EQ(status[0], LAPI_MSG_PURGED);
    CHECK_EQ(of[2]->code, -1);
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &unconcerned, NULL, NULL));
    CHECK_EQ(pthread_join(of[2]->thread, NULL), 0);
    CHECK_EQ(of[2]->code, LAPI_SUCCESS);
    CHECK_EQ(of[2]->left, 0);
    CHECK_EQ(status[1], LAPI_MSG_RECVD);
    /* The counter is free for another thread again. */
    OK(LAPI_Put(t_hndl, (uint)t_me, 0, NULL, NULL, &unlisted, NULL, NULL));
    OK(LAPI_Nopoll_wait(t_hndl, &unlisted, 1, NULL));
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.lib_vers = strcmp(which, "level") == 0 ? L1_LIB : strcmp(which, "codes") == 0 ? L2_LIB : LAST_LIB;
    t_init_with(&info);
    other = (uint)(t_me + 1) % (uint)t_tasks;
    t_fence();
    if (strcmp(which, "codes") == 0) {
        codes();
    } else if (strcmp(which, "level") == 0) {
        uint list[1] = {other};
        int status[1];
        RETURNS(LAPI_Setcntr_wstatus(t_hndl, &arrived, 1, list, status), LAPI_ERR_UNKNOWN);
        RETURNS(LAPI_Nopoll_wait(t_hndl, &arrived, 1, NULL), LAPI_ERR_UNKNOWN);
        OK(LAPI_Purge_totask(t_hndl, other));
        every_call(LAPI_ERR_TGT_PURGED);
    } else if (strcmp(which, "statuses") == 0) {
        statuses();
    } else if (strcmp(which, "waiters") == 0) {
        waiters();
    } else {
        T_FAIL("there is no case \"%s\"", which);
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}

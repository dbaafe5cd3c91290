/* How the threads of a task wait for their operations, whatever happens to the target. */
#include "operations.h"

#include <sched.h>

worker_t workers[WORKERS];

void prepare(worker_t *w, int tgt, int n) {
    uint list[BURST + 2];
    int i;
    w->style = w->locked ? GETCNTR + (int)t_below(&w->random, 3) : (int)t_below(&w->random, 5);
    OK(LAPI_Setcntr(t_hndl, &w->org, 0));
    if (w->style == NOPOLL_WAIT) {
        for (i = 0; i < n; i++) list[i] = (uint)tgt;
        OK(LAPI_Setcntr_wstatus(t_hndl, &w->cntr, n, list, w->status));
    } else {
        OK(LAPI_Setcntr(t_hndl, &w->cntr, 0));
    }
}

static int wait_in_call(worker_t *w, int tgt, int n) {
    int left = -1, rescued;
    pthread_mutex_lock(&w->mutex);
    w->rescued = lost[tgt];
    w->waits_for = w->rescued ? -1 : tgt;
    w->count = n;
    pthread_mutex_unlock(&w->mutex);
    if (!w->rescued) OK(LAPI_Waitcntr(t_hndl, &w->cntr, n, &left));
    pthread_mutex_lock(&w->mutex);
    w->waits_for = -1;
    rescued = w->rescued;
    pthread_mutex_unlock(&w->mutex);
    if (!rescued) CHECK_EQ(left, 0);
    return !rescued;
}

void workers_rescue(int task) {
    int i;
    for (i = 0; i < WORKERS; i++) {
        worker_t *w = &workers[i];
        pthread_mutex_lock(&w->mutex);
        if (w->waits_for == task) {
            w->rescued = 1;
            OK(LAPI_Setcntr(t_hndl, &w->cntr, w->count));
        }
        pthread_mutex_unlock(&w->mutex);
    }
}

void look_around(worker_t *w) {
    lapi_msg_info_t info;
    if (w->style == MSGPOLL) OK(LAPI_Msgpoll(t_hndl, 20, &info));
    else OK(LAPI_Probe(t_hndl));
    if (t_below(&w->random, 64) == 0 && !w->locked) usleep(100);
    else sched_yield();
}

/* Waits until the counter is at n. 0: the target is lost, and it will not get there. */
int settle(worker_t *w, int tgt, int n) {
    int left = -1, code, i;
    switch (w->style) {
    case WAITCNTR: return wait_in_call(w, tgt, n);
    case NOPOLL_WAIT:
        code = LAPI_Nopoll_wait(t_hndl, &w->cntr, n, &left);
        if (!WENT(code, tgt)) return 0;
        CHECK_EQ(left, 0);
        for (i = 0; i < n; i++)
            CHECK_FOR(w->status[i] == LAPI_MSG_RECVD || (gone(tgt) && w->status[i] == LAPI_MSG_PURGED_RCVD),
                      "status %d of %d after LAPI_Nopoll_wait is %d", i, n, w->status[i]);
        work_done(NOPOLL, 0);
        return 1;
    default:
        while ((w->style == GETCNTR ? t_value(&w->cntr) : *(volatile int *)&w->cntr.cntr) < n) {
            if (lost[tgt]) return 0;
            look_around(w);
        }
        t_wait_exact(&w->cntr, n);
        return 1;
    }
}

/* The origin counter, and the send completion handlers, which are always called, whatever happens
 * to the target. */
void origin_settles(worker_t *w, int tgt, int n) {
    if (AWAIT(w, *(volatile int *)&w->org.cntr >= n, tgt)) t_wait_exact(&w->org, n);
    while (w->reported < w->accepted) look_around(w);
    CHECK_EQ(w->reported, w->accepted);
}

void sending_is_over(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    worker_t *w = param;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_FOR(info->reason == LAPI_SUCCESS ||
                  ((info->reason == LAPI_ERR_TGT_PURGED || info->reason == LAPI_ERR_NO_CONNECTIVITY) &&
                   gone((int)info->src)),
              "a send to task %u has ended with %u", info->src, info->reason);
    w->reported++;
}

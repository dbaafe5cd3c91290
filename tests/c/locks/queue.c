/*
 * A queue that header handlers fill and threads of the program empty, guarded by the shared lock:
 * queue INTERRUPTS
 *
 * Header handlers run with the lock held, so they add to the queue and signal its condition
 * directly. The threads wait for the condition, and reply to each message with the lock held. With
 * interrupts on no thread polls: all of the program's threads sleep for conditions, and LAPI's own
 * thread serves messages.
 */
#include "locks.h"

enum { MESSAGES = 1000, THREADS = 3, LENGTH = 64, REPLY = 1 << 30 };

/* All guarded by the lock. */
static int queue[LENGTH], first, length, refused, wakes;
static int replies, finished;
static char *seen; /* which messages of which task have arrived */
static lapi_cond_t not_empty, changed;

/* One message: number MESSAGES * task + i, or the reply to one. */
static void *arrival(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                     void **uinfo) {
    int number = *(int *)uhdr;
    (void)hndl, (void)uhdr_len;
    CHECK(mine());
    *comp_h = NULL;
    *uinfo = NULL;
    ret->ctl_flags = LAPI_BURY_MSG;
    if (number & REPLY) {
        CHECK_EQ((number & ~REPLY) / MESSAGES, t_me);
        replies++;
        signal_one(&changed);
        return NULL;
    }
    if (length == LENGTH) {
        refused++;
        ret->ctl_flags = LAPI_DROP_PKT;
        return NULL;
    }
    CHECK_EQ(number / MESSAGES, ret->src);
    queue[(first + length++) % LENGTH] = number;
    signal_one(&not_empty);
    return NULL;
}

static void *worker(void *arg) {
    (void)arg;
    acquire();
    for (;;) {
        int number, reply;
        while (length == 0 && !finished) {
            wait_on(&not_empty);
            wakes++;
        }
        if (length == 0) break;
        number = queue[first];
        first = (first + 1) % LENGTH;
        length--;
        CHECK(!seen[number]);
        seen[number] = 1;
        reply = number | REPLY;
        OK(LAPI_Amsend(t_hndl, (uint)(number / MESSAGES), (void *)7, &reply, sizeof reply, NULL, 0, NULL, NULL, NULL));
        CHECK(mine());
    }
    release();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t tids[THREADS];
    int i, interrupts, number;
    CHECK(argc == 2);
    t_init();
    interrupts = atoi(argv[1]);
    t_set(INTERRUPT_SET, interrupts);
    get_functions();
    seen = calloc((size_t)t_tasks, MESSAGES);
    CHECK(seen != NULL);
    OK(LAPI_Addr_set(t_hndl, (void *)arrival, 7));
    t_fence();
    for (i = 0; i < THREADS; i++) tids[i] = start(worker, NULL);
    acquire();
    for (i = 0; i < MESSAGES; i++) {
        uint tgt = (uint)((t_me + i) % t_tasks);
        number = t_me * MESSAGES + i;
        OK(LAPI_Amsend(t_hndl, tgt, (void *)7, &number, sizeof number, NULL, 0, NULL, NULL, NULL));
        CHECK(mine());
    }
    while (replies < MESSAGES) {
        if (interrupts) wait_on(&changed);
        else OK(LAPI_Probe(t_hndl));
        CHECK(mine());
    }
    t_fence(); /* every task has all replies */
    CHECK(mine());
    CHECK_EQ(length, 0);
    finished = 1;
    for (i = 0; i < THREADS; i++) signal_one(&not_empty);
    release();
    for (i = 0; i < THREADS; i++) join(tids[i]);
    for (number = 0; number < MESSAGES * t_tasks; number++)
        CHECK_EQ(seen[number], (number / MESSAGES + number % MESSAGES) % t_tasks == t_me);
    t_done();
    return 0;
}

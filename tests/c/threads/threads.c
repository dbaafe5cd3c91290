/*
 * Many threads of one task: threads CASE [ARGUMENT]
 *
 *   waiters SEED   several threads in LAPI_Waitcntr, woken one by one in any order
 *   alone          one thread calls for long, others come now and then, or all the time
 *   turns          collective calls from several threads, in turns, while others communicate (chapter 15)
 *   handles SEED   sixteen handles, opened, used and closed by many threads in any order
 *   term SEED      LAPI_Term while other threads are inside every kind of call; the instance is opened again at once
 */
#include "../common/ltest.h"

#include <sched.h>

static uint64_t seed;
static volatile int stop;

static pthread_t started(void *(*run)(void *), uintptr_t number) {
    pthread_t tid;
    CHECK_EQ(pthread_create(&tid, NULL, run, (void *)number), 0);
    return tid;
}

static void joined(pthread_t *tids, int count) {
    int i;
    for (i = 0; i < count; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
}

static int next_task(void) { return (t_me + 1) % t_tasks; }
static int task_before(void) { return (t_me + t_tasks - 1) % t_tasks; }

/* --- waiters --- */

enum { WAITERS = 6, WAKES = 600 };
static lapi_cntr_t bells[WAITERS], acknowledged;
static void **bell_tab, **acknowledged_tab;
static volatile int woken[WAITERS];

static void ring(int task, void *cntr) { OK(LAPI_Put(t_hndl, (uint)task, 0, NULL, NULL, cntr, NULL, NULL)); }

static void *waiter(void *arg) {
    int number = (int)(uintptr_t)arg;
    for (;;) {
        int left = -1;
        OK(LAPI_Waitcntr(t_hndl, &bells[number], 1, &left));
        CHECK_EQ(left, 0);
        if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) return NULL;
        __atomic_fetch_add(&woken[number], 1, __ATOMIC_RELEASE);
        ring(task_before(), acknowledged_tab[task_before()]);
    }
}

static void waiters(void) {
    pthread_t tids[WAITERS];
    int i, mode, wakes[WAITERS] = {0}, before = task_before();
    uint64_t mine = t_seed(seed, (uint64_t)t_me, 1), theirs = t_seed(seed, (uint64_t)before, 1);
    bell_tab = t_addresses(bells);
    acknowledged_tab = t_addresses(&acknowledged);
    for (i = 0; i < WAITERS; i++) tids[i] = started(waiter, (uintptr_t)i);
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        for (i = 0; i < WAKES; i++) {
            int which = (int)t_below(&mine, WAITERS);
            /* Now and then all of them fall asleep first. */
            if (i % 64 == 0) usleep(5000);
            ring(next_task(), (lapi_cntr_t *)bell_tab[next_task()] + which);
            /* All others continue to wait; this one replies, and this thread waits too. */
            t_wait_exact(&acknowledged, 1);
            wakes[t_below(&theirs, WAITERS)]++;
        }
        t_fence();
        for (i = 0; i < WAITERS; i++) CHECK_EQ(woken[i], wakes[i]);
        t_fence();
    }
    stop = 1;
    for (i = 0; i < WAITERS; i++) OK(LAPI_Setcntr(t_hndl, &bells[i], 1));
    joined(tids, WAITERS);
}

/* --- alone --- */

enum { STRETCHES = 12, CALLS = 3000 };
static long long put_here, added[2];
static lapi_cntr_t counted;
static void **put_tab, **counted_tab, **added_tab;
static volatile int in_haste;

static void *guest(void *arg) {
    int id = (int)(uintptr_t)arg;
    long long i, one = 1, previous;
    lapi_cntr_t done;
    bzero(&done, sizeof done);
    for (i = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++) {
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)next_task(), (long long *)added_tab[next_task()] + id, &one, &previous,
                      &done));
        t_wait_exact(&done, 1);
        CHECK_EQ(previous, i);
        if (!__atomic_load_n(&in_haste, __ATOMIC_RELAXED)) usleep(300);
    }
    return NULL;
}

static void alone(void) {
    pthread_t guests[2];
    long long value;
    lapi_cntr_t sent;
    int stretch, i;
    bzero(&sent, sizeof sent);
    put_tab = t_addresses(&put_here);
    counted_tab = t_addresses(&counted);
    added_tab = t_addresses(added);
    for (i = 0; i < 2; i++) guests[i] = started(guest, (uintptr_t)i);
    for (stretch = 0; stretch < STRETCHES; stretch++) {
        t_set(INTERRUPT_SET, stretch % 2);
        in_haste = stretch % 3 == 2;
        for (i = 1; i <= CALLS; i++) {
            value = (long long)stretch * CALLS + i;
            OK(LAPI_Put(t_hndl, (uint)next_task(), sizeof value, put_tab[next_task()], &value,
                        counted_tab[next_task()], &sent, NULL));
            t_wait_exact(&sent, 1);
        }
        t_wait_exact(&counted, CALLS);
        CHECK_EQ(put_here, (long long)stretch * CALLS + CALLS);
        t_fence();
    }
    stop = 1;
    joined(guests, 2);
}

/* --- turns --- */

enum { GROUPS = 4, ROUNDS = 60, TALKERS = 2 };
static volatile int turn;
static long long talked[TALKERS];
static void **talked_tab;

static void *group(void *arg) {
    int id = (int)(uintptr_t)arg, round, task;
    void **table = malloc(sizeof *table * (size_t)t_tasks);
    lapi_long_t *wide = malloc(sizeof *wide * (size_t)t_tasks);
    CHECK(table != NULL && wide != NULL);
    for (round = 0; round < ROUNDS; round++) {
        uintptr_t value = (uintptr_t)(round * GROUPS + id + 1) * 1000;
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != round * GROUPS + id) sched_yield();
        if (round % 3 == 2) {
            OK(LAPI_Address_init64(t_hndl, value + (uintptr_t)t_me, wide));
            for (task = 0; task < t_tasks; task++) CHECK_EQ(wide[task], value + (uintptr_t)task);
        } else {
            OK(LAPI_Address_init(t_hndl, (void *)(value + (uintptr_t)t_me), table));
            for (task = 0; task < t_tasks; task++) CHECK_EQ((uintptr_t)table[task], value + (uintptr_t)task);
        }
        if (round % 3 == 1) OK(LAPI_Gfence(t_hndl));
        __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    }
    free(table);
    free(wide);
    return NULL;
}

static void *talker(void *arg) {
    int id = (int)(uintptr_t)arg;
    long long i, one = 1, previous;
    lapi_cntr_t done;
    bzero(&done, sizeof done);
    for (i = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++) {
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)next_task(), (long long *)talked_tab[next_task()] + id, &one, &previous,
                      &done));
        t_wait_exact(&done, 1);
        CHECK_EQ(previous, i);
        if (i % 50 == 0) OK(LAPI_Fence(t_hndl));
    }
    return NULL;
}

static void turns(void) {
    pthread_t groups[GROUPS], talkers[TALKERS];
    int i;
    talked_tab = t_addresses(talked);
    for (i = 0; i < TALKERS; i++) talkers[i] = started(talker, (uintptr_t)i);
    for (i = 0; i < GROUPS; i++) groups[i] = started(group, (uintptr_t)i);
    joined(groups, GROUPS);
    stop = 1;
    joined(talkers, TALKERS);
}

/* --- handles --- */

enum { OWNERS = 8, STEPS = 12, INSTANCES = 16 };
static lapi_handle_t opened[INSTANCES + 1];

static void exchange(lapi_handle_t h, int number) {
    unsigned char here[16][48], text[48], expected[48];
    void *table[16];
    lapi_cntr_t done;
    int me = -1, tasks = 0, task;
    bzero(&done, sizeof done);
    OK(LAPI_Qenv(h, TASK_ID, &me));
    OK(LAPI_Qenv(h, NUM_TASKS, &tasks));
    OK(LAPI_Address_init(h, here, table));
    t_fill(text, sizeof text, t_seed((uint64_t)me, (uint64_t)number, 5));
    for (task = 0; task < tasks; task++)
        OK(LAPI_Put(h, (uint)task, sizeof text, (char *)table[task] + (size_t)me * sizeof text, text, NULL, NULL, &done));
    OK(LAPI_Waitcntr(h, &done, tasks, NULL));
    OK(LAPI_Gfence(h));
    for (task = 0; task < tasks; task++) {
        t_fill(expected, sizeof expected, t_seed((uint64_t)task, (uint64_t)number, 5));
        CHECK(memcmp(here[task], expected, sizeof expected) == 0);
    }
    OK(LAPI_Gfence(h));
}

static void open_instance(lapi_handle_t *h, int instance) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.instance_no = (uint)instance;
    OK(LAPI_Init(h, &info));
}

static void *closer(void *arg) {
    OK(LAPI_Term(*(lapi_handle_t *)arg));
    return NULL;
}

/* Two instances each. Every task makes the same steps; only the order between the
 * threads varies. */
static void *owner(void *arg) {
    int id = (int)(uintptr_t)arg, step, which;
    uint64_t random = t_seed(seed, (uint64_t)id, 3);
    for (step = 0; step < STEPS; step++) {
        int instance = id * 2 + 1 + (int)t_below(&random, 2);
        lapi_handle_t *h = &opened[instance], old = *h;
        if (old == 0) open_instance(h, instance);
        else if (t_below(&random, 3) == 0) {
            pthread_t other;
            CHECK_EQ(pthread_create(&other, NULL, closer, h), 0);
            CHECK_EQ(pthread_join(other, NULL), 0);
            RETURNS(LAPI_Probe(old), LAPI_ERR_HNDL_INVALID);
            *h = 0;
        }
        if (*h != 0) exchange(*h, step * 100 + instance);
    }
    for (which = 0; which < 2; which++)
        if (opened[id * 2 + 1 + which] == 0) open_instance(&opened[id * 2 + 1 + which], id * 2 + 1 + which);
    return NULL;
}

static void handles(void) {
    pthread_t tids[OWNERS];
    lapi_handle_t more;
    lapi_info_t info;
    int i;
    for (i = 0; i < OWNERS; i++) tids[i] = started(owner, (uintptr_t)i);
    joined(tids, OWNERS);
    for (i = 0; i <= INSTANCES; i += 7) {
        bzero(&info, sizeof info);
        info.instance_no = (uint)i;
        RETURNS(LAPI_Init(&more, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    }
    /* The only free one is found. */
    OK(LAPI_Term(opened[11]));
    bzero(&info, sizeof info);
    OK(LAPI_Init(&opened[11], &info));
    exchange(opened[11], 1111);
    for (i = 1; i <= INSTANCES; i++) exchange(opened[i], i);
    for (i = 0; i < INSTANCES; i++) {
        int instance = 1 + (i * 5 + 3) % INSTANCES;
        tids[i % OWNERS] = started(closer, (uintptr_t)&opened[instance]);
        if (i % OWNERS == OWNERS - 1) joined(tids, OWNERS);
    }
    printf("PASS %d\n", t_me);
    exit(0);
}

/* --- term --- */

enum { INSIDE = 11, ENDS = 12 };
static volatile int inside;

static void lost(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type, (void)task, (void)src;
    /* The other task has ended its part a little earlier. */
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
}

typedef struct {
    lapi_handle_t h;
    int kind, tgt;
    unsigned char *at;
} visit;

static void *nothing(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return NULL;
}

static void *visitor(void *arg) {
    visit *v = arg;
    static unsigned char area[INSIDE][100000];
    static lapi_cntr_t never;
    int rc = LAPI_SUCCESS, value, one = 1, previous;
    void *table[16];
    lapi_msg_info_t poll;
    __atomic_fetch_add(&inside, 1, __ATOMIC_RELEASE);
    do {
        switch (v->kind) {
        case 0: rc = LAPI_Waitcntr(v->h, &never, 1, &value); break;
        case 1: rc = LAPI_Probe(v->h); break;
        case 2: rc = LAPI_Msgpoll(v->h, 1u << 30, &poll); break;
        case 3: rc = LAPI_Getcntr(v->h, &never, &value); break;
        case 4: rc = LAPI_Put(v->h, (uint)v->tgt, 100, area[4], area[5], NULL, NULL, NULL); break;
        case 5: rc = LAPI_Fence(v->h); break;
        case 6: rc = LAPI_Address_init(v->h, v->at, table); break;
        case 7: rc = LAPI_Amsend(v->h, (uint)v->tgt, (void *)nothing, NULL, 0, area[7], 20, NULL, NULL, NULL); break;
        case 8: rc = LAPI_Rmw(v->h, FETCH_AND_ADD, (uint)v->tgt, (int *)area[8], &one, &previous, NULL); break;
        case 9: rc = LAPI_Senv(v->h, INTERRUPT_SET, (int)t_me & 1); break;
        default: rc = LAPI_Put(v->h, (uint)v->tgt, sizeof area[9], area[9], area[10], NULL, NULL, NULL); break;
        }
        CHECK_FOR(rc == LAPI_SUCCESS || rc == LAPI_ERR_HNDL_INVALID || rc == LAPI_ERR_NO_CONNECTIVITY,
                  "call %d has returned %d", v->kind, rc);
    } while (rc != LAPI_ERR_HNDL_INVALID);
    return NULL;
}

static void ends(void) {
    uint64_t random = t_seed(seed, (uint64_t)t_me, 9);
    lapi_handle_t h = 0;
    lapi_info_t info;
    int round, i;
    for (round = 0; round < ENDS; round++) {
        visit visits[INSIDE];
        pthread_t tids[INSIDE];
        lapi_handle_t old;
        if (round == 0) {
            bzero(&info, sizeof info);
            info.err_hndlr = lost;
            OK(LAPI_Init(&h, &info));
            OK(LAPI_Qenv(h, TASK_ID, &t_me));
            OK(LAPI_Qenv(h, NUM_TASKS, &t_tasks));
        }
        inside = 0;
        exchange(h, round);
        for (i = 0; i < INSIDE; i++) {
            visits[i] = (visit){h, i, t_tasks > 1 ? next_task() : 0, (unsigned char *)&visits[i]};
            tids[i] = started(visitor, (uintptr_t)&visits[i]);
        }
        while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) < INSIDE) usleep(100);
        usleep((useconds_t)t_below(&random, 4000));
        OK(LAPI_Term(h));
        /* Opened again under their eyes: the old handle must not lead to the new context. */
        old = h;
        bzero(&info, sizeof info);
        info.err_hndlr = lost;
        OK(LAPI_Init(&h, &info));
        CHECK(h != old);
        joined(tids, INSIDE);
        RETURNS(LAPI_Probe(old), LAPI_ERR_HNDL_INVALID);
    }
    exchange(h, 99);
    OK(LAPI_Term(h));
    t_pass();
    exit(0);
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    int number = argc == 3 ? atoi(argv[2]) : 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    seed = (uint64_t)number;
    if (strcmp(which, "handles") == 0) handles();
    if (strcmp(which, "term") == 0) ends();
    t_init();
    if (strcmp(which, "waiters") == 0) waiters();
    else if (strcmp(which, "alone") == 0) alone();
    else if (strcmp(which, "turns") == 0) turns();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

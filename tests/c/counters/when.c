/*
 * When each counter is incremented: when CASE
 *
 *   handler   target counter after the completion handler has returned, completion counter after that
 *   copied    origin counter before the call returns, for messages of up to BUF_CP_SIZE bytes, in bursts
 *   reusable  origin counter: the data may be changed without an effect on the data that the target gets
 *   complete  completion counter: small puts are at their target when it counts them, whether the target polls, sleeps or computes
 *   msgpoll   what LAPI_Msgpoll says has happened
 */
#include "../common/ltest.h"

static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static volatile int entered, release, left;
static void **tgt_cntrs;

/* --- handler --- */

static void slow(lapi_handle_t *hndl, void *info) {
    (void)info;
    CHECK_EQ(tgt_cntr.cntr, 0);
    __atomic_store_n(&entered, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&release, __ATOMIC_ACQUIRE)) OK(LAPI_Probe(*hndl));
    CHECK_EQ(t_value(&tgt_cntr), 0);
    __atomic_store_n(&left, 1, __ATOMIC_RELEASE);
}

static char landing[1 << 20];

static void *with_slow(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                       void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len;
    CHECK(*msg_len <= sizeof landing);
    *comp_h = slow;
    *uinfo = NULL;
    return landing;
}

/* Reads an int of another task. */
static int peek(int tgt, void *at) {
    lapi_cntr_t here;
    int value = -1;
    bzero(&here, sizeof here);
    OK(LAPI_Get(t_hndl, (uint)tgt, sizeof value, at, &value, NULL, &here));
    t_wait_exact(&here, 1);
    return value;
}

static void handler(void) {
    static const ulong lens[] = {0, 8, 3000, sizeof landing};
    static char data[sizeof landing];
    void **handlers = t_addresses((void *)with_slow), **entereds = t_addresses((void *)&entered);
    void **releases = t_addresses((void *)&release), **lefts = t_addresses((void *)&left);
    int one = 1, origin, distance;
    size_t i;
    /* One task at a time sends, to each task, itself included; the others wait in the fence. */
    for (origin = 0; origin < t_tasks; origin++)
        for (distance = 0; distance < t_tasks; distance++)
            for (i = 0; i < sizeof lens / sizeof *lens; i++) {
                int tgt = (origin + distance) % t_tasks, look;
                entered = release = left = 0;
                t_fence();
                if (t_me == origin) {
                    OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], NULL, 0, lens[i] ? data : NULL, lens[i],
                                   tgt_cntrs[tgt], &org_cntr, &cmpl_cntr));
                    t_wait_exact(&org_cntr, 1); /* does not depend on the handler */
                    while (!peek(tgt, entereds[tgt])) continue;
                    for (look = 0; look < 5; look++) {
                        CHECK_EQ(peek(tgt, tgt_cntrs[tgt]), 0);
                        CHECK_EQ(t_value(&cmpl_cntr), 0);
                    }
                    OK(LAPI_Put(t_hndl, (uint)tgt, sizeof one, releases[tgt], &one, NULL, NULL, NULL));
                    t_wait_exact(&cmpl_cntr, 1);
                    CHECK_EQ(peek(tgt, lefts[tgt]), 1);
                    CHECK_EQ(peek(tgt, tgt_cntrs[tgt]), 1);
                }
                t_fence();
                if (t_me == tgt) t_wait_exact(&tgt_cntr, 1);
                t_fence();
            }
}

/* --- copied --- */

static unsigned char *area;
static volatile int messages;

static void *counting(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                      void **uinfo) {
    (void)hndl, (void)uinfo;
    CHECK_FILLED(uhdr, *uhdr_len, *msg_len);
    __atomic_fetch_add(&messages, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return NULL;
}

static void copied(void) {
    int size = t_query(BUF_CP_SIZE), len, distance, sent = 0;
    unsigned char *data = malloc((size_t)size), *head = malloc((size_t)size);
    void **areas, **handlers = t_addresses((void *)counting);
    int step = size > 256 ? size / 64 : 1;
    CHECK(data != NULL && head != NULL);
    area = malloc((size_t)(size + 1) * (size_t)size);
    CHECK(area != NULL);
    areas = t_addresses(area);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    /* Bursts without a check in between: whether the target receives them or not, each has
     * been copied. */
    for (distance = 0; distance < t_tasks; distance++) {
        uint tgt = (uint)((t_me + distance) % t_tasks);
        uint64_t seed = (uint64_t)distance * 1000;
        int src = (t_me - distance + t_tasks) % t_tasks, counted = 0, rows = 0;
        for (len = 0; len <= size; len += step, rows++) {
            t_fill(data, (size_t)len, seed + (uint64_t)len + (uint64_t)t_me * 100000);
            OK(LAPI_Put(t_hndl, tgt, (ulong)len, (char *)areas[tgt] + (size_t)rows * (size_t)size, data, tgt_cntrs[tgt],
                        &org_cntr, NULL));
            CHECK_EQ(*(volatile int *)&org_cntr.cntr, ++counted);
            memset(data, 0x55, (size_t)len);
        }
        for (len = 0; len <= size; len += step) {
            uint uhdr_len = (uint)(len / 8 * 4);
            ulong udata_len = (ulong)(size - (int)uhdr_len);
            if (uhdr_len > (uint)t_query(MAX_UHDR_SZ)) break;
            t_fill(head, uhdr_len, udata_len);
            OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], head, uhdr_len, data, udata_len, NULL, &org_cntr, NULL));
            CHECK_EQ(*(volatile int *)&org_cntr.cntr, ++counted);
            memset(head, 0x55, uhdr_len);
            sent++;
        }
        t_wait_exact(&org_cntr, counted);
        t_wait_exact(&tgt_cntr, rows);
        t_probe_until(&messages, sent);
        for (len = 0, rows = 0; len <= size; len += step, rows++)
            CHECK_FILLED(area + (size_t)rows * (size_t)size, (size_t)len,
                         seed + (uint64_t)len + (uint64_t)src * 100000);
        t_fence();
    }
}

/* --- reusable --- */

static void reusable(void) {
    enum { LEN = 300 * 1024, BUFFERS = 24 };
    static unsigned char from[LEN], to[BUFFERS][LEN];
    void **tos = t_addresses(to);
    uint tgt = (uint)((t_me + 1) % t_tasks);
    int round, i, src = (t_me + t_tasks - 1) % t_tasks;
    for (round = 0; round < 4; round++) {
        for (i = 0; i < BUFFERS; i++) {
            t_fill(from, LEN, t_seed((uint64_t)t_me, (uint64_t)round, (uint64_t)i));
            OK(LAPI_Put(t_hndl, tgt, LEN - (ulong)i, (unsigned char *)tos[tgt] + i * LEN, from, tgt_cntrs[tgt],
                        &org_cntr, NULL));
            t_wait_exact(&org_cntr, 1);
            memset(from, 0x44, LEN);
        }
        t_wait_exact(&tgt_cntr, BUFFERS);
        for (i = 0; i < BUFFERS; i++)
            CHECK_FILLED(to[i], (size_t)(LEN - i), t_seed((uint64_t)src, (uint64_t)round, (uint64_t)i));
        t_fence();
    }
}

/* --- msgpoll --- */

static void msgpoll(void) {
    static unsigned char from[1 << 20], to[1 << 20];
    static const ulong lens[] = {8, 1 << 20};
    void **tos = t_addresses(to);
    lapi_msg_info_t info;
    int quiet = 0, i, origin;
    size_t l;
    t_set(INTERRUPT_SET, 0); /* so that progress is made only in calls of this thread */
    t_fence();
    /* No operation is under way, so after a while a poll finds no completion. */
    for (i = 0; i < 1000 && quiet < 3; i++) {
        memset(&info, 0xff, sizeof info);
        OK(LAPI_Msgpoll(t_hndl, 10, &info));
        CHECK_EQ(info.status & LAPI_BOTH_COMPLETE, 0);
        quiet = info.status & LAPI_DISP_CNTR ? quiet + 1 : 0;
    }
    CHECK_EQ(quiet, 3);
    t_fence();
    for (origin = 0; origin < 2; origin++)
        for (l = 0; l < 2; l++)
            for (i = 0; i < 50; i++) {
                if (t_me == origin) {
                    int before, after;
                    OK(LAPI_Put(t_hndl, (uint)(1 - t_me), lens[l], tos[1 - t_me], from, tgt_cntrs[1 - t_me], &org_cntr,
                                NULL));
                    while ((before = t_value(&org_cntr)) == 0) {
                        OK(LAPI_Msgpoll(t_hndl, 100, &info));
                        after = *(volatile int *)&org_cntr.cntr;
                        if (before == 0 && after == 1) CHECK(info.status & LAPI_SEND_COMPLETE);
                    }
                    t_wait_exact(&org_cntr, 1);
                } else if (t_me == 1 - origin) {
                    while (*(volatile int *)&tgt_cntr.cntr == 0) {
                        OK(LAPI_Msgpoll(t_hndl, 100, &info));
                        if (*(volatile int *)&tgt_cntr.cntr == 1) {
                            CHECK(info.status & LAPI_RECV_COMPLETE);
                            CHECK(!(info.status & LAPI_DISP_CNTR));
                        } else if (info.status & LAPI_DISP_CNTR) {
                            CHECK(!(info.status & LAPI_BOTH_COMPLETE));
                        }
                    }
                    t_wait_exact(&tgt_cntr, 1);
                }
                t_fence();
            }
}

/* --- complete --- */

enum { PUTS = 300, WIDTH = 64 };
static unsigned char there[PUTS][WIDTH], from[PUTS][WIDTH], back[PUTS][WIDTH];

/* One window to the next task. */
static void window(void **areas, uint64_t seed) {
    int next = (t_me + 1) % t_tasks, i, complete = 0, counted = 0;
    size_t lengths[PUTS];
    uint64_t random = seed;
    for (i = 0; i < PUTS; i++) {
        lengths[i] = (size_t)t_below(&random, WIDTH + 1);
        t_fill(from[i], lengths[i], seed + (uint64_t)i);
        complete += i % 5 != 0;
        counted += i % 3 == 0;
        OK(LAPI_Put(t_hndl, (uint)next, lengths[i], (char *)areas[next] + i * WIDTH, from[i],
                    i % 3 == 0 ? tgt_cntrs[next] : NULL, NULL, i % 5 != 0 ? &cmpl_cntr : NULL));
    }
    t_wait_exact(&cmpl_cntr, complete);
    OK(LAPI_Get(t_hndl, (uint)next, sizeof back, areas[next], back, NULL, &org_cntr));
    t_wait_exact(&org_cntr, 1);
    for (i = 0; i < PUTS; i++)
        if (i % 5 != 0) CHECK_FILLED(back[i], lengths[i], seed + (uint64_t)i);
    t_wait_exact(&tgt_cntr, counted);
}

static void complete(void) {
    void **areas = t_addresses(there);
    int mode, round, next = (t_me + 1) % t_tasks;
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        for (round = 0; round < t_rounds(20); round++) {
            /* Those that wait for this task fall asleep. */
            if (t_me % 2 == round % 2) usleep(5000);
            window(areas, t_seed((uint64_t)t_me, (uint64_t)round, (uint64_t)mode));
            t_fence();
        }
    }
    /* No task calls LAPI while its put is completed. */
    for (round = 0; round < t_rounds(20); round++) {
        usleep((useconds_t)t_me * 3000);
        OK(LAPI_Put(t_hndl, (uint)next, 8, areas[next], from, NULL, NULL, &cmpl_cntr));
        while (__atomic_load_n(&cmpl_cntr.cntr, __ATOMIC_ACQUIRE) != 1) usleep(100);
        t_wait_exact(&cmpl_cntr, 1);
        t_fence();
    }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "handler") == 0) handler();
    else if (strcmp(which, "copied") == 0) copied();
    else if (strcmp(which, "reusable") == 0) reusable();
    else if (strcmp(which, "complete") == 0) complete();
    else if (strcmp(which, "msgpoll") == 0) msgpoll();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

/*
 * Processes that a task makes: fork CASE [ARGUMENT]
 *
 *   calls        in a child every call with the parent's handle returns LAPI_ERR_HNDL_INVALID, by both names
 *   storm SEED   several threads fork while all tasks communicate; children end in every way
 *   opening      a thread forks children that live on, while another one opens and ends contexts of all tasks
 *   handlers     header and completion handlers fork; the child's signals are the program's
 *   locked N     threads use every lock of the library while others fork children that open LAPI again, N times
 */
#include "child.h"

enum { BYTES = 20000 };
static lapi_cntr_t tgt_cntr;
static unsigned char area[16][BYTES];
static void **areas, **tgt_cntrs, **handlers;

/* A child opens LAPI in a job of its own. */
static void own_life(void) {
    char partition[32];
    snprintf(partition, sizeof partition, "%d", (int)getpid());
    life(partition, 0, 1, 3);
}

/* --- calls --- */

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return NULL;
}

#define INVALID(call)                                                                                            \
    do {                                                                                                         \
        RETURNS(LAPI_##call, LAPI_ERR_HNDL_INVALID);                                                             \
        RETURNS(PLAPI_##call, LAPI_ERR_HNDL_INVALID);                                                            \
    } while (0)

static void every_call(lapi_handle_t h) {
    /* Those of LAPI_Util that belong to a handle; the others are requests for programs, which
     * belong to none. */
    static const int requests[] = {LAPI_REG_DDM_FUNC, LAPI_DGSP_PACK, LAPI_DGSP_UNPACK, LAPI_ADD_UDP_DEST_PORT,
                                   LAPI_GET_THREAD_FUNC};
    static const int transfers[] = {LAPI_GET_XFER,  LAPI_AM_XFER,  LAPI_PUT_XFER,  LAPI_GETV_XFER, LAPI_PUTV_XFER,
                                    LAPI_AMV_XFER,  LAPI_RMW_XFER, LAPI_DGSP_XFER, LAPI_AM_LW_XFER};
    lapi_cntr_t cntr;
    lapi_vec_t vec;
    lapi_xfer_t xfer;
    lapi_util_t util;
    lapi_msg_info_t poll;
    void *table[16], *address = NULL;
    lapi_long_t table64[16];
    long long wide = 0, wide_in = 1;
    int value = 1, previous = 0, status = 0;
    uint task = 0;
    char byte = 0;
    size_t i;
    bzero(&cntr, sizeof cntr);
    bzero(&vec, sizeof vec);
    INVALID(Address_init(h, &byte, table));
    INVALID(Address_init64(h, 0, table64));
    INVALID(Addr_set(h, &byte, 1));
    INVALID(Addr_get(h, &address, 1));
    INVALID(Qenv(h, TASK_ID, &value));
    INVALID(Senv(h, INTERRUPT_SET, 0));
    INVALID(Put(h, 0, 1, &byte, &byte, NULL, NULL, NULL));
    INVALID(Get(h, 0, 1, &byte, &byte, NULL, NULL));
    INVALID(Amsend(h, 0, (void *)arrived, NULL, 0, &byte, 1, NULL, NULL, NULL));
    INVALID(Rmw(h, FETCH_AND_ADD, 0, &value, &value, &previous, NULL));
    INVALID(Rmw64(h, FETCH_AND_ADD, 0, &wide, &wide_in, &wide, NULL));
    INVALID(Putv(h, 0, &vec, &vec, NULL, NULL, NULL));
    INVALID(Getv(h, 0, &vec, &vec, NULL, NULL));
    INVALID(Amsendv(h, 0, (void *)arrived, NULL, 0, &vec, NULL, NULL, NULL));
    INVALID(Setcntr(h, &cntr, 1));
    INVALID(Getcntr(h, &cntr, &value));
    INVALID(Waitcntr(h, &cntr, 1, &value));
    INVALID(Nopoll_wait(h, &cntr, 1, &value));
    INVALID(Setcntr_wstatus(h, &cntr, 1, &task, &status));
    INVALID(Purge_totask(h, 0));
    INVALID(Resume_totask(h, 0));
    INVALID(Probe(h));
    INVALID(Msgpoll(h, 10, &poll));
    INVALID(Fence(h));
    INVALID(Gfence(h));
    for (i = 0; i < sizeof transfers / sizeof *transfers; i++) {
        bzero(&xfer, sizeof xfer);
        xfer.Xfer_type = (lapi_xfer_type_t)transfers[i];
        INVALID(Xfer(h, &xfer));
    }
    INVALID(Xfer(h, NULL));
    for (i = 0; i < sizeof requests / sizeof *requests; i++) {
        bzero(&util, sizeof util);
        util.Util_type = (lapi_util_type_t)requests[i];
        INVALID(Util(h, &util));
    }
    INVALID(Util(h, NULL));
    INVALID(Term(h));
}

static void calls(void) {
    pid_t child = forked();
    if (child == 0) {
        lapi_cntr_t cntr = tgt_cntr;
        every_call(t_hndl);
        /* What needs no handle. */
        OK(LAPI_Msg_string(LAPI_ERR_HNDL_INVALID, area[0]));
        CHECK_EQ(memcmp(&cntr, &tgt_cntr, sizeof cntr), 0);
        own_life();
        every_call(t_hndl); /* the new handle is another one */
        _exit(42);
    }
    exchange(t_hndl, t_me, t_tasks, 1);
    ended(child, 42);
    exchange(t_hndl, t_me, t_tasks, 2);
}

/* --- storm --- */

enum { FORKERS = 3, FORKS = 12, MESSAGES = 1500 };
static volatile int stop, exits;
static uint64_t seed;

static void at_exit(void) { RETURNS(LAPI_Term(t_hndl), t_me < 0 ? LAPI_ERR_HNDL_INVALID : LAPI_SUCCESS); }

static void close_all(void) {
    int fd;
    for (fd = 3; fd < 200; fd++) close(fd);
}

static void one_child(uint64_t how) {
    pid_t child = forked();
    int i;
    if (child != 0) {
        ended(child, 17);
        return;
    }
    t_me = -1; /* at_exit() and messages know the child by it */
    switch (how % 6) {
    case 0: _exit(17);
    case 1: exit(17);
    case 2:
        for (i = 0; i < 16; i++) memset(area[i], 0xff, BYTES);
        memset(areas, 0xff, sizeof *areas);
        memset(&tgt_cntr, 0xff, sizeof tgt_cntr);
        exit(17);
    case 3:
        close_all();
        exit(17);
    case 4:
        every_call(t_hndl);
        own_life();
        exit(17);
    default:
        close_all();
        own_life();
        _exit(17);
    }
}

static void *forker(void *arg) {
    uint64_t random = t_seed(seed, (uint64_t)t_me, (uint64_t)(uintptr_t)arg);
    int i;
    for (i = 0; i < FORKS; i++) {
        usleep((useconds_t)t_below(&random, 3000));
        one_child(t_random(&random));
    }
    __atomic_fetch_add(&exits, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void storm(void) {
    static unsigned char from[BYTES], back[BYTES];
    pthread_t tids[FORKERS];
    lapi_cntr_t done;
    uintptr_t number;
    uint64_t random = t_seed(seed, (uint64_t)t_me, 99);
    int i, tgt, rounds = 0;
    bzero(&done, sizeof done);
    OK(atexit(at_exit));
    for (number = 0; number < FORKERS; number++)
        CHECK_EQ(pthread_create(&tids[number], NULL, forker, (void *)number), 0);
    /* Puts and gets of every length to all tasks, in rounds, until all children have ended. */
    for (i = 0; i < MESSAGES || __atomic_load_n(&exits, __ATOMIC_ACQUIRE) < FORKERS; i++, rounds++) {
        size_t len = t_below(&random, t_below(&random, 8) == 0 ? BYTES + 1 : 200);
        tgt = (int)t_below(&random, (uint64_t)t_tasks);
        t_fill(from, len, (uint64_t)i);
        OK(LAPI_Put(t_hndl, (uint)tgt, len, (char *)areas[tgt] + t_me * BYTES, from, tgt_cntrs[tgt], NULL, &done));
        t_wait_exact(&done, 1);
        OK(LAPI_Get(t_hndl, (uint)tgt, len, (char *)areas[tgt] + t_me * BYTES, back, NULL, &done));
        t_wait_exact(&done, 1);
        CHECK_FILLED(back, len, (uint64_t)i);
    }
    for (number = 0; number < FORKERS; number++) CHECK_EQ(pthread_join(tids[number], NULL), 0);
    t_fence();
    exchange(t_hndl, t_me, t_tasks, 5);
    t_pass();
    exit(0); /* LAPI_Term by at_exit() */
}

/* --- opening --- */

enum { STAY = 120 };
static pid_t staying[STAY];
static int until_then[2], stayers;

static void *fork_stayers(void *arg) {
    uint64_t random = t_seed(5, (uint64_t)t_me, 0);
    (void)arg;
    while (stayers < STAY && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        pid_t child = forked();
        if (child == 0) {
            char byte;
            close(until_then[1]);
            /* Descriptors that were open in the parent at that moment stay open here, unless the
             * library closes them. */
            _exit(read(until_then[0], &byte, 1) == 0 ? 21 : 22);
        }
        staying[stayers++] = child;
        usleep((useconds_t)t_below(&random, 400));
    }
    return NULL;
}

static void opening(void) {
    pthread_t tid;
    int round;
    CHECK_EQ(pipe(until_then), 0);
    CHECK_EQ(pthread_create(&tid, NULL, fork_stayers, NULL), 0);
    for (round = 0; round < 60; round++) {
        lapi_handle_t h;
        lapi_info_t info;
        bzero(&info, sizeof info);
        info.instance_no = 3;
        OK(LAPI_Init(&h, &info));
        exchange(h, t_me, t_tasks, round);
        OK(LAPI_Term(h));
    }
    stop = 1;
    CHECK_EQ(pthread_join(tid, NULL), 0);
    close(until_then[1]);
    for (round = 0; round < stayers; round++) ended(staying[round], 21);
}

/* --- handlers --- */

static volatile int children, completions;
static sigset_t programs;

static void check_mask(void) {
    sigset_t now;
    int number;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    for (number = 1; number < 32; number++)
        CHECK_FOR(sigismember(&now, number) == sigismember(&programs, number), "signal %d is %s in the child", number,
                  sigismember(&now, number) ? "blocked" : "not blocked");
}

static void fork_here(void) {
    pid_t child = forked();
    if (child == 0) {
        t_me = -1;
        RETURNS(LAPI_Probe(t_hndl), LAPI_ERR_HNDL_INVALID);
        check_mask();
        own_life();
        _exit(5);
    }
    ended(child, 5);
    __atomic_fetch_add(&children, 1, __ATOMIC_RELEASE);
}

static void forking_completion(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    fork_here();
    __atomic_fetch_add(&completions, 1, __ATOMIC_RELEASE);
}

static void *forking(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    fork_here();
    *comp_h = forking_completion;
    *uinfo = NULL;
    return NULL;
}

static void in_handlers(void) {
    void **forkings;
    int tgt = (t_me + 1) % t_tasks, mode;
    forkings = t_addresses((void *)forking);
    for (mode = 0; mode < 2; mode++) {
        t_set(INTERRUPT_SET, mode);
        t_fence();
        OK(LAPI_Amsend(t_hndl, (uint)tgt, forkings[tgt], NULL, 0, NULL, 0, NULL, NULL, NULL));
        if (mode == 0) t_probe_until(&completions, 1);
        else
            while (__atomic_load_n(&completions, __ATOMIC_ACQUIRE) < 2) usleep(1000);
        t_fence();
    }
    CHECK_EQ(children, 4);
}

/* --- locked --- */

static void busy_completion(lapi_handle_t *hndl, void *info) { OK(LAPI_Setcntr(*hndl, info, 1)); }

static void *busy(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                  void **uinfo) {
    (void)hndl, (void)uhdr_len, (void)msg_len;
    *comp_h = busy_completion;
    *uinfo = *(void **)uhdr;
    return NULL;
}

static void one_program(int free_it) {
    static const lapi_dgsm_copy_t code = {LAPI_DGSM_COPY, 8, 0};
    lapi_dgsm_iterate_t end = {LAPI_DGSM_ITERATE, 0};
    int words[(sizeof code + sizeof end) / sizeof(int)];
    lapi_dgsp_descr_t descr;
    lapi_util_t util;
    memcpy(words, &code, sizeof code);
    memcpy(words + LAPI_DGSM_COPY_SIZE, &end, sizeof end);
    bzero(&descr, sizeof descr);
    descr.code = words;
    descr.code_size = (int)(sizeof words / sizeof *words);
    descr.depth = 1;
    descr.density = LAPI_DGSM_CONTIG;
    descr.size = descr.extent = descr.rext = 8;
    bzero(&util, sizeof util);
    util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
    util.RegDgsp.idgsp = &descr;
    OK(LAPI_Util(t_hndl, &util));
    if (free_it) {
        lapi_dg_handle_t handle = util.RegDgsp.dgsp_handle;
        bzero(&util, sizeof util);
        util.DrefDgsp.Util_type = LAPI_UNRESERVE_DGSP;
        util.DrefDgsp.dgsp_handle = handle;
        OK(LAPI_Util(t_hndl, &util));
    }
}

/* Nearly always a thread holds each lock: the handle's, the handlers' queue, the table of
 * programs, malloc's. */
static void *worker(void *arg) {
    lapi_cntr_t flag, *at = &flag;
    char text[LAPI_MAX_ERR_STRING];
    (void)arg;
    bzero(&flag, sizeof flag);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        int i;
        OK(LAPI_Amsend(t_hndl, (uint)t_me, handlers[t_me], &at, sizeof at, NULL, 0, NULL, NULL, NULL));
        OK(LAPI_Waitcntr(t_hndl, &flag, 1, NULL));
        for (i = 0; i < 20; i++) one_program(1);
        OK(LAPI_Msg_string(LAPI_ERR_MEMORY_EXHAUSTED, text));
        free(malloc(1000));
    }
    return NULL;
}

static void locked(int rounds) {
    pthread_t tids[6];
    int i, round;
    handlers = t_addresses((void *)busy);
    for (i = 0; i < 6; i++) CHECK_EQ(pthread_create(&tids[i], NULL, worker, NULL), 0);
    for (round = 0; round < rounds; round++) {
        pid_t child = forked();
        if (child == 0) {
            t_me = -1;
            RETURNS(LAPI_Probe(t_hndl), LAPI_ERR_HNDL_INVALID);
            for (i = 0; i < 100; i++) one_program(i % 2);
            /* Threads of the child get the stacks of the parent's, and sleep where those slept. */
            t_init();
            t_me = 0;
            handlers = t_addresses((void *)busy);
            stop = 0;
            for (i = 0; i < 6; i++) CHECK_EQ(pthread_create(&tids[i], NULL, worker, NULL), 0);
            usleep(3000);
            stop = 1;
            for (i = 0; i < 6; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
            OK(LAPI_Gfence(t_hndl));
            OK(LAPI_Term(t_hndl));
            _exit(9);
        }
        ended(child, 9);
    }
    stop = 1;
    for (i = 0; i < 6; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &programs), 0);
    t_init();
    areas = t_addresses(area);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "calls") == 0) calls();
    else if (strcmp(which, "storm") == 0 && argc == 3) seed = (uint64_t)atoi(argv[2]), storm();
    else if (strcmp(which, "opening") == 0) opening();
    else if (strcmp(which, "handlers") == 0) in_handlers();
    else if (strcmp(which, "locked") == 0 && argc == 3) locked(atoi(argv[2]));
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

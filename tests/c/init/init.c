/*
 * LAPI_Init and LAPI_Term: init CASE [ARGUMENT]
 *
 *   info        every field of lapi_info_t, and its errors
 *   instances   as many handles as there are at once, traffic on each
 *   again N     LAPI_Init, traffic and LAPI_Term N times
 *   leave       every task but 0 exits without LAPI_Term, at different times; task 0 terminates properly
 *   setenv      variables set just before LAPI_Init
 *   threads N   names of LAPI's threads, N completion handler threads, thread_init_func
 *   code N      LAPI_Init must answer N
 *   alone       this is a job of one task, and everything works
 *   plain       a little traffic with everybody
 *   elsewhere   LAPI_Term in another thread than LAPI_Init
 *   inside      LAPI_Term while other threads are inside of calls: those end
 *   helper      LAPI_Gfence, LAPI_Term and exit in a thread that a completion handler has started
 *   fork        in a forked child the handle is none, and the parent's goes on
 */
#include "../common/ltest.h"

#include <dirent.h>
#include <sys/wait.h>

static char words[16][64];

/* One put to everybody on a handle. */
static void traffic(lapi_handle_t h, int number) {
    static char here[16][64];
    lapi_cntr_t done;
    void *table[64];
    int me = -1, tasks = 0, task;
    char text[64];
    bzero(&done, sizeof done);
    OK(LAPI_Qenv(h, TASK_ID, &me));
    OK(LAPI_Qenv(h, NUM_TASKS, &tasks));
    CHECK(tasks <= 16 && me >= 0 && me < tasks);
    OK(LAPI_Address_init(h, here, table));
    snprintf(text, sizeof text, "task %d, number %d", me, number);
    for (task = 0; task < tasks; task++)
        OK(LAPI_Put(h, (uint)task, sizeof text, (char *)table[task] + me * 64, text, NULL, NULL, &done));
    OK(LAPI_Waitcntr(h, &done, tasks, NULL));
    OK(LAPI_Gfence(h));
    for (task = 0; task < tasks; task++) {
        snprintf(words[task], sizeof text, "task %d, number %d", task, number);
        CHECK_FOR(strcmp(here[task], words[task]) == 0, "\"%s\" is here instead of \"%s\"", here[task], words[task]);
    }
    OK(LAPI_Gfence(h));
}

static lapi_info_t zeroed(void) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    return info;
}

static void errors_ignored(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    T_FAIL("the error handler was called: handle %u, code %d, type %d, task %d, src %d", *hndl, *code, (int)*type, *task,
           *src);
}

static void all_fields(void) {
    static const lapi_lib_t levels[] = {L1_LIB, L2_LIB, LAST_LIB};
    lapi_handle_t h, second;
    lapi_info_t info = zeroed();
    size_t i;
    RETURNS(LAPI_Init(NULL, &info), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Init(&h, NULL), LAPI_ERR_INFO_NULL);
    info.info6 = 1;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_INFO_NONZERO);
    info = zeroed();
    info.instance_no = 17;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    info.instance_no = (uint)-1;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_ALL_HNDL_IN_USE);

    for (i = 0; i < sizeof levels / sizeof *levels; i++) {
        info = zeroed();
        info.lib_vers = levels[i];
        info.err_hndlr = errors_ignored;
        info.epoch_num = 12345; /* no longer used */
        info.num_compl_hndlr_thr = (int)i;
        OK(LAPI_Init(&h, &info));
        /* What the library brings with it says so with a number of 32 or more. */
        CHECK_FOR((int)info.protocol >= 32, "the protocol is %d", (int)info.protocol);
        memset(&info, 0x77, sizeof info); /* may be changed or freed now */
        traffic(h, (int)i);
        OK(LAPI_Term(h));
    }

    /* The same instance twice; another one; the same again when it is free. */
    info = zeroed();
    info.instance_no = 5;
    OK(LAPI_Init(&h, &info));
    info = zeroed();
    info.instance_no = 5;
    RETURNS(LAPI_Init(&second, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    info = zeroed();
    info.instance_no = 6;
    OK(LAPI_Init(&second, &info));
    CHECK(second != h);
    traffic(second, 100);
    traffic(h, 101);
    OK(LAPI_Term(h));
    traffic(second, 102);
    info = zeroed();
    info.instance_no = 5;
    OK(LAPI_Init(&h, &info));
    traffic(h, 103);
    OK(LAPI_Term(second));
    traffic(h, 104);
    OK(LAPI_Term(h));
}

static void instances(void) {
    lapi_handle_t h[16], more;
    lapi_info_t info;
    int i, j;
    for (i = 0; i < 16; i++) {
        info = zeroed();
        info.instance_no = i % 2 ? (uint)i + 1 : 0; /* 0 takes the next free one */
        OK(LAPI_Init(&h[i], &info));
        for (j = 0; j < i; j++) CHECK(h[i] != h[j]);
    }
    info = zeroed();
    RETURNS(LAPI_Init(&more, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    for (i = 0; i < 16; i++) traffic(h[i], i);
    for (i = 15; i >= 0; i--) traffic(h[i], i + 20);
    for (i = 0; i < 16; i += 2) OK(LAPI_Term(h[i]));
    for (i = 1; i < 16; i += 2) traffic(h[i], i + 40);
    info = zeroed();
    OK(LAPI_Init(&more, &info));
    traffic(more, 77);
    OK(LAPI_Term(more));
    for (i = 1; i < 16; i += 2) OK(LAPI_Term(h[i]));
}

static void again(int times) {
    int i;
    for (i = 0; i < times; i++) {
        lapi_handle_t h;
        lapi_info_t info = zeroed();
        OK(LAPI_Init(&h, &info));
        traffic(h, i);
        OK(LAPI_Term(h));
    }
}

static void leave(void) {
    t_init();
    traffic(t_hndl, 1);
    if (t_me != 0) {
        usleep((useconds_t)t_me * 20000);
        t_pass();
        exit(0);
    }
    /* Nobody answers any more, and nothing is wanted of anybody. */
    usleep(200000);
    OK(LAPI_Probe(t_hndl));
    OK(LAPI_Put(t_hndl, 0, 5, words[0], "alone", NULL, NULL, NULL));
    OK(LAPI_Fence(t_hndl));
    CHECK(strncmp(words[0], "alone", 5) == 0);
    OK(LAPI_Term(t_hndl));
}

static void set_env(void) {
    lapi_handle_t h;
    lapi_info_t info = zeroed();
    int value = -1;
    setenv("MP_MSG_API", "mpi", 1);
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_MSG_API);
    setenv("MP_MSG_API", "nonsense", 1);
    info = zeroed();
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_MSG_API);
    setenv("MP_MSG_API", "MPI,LAPI", 1); /* capitals or not */
    setenv("MP_REXMIT_BUF_SIZE", "2048", 1);
    setenv("MP_REXMIT_BUF_CNT", "33", 1);
    setenv("MP_ACK_THRESH", "7", 1);
    setenv("MP_SHARED_MEMORY", "yes", 1); /* not LAPI's, harmless */
    setenv("MP_CSS_INTERRUPT", "yes", 1);
    setenv("MP_EAGER_LIMIT", "65536", 1);
    info = zeroed();
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Qenv(h, BUF_CP_SIZE, &value));
    CHECK_EQ(value, 2048);
    OK(LAPI_Qenv(h, REX_BUF_SZ, &value));
    CHECK_EQ(value, 2048);
    OK(LAPI_Qenv(h, NUM_REX_BUFS, &value));
    CHECK_EQ(value, 33);
    OK(LAPI_Qenv(h, ACK_THRESHOLD, &value));
    CHECK_EQ(value, 7);
    traffic(h, 1);
    OK(LAPI_Term(h));
    unsetenv("MP_REXMIT_BUF_SIZE");
    info = zeroed();
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Qenv(h, BUF_CP_SIZE, &value));
    CHECK_EQ(value, 128);
    OK(LAPI_Term(h));
}

static volatile int thread_inits;
static int parm, extra;

static void *thread_init(void *a, void *b) {
    CHECK_PTR(a, &parm);
    CHECK_PTR(b, &extra);
    __atomic_fetch_add(&thread_inits, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* How many threads of this process are named so; every name is looked at. */
static int threads_named(const char *name, int *all) {
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    int found = 0;
    CHECK(dir != NULL);
    *all = 0;
    while ((entry = readdir(dir)) != NULL) {
        char path[300], text[64] = "";
        FILE *file;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL) continue;
        if (fgets(text, sizeof text, file) != NULL) text[strcspn(text, "\n")] = 0;
        fclose(file);
        ++*all;
        found += strcmp(text, name) == 0;
    }
    closedir(dir);
    return found;
}

static void threads(int wanted) {
    com_thread_info_t how;
    lapi_info_t info = zeroed();
    char name[32];
    int before, all, i, value = 0, tries;
    threads_named("", &before);
    bzero(&how, sizeof how);
    how.thread_init_func = thread_init;
    how.parm_ptr = &parm;
    how.extra_ptr = &extra;
    info.lapi_thread_attr = &how;
    info.num_compl_hndlr_thr = wanted;
    t_init_with(&info);
    traffic(t_hndl, 1);
    if (wanted == 0) wanted = 1; /* the default */
    /* A new thread gives itself its name, so it may take a moment. */
    for (tries = 0; tries < 1000; tries++) {
        value = threads_named("lapi-intr", &all);
        for (i = 0; i < wanted; i++) {
            snprintf(name, sizeof name, "lapi-compl-%d", i);
            value += threads_named(name, &all);
        }
        if (value == wanted + 1) break;
        usleep(10000);
    }
    CHECK_EQ(value, wanted + 1);
    snprintf(name, sizeof name, "lapi-compl-%d", wanted);
    CHECK_EQ(threads_named(name, &all), 0);
    for (tries = 0; tries < 1000 && thread_inits < all - before; tries++) usleep(10000);
    CHECK_EQ(thread_inits, all - before);
    t_fence();
    OK(LAPI_Term(t_hndl));
    threads_named("", &all);
    CHECK_EQ(all, before); /* the threads have ended with the handle */
}

static void *terminate(void *arg) {
    OK(LAPI_Term(*(lapi_handle_t *)arg));
    return NULL;
}

static void elsewhere(void) {
    pthread_t tid;
    t_init();
    traffic(t_hndl, 3);
    CHECK_EQ(pthread_create(&tid, NULL, terminate, &t_hndl), 0);
    CHECK_EQ(pthread_join(tid, NULL), 0);
    RETURNS(LAPI_Probe(t_hndl), LAPI_ERR_HNDL_INVALID);
    t_init();
    traffic(t_hndl, 4);
    OK(LAPI_Term(t_hndl));
}

static lapi_cntr_t never;
static volatile int waiting;

static void *stuck(void *arg) {
    (void)arg;
    __atomic_fetch_add(&waiting, 1, __ATOMIC_RELEASE);
    RETURNS(LAPI_Waitcntr(t_hndl, &never, 1, NULL), LAPI_ERR_HNDL_INVALID);
    return NULL;
}

static void inside(void) {
    pthread_t tids[3];
    int round, i;
    for (round = 0; round < 4; round++) {
        t_init();
        traffic(t_hndl, round);
        waiting = 0;
        for (i = 0; i < 3; i++) CHECK_EQ(pthread_create(&tids[i], NULL, stuck, NULL), 0);
        while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) < 3) usleep(100);
        usleep(round * 10000); /* from on their way to asleep */
        OK(LAPI_Term(t_hndl));
        for (i = 0; i < 3; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
        /* Whether they had come to the call or not: it has ended with an error. */
    }
}

static void *finish(void *arg) {
    (void)arg;
    OK(LAPI_Gfence(t_hndl));
    OK(LAPI_Term(t_hndl));
    t_pass();
    exit(0);
}

static void start_finish(lapi_handle_t *hndl, void *info) {
    pthread_t tid;
    (void)hndl, (void)info;
    CHECK_EQ(pthread_create(&tid, NULL, finish, NULL), 0);
}

static void *last_message(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                          void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = start_finish;
    *uinfo = NULL;
    return NULL;
}

static void helper(void) {
    void **handlers;
    uint tgt;
    t_init();
    handlers = t_addresses((void *)last_message);
    traffic(t_hndl, 1);
    tgt = (uint)((t_me + 1) % t_tasks);
    OK(LAPI_Amsend(t_hndl, tgt, handlers[tgt], NULL, 0, NULL, 0, NULL, NULL, NULL));
    /* The handle ends under this call, and the process soon after. */
    LAPI_Waitcntr(t_hndl, &never, 1, NULL);
    for (;;) pause();
}

static void forked(void) {
    int status = -1, value = 0;
    pid_t child;
    t_init();
    traffic(t_hndl, 1);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        RETURNS(LAPI_Probe(t_hndl), LAPI_ERR_HNDL_INVALID);
        RETURNS(LAPI_Put(t_hndl, 0, 1, words, words, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
        RETURNS(LAPI_Qenv(t_hndl, TASK_ID, &value), LAPI_ERR_HNDL_INVALID);
        RETURNS(LAPI_Term(t_hndl), LAPI_ERR_HNDL_INVALID);
        _exit(42);
    }
    traffic(t_hndl, 2); /* while the child is there */
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 42, "the child's status is %#x", status);
    traffic(t_hndl, 3);
    OK(LAPI_Term(t_hndl));
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    int number = argc >= 3 ? atoi(argv[2]) : 0;
    lapi_handle_t h;
    lapi_info_t info = zeroed();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(which, "info") == 0) all_fields();
    else if (strcmp(which, "instances") == 0) instances();
    else if (strcmp(which, "again") == 0) again(number);
    else if (strcmp(which, "leave") == 0) leave();
    else if (strcmp(which, "setenv") == 0) set_env();
    else if (strcmp(which, "threads") == 0) threads(number);
    else if (strcmp(which, "elsewhere") == 0) elsewhere();
    else if (strcmp(which, "inside") == 0) inside();
    else if (strcmp(which, "helper") == 0) helper();
    else if (strcmp(which, "fork") == 0) forked();
    else if (strcmp(which, "code") == 0) RETURNS(LAPI_Init(&h, &info), number);
    else if (strcmp(which, "alone") == 0) {
        t_init();
        CHECK_EQ(t_me, 0);
        CHECK_EQ(t_tasks, 1);
        traffic(t_hndl, 9);
        OK(LAPI_Term(t_hndl));
    } else if (strcmp(which, "plain") == 0) {
        t_init();
        traffic(t_hndl, number);
        OK(LAPI_Term(t_hndl));
    } else T_FAIL("there is no case \"%s\"", which);
    t_pass();
    return 0;
}

/*
 * Threads and processes around LAPI_Init and LAPI_Term: threads CASE [NUMBER]
 *
 *   threads N   names of LAPI's threads, N completion handler threads, thread_init_func
 *   elsewhere   LAPI_Term in another thread than LAPI_Init
 *   inside      LAPI_Term while other threads are inside of calls: those end
 *   helper      LAPI_Gfence, LAPI_Term and exit in a thread that a completion handler has started
 *   late        LAPI_Term while a completion handler runs, and LAPI_Init: the handler's handle is invalid
 *   fork        in a forked child the handle is invalid, and the parent's remains valid
 */
#include "common.h"

#include <sys/wait.h>

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
    int before, entries = count_in("/proc/self/task", NULL), all, i, value = 0, tries;
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
    if (!threads_become(entries)) T_FAIL("a thread of LAPI is still there after LAPI_Term");
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
        usleep(round * 10000); /* from entering the call to asleep */
        OK(LAPI_Term(t_hndl));
        for (i = 0; i < 3; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
        /* Whether they had entered the call or not: it has ended with an error. */
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

static volatile int running, over, returned;
static lapi_handle_t *kept;

static void run_late(lapi_handle_t *hndl, void *info) {
    int value;
    (void)info;
    CHECK_EQ(*hndl, t_hndl);
    kept = hndl;
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) usleep(1000);
    RETURNS(LAPI_Qenv(*hndl, TASK_ID, &value), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Put(*hndl, 0, 0, NULL, NULL, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Term(*hndl), LAPI_ERR_HNDL_INVALID);
    __atomic_store_n(&returned, 1, __ATOMIC_RELEASE);
}

static void *end_late(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                      void **uinfo) {
    CHECK_EQ(*hndl, t_hndl);
    (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = run_late;
    return NULL;
}

static void late(void) {
    t_init();
    OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)end_late, NULL, 0, NULL, 0, NULL, NULL, NULL));
    t_probe_until(&running, 1);
    OK(LAPI_Term(t_hndl));
    t_init();
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    t_probe_until(&returned, 1);
    CHECK_FOR(*kept != t_hndl, "where the handler had its handle is that of now");
    traffic(t_hndl, 1);
    OK(LAPI_Term(t_hndl));
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
        RETURNS(LAPI_Put(t_hndl, 0, 1, &value, &value, NULL, NULL, NULL), LAPI_ERR_HNDL_INVALID);
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
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(which, "threads") == 0 && argc == 3) threads(atoi(argv[2]));
    else if (strcmp(which, "elsewhere") == 0) elsewhere();
    else if (strcmp(which, "inside") == 0) inside();
    else if (strcmp(which, "helper") == 0) helper();
    else if (strcmp(which, "late") == 0) late();
    else if (strcmp(which, "fork") == 0) forked();
    else T_FAIL("there is no case \"%s\"", which);
    t_pass();
    return 0;
}

/*
 * lapi_thread_attr: the attributes with which LAPI creates its threads: attributes CASE
 *
 *   plain      stack size, guard, detached, affinity: in every thread of every handle; the init function's parameters
 *   schedule   a scheduling policy of its own
 *   place      attributes that name a stack, which several threads cannot share
 *   small      the smallest stack that the system knows
 *   refused    attributes that no thread can be made with: LAPI_Init fails, and works afterwards
 *   rename     the init function may name the thread, and start a job of its own
 */
#include "../common/ltest.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { HANDLES = 3, COMPLETION_THREADS = 2, THREADS = COMPLETION_THREADS + 1 };

static volatile int inits[HANDLES], renames;
static size_t stack_size, guard_size;
static int detached, policy = -1;
static int extra;
static char *place;
static size_t place_size;

static void *init(void *parm, void *extra_ptr) {
    pthread_attr_t mine;
    size_t size = 0, guard = 0;
    int state = -1, now = -1;
    void *stack = NULL;
    struct sched_param param;
    cpu_set_t processors;
    char name[16];
    CHECK_PTR(extra_ptr, &extra);
    CHECK_EQ(pthread_getattr_np(pthread_self(), &mine), 0);
    CHECK_EQ(pthread_attr_getstack(&mine, &stack, &size), 0);
    CHECK_EQ(pthread_attr_getguardsize(&mine, &guard), 0);
    CHECK_EQ(pthread_attr_getdetachstate(&mine, &state), 0);
    CHECK_EQ(pthread_attr_destroy(&mine), 0);
    CHECK_FOR(size >= stack_size, "the stack has %zu bytes, not %zu", size, stack_size);
    if (guard_size) CHECK_EQ(guard, guard_size);
    CHECK_EQ(state, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    if (policy >= 0) {
        CHECK_EQ(pthread_getschedparam(pthread_self(), &now, &param), 0);
        CHECK_EQ(now, policy);
    }
    CHECK_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
    CHECK(CPU_COUNT(&processors) >= 1);
    if (place) CHECK_FOR((char *)&mine < place || (char *)&mine >= place + place_size, "a thread is on the one stack");
    /* It has its name already. */
    CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    CHECK_FOR(strncmp(name, "lapi-", 5) == 0, "the thread is \"%s\"", name);
    __atomic_fetch_add((volatile int *)parm, 1, __ATOMIC_RELEASE);
    return NULL;
}

static volatile int completed;
static unsigned char area[300000];

static void completion(lapi_handle_t *hndl, void *info) {
    char room[20000]; /* a handler uses some stack */
    lapi_cntr_t done;
    int me;
    (void)info;
    memset(room, 1, sizeof room);
    bzero(&done, sizeof done);
    OK(LAPI_Qenv(*hndl, TASK_ID, &me));
    OK(LAPI_Put(*hndl, (uint)me, sizeof room, area, room, NULL, NULL, &done));
    OK(LAPI_Waitcntr(*hndl, &done, 1, NULL));
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = completion;
    return area;
}

/* Messages of several sizes to all tasks, with interrupts on and no thread polling. */
static void traffic(lapi_handle_t h) {
    static const ulong lens[] = {0, 100, 20000, sizeof area};
    static unsigned char from[sizeof area];
    void **handlers;
    int tasks, tgt;
    size_t i;
    OK(LAPI_Qenv(h, NUM_TASKS, &tasks));
    handlers = malloc(sizeof *handlers * (size_t)tasks);
    OK(LAPI_Address_init(h, (void *)arrived, handlers));
    completed = 0;
    OK(LAPI_Gfence(h));
    for (i = 0; i < sizeof lens / sizeof *lens; i++)
        for (tgt = 0; tgt < tasks; tgt++) {
            lapi_cntr_t sent;
            bzero(&sent, sizeof sent);
            OK(LAPI_Amsend(h, (uint)tgt, handlers[tgt], NULL, 0, from, lens[i], NULL, &sent, NULL));
            OK(LAPI_Waitcntr(h, &sent, 1, NULL));
        }
    while (__atomic_load_n(&completed, __ATOMIC_ACQUIRE) < (int)(sizeof lens / sizeof *lens) * tasks) usleep(500);
    OK(LAPI_Gfence(h));
    free(handlers);
}

static int threads(void) {
    DIR *dir = opendir("/proc/self/task");
    int count = 0;
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) count++;
    closedir(dir);
    return count;
}

/* Several handles with these attributes, which are destroyed when LAPI_Init has returned. */
static void with(void (*prepare)(pthread_attr_t *)) {
    lapi_handle_t h[HANDLES];
    int i, tries, before = threads();
    for (i = 0; i < HANDLES; i++) {
        pthread_attr_t attributes;
        com_thread_info_t how;
        lapi_info_t info;
        CHECK_EQ(pthread_attr_init(&attributes), 0);
        prepare(&attributes);
        bzero(&how, sizeof how);
        how.thread_attr = &attributes;
        how.thread_init_func = init;
        how.parm_ptr = (void *)&inits[i];
        how.extra_ptr = &extra;
        bzero(&info, sizeof info);
        info.lapi_thread_attr = &how;
        info.num_compl_hndlr_thr = COMPLETION_THREADS;
        inits[i] = 0;
        OK(LAPI_Init(&h[i], &info));
        CHECK_EQ(pthread_attr_destroy(&attributes), 0);
        memset(&attributes, 0x55, sizeof attributes);
        memset(&how, 0x55, sizeof how);
    }
    for (i = 0; i < HANDLES; i++) {
        int tasks, shared, made;
        OK(LAPI_Qenv(h[i], NUM_TASKS, &tasks));
        OK(LAPI_Qenv(h[i], QUERY_SHM_ENABLED, &shared));
        /* The first handle also makes the thread that reports; tasks that share memory have one
         * that connects them. */
        made = THREADS + (i == 0) + (tasks > 1 && shared);
        traffic(h[i]);
        for (tries = 0; inits[i] < made && tries < 10000; tries++) usleep(1000);
        CHECK_EQ(inits[i], made);
    }
    OK(LAPI_Qenv(h[0], TASK_ID, &t_me));
    for (i = 0; i < HANDLES; i++) OK(LAPI_Term(h[i]));
    for (tries = 0; threads() > before && tries < 10000; tries++) usleep(1000);
    CHECK_EQ(threads(), before);
}

static void plain(pthread_attr_t *attributes) {
    CHECK_EQ(pthread_attr_setstacksize(attributes, stack_size), 0);
    CHECK_EQ(pthread_attr_setguardsize(attributes, guard_size), 0);
    if (detached) CHECK_EQ(pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED), 0);
}

static void nothing(pthread_attr_t *attributes) { (void)attributes; }

static void scheduled(pthread_attr_t *attributes) {
    struct sched_param param;
    bzero(&param, sizeof param);
    param.sched_priority = sched_get_priority_min(policy);
    CHECK_EQ(pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED), 0);
    CHECK_EQ(pthread_attr_setschedpolicy(attributes, policy), 0);
    CHECK_EQ(pthread_attr_setschedparam(attributes, &param), 0);
}

static void placed(pthread_attr_t *attributes) { CHECK_EQ(pthread_attr_setstack(attributes, place, place_size), 0); }

static void small(pthread_attr_t *attributes) {
    CHECK_EQ(pthread_attr_setstacksize(attributes, (size_t)PTHREAD_STACK_MIN), 0);
}

static void refused(void) {
    pthread_attr_t attributes;
    com_thread_info_t how;
    lapi_info_t info;
    lapi_handle_t h = 0;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, (size_t)1 << 46), 0);
    bzero(&how, sizeof how);
    how.thread_attr = &attributes;
    bzero(&info, sizeof info);
    info.lapi_thread_attr = &how;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_MEMORY_EXHAUSTED);
    CHECK_EQ(h, LAPI_VOID_HANDLE);
    with(nothing);
}

static void *name_it(void *a, void *b) {
    (void)a, (void)b;
    CHECK_EQ(pthread_setname_np(pthread_self(), "mine"), 0);
    __atomic_fetch_add(&renames, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void rename_them(void) {
    com_thread_info_t how;
    lapi_info_t info;
    char name[16], path[300], text[32];
    DIR *dir;
    struct dirent *entry;
    int found = 0;
    bzero(&how, sizeof how);
    how.thread_init_func = name_it; /* no attributes */
    bzero(&info, sizeof info);
    info.lapi_thread_attr = &how;
    t_init_with(&info);
    traffic(t_hndl);
    /* For messages, for completion handlers, for reports, and where tasks share memory for
     * connections. */
    const int own = 3 + (t_tasks > 1 && t_query(QUERY_SHM_ENABLED));
    while (renames < own) usleep(1000);
    dir = opendir("/proc/self/task");
    while ((entry = readdir(dir)) != NULL) {
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file == NULL) continue;
        if (fgets(text, sizeof text, file) != NULL && sscanf(text, "%15s", name) == 1) {
            found += strcmp(name, "mine") == 0;
            CHECK(strncmp(name, "lapi-", 5) != 0);
        }
        fclose(file);
    }
    closedir(dir);
    CHECK_EQ(found, own);
    t_fence();
    OK(LAPI_Term(t_hndl));
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    t_me = 0;
    if (strcmp(which, "plain") == 0) {
        for (detached = 0; detached < 2; detached++) {
            stack_size = 3u << 20;
            guard_size = 65536;
            with(plain);
        }
        detached = 0;
        stack_size = guard_size = 0;
        with(nothing);
    } else if (strcmp(which, "schedule") == 0) {
        struct sched_param param = {sched_get_priority_min(SCHED_RR)}, none = {0};
        policy = SCHED_OTHER;
        with(scheduled);
        /* Real-time scheduling needs a privilege. */
        if (sched_setscheduler(0, SCHED_RR, &param) == 0) {
            CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
            policy = SCHED_RR;
            with(scheduled);
        }
    } else if (strcmp(which, "place") == 0) {
        stack_size = place_size = 1u << 20;
        place = mmap(NULL, place_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(place != MAP_FAILED);
        with(placed);
    } else if (strcmp(which, "small") == 0) with(small);
    else if (strcmp(which, "refused") == 0) refused();
    else if (strcmp(which, "rename") == 0) rename_them();
    else T_FAIL("there is no case \"%s\"", which);
    t_pass();
    return 0;
}

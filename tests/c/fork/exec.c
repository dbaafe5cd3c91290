/*
 * Programs that a task starts, or becomes: exec CASE ...
 *
 *   spawn SEED       several threads start this program (fork and exec, vfork, posix_spawn, system) while all tasks
 *                    communicate; a completion handler does so too
 *   look FDS MASK    the started program: checks its descriptors and its signals
 *   again N HOW      the whole job calls exec with this program, N times; HOW is "term", or "not" without LAPI_Term
 */
#include "../common/ltest.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* The descriptors that are open now, as a list "0,1,2,", without poe's socket for reports: a
 * process with LAPI keeps that from the programs that it starts. */
static void descriptors(char *list, size_t room) {
    DIR *dir = opendir("/proc/self/fd");
    const char *report = getenv("LAPI_REPORT_FD");
    int skipped = report != NULL ? atoi(report) : -1;
    struct dirent *entry;
    char fds[1024] = {0};
    int fd;
    size_t used = 0;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd != skipped) {
            CHECK(fd >= 0 && fd < (int)sizeof fds);
            fds[fd] = 1;
        }
    }
    closedir(dir);
    *list = 0;
    for (fd = 0; fd < (int)sizeof fds; fd++)
        if (fds[fd]) used += (size_t)snprintf(list + used, room - used, "%d,", fd);
    CHECK(used < room);
}

/* The signals that are blocked, as /proc has them. */
static void blocked(char *mask, size_t room) {
    char line[256];
    FILE *file = fopen("/proc/thread-self/status", "r");
    CHECK(file != NULL);
    *mask = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "SigBlk: %63s", mask) == 1) break;
    fclose(file);
    CHECK(*mask != 0 && strlen(mask) < room);
}

static int look(const char *fds, const char *mask) {
    char now[1024], signals[64];
    descriptors(now, sizeof now);
    blocked(signals, sizeof signals);
    CHECK_FOR(strcmp(now, fds) == 0, "descriptors %s are open in the program that was started, not %s", now, fds);
    CHECK_FOR(strcmp(signals, mask) == 0, "signals %s are blocked in the program that was started, not %s", signals, mask);
    return 0;
}

static char fds_before[1024], mask_before[64], self[4096];

enum { STARTERS = 4, STARTS = 6 };
static volatile int over, started_by_handler;

static void wait_for(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 0, "what was started has ended with %#x", status);
}

static void start(int how) {
    char *args[] = {self, "look", fds_before, mask_before, NULL}, command[8192];
    pid_t child = -1;
    switch (how) {
    case 0:
        child = fork();
        if (child == 0) {
            execv(self, args);
            _exit(3);
        }
        break;
    case 1:
        child = vfork();
        if (child == 0) {
            execv(self, args);
            _exit(3);
        }
        break;
    case 2: CHECK_EQ(posix_spawn(&child, self, NULL, NULL, args, environ), 0); break;
    default:
        snprintf(command, sizeof command, "exec '%s' look '%s' '%s'", self, fds_before, mask_before);
        CHECK_EQ(system(command), 0);
        return;
    }
    CHECK(child > 0);
    wait_for(child);
}

static uint64_t seed;

static void *starter(void *arg) {
    uint64_t random = t_seed(seed, (uint64_t)t_me, (uint64_t)(uintptr_t)arg);
    int i;
    for (i = 0; i < STARTS; i++) {
        usleep((useconds_t)t_below(&random, 2000));
        start((int)t_below(&random, 4));
    }
    __atomic_fetch_add(&over, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void starting(lapi_handle_t *hndl, void *info) {
    (void)hndl, (void)info;
    start(0);
    __atomic_fetch_add(&started_by_handler, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = starting;
    return NULL;
}

static void spawn(void) {
    static unsigned char area[16][4096], from[4096], back[4096];
    void **areas, **handlers;
    pthread_t tids[STARTERS];
    lapi_cntr_t done;
    uintptr_t number;
    uint64_t random = t_seed(seed, (uint64_t)t_me, 77);
    int i;
    t_init();
    areas = t_addresses(area);
    handlers = t_addresses((void *)arrived);
    bzero(&done, sizeof done);
    for (number = 0; number < STARTERS; number++)
        CHECK_EQ(pthread_create(&tids[number], NULL, starter, (void *)number), 0);
    OK(LAPI_Amsend(t_hndl, (uint)((t_me + 1) % t_tasks), handlers[(t_me + 1) % t_tasks], NULL, 0, NULL, 0, NULL, NULL,
                   NULL));
    for (i = 0; over < STARTERS || started_by_handler < 1; i++) {
        int tgt = (int)t_below(&random, (uint64_t)t_tasks);
        size_t len = t_below(&random, sizeof from + 1);
        t_fill(from, len, (uint64_t)i);
        OK(LAPI_Put(t_hndl, (uint)tgt, len, (char *)areas[tgt] + t_me * 4096, from, NULL, NULL, &done));
        t_wait_exact(&done, 1);
        OK(LAPI_Get(t_hndl, (uint)tgt, len, (char *)areas[tgt] + t_me * 4096, back, NULL, &done));
        t_wait_exact(&done, 1);
        CHECK_FILLED(back, len, (uint64_t)i);
    }
    for (number = 0; number < STARTERS; number++) CHECK_EQ(pthread_join(tids[number], NULL), 0);
    t_done();
}

static void again(int left, const char *how) {
    char text[16], *args[] = {self, "again", text, (char *)how, fds_before, mask_before, NULL};
    static long long sum;
    long long one = 1, previous = -1;
    void **sums;
    int tgt;
    t_init();
    sums = t_addresses(&sum);
    for (tgt = 0; tgt < t_tasks; tgt++) {
        lapi_cntr_t done;
        bzero(&done, sizeof done);
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (uint)tgt, sums[tgt], &one, &previous, &done));
        t_wait_exact(&done, 1);
    }
    t_fence();
    CHECK_EQ(sum, t_tasks);
    t_fence();
    if (strcmp(how, "term") == 0) OK(LAPI_Term(t_hndl));
    if (left == 0) {
        t_pass();
        exit(0);
    }
    snprintf(text, sizeof text, "%d", left - 1);
    execv(self, args);
    T_FAIL("execv has returned");
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(len > 0);
    descriptors(fds_before, sizeof fds_before);
    blocked(mask_before, sizeof mask_before);
    if (strcmp(which, "look") == 0 && argc == 4) return look(argv[2], argv[3]);
    if (strcmp(which, "spawn") == 0 && argc == 3) seed = (uint64_t)atoi(argv[2]), spawn();
    else if (strcmp(which, "again") == 0 && argc >= 4) {
        if (argc == 6) look(argv[4], argv[5]); /* the previous program has left nothing open */
        again(atoi(argv[2]), argv[3]);
    } else T_FAIL("there is no case \"%s\"", which);
    return 0;
}

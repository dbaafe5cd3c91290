/*
 * Who is alive: alive HOW WHAT
 *
 * HOW: "hidden": /proc shows no task to another one, "undumpable": no task may look into another
 * one, as where the program's file may not be read, "plain": as the program's file has it,
 * "parted": the main thread ends, and another one does everything.
 * WHAT: "put": each task puts to the next one, "die": task 1 is killed, and the others put to each
 * other after that.
 */
#define _GNU_SOURCE
#include <lapi.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static lapi_handle_t hndl;
static char from[1 << 20], to[1 << 20];
static lapi_cntr_t came, done;
static int me, tasks, dies;
static volatile int losses;

#define CHECK(what) ((what) ? (void)0 : (printf("task %d: not so: %s\n", me, #what), fflush(stdout), _exit(199)))

static void on_error(lapi_handle_t *h, int *code, lapi_err_t *type, int *task, int *src) {
    (void)h, (void)type, (void)task;
    if (!dies || *src != 1 || *code != LAPI_ERR_NO_CONNECTIVITY) {
        printf("task %d: error %d blames task %d\n", me, *code, *src);
        fflush(stdout);
        _exit(199);
    }
    losses++;
}

/* What the kernel does with a program that its user may not read. The right to look into all
 * processes would go past it. */
static void protect(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    CHECK(syscall(SYS_capget, &head, sets) == 0);
    sets[0].effective &= ~(1u << CAP_SYS_PTRACE), sets[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    CHECK(syscall(SYS_capset, &head, sets) == 0);
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
}

static void hide(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) {
        puts("SKIP");
        exit(0);
    }
    protect();
}

static void put_to(int task) {
    CHECK(LAPI_Put(hndl, task, sizeof to, to, from, &came, NULL, &done) == LAPI_SUCCESS);
    CHECK(LAPI_Waitcntr(hndl, &came, 1, NULL) == LAPI_SUCCESS && LAPI_Waitcntr(hndl, &done, 1, NULL) == LAPI_SUCCESS);
}

static void *run(void *nothing) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    CHECK(LAPI_Init(&hndl, &info) == LAPI_SUCCESS);
    CHECK(LAPI_Qenv(hndl, TASK_ID, &me) == LAPI_SUCCESS && LAPI_Qenv(hndl, NUM_TASKS, &tasks) == LAPI_SUCCESS);
    sleep(1);
    memset(from, 'a' + me, sizeof from);
    put_to((me + 1) % tasks);
    CHECK(to[sizeof to - 1] == 'a' + (me + tasks - 1) % tasks);
    CHECK(LAPI_Gfence(hndl) == LAPI_SUCCESS);
    if (dies && me == 1) raise(SIGKILL);
    if (dies) {
        /* A death is reported to a task that wants something of the dead one. */
        while (losses == 0) {
            int code = LAPI_Put(hndl, 1, 8, to, from, NULL, NULL, NULL);
            CHECK(code == LAPI_SUCCESS || code == LAPI_ERR_NO_CONNECTIVITY);
            CHECK(LAPI_Probe(hndl) == LAPI_SUCCESS), usleep(1000);
        }
        /* The others are looked at from now on by those that have looked at task 1. */
        for (int i = 0; i < 500; i++) CHECK(LAPI_Probe(hndl) == LAPI_SUCCESS), usleep(1000);
        int next = (me + 1) % tasks;
        put_to(next == 1 ? 2 : next);
        CHECK(losses == 1);
    } else {
        CHECK(LAPI_Gfence(hndl) == LAPI_SUCCESS);
    }
    CHECK(LAPI_Term(hndl) == LAPI_SUCCESS);
    printf("PASS %d\n", me);
    fflush(stdout);
    exit(0);
    return nothing;
}

int main(int argc, char **argv) {
    pthread_t thread;
    CHECK(argc == 3);
    /* Not every launcher ends the others when the test gives up. */
    alarm(600);
    dies = strcmp(argv[2], "die") == 0;
    if (strcmp(argv[1], "hidden") == 0) hide(), run(NULL);
    if (strcmp(argv[1], "undumpable") == 0) protect(), run(NULL);
    if (strcmp(argv[1], "plain") == 0) run(NULL);
    CHECK(strcmp(argv[1], "parted") == 0);
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    pthread_exit(NULL);
}

/* A job that is interrupted, or whose task dies: each task has made 5 puts of 100 bytes and 3
 * fences before. */
#include "../common/ltest.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static char board[128], source[128];
static volatile sig_atomic_t caught;
static int slow;

static void on_term(int signal)
{
    caught = signal;
}

/* In the place of the C library's: the profiler ends the process by it, once its part
 * is written. */
int raise(int signal)
{
    struct timespec moment = {2, 500000000};
    if (slow)
        nanosleep(&moment, NULL);
    return (int)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

__attribute__((noinline)) void put_five(void)
{
    lapi_cntr_t done = {0};
    for (int i = 0; i < 5; i++)
        OK(LAPI_Put(t_hndl, (uint)(t_me + 1) % (uint)t_tasks, 100, board, source, NULL, NULL, &done));
    OK(LAPI_Waitcntr(t_hndl, &done, 5, NULL));
}

/* No task increments this counter. */
static void wait_for_ever(void)
{
    lapi_cntr_t never = {0};
    LAPI_Waitcntr(t_hndl, &never, 1, NULL);
    T_FAIL("a counter that no task increments was incremented");
}

/* Waits for an interim part that was begun after this call. */
static void next_interim_part(void)
{
    char part[1024];
    struct stat found;
    struct timespec moment = {0, 10000000};
    snprintf(part, sizeof part, "%s/part-%d.interim.json", getenv("LAPIPROF_OUT"), t_me);
    /* The first one after this may have been begun before it. */
    for (int i = 0; i < 2; i++) {
        unlink(part);
        while (stat(part, &found) != 0)
            nanosleep(&moment, NULL);
    }
}

/* A child has no profile, and is ended by a signal as usual. */
static void end_a_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    CHECK_EQ(kill(child, SIGTERM), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void (*found)(int);

static void on_term_chained(int signal)
{
    found(signal);
}

/* A handler that the program has installed after LAPI_Init, and that calls the one it has found, in
 * a child that opens LAPI itself. */
static void end_a_child_by_its_handler(void)
{
    int status;
    found = signal(SIGTERM, on_term_chained);
    CHECK(found != SIG_DFL && found != SIG_ERR);
    pid_t child = fork();
    if (child == 0) {
        lapi_handle_t hndl;
        lapi_info_t info = {0};
        char partition[16];
        snprintf(partition, sizeof partition, "%d", (int)getpid());
        CHECK_EQ(setenv("MP_CHILD", "0", 1), 0);
        CHECK_EQ(setenv("MP_PROCS", "1", 1), 0);
        CHECK_EQ(setenv("MP_PARTITION", partition, 1), 0);
        CHECK_EQ(unsetenv("MP_COMMON_TASKS"), 0);
        OK(LAPI_Init(&hndl, &info));
        raise(SIGTERM);
        _exit(3);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    signal(SIGTERM, SIG_DFL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int own = strcmp(how, "handler") == 0;
    int dies = strcmp(how, "segv") == 0 || strcmp(how, "abort") == 0 || strcmp(how, "kill") == 0;
    slow = strcmp(how, "slow") == 0;
    if (own)
        signal(SIGTERM, on_term);
    t_init();
    /* Every task has put its data before any of them ends. */
    OK(LAPI_Gfence(t_hndl));
    put_five();
    OK(LAPI_Gfence(t_hndl));
    if (dies) OK(LAPI_Senv(t_hndl, INTERRUPT_SET, 0));
    OK(LAPI_Gfence(t_hndl));
    if (strcmp(how, "child") == 0) {
        end_a_child();
        t_done();
        return 0;
    }
    if (strcmp(how, "chain") == 0) {
        end_a_child_by_its_handler();
        t_done();
        return 0;
    }
    if (t_me == 1 && strcmp(how, "segv") == 0)
        *(volatile int *)16 = 1;
    if (strcmp(how, "exit") == 0)
        _exit(0);
    if (t_me == 1 && strcmp(how, "abort") == 0)
        abort();
    if (t_me == 1 && strcmp(how, "kill") == 0) {
        next_interim_part();
        raise(SIGKILL);
    }
    /* Outside LAPI: inside, it could notice the death, and end, before poe has seen which task
     * died first. */
    while (dies) pause();
    printf("READY %d\n", t_me);
    fflush(stdout);
    if (own) {
        while (!caught)
            OK(LAPI_Probe(t_hndl));
        CHECK_EQ(caught, SIGTERM);
        OK(LAPI_Term(t_hndl));
        printf("HANDLED %d\n", t_me);
        return 0;
    }
    wait_for_ever();
}

/*
 * instructions: one call, many times, for counting instructions under callgrind.
 *
 *     instructions put|amsend|get|self|probe|getcntr|satisfied|put-arrives|amsend-arrives|get-arrives|
 *                  reply-arrives|gfence CALLS FILE
 *
 * Task 0 calls measured(), in which each iteration is one call of 8 bytes to task 1 (self: to
 * itself, with the wait for its origin counter; get: where task 1 is quick, a call takes the reply
 * to one before, too; probe, getcntr: LAPI_Probe, LAPI_Getcntr when nothing has arrived). Task 1
 * polls. run.sh counts what measured() costs.
 *
 * satisfied: each iteration is LAPI_Waitcntr for a counter that has its value already. put-arrives,
 * amsend-arrives: each iteration is LAPI_Waitcntr when one message of task 1 is in the ring that
 * raises the counter; get-arrives: LAPI_Probe when one get of task 1 is there; reply-arrives:
 * LAPI_Waitcntr when the reply to a get is; gfence: LAPI_Gfence when task 1 is in it. The tasks
 * know from FILE, which both map, when it is there.
 */
#include <fcntl.h>
#include <lapi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static lapi_handle_t hndl;
static long long cell, value;
static lapi_cntr_t done;
static int tasks, me;
/* `cell` of task 1. */
static void *there;

/* What the two tasks tell each other beside LAPI. */
static volatile struct turns {
    void *cell;
    lapi_cntr_t *counter;
    int sent, taken;
} *turns;

static void check(int rc, const char *what)
{
    char text[LAPI_MAX_ERR_STRING];
    if (rc == LAPI_SUCCESS)
        return;
    LAPI_Msg_string(rc, text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static void *header_handler(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                            void **user_info)
{
    (void)h, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = NULL;
    *user_info = NULL;
    return &cell;
}

__attribute__((noinline)) void measured(const char *what, int calls)
{
    int i, left;
    if (!strcmp(what, "put"))
        for (i = 0; i < calls; i++)
            check(LAPI_Put(hndl, 1, sizeof value, &cell, &value, NULL, NULL, NULL), "LAPI_Put");
    else if (!strcmp(what, "amsend"))
        for (i = 0; i < calls; i++)
            check(LAPI_Amsend(hndl, 1, (void *)1, NULL, 0, &value, sizeof value, NULL, NULL, NULL), "LAPI_Amsend");
    else if (!strcmp(what, "get"))
        for (i = 0; i < calls; i++)
            check(LAPI_Get(hndl, 1, sizeof value, there, &value, NULL, &done), "LAPI_Get");
    else if (!strcmp(what, "probe"))
        for (i = 0; i < calls; i++)
            check(LAPI_Probe(hndl), "LAPI_Probe");
    else if (!strcmp(what, "getcntr"))
        for (i = 0; i < calls; i++)
            check(LAPI_Getcntr(hndl, &done, &left), "LAPI_Getcntr");
    else
        for (i = 0; i < calls; i++) {
            check(LAPI_Put(hndl, me, sizeof value, &cell, &value, NULL, &done, NULL), "LAPI_Put");
            check(LAPI_Waitcntr(hndl, &done, 1, &left), "LAPI_Waitcntr");
        }
}

__attribute__((noinline)) void measured_wait(void)
{
    check(LAPI_Waitcntr(hndl, &done, 1, NULL), "LAPI_Waitcntr");
}

__attribute__((noinline)) void measured_probe(void)
{
    check(LAPI_Probe(hndl), "LAPI_Probe");
}

__attribute__((noinline)) void measured_gfence(void)
{
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
}

static void wait_often(int calls)
{
    int i;
    for (i = 0; i < calls; i++) {
        check(LAPI_Setcntr(hndl, &done, 1), "LAPI_Setcntr");
        measured_wait();
    }
}

static void map_turns(const char *name)
{
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *turns) != 0) {
        perror(name);
        exit(1);
    }
    turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (turns == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    close(file);
    if (me == 0) {
        turns->cell = &cell;
        turns->counter = &done;
    }
}

static void take_replies(int calls)
{
    int i;
    for (i = 0; i < calls; i++)
        if (me == 0) {
            check(LAPI_Get(hndl, 1, sizeof value, there, &value, NULL, &done), "LAPI_Get");
            turns->sent = i + 1;
            while (turns->taken == i)
                sched_yield();
            measured_wait();
        } else {
            while (turns->sent == i)
                sched_yield();
            check(LAPI_Probe(hndl), "LAPI_Probe");
            turns->taken = i + 1;
        }
}

static void meet(int calls)
{
    int i, yields;
    for (i = 0; i < calls; i++)
        if (me == 0) {
            while (turns->sent == i)
                sched_yield();
            for (yields = 0; yields < 100; yields++)
                sched_yield();
            measured_gfence();
            turns->taken = i + 1;
        } else {
            turns->sent = i + 1;
            check(LAPI_Gfence(hndl), "LAPI_Gfence");
            while (turns->taken == i)
                sched_yield();
        }
}

static void take_turns(const char *what, int calls)
{
    int i;
    for (i = 0; i < calls; i++) {
        if (me == 0) {
            while (turns->sent == i)
                sched_yield();
            if (!strcmp(what, "get-arrives"))
                measured_probe();
            else
                measured_wait();
            turns->taken = i + 1;
            continue;
        }
        while (turns->taken != i)
            sched_yield();
        if (!strcmp(what, "get-arrives"))
            check(LAPI_Get(hndl, 0, sizeof value, turns->cell, &value, NULL, &done), "LAPI_Get");
        else if (!strcmp(what, "put-arrives"))
            check(LAPI_Put(hndl, 0, sizeof value, turns->cell, &value, turns->counter, NULL, NULL), "LAPI_Put");
        else
            check(LAPI_Amsend(hndl, 0, (void *)1, NULL, 0, &value, sizeof value, turns->counter, NULL, NULL), "LAPI_Amsend");
        turns->sent = i + 1;
        if (!strcmp(what, "get-arrives"))
            check(LAPI_Waitcntr(hndl, &done, 1, NULL), "LAPI_Waitcntr");
    }
}

int main(int argc, char **argv)
{
    lapi_info_t info;
    void *cells[2];
    int i, calls = argc > 3 ? atoi(argv[2]) : 0;
    if (calls < 1) {
        fprintf(stderr,
                "usage: instructions put|amsend|get|self|probe|getcntr|satisfied|put-arrives|amsend-arrives|get-arrives|"
                "reply-arrives|gfence CALLS FILE\n");
        return 2;
    }
    memset(&info, 0, sizeof info);
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    check(LAPI_Senv(hndl, INTERRUPT_SET, 0), "LAPI_Senv");
    check(LAPI_Addr_set(hndl, (void *)header_handler, 1), "LAPI_Addr_set");
    check(LAPI_Address_init(hndl, &cell, cells), "LAPI_Address_init");
    there = cells[1];
    map_turns(argv[3]);
    /* The thread of interrupt mode takes the lock once more when it comes to rest, and under
       valgrind it runs when this one sleeps. A thread that has been alone for some calls takes the
       lock in a cheaper way. */
    usleep(100000);
    for (i = 0; i < 1000; i++) check(LAPI_Probe(hndl), "LAPI_Probe");
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (!strcmp(argv[1], "reply-arrives"))
        take_replies(calls + 100);
    else if (!strcmp(argv[1], "gfence"))
        meet(calls + 100);
    else if (strstr(argv[1], "-arrives"))
        take_turns(argv[1], calls + 100);
    else if (me == 0 && !strcmp(argv[1], "satisfied"))
        wait_often(calls + 100);
    else if (me == 0) {
        measured(argv[1], 100);
        check(LAPI_Fence(hndl), "LAPI_Fence");
        measured(argv[1], calls);
    }
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    check(LAPI_Term(hndl), "LAPI_Term");
    return 0;
}

/*
 * Task 1 leaves the job for a checkpoint and comes back, several times, while the others send to
 * each other and to it without a pause (lapi_checkpoint.h).
 * checkpoint CASE [STATE END]
 *
 *   errors  one task: which calls are refused when
 *   stays   the process lives on, as an outside checkpointer would leave it: it sleeps for a while
 *   moves   the process saves its data in the file STATE, and ends with exit status 75, by LAPI_Term unless END is "exit":
 *           the program is to be started again then with the same arguments, and goes on from STATE
 *   all     every task does that, after a fence; the name of its file is STATE with the task's number. None comes back before
 *           the processes of all have ended; when END is "late", task 0 comes some time after the others
 *   alone   task 1 leaves as in "moves", once, and comes back when all others have ended LAPI
 *   second  the program that follows in the same job
 *   dies    task 1 is killed while it waits for task 2, which does not answer, to let it part: the others go on, and leave
 *           and come back themselves, more than once
 *   left    task 0 kills task 1 when it has parted from it: it comes back, and leaves again
 *
 * Addresses are those of variables: the same in each process of this program.
 */
#include "../common/ltest.h"

#include <lapi_checkpoint.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

enum { LARGE = 100000, MOST = 16, WINDOW = 8, ROUNDS = 4, GREETINGS = 20, AGAIN = 75, LEAVER = 1, RELAYED = 2 };

/* What task 1 takes with it into its next process. */
static struct {
    int round, process; /* this one, which ends when it has saved it */
    volatile int handled[MOST], shared, small[MOST];
    unsigned char large[MOST][LARGE];
    lapi_cntr_t landed;
} state;

static unsigned char from[LARGE], back[LARGE];
static volatile int replies, greetings, relayed, refused;
static volatile int lost;
static int operations, dies;
static char file[1024];

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type, (void)task;
    if (dies && *code == LAPI_ERR_NO_CONNECTIVITY && *src == LEAVER) {
        lost++;
        return;
    }
    T_FAIL("the error handler got %d about task %d", *code, *src);
}

static void *of_reply(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr_len, (void)msg_len;
    __sync_add_and_fetch(*(int *)uhdr == RELAYED ? &relayed : *(int *)uhdr ? &greetings : &replies, 1);
    *comp_h = NULL;
    *uinfo = NULL;
    return NULL;
}

/* A handler that answers by a message whose completion is not waited for. */
static void answer(lapi_handle_t *hndl, void *to) {
    int greeting = 0;
    usleep(50);
    __sync_add_and_fetch(&state.handled[(uintptr_t)to], 1);
    OK(LAPI_Amsend(*hndl, (uint)(uintptr_t)to, (void *)of_reply, &greeting, sizeof greeting, NULL, 0, NULL, NULL, NULL));
}

static void *of_request(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    int relayed_to = (*(int *)uhdr + 1) % t_tasks, note = RELAYED;
    (void)uhdr_len, (void)msg_len;
    /* To a third task, from the header handler: one of the two may be about to part. */
    while (relayed_to == t_me || relayed_to == LEAVER) relayed_to = (relayed_to + 1) % t_tasks;
    OK(LAPI_Amsend(*hndl, (uint)relayed_to, (void *)of_reply, &note, sizeof note, NULL, 0, NULL, NULL, NULL));
    *comp_h = answer;
    *uinfo = (void *)(uintptr_t) * (int *)uhdr;
    return NULL;
}

/* One operation of each kind to a task, which completes in any case. */
static void operate(uint tgt, int number, lapi_cntr_t *cmpl) {
    static int previous[MOST], one = 1;
    lapi_cntr_t got;
    bzero(&got, sizeof got);
    OK(LAPI_Put(t_hndl, tgt, sizeof number, (void *)&state.small[t_me], &number, &state.landed, NULL, cmpl));
    OK(LAPI_Amsend(t_hndl, tgt, (void *)of_request, &t_me, sizeof t_me, NULL, 0, NULL, NULL, NULL));
    OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, tgt, (int *)&state.shared, &one, &previous[tgt], cmpl));
    t_wait_exact(cmpl, 2);
    if (number % WINDOW == 0) {
        t_fill(from, LARGE, (uint64_t)number);
        OK(LAPI_Put(t_hndl, tgt, LARGE, state.large[t_me], from, &state.landed, NULL, cmpl));
        t_wait_exact(cmpl, 1);
        OK(LAPI_Get(t_hndl, tgt, LARGE, state.large[t_me], back, NULL, &got));
        t_wait_exact(&got, 1);
        CHECK_FILLED(back, LARGE, (uint64_t)number);
    }
}

/* Operations whose counters are not waited for one by one. */
static void stream(uint tgt, int number, lapi_cntr_t *cmpl) {
    int i;
    for (i = 0; i < WINDOW; i++)
        OK(LAPI_Put(t_hndl, tgt, sizeof number, (void *)&state.small[t_me], &number, &state.landed, NULL, cmpl));
    t_wait_exact(cmpl, WINDOW);
}

/* How often the counter of a task rises by one round of `work` of one other task. */
static int landings(int rounds) {
    return rounds * (1 + WINDOW) + rounds / WINDOW;
}

static void work(int begin, int end) {
    lapi_cntr_t cmpl;
    int number, tgt;
    bzero(&cmpl, sizeof cmpl);
    for (number = begin + 1; number <= end; number++)
        for (tgt = 0; tgt < t_tasks; tgt++) {
            if (tgt == t_me) continue;
            operate((uint)tgt, number, &cmpl);
            stream((uint)tgt, number, &cmpl);
        }
}

static void save(void) {
    char part[sizeof file + 8];
    FILE *to;
    state.process = (int)getpid();
    snprintf(part, sizeof part, "%s.part", file);
    to = fopen(part, "w");
    CHECK(to != NULL);
    CHECK_EQ(fwrite(&state, sizeof state, 1, to), 1);
    CHECK_EQ(fclose(to), 0);
    CHECK_EQ(rename(part, file), 0);
}

/* Before LAPI_Init: what others have sent meanwhile may arrive at once after it. */
static void restore(void) {
    FILE *saved = fopen(file, "r");
    if (saved == NULL) return;
    CHECK_EQ(fread(&state, sizeof state, 1, saved), 1);
    fclose(saved);
}

/* Until every task has left as often as this one, and its process has ended, which would accept a
 * connection until then. */
static void until_all_have_left(const char *name) {
    int task;
    for (task = 0; task < atoi(getenv("MP_PROCS")); task++) {
        int left[2] = {-1, 0}; /* round and process */
        for (; left[0] < state.round || kill(left[1], 0) == 0; usleep(1000)) {
            char other[sizeof file];
            FILE *saved;
            snprintf(other, sizeof other, "%s%d", name, task);
            saved = fopen(other, "r");
            if (saved == NULL) continue;
            CHECK_EQ(fread(left, sizeof left, 1, saved), 1);
            fclose(saved);
        }
    }
}

static void leave(const char *end) {
    save();
    if (strcmp(end, "exit") != 0) OK(LAPI_Term(t_hndl));
    exit(AGAIN);
}

static int all_handled(void) {
    int task, sum = 0;
    for (task = 0; task < t_tasks; task++) sum += state.handled[task];
    return sum;
}

/* Task 1: comes and goes while requests arrive. */
static void come_and_go(int moves, const char *end) {
    int tgt, i, greeting = 1, before;
    while (state.round < ROUNDS) {
        int until = (t_tasks - 1) * operations / 2 * (state.round + 1) / (ROUNDS + 2);
        while (all_handled() < until) OK(LAPI_Probe(t_hndl));
        for (tgt = 0; tgt < t_tasks; tgt++)
            for (i = 0; i < GREETINGS && tgt != LEAVER; i++)
                OK(LAPI_Amsend(t_hndl, (uint)tgt, (void *)of_reply, &greeting, sizeof greeting, NULL, 0, NULL, NULL, NULL));
        OK(lapi_checkpoint_before(t_hndl));
        RETURNS(lapi_checkpoint_before(t_hndl), LAPI_ERR_CKPT);
        RETURNS(LAPI_Put(t_hndl, 0, 0, NULL, NULL, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
        OK(LAPI_Fence(t_hndl));
        before = all_handled();
        state.round++;
        if (moves) leave(end);
        usleep(150000);
        OK(LAPI_Probe(t_hndl));
        CHECK_EQ(all_handled(), before); /* nothing arrives meanwhile */
        OK(lapi_checkpoint_after(t_hndl));
        RETURNS(lapi_checkpoint_after(t_hndl), LAPI_ERR_CKPT);
    }
}

/* How many messages others have relayed to this task. */
static int relays(void) {
    int from, by, to, sum = 0;
    for (from = 0; from < t_tasks; from++)
        for (by = 0; by < t_tasks; by++) {
            if (from == LEAVER || by == from) continue;
            for (to = (from + 1) % t_tasks; to == by || to == LEAVER; to = (to + 1) % t_tasks) continue;
            if (to == t_me) sum += operations;
        }
    return sum;
}

/* All has come, and nothing twice. */
static void examine(void) {
    int task, others = t_tasks - 1, senders = t_me == LEAVER ? others : others - 1;
    for (task = 0; task < t_tasks; task++) {
        if (task == t_me || task == LEAVER) continue;
        while (state.handled[task] < operations) OK(LAPI_Probe(t_hndl));
        CHECK_EQ(state.handled[task], operations);
        CHECK_EQ(state.small[task], operations);
        CHECK_FILLED(state.large[task], LARGE, (uint64_t)(operations - operations % WINDOW));
    }
    CHECK_EQ(state.shared, senders * operations);
    CHECK_EQ(t_value(&state.landed), senders * landings(operations));
    if (t_me == LEAVER) return;
    t_probe_until(&replies, others * operations);
    t_probe_until(&greetings, ROUNDS * GREETINGS);
    t_probe_until(&relayed, relays());
    t_fence();
    CHECK_EQ(replies, others * operations);
    CHECK_EQ(greetings, ROUNDS * GREETINGS);
    CHECK_EQ(relayed, relays());
}

static void one_leaves(int moves, const char *end) {
    operations = t_rounds(200) / WINDOW * WINDOW;
    if (t_me == LEAVER) {
        come_and_go(moves, end);
        /* Others may have waited in this for long. */
        t_fence();
        t_fence();
        examine();
        t_fence();
        return;
    }
    work(0, operations / 2);
    t_fence();
    work(operations / 2, operations);
    t_fence();
    examine();
}

static void all_leave(const char *end) {
    int next = (t_me + 1) % t_tasks, got = t_me;
    lapi_handle_t second;
    lapi_info_t info;
    lapi_cntr_t cmpl;
    bzero(&info, sizeof info);
    if (end == NULL) OK(LAPI_Init(&second, &info));
    for (; state.round < ROUNDS;) {
        bzero(&cmpl, sizeof cmpl);
        OK(LAPI_Put(t_hndl, (uint)next, sizeof got, (void *)&state.small[state.round], &got, NULL, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        t_fence();
        CHECK_EQ(state.small[state.round], (t_me + t_tasks - 1) % t_tasks);
        state.round++;
        OK(lapi_checkpoint_before(t_hndl));
        if (end != NULL) leave(end);
        OK(LAPI_Gfence(second));
        OK(lapi_checkpoint_after(t_hndl));
    }
    if (end == NULL) OK(LAPI_Term(second));
    t_fence();
}

/* Whether this file is there; with a task's number at the end unless that is negative. */
static int is_there(const char *name, int task) {
    char other[sizeof file];
    snprintf(other, sizeof other, task < 0 ? "%s" : "%s%d", name, task);
    return access(other, F_OK) == 0;
}

static void until_others_have_ended(const char *name) {
    int task;
    for (task = 0; task < atoi(getenv("MP_PROCS")); task++)
        while (task != LEAVER && !is_there(name, task)) usleep(1000);
}

/* Task 1 comes back to the LAPI that it has left, and not to that of the next program. */
static void others_end(const char *name, const char *end) {
    char note[sizeof file + 16];
    int code;
    if (t_me != LEAVER) {
        while (!is_there(name, -1)) OK(LAPI_Probe(t_hndl));
        OK(LAPI_Term(t_hndl));
        snprintf(note, sizeof note, "%s%d", name, t_me);
        CHECK(fclose(fopen(note, "w")) == 0);
        return;
    }
    if (state.round++ == 0) {
        OK(lapi_checkpoint_before(t_hndl));
        leave(end);
    }
    /* A network does not tell it apart from a task that comes late. */
    if (getenv("LAPI_USE_SHM") == NULL) {
        code = LAPI_Put(t_hndl, 0, sizeof code, (void *)&state.small[LEAVER], &state.round, NULL, NULL, NULL);
        if (code != LAPI_ERR_NO_CONNECTIVITY) CHECK_EQ(code, LAPI_SUCCESS);
    }
    OK(LAPI_Term(t_hndl));
}

static void *die_later(void *unused) {
    usleep(300000);
    kill(getpid(), SIGKILL);
    return unused;
}

/* A survivor leaves and comes back, and tells the other one. */
static void come_back(int other) {
    int i, here = 1, code;
    static lapi_cntr_t cmpl, never;
    for (i = 0; i < 3; i++) {
        OK(lapi_checkpoint_before(t_hndl));
        OK(lapi_checkpoint_after(t_hndl));
    }
    /* Nobody waits for task 1. */
    code = LAPI_Put(t_hndl, LEAVER, 0, NULL, NULL, NULL, NULL, &never);
    if (code != LAPI_ERR_NO_CONNECTIVITY) {
        CHECK_EQ(code, LAPI_SUCCESS);
        OK(LAPI_Fence(t_hndl));
        CHECK_EQ(lost, 1);
    }
    OK(LAPI_Put(t_hndl, (uint)other, sizeof here, (void *)&state.small[t_me], &here, NULL, NULL, &cmpl));
    t_wait_exact(&cmpl, 1);
}

static void one_dies(void) {
    enum { MUTE = 2 };
    void **processes = t_processes();
    pthread_t killer;
    lapi_cntr_t cmpl;
    int tgt;
    CHECK_EQ(t_tasks, 3);
    bzero(&cmpl, sizeof cmpl);
    /* All are connected, and owe each other nothing. */
    for (tgt = 0; tgt < t_tasks; tgt++)
        if (tgt != t_me) {
            OK(LAPI_Put(t_hndl, (uint)tgt, 0, NULL, NULL, NULL, NULL, &cmpl));
            t_wait_exact(&cmpl, 1);
        }
    OK(LAPI_Fence(t_hndl));
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me == LEAVER) {
        t_until_outside(processes[MUTE]);
        CHECK_EQ(pthread_create(&killer, NULL, die_later, NULL), 0);
        OK(lapi_checkpoint_before(t_hndl));
        T_FAIL("a task has left that another one did not let part");
    }
    if (t_me == MUTE) {
        t_leaves();
        t_until_ended(processes[LEAVER]);
        t_probe_until(&state.small[0], 1);
        come_back(0);
    } else {
        /* Grants what task 1 asks. */
        while (t_state_of(processes[LEAVER]) != 'Z' && t_state_of(processes[LEAVER]) != 'X') OK(LAPI_Probe(t_hndl));
        come_back(MUTE);
        t_probe_until(&state.small[MUTE], 1);
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
}

/* A task that has died after another one has parted from it is not waited for when that one leaves
 * again. */
static void one_is_left(void) {
    void **processes = t_processes();
    int here = 1;
    lapi_cntr_t cmpl;
    CHECK_EQ(t_tasks, 3);
    bzero(&cmpl, sizeof cmpl);
    t_fence();
    if (t_me == LEAVER) t_wait(&cmpl, 1);
    if (t_me == 0) {
        OK(lapi_checkpoint_before(t_hndl));
        CHECK_EQ(kill((pid_t)(intptr_t)processes[LEAVER], SIGKILL), 0);
        t_until_ended(processes[LEAVER]);
        OK(lapi_checkpoint_after(t_hndl));
        OK(lapi_checkpoint_before(t_hndl));
        OK(lapi_checkpoint_after(t_hndl));
        OK(LAPI_Put(t_hndl, 2, sizeof here, (void *)&state.small[0], &here, NULL, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        /* Another process may still come: the program decides. */
        OK(LAPI_Purge_totask(t_hndl, LEAVER));
    } else {
        t_probe_until(&state.small[0], 1);
    }
    OK(LAPI_Term(t_hndl));
    t_pass();
}

static void refuses(lapi_handle_t *hndl, void *unused) {
    (void)unused;
    RETURNS(lapi_checkpoint_before(*hndl), LAPI_ERR_CKPT);
    refused++;
}

static void *refuses_here(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                          void **uinfo) {
    (void)uhdr, (void)uhdr_len, (void)msg_len;
    RETURNS(lapi_checkpoint_before(*hndl), LAPI_ERR_CKPT);
    RETURNS(lapi_checkpoint_after(*hndl), LAPI_ERR_CKPT);
    *comp_h = refuses;
    *uinfo = NULL;
    return NULL;
}

/* Another handle of the task is not concerned. */
static void errors(void) {
    uint other = (uint)((t_me + 1) % t_tasks);
    lapi_handle_t second;
    lapi_info_t info;
    lapi_cntr_t cmpl;
    bzero(&cmpl, sizeof cmpl);
    bzero(&info, sizeof info);
    RETURNS(lapi_checkpoint_before(12345), LAPI_ERR_HNDL_INVALID);
    RETURNS(lapi_checkpoint_after(12345), LAPI_ERR_HNDL_INVALID);
    RETURNS(lapi_checkpoint_after(t_hndl), LAPI_ERR_CKPT);
    OK(LAPI_Amsend(t_hndl, other, (void *)refuses_here, NULL, 0, NULL, 0, NULL, NULL, &cmpl));
    t_wait_exact(&cmpl, 1);
    t_fence();
    t_probe_until(&refused, 1);
    OK(LAPI_Init(&second, &info));
    OK(LAPI_Gfence(second));
    if (t_me == 0) {
        OK(lapi_checkpoint_before(t_hndl));
        if (t_tasks > 1) {
            RETURNS(LAPI_Put(t_hndl, other, 0, NULL, NULL, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
            RETURNS(LAPI_Gfence(t_hndl), LAPI_ERR_TGT_PURGED);
        }
        OK(LAPI_Put(t_hndl, 0, 0, NULL, NULL, NULL, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
    }
    OK(LAPI_Put(second, other, 0, NULL, NULL, NULL, NULL, &cmpl));
    OK(LAPI_Waitcntr(second, &cmpl, 1, NULL));
    OK(LAPI_Gfence(second));
    if (t_me == 0) OK(lapi_checkpoint_after(t_hndl));
    OK(LAPI_Term(second));
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "", *end = argc == 4 ? argv[3] : NULL;
    lapi_info_t info;
    if (argc == 4) {
        const char *child = strcmp(which, "all") == 0 ? getenv("MP_CHILD") : "";
        CHECK(child != NULL);
        snprintf(file, sizeof file, "%s%s", argv[2], child);
        if (strcmp(which, "all") == 0 || atoi(getenv("MP_CHILD")) == LEAVER) restore();
        if (strcmp(which, "all") == 0 && state.round > 0) until_all_have_left(argv[2]);
        if (strcmp(which, "alone") == 0 && state.round > 0) until_others_have_ended(argv[2]);
        if (strcmp(end, "late") == 0 && atoi(getenv("MP_CHILD")) == 0 && state.round > 0) usleep(300000);
    }
    /* Handlers may run before LAPI_Init has returned. */
    if (getenv("MP_CHILD") != NULL && getenv("MP_PROCS") != NULL)
        (t_me = atoi(getenv("MP_CHILD"))), (t_tasks = atoi(getenv("MP_PROCS")));
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    dies = strcmp(which, "dies") == 0 || strcmp(which, "left") == 0;
    t_init_with(&info);
    CHECK(t_tasks <= MOST);
    if (state.round == 0) t_fence();
    if (dies) {
        if (strcmp(which, "left") == 0) one_is_left();
        else one_dies();
        return 0;
    }
    if (strcmp(which, "alone") == 0) {
        others_end(argv[2], end);
        t_pass();
        return 0;
    }
    if (strcmp(which, "errors") == 0) errors();
    else if (strcmp(which, "stays") == 0) one_leaves(0, NULL);
    else if (strcmp(which, "moves") == 0) one_leaves(1, end);
    else if (strcmp(which, "all") == 0) all_leave(end);
    else if (strcmp(which, "second") == 0) CHECK_EQ(state.small[LEAVER], 0);
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

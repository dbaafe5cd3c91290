/*
 * All operations at once, while tasks die and rejoin. Started by tests/src/soak.rs, which kills and
 * restarts tasks:
 * soak SEED
 *
 * The run is divided into eras. An era begins when all tasks are ready, and ends with the death of
 * one or several; it consists of rounds. In a round the threads of every task perform operations
 * with all tasks, and at its end all tasks call LAPI_Gfence and LAPI_Address_init. If these
 * succeed, each task sends every other one a claim of what it has sent, which must match what the
 * other has received, including all counters. If they fail, or the error handler reports a lost
 * task, the survivors purge the dead tasks, let their threads finish what they can, compare their
 * claims in the same way, and resume the dead; a new process takes the place of each.
 *
 * A board in shared memory has the information that must not depend on LAPI: which tasks are dead
 * (so that false reports are detected), and which are ready for the next era. During an era a task
 * learns of a death only by LAPI.
 *
 * No resource use may grow: descriptors, mappings, threads and memory are counted in every era.
 */
#include "operations.h"

#include <dirent.h>

enum { FDS, MAPS, THREADS, KIB, KINDS };

_Atomic uint64_t era, soak_round, life[MOST];
atomic_int reported[MOST], lost[MOST], giving_up;

/* ---- which tasks are present ---- */

int gone(int task) { return lost[task] || board->life[task] != life[task]; }

static void learns_of(int task) {
    board->knows[t_me] = board->era;
    reported[task] = 1;
}

int went(const char *what, int code, int tgt) {
    if (code == LAPI_SUCCESS) return 1;
    if ((code == LAPI_ERR_NO_CONNECTIVITY || code == LAPI_ERR_TGT_PURGED) && gone(tgt)) {
        learns_of(tgt);
        return 0;
    }
    T_FAIL("%s to task %d, which is alive: %d, era %lu", what, tgt, code, (ulong)era);
}

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*task, t_me);
    CHECK_FOR(board->life[*src] != 0, "the death of task %d was reported, which has never died", *src);
    board->reported++;
    if (board->life[*src] != life[*src]) learns_of(*src);
}

/* Purges the tasks that are known to be dead. Returns 1 if there was one. */
static int part_from(const atomic_int *which) {
    int task, some = 0;
    for (task = 0; task < t_tasks; task++) {
        if (task == t_me || lost[task] || (which != NULL ? !which[task] : board->life[task] == life[task])) continue;
        at_phase(PARTING);
        OK(LAPI_Purge_totask(t_hndl, (uint)task));
        board->purges++;
        RETURNS(LAPI_Put(t_hndl, (uint)task, 0, NULL, NULL, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
        lost[task] = 1;
        giving_up = 1;
        workers_rescue(task);
        some = 1;
    }
    return some;
}

static void pause_a_little(void) {
    OK(LAPI_Probe(t_hndl));
    usleep(300);
}

/* ---- no resource use may grow ---- */

static long entries(const char *path) {
    DIR *dir = opendir(path);
    struct dirent *entry;
    long count = 0;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* The lines of a file, and the number behind `name` in it. */
static long lines(const char *path, const char *name, long *value) {
    FILE *file = fopen(path, "re");
    char line[1024];
    long count = 0;
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        count += strchr(line, '\n') != NULL;
        if (name != NULL && strncmp(line, name, strlen(name)) == 0) *value = atol(line + strlen(name));
    }
    fclose(file);
    return count;
}

/*
 * The limit is the maximum of the first eras of a life, and a small constant allowance: connections
 * that are pending in the rejoin listener, pages not touched before. A task that has rejoined needs
 * more than one that was always present, so each first return of another task has an allowance.
 * Eras have none.
 */
static void count_everything(int times_met) {
    enum { WARM = 6 };
    static const long per_return[KINDS] = {1, 3, 0, 512}, slack[KINDS] = {6, 12, 0, 6 * 1024};
    static const char *const names[KINDS] = {"descriptors", "mappings", "threads", "KiB of writable memory"};
    static long base[KINDS];
    static int base_returns;
    long now[KINDS];
    int kind, task, returns = 0;
    at_phase(COUNTING);
    now[FDS] = entries("/proc/self/fd");
    now[MAPS] = lines("/proc/self/maps", NULL, NULL);
    now[THREADS] = entries("/proc/self/task");
    /* Not what is resident: pools that were made at the start are used part by part. */
    CHECK(lines("/proc/self/status", "VmData:", &now[KIB]) > 0);
    for (task = 0; task < t_tasks; task++) returns += task != t_me && life[task] != 0;
    for (kind = 0; kind < KINDS; kind++) {
        if ((uint64_t)now[kind] > board->most[t_me][kind]) board->most[t_me][kind] = (uint64_t)now[kind];
        if (times_met <= WARM) {
            if (now[kind] > base[kind]) base[kind] = now[kind];
            base_returns = returns;
            continue;
        }
        CHECK_FOR(now[kind] <= base[kind] + slack[kind] + per_return[kind] * (returns - base_returns),
                  "%ld %s in era %lu, the %dth of this task; there were at most %ld in its first %d", now[kind], names[kind],
                  (ulong)era, times_met, base[kind], WARM);
    }
    if (getenv("SOAK_VERBOSE"))
        fprintf(stderr, "task %d era %lu: fds %ld maps %ld threads %ld KiB %ld returns %d\n", t_me, (ulong)era, now[0], now[1],
                now[2], now[3], returns);
}

/* ---- what each has done to each ---- */

static void claim(int final) {
    struct {
        note_t note;
        uint64_t word[4];
    } message;
    int task;
    at_phase(CLAIMING);
    for (task = 0; task < t_tasks; task++) {
        note_t note = {era, soak_round, life[t_me], 0, 0, 0, t_me, 0, CLAIM, final};
        message.note = note;
        message.word[0] = sent[task].counters;
        message.word[1] = sent[task].messages;
        message.word[2] = sent[task].light;
        message.word[3] = sent[task].added;
        /* Small enough to be copied by the call. */
        if (!lost[task])
            WENT(LAPI_Amsend(t_hndl, (uint)task, (void *)claimed, &message, sizeof message, NULL, 0, NULL, NULL, NULL), task);
    }
}

/* Waits until the received messages match the claim. */
static int reaches(int task, const char *what, uint64_t want, const _Atomic uint64_t *have) {
    while (*have < want && !gone(task)) pause_a_little();
    if (gone(task)) return 0;
    CHECK_FOR(*have == want, "%lu %s of task %d have come, and it has sent %lu (era %lu, round %lu)", (ulong)*have, what, task,
              (ulong)want, (ulong)era, (ulong)soak_round);
    return 1;
}

/* 0 when a task has died meanwhile. With `final`, lost tasks are skipped. */
static int compare(int final) {
    int task;
    for (task = 0; task < t_tasks; task++) {
        claim_t *theirs = &claims[task];
        account_t *mine = &seen[task][era % ERAS];
        if (gone(task) && final) continue;
        while (!gone(task) &&
               (theirs->era != era + 1 || (final ? !theirs->final : !theirs->final && theirs->round < soak_round)))
            pause_a_little();
        /* Its last claim: a task has died. The board says which one. */
        if (theirs->final && !final) return 0;
        if (!reaches(task, "messages", theirs->messages, &mine->messages) ||
            !reaches(task, "light messages", theirs->light, &mine->light) ||
            !reaches(task, "replies", replies_due[task], &replies[task][era % ERAS])) {
            if (final) continue;
            return 0;
        }
        while (t_value(&arrivals[task][era % ERAS]) < (int)theirs->counters && !gone(task)) pause_a_little();
        if (gone(task)) {
            if (final) continue;
            return 0;
        }
        CHECK_EQ(t_value(&arrivals[task][era % ERAS]), theirs->counters);
        CHECK_EQ(sums[task][era % ERAS], theirs->added);
    }
    return 1;
}

/* ---- rounds and eras ---- */

/*
 * All tasks count their collective calls, including those that fail. Each task leaves an era
 * with a failure:
 * otherwise another task might wait for it in a call that it never enters. Since a task may be
 * one call ahead of another, those that are behind catch up before any task is resumed, by calls
 * that fail at once.
 */
enum { CALLS = 1 << 20 };
static uint64_t calls, failures;

static int collective(int code) {
    CHECK_FOR(code == LAPI_SUCCESS || code == LAPI_ERR_NO_CONNECTIVITY || code == LAPI_ERR_TGT_PURGED,
              "a collective call: %d, era %lu, round %lu", code, (ulong)era, (ulong)soak_round);
    calls++;
    failures += code != LAPI_SUCCESS;
    return code == LAPI_SUCCESS;
}

static int gfence(void) {
    at_phase(FENCING);
    work_done(GFENCE, 0);
    return collective(LAPI_Gfence(t_hndl));
}

static void catch_up_collectives(void) {
    uint64_t most = calls;
    int task;
    at_phase(MEETING);
    board->calls[t_me] = (era + 1) * CALLS + calls;
    for (task = 0; task < t_tasks; task++) {
        while (!gone(task) && board->calls[task] / CALLS != era + 1) pause_a_little();
        if (board->calls[task] / CALLS == era + 1 && board->calls[task] % CALLS > most) most = board->calls[task] % CALLS;
    }
    while (calls < most) CHECK_FOR(!gfence(), "LAPI_Gfence ends well without a task that is dead, era %lu", (ulong)era);
}

static int all_meet(int *stop) {
    void *table[MOST];
    int task;
    if (!gfence()) return 0;
    at_phase(EXCHANGING);
    work_done(EXCHANGE, 0);
    if (!collective(LAPI_Address_init(t_hndl, (void *)(uintptr_t)(board->stop * 1000 + (uint64_t)t_me), table))) return 0;
    for (task = 0; task < t_tasks; task++) CHECK_EQ((uintptr_t)table[task] % 1000, task);
    *stop = (uintptr_t)table[0] / 1000 != 0;
    return 1;
}

/* One round: 1 when all is well. */
static int go_round(uint64_t *random, int *stop) {
    int met;
    at_phase(WORKING);
    workers_start(20 + (int)t_below(random, 40));
    while (!workers_idle()) {
        pause_a_little();
        part_from(reported);
    }
    met = all_meet(stop);
    part_from(met ? reported : NULL);
    if (!met || giving_up) return 0;
    claim(0);
    /* No task continues before all have compared: this round would count messages of
     * the next one. */
    if (!compare(0) || !gfence()) return 0;
    board->rounds += t_me == 0;
    soak_round++;
    return 1;
}

/* After the death of a task. */
static void end_era(void) {
    while (!part_from(NULL) && !giving_up) pause_a_little();
    while (failures == 0) gfence();
    claim(1);
    compare(1);
    catch_up_collectives();
}

/* Waits until all tasks are ready for the next era; they may die meanwhile. */
static void meet_again(void) {
    uint64_t next;
    int task;
    while (board->era == era) pause_a_little();
    for (;;) {
        next = board->era;
        part_from(NULL);
        at_phase(MEETING);
        for (task = 0; task < t_tasks; task++) {
            if (!lost[task]) continue;
            handlers_part(task);
            life[task] = board->life[task];
            reported[task] = 0;
            OK(LAPI_Resume_totask(t_hndl, (uint)task));
            board->resumes++;
            lost[task] = 0;
        }
        board->purged[t_me] = next;
        board->ready[t_me] = next;
        while (board->era == next && board->go < next) pause_a_little();
        if (board->era == next) return;
    }
}

/*
 * Each task has had contact with each other one before any is killed. One without would not learn
 * of a death from LAPI, and would take the next process for the one before (docs/conformance.md).
 */
static void meet_all(void) {
    lapi_cntr_t met;
    char none;
    int task;
    OK(LAPI_Setcntr(t_hndl, &met, 0));
    for (task = 0; task < t_tasks; task++) OK(LAPI_Get(t_hndl, (uint)task, 1, library, &none, NULL, &met));
    OK(LAPI_Waitcntr(t_hndl, &met, t_tasks, NULL));
}

static void begin_era(void) {
    uint64_t now = board->go;
    int task;
    giving_up = 0;
    for (task = 0; task < t_tasks; task++) {
        bzero(&sent[task], sizeof sent[task]);
        replies_due[task] = 0;
        /* No task sends in this era before all have reached this point; the entry was last used
         * ERAS eras ago. */
        bzero(&seen[task][now % ERAS], sizeof seen[task][0]);
        sums[task][now % ERAS] = 0;
        replies[task][now % ERAS] = 0;
        OK(LAPI_Setcntr(t_hndl, &arrivals[task][now % ERAS], 0));
    }
    soak_round = 0;
    era = now;
    at_phase(BEGINNING);
    CHECK_FOR(gfence(), "LAPI_Gfence fails at the beginning of era %lu, with all tasks there", (ulong)era);
    calls = failures = 0;
    meet_all();
    board->running[t_me] = era;
}

int main(int argc, char **argv) {
    uint64_t random;
    lapi_info_t info;
    int task, stop = 0, eras = 0;
    CHECK(argc == 2 && getenv("MP_CHILD") != NULL);
    t_me = atoi(getenv("MP_CHILD"));
    CHECK(t_me < MOST);
    board_open();
    at_phase(STARTING);
    for (task = 0; task < MOST; task++) life[task] = board->life[task];
    bzero(&info, sizeof info);
    info.err_hndlr = error_handler;
    info.lib_vers = LAST_LIB;
    info.num_compl_hndlr_thr = 2;
    t_init_with(&info);
    handlers_init();
    random = t_seed(strtoull(argv[1], NULL, 10), (uint64_t)t_me, life[t_me]);
    workers_init(random);
    for (;;) {
        meet_again();
        begin_era();
        count_everything(++eras);
        do stop = 0;
        while (go_round(&random, &stop) && !stop);
        if (stop && failures == 0 && !giving_up) break;
        end_era();
    }
    count_everything(++eras);
    at_phase(ENDING);
    t_done();
    return 0;
}

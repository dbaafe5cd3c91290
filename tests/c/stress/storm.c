/*
 * All to all, all operations at once: storm SEED OPS WINDOW THREADS LARGEST [STOPPED]
 *
 * Every thread of every task follows a plan of OPS operations that every task can derive from the
 * seed: kind, target, length, place. At most WINDOW of them are under way. At the end every task
 * replays the plans of all others and computes what must have arrived, to the byte, and the value
 * of every counter. The task STOPPED is stopped half of the time.
 */
#include "../common/ltest.h"
#include <signal.h>
#include <sys/prctl.h>

enum { PUT, AM, GET, RMW };

/* One operation of a plan. */
typedef struct {
    int kind, tgt, number;
    size_t len;
    size_t at;     /* offset in this thread's region at the target (put, am), or at home (get) */
    size_t source; /* offset at home (put, am), or in the target's library (get), a multiple of 8 */
    unsigned misalign;
} op;

/* A plan being followed. */
typedef struct {
    uint64_t random;
    int number;
    size_t *used; /* bytes used so far at every target, then at home: t_tasks + 2 entries */
} plan;

typedef struct {
    int src, thread, number, pad;
    uint64_t len;
    unsigned char *to;
} header;

static uint64_t seed;
static int ops, window, threads;
static size_t largest;

static unsigned char *in, *library;
static void **ins, **libraries, **tgt_cntrs, **arriveds, **replieds, **totals;
static lapi_cntr_t tgt_cntr;
static long long total; /* target of the read-modify-writes */
static volatile int handled, replies;

static void start(plan *p, int src, int thread) {
    p->random = t_seed(seed, (uint64_t)src, (uint64_t)thread);
    p->number = 0;
    p->used = calloc((size_t)t_tasks + 2, sizeof *p->used);
    CHECK(p->used != NULL);
}

static size_t length(uint64_t *random) {
    uint64_t class = t_below(random, 100);
    if (class < 70) return t_below(random, 65);
    if (class < 90) return t_below(random, 1025);
    if (class < 98) return t_below(random, largest < 16384 ? largest + 1 : 16385);
    return t_below(random, largest + 1);
}

static size_t take(size_t *used, size_t len, unsigned misalign) {
    size_t at = (*used + 15) / 16 * 16 + misalign;
    *used = at + len;
    return at;
}

static op follow(plan *p) {
    static const int kinds[] = {PUT, PUT, PUT, AM, AM, AM, GET, GET, RMW};
    op o;
    bzero(&o, sizeof o);
    o.kind = kinds[t_below(&p->random, sizeof kinds / sizeof *kinds)];
    o.tgt = (int)t_below(&p->random, (uint64_t)t_tasks);
    o.number = p->number++;
    o.misalign = (unsigned)t_below(&p->random, 16);
    o.len = o.kind == RMW ? 0 : length(&p->random);
    if (o.kind == GET) {
        o.at = take(&p->used[t_tasks], o.len, o.misalign);
        o.source = t_below(&p->random, 512) * 8;
    } else if (o.kind != RMW) {
        o.at = take(&p->used[o.tgt], o.len, o.misalign);
        o.source = take(&p->used[t_tasks + 1], o.len, (unsigned)t_below(&p->random, 16));
    }
    return o;
}

static uint64_t data_seed(int src, int thread, int number) {
    return t_seed(seed ^ 0xda7a, (uint64_t)src * 64 + (uint64_t)thread, (uint64_t)number);
}
static uint64_t library_seed(int task) { return t_seed(seed, (uint64_t)task, 0x11b); }

/* What a message asks of the handlers at the target follows from its number. */
static int wants_handler(int number) { return number % 4 != 0; }
static int wants_reply(int number) { return number % 4 == 3; }

/* regions[src * threads + thread][tgt]: where that thread's region begins in the `in` area of
 * the target. */
static size_t **regions, *in_sizes;

static void lay_out(void) {
    int src, thread, tgt, i;
    regions = calloc((size_t)(t_tasks * threads), sizeof *regions);
    in_sizes = calloc((size_t)t_tasks, sizeof *in_sizes);
    for (src = 0; src < t_tasks; src++)
        for (thread = 0; thread < threads; thread++) {
            plan p;
            size_t *region = calloc((size_t)t_tasks, sizeof *region);
            start(&p, src, thread);
            for (i = 0; i < ops; i++) follow(&p);
            for (tgt = 0; tgt < t_tasks; tgt++) {
                region[tgt] = in_sizes[tgt];
                in_sizes[tgt] += (p.used[tgt] + 64 + 63) / 64 * 64;
            }
            regions[src * threads + thread] = region;
            free(p.used);
        }
}

static void *replied(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    (void)hndl, (void)uhdr, (void)uinfo;
    CHECK_EQ(*uhdr_len, sizeof(header));
    CHECK_EQ(*msg_len, 0);
    CHECK_EQ(((header *)uhdr)->src, t_me);
    __atomic_fetch_add(&replies, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return NULL;
}

static void completed(lapi_handle_t *hndl, void *info) {
    header *head = info;
    CHECK_FOR(t_differs(head->to, head->len, data_seed(head->src, head->thread, head->number)) < 0,
              "message %d of task %d, %lu bytes, is not what was sent when its completion handler runs", head->number,
              head->src, (ulong)head->len);
    if (wants_reply(head->number))
        OK(LAPI_Amsend(*hndl, (uint)head->src, replieds[head->src], head, sizeof *head, NULL, 0, NULL, NULL, NULL));
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
    free(head);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    static const lapi_ret_flags_t flags[] = {LAPI_NORMAL, LAPI_NORMAL, LAPI_LOCAL_STATE, LAPI_SEND_REPLY};
    lapi_return_info_t *ret = (lapi_return_info_t *)msg_len;
    header *head = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_EQ(ret->msg_len, head->len);
    CHECK_EQ(ret->src, head->src);
    *comp_h = NULL;
    *uinfo = NULL;
    if (wants_handler(head->number)) {
        header *copy = malloc(sizeof *copy);
        CHECK(copy != NULL);
        *copy = *head;
        *comp_h = completed;
        *uinfo = copy;
        ret->ret_flags = flags[head->number % 4];
    }
    if (head->number % 5 == 0 && ret->udata_one_pkt_ptr != NULL) {
        memcpy(head->to, ret->udata_one_pkt_ptr, ret->msg_len);
        ret->ctl_flags = LAPI_BURY_MSG;
        return NULL;
    }
    return head->to;
}

typedef struct {
    int thread;
    unsigned char *home; /* what gets bring */
} worker;

static void *work(void *arg) {
    worker *w = arg;
    plan p;
    lapi_cntr_t org, cmpl;
    int i, orgs = 0, cmpls = 0;
    long long one = 1;
    unsigned char *out;
    size_t out_size;
    header *heads = calloc((size_t)ops, sizeof *heads);
    CHECK(heads != NULL);
    bzero(&org, sizeof org);
    bzero(&cmpl, sizeof cmpl);
    start(&p, t_me, w->thread);
    for (i = 0; i < ops; i++) follow(&p);
    out_size = p.used[t_tasks + 1];
    w->home = malloc(p.used[t_tasks] + 64);
    out = malloc(out_size + 64);
    CHECK(w->home != NULL && out != NULL);
    memset(w->home, 0xee, p.used[t_tasks] + 64);
    free(p.used);
    start(&p, t_me, w->thread);
    for (i = 0; i < ops; i++) {
        op o = follow(&p);
        uint tgt = (uint)o.tgt;
        unsigned char *to =
            (unsigned char *)ins[o.tgt] + regions[t_me * threads + w->thread][o.tgt] + o.at, *from = out + o.source;
        if (o.kind == PUT || o.kind == AM) t_fill(from, o.len, data_seed(t_me, w->thread, o.number));
        switch (o.kind) {
        case PUT:
            OK(LAPI_Put(t_hndl, tgt, o.len, to, from, tgt_cntrs[o.tgt], &org, &cmpl));
            cmpls++;
            break;
        case AM:
            heads[i].src = t_me;
            heads[i].thread = w->thread;
            heads[i].number = o.number;
            heads[i].len = o.len;
            heads[i].to = to;
            OK(LAPI_Amsend(t_hndl, tgt, arriveds[o.tgt], &heads[i], sizeof *heads, from, o.len, tgt_cntrs[o.tgt], &org,
                           &cmpl));
            cmpls++;
            break;
        case GET:
            OK(LAPI_Get(t_hndl, tgt, o.len, (unsigned char *)libraries[o.tgt] + o.source, w->home + o.at,
                        tgt_cntrs[o.tgt], &org));
            break;
        default:
            OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, tgt, totals[o.tgt], &one, NULL, &org));
        }
        if (++orgs == window || i == ops - 1) {
            t_wait_exact(&org, orgs);
            t_wait_exact(&cmpl, cmpls);
            orgs = cmpls = 0;
        }
    }
    CHECK_EQ(t_value(&org), 0);
    CHECK_EQ(t_value(&cmpl), 0);
    free(p.used);
    free(heads);
    free(out);
    return NULL;
}

/* Replays all plans and compares. */
static void compare(worker *workers) {
    int src, thread, i, tgt_counts = 0, handlers = 0, rmws = 0, replies_due = 0;
    for (src = 0; src < t_tasks; src++)
        for (thread = 0; thread < threads; thread++) {
            plan p;
            start(&p, src, thread);
            for (i = 0; i < ops; i++) {
                op o = follow(&p);
                if (src == t_me && o.kind == AM && wants_reply(o.number)) replies_due++;
                if (src == t_me && o.kind == GET)
                    CHECK_FOR(t_differs(workers[thread].home + o.at, o.len, library_seed(o.tgt) + o.source / 8) < 0,
                              "get %d of %zu bytes from task %d is wrong", o.number, o.len, o.tgt);
                if (o.tgt != t_me) continue;
                rmws += o.kind == RMW;
                tgt_counts += o.kind != RMW;
                handlers += o.kind == AM && wants_handler(o.number);
                if (o.kind == PUT || o.kind == AM)
                    CHECK_FOR(t_differs(in + regions[src * threads + thread][t_me] + o.at, o.len,
                                        data_seed(src, thread, o.number)) < 0,
                              "%s %d of %zu bytes from task %d is wrong", o.kind == PUT ? "put" : "message", o.number,
                              o.len, src);
            }
            free(p.used);
        }
    t_wait_exact(&tgt_cntr, tgt_counts);
    t_probe_until(&handled, handlers);
    t_probe_until(&replies, replies_due);
    t_fence();
    CHECK_EQ(t_value(&tgt_cntr), 0);
    CHECK_EQ(handled, handlers);
    CHECK_EQ(replies, replies_due);
    CHECK_EQ(total, rmws);
}

/* Stops this task for 50 of every 55 ms: it stops in the middle of messages. */
static void stop_often(void) {
    pid_t task = getpid(), child = fork();
    CHECK(child >= 0);
    if (child != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == task) {
        kill(task, SIGSTOP);
        usleep(50000);
        kill(task, SIGCONT);
        usleep(5000);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    pthread_t *tids;
    worker *workers;
    int i;
    CHECK(argc == 6 || argc == 7);
    seed = strtoull(argv[1], NULL, 10);
    ops = atoi(argv[2]);
    window = atoi(argv[3]);
    threads = atoi(argv[4]);
    largest = strtoul(argv[5], NULL, 10);
    if (argc == 7 && getenv("MP_CHILD") != NULL && atoi(argv[6]) == atoi(getenv("MP_CHILD"))) stop_often();
    t_init();
    if (t_me == 0) printf("seed %llu\n", (unsigned long long)seed);
    lay_out();
    in = malloc(in_sizes[t_me] + 64);
    library = malloc(largest + 4096 + 8);
    workers = calloc((size_t)threads, sizeof *workers);
    tids = calloc((size_t)threads, sizeof *tids);
    CHECK(in != NULL && library != NULL && workers != NULL && tids != NULL);
    memset(in, 0xee, in_sizes[t_me] + 64);
    t_fill(library, largest + 4096, library_seed(t_me));
    ins = t_addresses(in);
    libraries = t_addresses(library);
    tgt_cntrs = t_addresses(&tgt_cntr);
    arriveds = t_addresses((void *)arrived);
    replieds = t_addresses((void *)replied);
    totals = t_addresses(&total);
    for (i = 0; i < threads; i++) workers[i].thread = i;
    for (i = 1; i < threads; i++) CHECK_EQ(pthread_create(&tids[i], NULL, work, &workers[i]), 0);
    work(&workers[0]);
    for (i = 1; i < threads; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
    t_fence();
    compare(workers);
    t_done();
    for (i = 0; i < threads; i++) free(workers[i].home);
    free(workers);
    free(tids);
    return 0;
}

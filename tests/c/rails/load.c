/*
 * Every operation between all tasks while links go down and come up: load SECONDS LARGEST
 *
 * In each round every task puts, gets, sends active messages and increments, to and from the next
 * task. After a fence it compares all data and counters: each message must have arrived exactly
 * once. Task 0 decides when it is over.
 */
#include "../common/ltest.h"

#include <time.h>

#define MESSAGES 200

static size_t largest;
static unsigned char *in, *library, *got;
static void **ins, **libraries, **counts, **handlers, **tgts, **stops;
static long long count;
static int stop;
static lapi_cntr_t tgt;
static int rounds;
static unsigned char seen[MESSAGES];

typedef struct {
    int round, number;
} header;

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    header *head = uhdr;
    (void)hndl, (void)msg_len;
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_FOR(head->round == rounds, "a message of round %d arrives in round %d", head->round, rounds);
    CHECK_FOR(!seen[head->number], "message %d of round %d arrives twice", head->number, rounds);
    seen[head->number] = 1;
    *comp_h = NULL;
    *uinfo = NULL;
    return NULL;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static size_t length(int task) {
    uint64_t random = t_seed((uint64_t)rounds, (uint64_t)task, 0x1e4);
    return (size_t)t_below(&random, largest) + 1;
}

static void round_of_all(void) {
    int next = (t_me + 1) % t_tasks, before = (t_me + t_tasks - 1) % t_tasks, i;
    uint64_t put_seed = t_seed((uint64_t)rounds, (uint64_t)t_me, 1);
    size_t len = length(t_me);
    unsigned char *out = malloc(len);
    lapi_cntr_t org, cmpl, fetched;
    header head;

    CHECK(out != NULL);
    t_fill(out, len, put_seed);
    bzero(seen, sizeof seen);
    OK(LAPI_Setcntr(t_hndl, &org, 0));
    OK(LAPI_Setcntr(t_hndl, &cmpl, 0));
    OK(LAPI_Setcntr(t_hndl, &fetched, 0));
    t_fence();
    OK(LAPI_Put(t_hndl, (uint)next, len, ins[next], out, tgts[next], &org, &cmpl));
    for (i = 0; i < MESSAGES; i++) {
        head.round = rounds;
        head.number = i;
        OK(LAPI_Amsend(t_hndl, (uint)next, handlers[next], &head, sizeof head, NULL, 0, tgts[next], &org, &cmpl));
    }
    OK(LAPI_Get(t_hndl, (uint)next, largest, libraries[next], got, NULL, &fetched));
    for (i = 0; i < 20; i++) {
        long long before_it = -1;
        int one = 1;
        lapi_cntr_t rmw;
        OK(LAPI_Setcntr(t_hndl, &rmw, 0));
        OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)next, counts[next], &one, (int *)&before_it, &rmw));
        t_wait_exact(&rmw, 1);
        CHECK_EQ((int)before_it, rounds * 20 + i);
    }
    t_wait_exact(&fetched, 1);
    CHECK_FILLED(got, largest, t_seed((uint64_t)next, 0, 2));
    t_wait_exact(&org, 1 + MESSAGES);
    /* The program may use the memory again now. */
    memset(out, 0xee, len);
    t_wait_exact(&cmpl, 1 + MESSAGES);
    t_wait_exact(&tgt, 1 + MESSAGES);
    for (i = 0; i < MESSAGES; i++) CHECK_FOR(seen[i], "message %d of round %d is missing", i, rounds);
    CHECK_FILLED(in, length(before), t_seed((uint64_t)rounds, (uint64_t)before, 1));
    free(out);
    rounds++;
    t_fence();
    CHECK_EQ((int)count, rounds * 20);
}

int main(int argc, char **argv) {
    double end;
    int i;

    CHECK(argc == 3);
    t_init();
    end = now() + atof(argv[1]);
    largest = (size_t)atol(argv[2]);
    in = malloc(largest);
    library = malloc(largest);
    got = malloc(largest);
    CHECK(in != NULL && library != NULL && got != NULL);
    t_fill(library, largest, t_seed((uint64_t)t_me, 0, 2));
    OK(LAPI_Setcntr(t_hndl, &tgt, 0));
    ins = t_addresses(in);
    libraries = t_addresses(library);
    counts = t_addresses(&count);
    handlers = t_addresses((void *)arrived);
    tgts = t_addresses(&tgt);
    stops = t_addresses(&stop);
    if (t_me == 0) {
        puts("begins");
        fflush(stdout);
    }
    for (;;) {
        round_of_all();
        if (t_me == 0 && now() > end)
            for (i = 0; i < t_tasks; i++) {
                lapi_cntr_t done;
                int one = 1;
                OK(LAPI_Setcntr(t_hndl, &done, 0));
                OK(LAPI_Put(t_hndl, (uint)i, sizeof one, stops[i], &one, NULL, NULL, &done));
                t_wait_exact(&done, 1);
            }
        t_fence();
        if (stop) break;
    }
    if (t_me == 0) {
        lapi_statistics_t statistics;
        OK(LAPI_Qenv(t_hndl, QUERY_STATISTICS, (int *)&statistics));
        printf("rounds %d sent again %lld\n", rounds, (long long)statistics.Tot_retrans_pkt_cnt);
        fflush(stdout);
    }
    t_done();
    return 0;
}

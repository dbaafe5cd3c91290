/*
 * samples/coll/lapi_coll.h, with pieces so short that most data needs several: coll SEED
 */
#include "../common/ltest.h"

/* The header's memory, of which one task may have none. */
static int scarce;

static void *own_calloc(size_t count, size_t size) {
    return scarce > 0 && --scarce == 0 ? NULL : calloc(count, size);
}

#define calloc(count, size) own_calloc(count, size)
#define malloc(size) own_calloc(1, size)
#include "lapi_coll.h"
#undef calloc
#undef malloc

enum { MOST = 3000, ROUNDS = 60, PIECE = 512 };

static uint64_t common, own; /* a random number that all tasks draw, and one of this task */

static unsigned any(unsigned below) {
    return (unsigned)t_below(&common, below);
}

/* Some tasks are late. */
static void dawdle(void) {
    if (t_below(&own, 8) == 0) usleep((useconds_t)t_below(&own, 3000));
}

static void broadcasts(lapi_coll_t *coll) {
    static unsigned char data[MOST];
    size_t bytes = any(MOST + 1);
    unsigned root = any((unsigned)t_tasks);
    uint64_t seed = t_random(&common);
    memset(data, 0, sizeof data);
    if ((unsigned)t_me == root) t_fill(data, bytes, seed);
    OK(lapi_coll_broadcast(coll, data, bytes, root));
    CHECK_FILLED(data, bytes, seed);
    /* What is sent may be changed at once. */
    memset(data, 0xee, sizeof data);
}

/* The element `i` of a task. */
static int64_t element(uint64_t seed, int task, size_t i) {
    return (int64_t)(t_seed(seed, (uint64_t)task, i) % 2001) - 1000;
}

#define REDUCTION(T, TYPE, START, OP, EXPRESSION)                                         \
    do {                                                                                  \
        static T in[MOST / 8], out[MOST / 8];                                             \
        for (i = 0; i < count; i++) in[i] = (T)element(seed, t_me, i);                    \
        if (all) OK(lapi_coll_allreduce(coll, in, out, count, TYPE, OP));                 \
        else OK(lapi_coll_reduce(coll, in, out, count, TYPE, OP, root));                  \
        for (i = 0; i < count && (all || (unsigned)t_me == root); i++) {                  \
            T a = (T)element(seed, 0, i);                                                 \
            for (task = 1; task < t_tasks; task++) {                                      \
                T b = (T)element(seed, task, i);                                          \
                a = (T)(EXPRESSION);                                                      \
            }                                                                             \
            CHECK_FOR(out[i] == a, "element %zu of %zu, %s %s", i, count, #TYPE, #OP);    \
        }                                                                                 \
    } while (0)
#define REAL(T, TYPE)                                                                     \
    switch (any(3)) {                                                                     \
    case 0: REDUCTION(T, TYPE, 0, LAPI_COLL_SUM, a + b); break;                           \
    case 1: REDUCTION(T, TYPE, 0, LAPI_COLL_MIN, a < b ? a : b); break;                   \
    default: REDUCTION(T, TYPE, 0, LAPI_COLL_MAX, a > b ? a : b);                         \
    }
#define INTEGER(T, U, TYPE)                                                               \
    switch (any(7)) {                                                                     \
    case 0: REDUCTION(T, TYPE, 0, LAPI_COLL_SUM, (U)a + (U)b); break;                     \
    case 1: REDUCTION(T, TYPE, 0, LAPI_COLL_PROD, (U)a * (U)b); break;                    \
    case 2: REDUCTION(T, TYPE, 0, LAPI_COLL_MIN, a < b ? a : b); break;                   \
    case 3: REDUCTION(T, TYPE, 0, LAPI_COLL_MAX, a > b ? a : b); break;                   \
    case 4: REDUCTION(T, TYPE, 0, LAPI_COLL_AND, a & b); break;                           \
    case 5: REDUCTION(T, TYPE, 0, LAPI_COLL_OR, a | b); break;                            \
    default: REDUCTION(T, TYPE, 0, LAPI_COLL_XOR, a ^ b);                                 \
    }

static void reductions(lapi_coll_t *coll) {
    size_t i, count = any(MOST / 8 + 1);
    unsigned root = any((unsigned)t_tasks), all = any(2);
    uint64_t seed = t_random(&common);
    int task;
    switch (any(6)) {
    case 0: INTEGER(int32_t, uint32_t, LAPI_COLL_INT32); break;
    case 1: INTEGER(uint32_t, uint32_t, LAPI_COLL_UINT32); break;
    case 2: INTEGER(int64_t, uint64_t, LAPI_COLL_INT64); break;
    case 3: INTEGER(uint64_t, uint64_t, LAPI_COLL_UINT64); break;
    /* Sums of small whole numbers are exact, in any order. */
    case 4: REAL(float, LAPI_COLL_FLOAT); break;
    default: REAL(double, LAPI_COLL_DOUBLE);
    }
}

typedef struct {
    int64_t least;
    uint32_t owner;
    char pad[12];
} place;

/* The least value and its owner, the lower one of two. */
static void find_least(void *into, const void *from, size_t count) {
    place *a = into;
    const place *b = from;
    for (size_t i = 0; i < count; i++)
        if (b[i].least < a[i].least || (b[i].least == a[i].least && b[i].owner < a[i].owner)) a[i] = b[i];
}

static void own_operations(lapi_coll_t *coll) {
    static place places[100];
    size_t i, count = any(101);
    unsigned root = any((unsigned)t_tasks);
    uint64_t seed = t_random(&common);
    for (i = 0; i < count; i++) places[i] = (place){.least = element(seed, t_me, i) / 300, .owner = (uint32_t)t_me};
    OK(lapi_coll_reduce_with(coll, places, places, count, sizeof *places, find_least, LAPI_COLL_INT32, LAPI_COLL_SUM, root));
    for (i = 0; i < count && (unsigned)t_me == root; i++) {
        int owner = 0;
        for (int task = 1; task < t_tasks; task++)
            if (element(seed, task, i) / 300 < element(seed, owner, i) / 300) owner = task;
        CHECK_EQ(places[i].owner, owner);
        CHECK_EQ(places[i].least, element(seed, owner, i) / 300);
    }
}

static void gatherings(lapi_coll_t *coll) {
    size_t bytes = any(900), each = bytes ? bytes : 1;
    unsigned root = any((unsigned)t_tasks), all = any(2);
    uint64_t seed = t_random(&common);
    unsigned char *in = malloc(each), *out = malloc(each * (size_t)t_tasks);
    CHECK(in != NULL && out != NULL);
    t_fill(in, bytes, seed + (uint64_t)t_me);
    if (all) OK(lapi_coll_allgather(coll, in, bytes, out));
    else OK(lapi_coll_gather(coll, in, bytes, (unsigned)t_me == root ? out : NULL, root));
    memset(in, 0, each);
    for (int task = 0; task < t_tasks && (all || (unsigned)t_me == root); task++)
        CHECK_FILLED(out + (size_t)task * bytes, bytes, seed + (uint64_t)task);
    free(in);
    free(out);
}

/* No task is through before the last one has come. */
static void barriers(lapi_coll_t *coll, lapi_coll_memory_t *came) {
    static long long round = 0, previous;
    long long one = 1;
    round++;
    for (int task = 0; task < t_tasks; task++) {
        lapi_cntr_t done;
        OK(LAPI_Setcntr(t_hndl, &done, 0));
        OK(LAPI_Rmw64(t_hndl, FETCH_AND_ADD, (unsigned)task, (long long *)came->at[task], &one, &previous, &done));
        OK(LAPI_Waitcntr(t_hndl, &done, 1, NULL));
    }
    OK(lapi_coll_barrier(coll));
    /* The next round of the fastest may have begun. */
    int64_t found = __atomic_load_n((int64_t *)came->local, __ATOMIC_RELAXED);
    CHECK_FOR(found >= round * t_tasks && found <= (round + 1) * t_tasks, "round %lld: %lld", round, (long long)found);
}

static void mistakes(lapi_coll_t *coll) {
    double number = 0;
    int three = 3;
    RETURNS(lapi_coll_broadcast(coll, &three, sizeof three, (unsigned)t_tasks), LAPI_ERR_TGT);
    RETURNS(lapi_coll_gather(coll, &three, sizeof three, &three, (unsigned)t_tasks), LAPI_ERR_TGT);
    RETURNS(lapi_coll_reduce(coll, &number, &number, 1, LAPI_COLL_DOUBLE, LAPI_COLL_SUM, (unsigned)t_tasks), LAPI_ERR_TGT);
    RETURNS(lapi_coll_allreduce(coll, &number, &number, 1, LAPI_COLL_DOUBLE, LAPI_COLL_XOR), LAPI_ERR_SET_VAL);
    RETURNS(lapi_coll_reduce_with(coll, &number, &number, 1, PIECE + 1, find_least, LAPI_COLL_INT32, LAPI_COLL_SUM, 0),
            LAPI_ERR_DATA_LEN);
    OK(lapi_coll_broadcast(coll, NULL, 0, 0));
    OK(lapi_coll_reduce(coll, NULL, NULL, 0, LAPI_COLL_INT32, LAPI_COLL_SUM, 0));
}

/* A task without memory makes the call fail in all tasks, or needs none. */
static void without_memory(lapi_coll_t *coll) {
    lapi_coll_t other;
    lapi_coll_memory_t memory;
    int32_t *all = malloc((size_t)t_tasks * sizeof *all), mine = t_me;
    int task, which;
    CHECK(all != NULL);
    for (task = 0; task < t_tasks; task++) {
        /* The first memory of lapi_coll_init is the table of addresses. */
        scarce = t_me == task ? 2 : 0;
        RETURNS(lapi_coll_init(&other, t_hndl, PIECE), LAPI_ERR_MEMORY_EXHAUSTED);
        OK(lapi_coll_end(&other));
        for (which = 1; which <= 2; which++) {
            scarce = t_me == task ? which : 0;
            RETURNS(lapi_coll_malloc(coll, 8, &memory), LAPI_ERR_MEMORY_EXHAUSTED);
        }
        scarce = t_me == task;
        OK(lapi_coll_gather(coll, &mine, sizeof mine, all, 0));
        for (which = 0; t_me == 0 && which < t_tasks; which++) CHECK_EQ(all[which], which);
    }
    scarce = 0;
    free(all);
}

int main(int argc, char **argv) {
    lapi_coll_t first, second;
    lapi_coll_memory_t came;
    int i, rounds;
    CHECK(argc == 2);
    t_init();
    common = strtoull(argv[1], NULL, 0);
    own = t_seed(common, (uint64_t)t_me, 7);
    OK(lapi_coll_init(&first, t_hndl, PIECE));
    OK(lapi_coll_init(&second, t_hndl, 0));
    OK(lapi_coll_malloc(&first, sizeof(int64_t), &came));
    rounds = t_rounds(ROUNDS);
    for (i = 0; i < rounds; i++) {
        /* Two at once do not know of each other. */
        lapi_coll_t *coll = any(3) ? &first : &second;
        dawdle();
        switch (any(5)) {
        case 0: broadcasts(coll); break;
        case 1: reductions(coll); break;
        case 2: own_operations(coll); break;
        case 3: gatherings(coll); break;
        default: barriers(coll, &came);
        }
    }
    mistakes(&first);
    without_memory(&first);
    OK(lapi_coll_free(&first, &came));
    CHECK(came.local == NULL && came.at == NULL);
    OK(lapi_coll_end(&first));
    OK(lapi_coll_end(&second));
    t_done();
    return 0;
}

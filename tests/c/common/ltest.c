#include "ltest.h"

#include <stdarg.h>
#include <sys/prctl.h>

lapi_handle_t t_hndl;
int t_me = -1, t_tasks;

void t_fail(const char *file, int line, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: task %d: %s\n", file, line, t_me, text);
    fflush(stderr);
    _exit(T_FAILED);
}

void t_check_eq(const char *file, int line, const char *what, long long got, long long want) {
    if (got != want)
        t_fail(file, line, "%s: got %lld (%#llx), expected %lld (%#llx)", what, got, (unsigned long long)got, want,
               (unsigned long long)want);
}

void t_check_ptr(const char *file, int line, const char *what, const void *got, const void *want) {
    if (got != want) t_fail(file, line, "%s: got %p, expected %p", what, got, want);
}

void t_returns(const char *file, int line, const char *call, int got, int want) {
    char got_text[LAPI_MAX_ERR_STRING] = "", want_text[LAPI_MAX_ERR_STRING] = "";
    if (got == want) return;
    LAPI_Msg_string(got, got_text);
    LAPI_Msg_string(want, want_text);
    t_fail(file, line, "%s: got %d (%s), expected %d (%s)", call, got, got_text, want, want_text);
}

void t_init(void) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    t_init_with(&info);
}

void t_init_with(lapi_info_t *info) {
    /* MPICH has made the stream unbuffered when MPI came first. With no buffer given, the C library
     * would keep that one of a single byte, and write each line in pieces, between those of the
     * other tasks. */
    static char buffer[BUFSIZ];
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    OK(LAPI_Init(&t_hndl, info));
    OK(LAPI_Qenv(t_hndl, TASK_ID, &t_me));
    OK(LAPI_Qenv(t_hndl, NUM_TASKS, &t_tasks));
    CHECK_FOR(t_tasks >= 1 && t_me >= 0 && t_me < t_tasks, "this is task %d of %d", t_me, t_tasks);
}

void t_done(void) {
    OK(LAPI_Gfence(t_hndl));
    OK(LAPI_Term(t_hndl));
    t_pass();
}

void t_pass(void) {
    printf("PASS %d\n", t_me);
    fflush(stdout);
}

int t_query(lapi_query_t query) {
    int value = -1;
    OK(LAPI_Qenv(t_hndl, query, &value));
    return value;
}

void t_set(lapi_query_t attribute, int value) {
    OK(LAPI_Senv(t_hndl, attribute, value));
    CHECK_EQ(t_query(attribute), value);
}

void t_fence(void) { OK(LAPI_Gfence(t_hndl)); }

void **t_addresses(void *mine) {
    void **table = malloc(sizeof *table * (size_t)t_tasks);
    CHECK(table != NULL);
    OK(LAPI_Address_init(t_hndl, mine, table));
    CHECK_PTR(table[t_me], mine);
    return table;
}

void **t_processes(void) { return t_addresses((void *)(intptr_t)getpid()); }

/* What every process can see of another one: the name of its first thread. */
#define OUTSIDE "outside LAPI"

void t_leaves(void) { CHECK_EQ(prctl(PR_SET_NAME, OUTSIDE), 0); }

/* The first line of a file of the process; false when it has ended. */
static int first_line(const void *process, const char *name, char *line, int size) {
    char path[64];
    FILE *file;
    int read;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)(intptr_t)process, name);
    file = fopen(path, "r");
    if (file == NULL) return 0;
    read = fgets(line, size, file) != NULL;
    fclose(file);
    return read;
}

void t_until_outside(void *process) {
    char name[32] = "";
    while (first_line(process, "comm", name, sizeof name) && strcmp(name, OUTSIDE "\n") != 0) usleep(1000);
}

char t_state_of(void *process) {
    char line[512], *end;
    if (!first_line(process, "stat", line, sizeof line)) return 'X';
    end = strrchr(line, ')');
    return end != NULL && end[1] != 0 ? end[2] : 'X';
}

void t_until_ended(void *process) {
    while (t_state_of(process) != 'Z' && t_state_of(process) != 'X') usleep(1000);
}

/* Whether the harness has placed the tasks so. */
static int transport_is(const char *name) {
    const char *transport = getenv("TEST_TRANSPORT");
    return transport != NULL && strcmp(transport, name) == 0;
}

int t_rounds(int rounds) {
    return transport_is("fabric") || transport_is("hybrid") ? (rounds + 19) / 20 : rounds;
}

void t_sharing(int task, int *from, int *to) {
    int half = (t_tasks + 1) / 2;
    *from = 0;
    *to = t_tasks;
    if (transport_is("fabric")) {
        *from = task;
        *to = task + 1;
    } else if (transport_is("hybrid") && t_tasks > 1) {
        /* Blocks on two hosts, of which the first has one task more. */
        *from = task < half ? 0 : half;
        *to = task < half ? half : t_tasks;
    }
}

int t_value(lapi_cntr_t *cntr) {
    int value = -1;
    OK(LAPI_Getcntr(t_hndl, cntr, &value));
    return value;
}

int t_wait(lapi_cntr_t *cntr, int val) {
    int left = -1;
    OK(LAPI_Waitcntr(t_hndl, cntr, val, &left));
    return left;
}

void t_wait_exact(lapi_cntr_t *cntr, int val) {
    int left = t_wait(cntr, val);
    if (left != 0) T_FAIL("the counter went to %d, expected %d", left + val, val);
}

void t_probe_until(volatile int *flag, int val) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < val) OK(LAPI_Probe(t_hndl));
}

lapi_long_t t_long(const void *pointer) { return (lapi_long_t)(uintptr_t)pointer; }

uint64_t t_random(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t t_below(uint64_t *state, uint64_t limit) { return t_random(state) % limit; }

uint64_t t_seed(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t state = a;
    state = t_random(&state) ^ b;
    state = t_random(&state) ^ c;
    return t_random(&state);
}

/* The pattern is made in blocks, so that comparing is memcmp's work. Word i of the memory is mixed
 * from seed and i. */
enum { BLOCK = 4096 };

static void pattern(unsigned char *block, size_t first_word, uint64_t seed) {
    size_t i;
    for (i = 0; i < BLOCK / 8; i++) {
        uint64_t word = (seed + first_word + i) * 0x9e3779b97f4a7c15u;
        word ^= word >> 29;
        memcpy(block + 8 * i, &word, 8);
    }
}

void t_fill(void *at, size_t len, uint64_t seed) {
    unsigned char block[BLOCK];
    size_t done, now;
    for (done = 0; done < len; done += now) {
        now = len - done < BLOCK ? len - done : BLOCK;
        pattern(block, done / 8, seed);
        memcpy((unsigned char *)at + done, block, now);
    }
}

long t_differs(const void *at, size_t len, uint64_t seed) {
    const unsigned char *bytes = at;
    unsigned char block[BLOCK];
    size_t done, now, i;
    for (done = 0; done < len; done += now) {
        now = len - done < BLOCK ? len - done : BLOCK;
        pattern(block, done / 8, seed);
        if (memcmp(bytes + done, block, now) == 0) continue;
        for (i = 0; bytes[done + i] == block[i]; i++)
            ;
        return (long)(done + i);
    }
    return -1;
}

void t_check_filled(const char *file, int line, const void *at, size_t len, uint64_t seed) {
    long where = t_differs(at, len, seed);
    if (where >= 0)
        t_fail(file, line, "byte %ld of %zu is %#x, not what was sent", where, len, ((const unsigned char *)at)[where]);
}

static unsigned char guard(size_t i) { return (unsigned char)(0xa5 ^ (i * 7)); }

void t_arena_init(t_arena *arena, size_t largest) {
    void *memory = NULL;
    arena->room = largest + 2 * T_GUARD + 64;
    CHECK_EQ(posix_memalign(&memory, BLOCK, arena->room), 0);
    arena->memory = memory;
    arena->at = NULL;
    arena->len = 0;
}

unsigned char *t_place_at(void *memory, unsigned misalign) {
    return (unsigned char *)memory + T_GUARD + misalign % 64;
}

unsigned char *t_place(t_arena *arena, size_t len, unsigned misalign) {
    size_t i;
    arena->at = t_place_at(arena->memory, misalign);
    arena->len = len;
    CHECK(arena->at + len + T_GUARD <= arena->memory + arena->room);
    memset(arena->at, 0xee, len);
    for (i = 0; i < T_GUARD; i++) {
        arena->at[-1 - (long)i] = guard(i);
        arena->at[len + i] = guard(i);
    }
    return arena->at;
}

void t_check_guards(const char *file, int line, const t_arena *arena) {
    size_t i;
    for (i = 0; i < T_GUARD; i++) {
        if (arena->at[-1 - (long)i] != guard(i))
            t_fail(file, line, "the byte %zu before the buffer of %zu bytes has changed", i + 1, arena->len);
        if (arena->at[arena->len + i] != guard(i))
            t_fail(file, line, "the byte %zu behind the buffer of %zu bytes has changed", i + 1, arena->len);
    }
}

size_t t_lengths(size_t *list, size_t room, size_t largest) {
    static const size_t small[] = {0, 1, 7, 8, 9};
    size_t n, power, i;
    for (n = 0; n < sizeof small / sizeof *small; n++) list[n] = small[n];
    for (power = 16; power <= largest; power *= 2) {
        CHECK(n + 3 <= room);
        for (i = 0; i < 3; i++) list[n++] = power - 1 + i;
    }
    return n;
}

/*
 * Data distribution functions: ddm CASE
 *
 *   sums     every task adds ints and doubles into the matrices of all tasks at the same time
 *   partial  a function that takes less than it is given
 *   replace  the last function registered is the one that is called; each handle has its own
 *   random SEED CASES
 *            random programs that switch CONTROL on, over and off; every copy is passed on with what the CONTROL before
 *            it says, in whole atoms, in messages of any length
 */
#include "message.h"

typedef struct {
    int src, number;
} header;

static void **handlers, **tgt_cntrs;
static lapi_cntr_t org_cntr, cmpl_cntr, tgt_cntr;

/* --- sums --- */

enum { INTS = 1, DOUBLES = 2, PAIRS = 3 };
enum { SUM, MAX, ROWS = 40, COLUMNS = 30, MESSAGES = 12 };

static volatile int calls;
static int portion = INT_MAX; /* how many elements a call takes */

/* Adds or compares; the operand is the type of the elements. */
static long reduce(void *in, void *inout, long bytes, int operand, int operation) {
    long i, n, size = operand == INTS ? 4 : operand == DOUBLES ? 8 : 16;
    CHECK(operand == INTS || operand == DOUBLES || operand == PAIRS);
    CHECK_FOR(bytes > 0 && bytes % size == 0, "%ld bytes for elements of %ld", bytes, size);
    CHECK_EQ((uintptr_t)in % (size > 8 ? 8 : (uintptr_t)size), 0);
    n = bytes / size;
    if (n > portion) n = portion;
    for (i = 0; i < n; i++) {
        if (operand == INTS) {
            int *a = (int *)inout + i, b = ((int *)in)[i];
            *a = operation == SUM ? *a + b : *a > b ? *a : b;
        } else if (operand == DOUBLES) {
            double *a = (double *)inout + i, b = ((double *)in)[i];
            *a = operation == SUM ? *a + b : *a > b ? *a : b;
        } else {
            CHECK_EQ(operation, SUM);
            ((double *)inout)[2 * i] += ((double *)in)[2 * i];
            ((double *)inout)[2 * i + 1] -= ((double *)in)[2 * i + 1];
        }
    }
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELEASE);
    return n * size;
}

/* The columns of a matrix, one after the other, each handed to the function. */
static program *columns(long element, int operation, int operand) {
    program *p = p_new();
    p_control(p, 0, operation, operand);
    p_gosub(p, 0, 1, COLUMNS, 0, element);
    p_gosub(p, 1, 2, ROWS, 0, COLUMNS * element);
    p_copy(p, 2, element, 0);
    p->depth = p_depth(p, 0);
    p_write(p, ROWS * COLUMNS * element, 1);
    return p;
}

/* Contiguous elements, in packets of whole ones. */
static program *row(long element) {
    program *p = p_new();
    p_copy(p, 0, element, 0);
    p_write(p, element, 1);
    p->descr.density = LAPI_DGSM_UNIT;
    p->descr.atom_size = (int)element;
    return p;
}

static double matrix[2 * ROWS * COLUMNS];
static lapi_dg_handle_t to_columns;

static void *into_matrix(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                         compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    ret->dgsp_handle = to_columns;
    ret->bytes = ret->msg_len;
    *comp_h = NULL;
    return matrix;
}

static void send_row(int tgt, lapi_dg_handle_t dgsp, void *data, ulong bytes) {
    lapi_xfer_t x;
    bzero(&x, sizeof x);
    x.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    x.Dgsp.tgt = (uint)tgt;
    x.Dgsp.hdr_hdl = t_long(handlers[tgt]);
    x.Dgsp.udata = data;
    x.Dgsp.udata_len = bytes;
    x.Dgsp.tgt_cntr = t_long(tgt_cntrs[tgt]);
    x.Dgsp.org_cntr = &org_cntr;
    x.Dgsp.cmpl_cntr = &cmpl_cntr;
    x.Dgsp.dgsp = dgsp;
    OK(LAPI_Xfer(t_hndl, &x));
}

/* What task `src` sends in its message `number` for the place `i` of the stream. */
static double value(int src, int number, long i) { return (double)((src + 1) * 1000 + number * 7 + i % 911); }

/* `applications` times the whole matrix in each message: the second application adds
 * to the first. */
static void sum(int operand, int operation, long applications) {
    long element = operand == INTS ? 4 : operand == DOUBLES ? 8 : 16, count = ROWS * COLUMNS * applications;
    program *p = columns(element, operation, operand), *elements = row(element);
    unsigned char *data = malloc(MESSAGES * (size_t)(count * element));
    int task, number;
    long i, r, c, doubles = operand == PAIRS ? 2 * count : count;
    CHECK(data != NULL);
    p->descr.extent = 0; /* the same matrix again */
    to_columns = p_register(p);
    p_register(elements);
    memset(matrix, 0, sizeof matrix);
    handlers = t_addresses((void *)into_matrix);
    t_fence();
    for (number = 0; number < MESSAGES; number++) {
        unsigned char *from = data + number * count * element;
        for (i = 0; i < doubles; i++) {
            if (operand == INTS)
                ((int *)from)[i] = (int)value(t_me, number, i);
            else
                ((double *)from)[i] = value(t_me, number, i);
        }
        for (task = 0; task < t_tasks; task++) send_row(task, elements->handle, from, (ulong)(count * element));
    }
    OK(p_unreserve(elements->handle));
    t_wait_exact(&org_cntr, MESSAGES * t_tasks);
    memset(data, 0x11, MESSAGES * (size_t)(count * element));
    t_wait_exact(&tgt_cntr, MESSAGES * t_tasks);
    t_wait_exact(&cmpl_cntr, MESSAGES * t_tasks);
    OK(p_unreserve(p->handle));
    for (r = 0; r < ROWS; r++)
        for (c = 0; c < COLUMNS; c++) {
            double wanted = 0, second = 0;
            for (task = 0; task < t_tasks; task++)
                for (number = 0; number < MESSAGES; number++)
                    for (i = c * ROWS + r; i < count; i += ROWS * COLUMNS) {
                        double here = value(task, number, operand == PAIRS ? 2 * i : i);
                        wanted = operation == SUM ? wanted + here : wanted > here ? wanted : here;
                        second -= value(task, number, 2 * i + 1);
                    }
            if (operand == INTS)
                CHECK_FOR(((int *)matrix)[r * COLUMNS + c] == (int)wanted, "element %ld, %ld is %d, expected %d", r, c,
                          ((int *)matrix)[r * COLUMNS + c], (int)wanted);
            else if (operand == DOUBLES)
                CHECK_FOR(matrix[r * COLUMNS + c] == wanted, "element %ld, %ld is %g, expected %g", r, c,
                          matrix[r * COLUMNS + c], wanted);
            else
                CHECK_FOR(matrix[2 * (r * COLUMNS + c)] == wanted && matrix[2 * (r * COLUMNS + c) + 1] == second,
                          "pair %ld, %ld is wrong", r, c);
        }
    t_fence();
    free(data);
    free(p);
    free(elements);
}

static void sums(void) {
    OK(p_ddm(t_hndl, reduce));
    sum(INTS, SUM, 1);
    sum(INTS, MAX, 1);
    sum(DOUBLES, SUM, 1);
    sum(DOUBLES, MAX, 2);
    sum(PAIRS, SUM, 1);
    sum(INTS, SUM, 60);
    sum(PAIRS, SUM, 10);
    CHECK(calls > 0);
}

/* --- replace --- */

static volatile int first_calls, second_calls;

static long first(void *in, void *inout, long bytes, int operand, int operation) {
    first_calls++;
    return reduce(in, inout, bytes, operand, operation);
}

static long second(void *in, void *inout, long bytes, int operand, int operation) {
    second_calls++;
    return reduce(in, inout, bytes, operand, operation);
}

static void unpack_one(lapi_handle_t hndl, lapi_dg_handle_t dgsp) {
    lapi_util_t util;
    int in = 1, out = 2;
    bzero(&util, sizeof util);
    util.UnpackDgsp.Util_type = LAPI_DGSP_UNPACK;
    util.UnpackDgsp.dgsp = dgsp;
    util.UnpackDgsp.in_buf = &in;
    util.UnpackDgsp.in_size = sizeof in;
    util.UnpackDgsp.out_buf = &out;
    util.UnpackDgsp.bytes = sizeof out;
    OK(LAPI_Util(hndl, &util));
    CHECK_EQ(util.UnpackDgsp.position, sizeof in);
    CHECK_EQ(out, 3);
}

static void replace(void) {
    program *p = p_new();
    lapi_handle_t other;
    lapi_info_t info;
    bzero(&info, sizeof info);
    p_control(p, 0, SUM, INTS);
    p_copy(p, 0, 4, 0);
    p_write(p, 4, 1);
    p_register(p);
    OK(p_ddm(t_hndl, first));
    unpack_one(t_hndl, p->handle);
    CHECK_EQ(first_calls, 1);
    OK(p_ddm(t_hndl, second));
    unpack_one(t_hndl, p->handle);
    CHECK_EQ(first_calls, 1);
    CHECK_EQ(second_calls, 1);
    OK(LAPI_Init(&other, &info));
    OK(p_ddm(other, first));
    unpack_one(other, p->handle);
    unpack_one(t_hndl, p->handle);
    CHECK_EQ(first_calls, 2);
    CHECK_EQ(second_calls, 2);
    OK(LAPI_Gfence(other));
    OK(LAPI_Term(other));
    unpack_one(t_hndl, p->handle);
    CHECK_EQ(second_calls, 3);
    sum(INTS, SUM, 3);
    CHECK(second_calls > 3);
    CHECK_EQ(first_calls, 2);
    OK(p_unreserve(p->handle));
}

/* --- random --- */

enum { ROOM = 4 << 20, LONGEST = 150000 };

typedef struct {
    end from, to;
    uint64_t seed;
} plan;

static plan mine, theirs;
static unsigned char *out, *in;
static int atom;

/* What the function makes of an element, so that the result shows which CONTROL was in force. */
static uint32_t mixed(uint32_t old, uint32_t element, int operand, int operation) {
    return old + element * (uint32_t)(2 * operation + 3) + (uint32_t)operand * 77777;
}

static long mix(void *data, void *inout, long bytes, int operand, int operation) {
    long i;
    CHECK_FOR(bytes > 0 && bytes % atom == 0, "%ld bytes in atoms of %d", bytes, atom);
    CHECK(operation >= 0);
    CHECK((unsigned char *)inout >= in && (unsigned char *)inout + bytes <= in + theirs.to.area);
    for (i = 0; i < bytes / 4; i++) {
        uint32_t old, element;
        memcpy(&old, (char *)inout + 4 * i, 4);
        memcpy(&element, (char *)data + 4 * i, 4);
        old = mixed(old, element, operand, operation);
        memcpy((char *)inout + 4 * i, &old, 4);
    }
    return bytes;
}

/* Whether no byte is reached twice: then the order of packets does not matter. */
static int once_each(const end *e) {
    unsigned char *reached = calloc(1, (size_t)e->area);
    int once = 1;
    long i, k;
    CHECK(reached != NULL);
    for (i = 0; i < e->t.n; i++)
        for (k = 0; k < e->t.list[i].len; k++) once &= !reached[e->base + e->t.list[i].at + k]++;
    free(reached);
    return once;
}

static plan make(uint64_t seed, int src, int number, int size) {
    static const taste gathers[] = {{6, 1, 100, 3000, 9000, 0}, {3, 1, 4000, 9000, 40000, 0}};
    taste scatter = {6, 4, 64, 60000, 4000, 1};
    uint64_t random = t_seed(seed, (uint64_t)src, (uint64_t)number);
    plan p;
    scatter.atom = size;
    bzero(&p, sizeof p);
    p.seed = t_random(&random);
    for (;;) {
        program *to = p_random(&random, &scatter);
        long bytes = t_below(&random, 3) == 0 ? to->size : p_multiple(&random, 4 * to->size, size);
        /* Many packets, whose bodies are not a multiple of some atoms. */
        if (t_below(&random, 2) == 0) bytes = p_multiple(&random, LONGEST, size);
        to->descr.extent = to->high - to->low;
        if (bytes <= LONGEST) {
            p.to = e_make(to, bytes);
            if (p.to.area <= ROOM && once_each(&p.to)) break;
            free(p.to.t.list);
        }
        free(to);
    }
    for (;;) {
        /* Its copies may end anywhere in an atom, its packets may not. */
        program *from = p_random(&random, &gathers[t_below(&random, 2)]);
        from->descr.atom_size = size;
        p.from = e_make(from, p.to.bytes);
        if (p.from.area <= ROOM) return p;
        e_free(&p.from);
    }
}

static void *into_program(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret,
                          compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    CHECK_EQ(ret->msg_len, theirs.to.bytes);
    ret->dgsp_handle = theirs.to.p->handle;
    ret->bytes = ret->msg_len;
    *comp_h = NULL;
    return e_base(&theirs.to, in);
}

static void check_mixed(const plan *p) {
    unsigned char *source = malloc((size_t)p->from.area), *before = malloc((size_t)p->to.area), *stream, *next;
    long i, k;
    CHECK(source != NULL && before != NULL);
    t_fill(source, (size_t)p->from.area, p->seed);
    t_fill(before, (size_t)p->to.area, ~p->seed);
    next = stream = e_stream(&p->from, source);
    for (i = 0; i < p->to.t.n; i++) {
        const copy *c = &p->to.t.list[i];
        unsigned char *at = before + p->to.base + c->at;
        if (c->operation < 0) memcpy(at, next, (size_t)c->len);
        for (k = 0; c->operation >= 0 && k < c->len; k += 4) {
            uint32_t old, element;
            memcpy(&old, at + k, 4);
            memcpy(&element, next + k, 4);
            old = mixed(old, element, c->operand, c->operation);
            memcpy(at + k, &old, 4);
        }
        next += c->len;
    }
    for (i = 0; i < p->to.area; i++)
        CHECK_FOR(before[i] == in[i], "byte %ld of %ld is %#x, expected %#x, in atoms of %d", i, p->to.area, in[i],
                  before[i], atom);
    free(source);
    free(before);
    free(stream);
}

static void randomly(uint64_t seed, int cases) {
    static const int atoms[] = {4, 8, 16, 20};
    int number;
    if (t_me == 0) printf("seed %llu\n", (unsigned long long)seed);
    OK(p_ddm(t_hndl, mix));
    out = malloc(ROOM);
    in = malloc(ROOM);
    CHECK(out != NULL && in != NULL);
    handlers = t_addresses((void *)into_program);
    for (number = 0; number < cases; number++) {
        int tgt = (t_me + number) % t_tasks, src = (t_me - number % t_tasks + t_tasks) % t_tasks;
        atom = atoms[number % 4];
        mine = make(seed, t_me, number, atom);
        theirs = make(seed, src, number, atom);
        t_fill(out, (size_t)mine.from.area, mine.seed);
        t_fill(in, (size_t)theirs.to.area, ~theirs.seed);
        e_register(&theirs.to);
        e_register(&mine.from);
        t_fence();
        send_row(tgt, mine.from.p->handle, e_base(&mine.from, out), (ulong)mine.from.bytes);
        e_unreserve(&mine.from);
        t_wait_exact(&org_cntr, 1);
        memset(out, 0x11, (size_t)mine.from.area);
        t_wait_exact(&tgt_cntr, 1);
        t_wait_exact(&cmpl_cntr, 1);
        e_unreserve(&theirs.to);
        check_mixed(&theirs);
        e_free(&mine.from), e_free(&mine.to), e_free(&theirs.from), e_free(&theirs.to);
    }
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    t_init();
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "sums") == 0) sums();
    else if (strcmp(which, "partial") == 0) portion = 3, sums();
    else if (strcmp(which, "replace") == 0) replace();
    else if (strcmp(which, "random") == 0 && argc == 4) randomly(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

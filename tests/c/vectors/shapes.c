/*
 * Vectors of every shape: shapes KIND LARGEST [refused], KIND one of putv getv amv, xputv xgetv
 * xamv for LAPI_Xfer
 *
 * In round r task i works with task i+r. Shapes of more than LARGEST bytes are skipped. A task that
 * may change a buffer or a vector, because a counter or a handler says so, overwrites it at once.
 * With `refused` the tasks forbid access to their memory after LAPI_Init has found that they can
 * copy across address spaces, so that each such copy fails.
 */
#include "vec.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#define IO LAPI_GEN_IOVECTOR
#define STRIDED LAPI_GEN_STRIDED_XFER
#define MIB (1ul << 20)

/* Pieces of at least `a` and at most `b` bytes; or blocks of `a` bytes, `b` and (at the other
 * side) `c` apart. */
static const struct {
    lapi_vectype_t type;
    uint count;
    ulong a, b, c;
    int placements[2];
} shapes[] = {
    {IO, 1, 1000, 1000, 0, {SPREAD, SPREAD}},
    {IO, 1, 0, 0, 0, {SPREAD, SPREAD}},
    {IO, 0, 0, 0, 0, {SPREAD, SPREAD}},
    {IO, 17, 0, 0, 0, {SPREAD, SHUFFLED}},
    {IO, 2, 3, 90, 0, {SPREAD, TOUCHING}},
    {IO, 2, 5000, 9000, 0, {SHUFFLED, SPREAD}},
    {IO, 9, 1, 1, 0, {SPREAD, SHUFFLED}},
    {IO, 40, 0, 3, 0, {SHUFFLED, SHUFFLED}},
    {IO, 100, 8, 8, 0, {TOUCHING, TOUCHING}},
    {IO, 600, 8, 8, 0, {SPREAD, TOUCHING}},
    {IO, 1300, 0, 63, 0, {SPREAD, SPREAD}},
    {IO, 1300, 0, 5, 0, {SHUFFLED, SPREAD}},
    {IO, 1300, 100, 3000, 0, {TOUCHING, SHUFFLED}},
    {IO, 5000, 0, 200, 0, {SPREAD, SHUFFLED}},
    {IO, 5000, 4, 4, 0, {TOUCHING, SPREAD}},
    {IO, 100000, 0, 15, 0, {SPREAD, SHUFFLED}},
    {IO, 100000, 8, 8, 0, {TOUCHING, TOUCHING}},
    {IO, 64, 65536, 65536, 0, {SPREAD, SPREAD}},
    {IO, 7, 0, 3 * MIB, 0, {SHUFFLED, SPREAD}},
    {IO, 2, 5 * MIB + 1, 12 * MIB, 0, {SPREAD, SHUFFLED}},
    {IO, 3, 2 * MIB, 3 * MIB, 0, {TOUCHING, TOUCHING}},
    {STRIDED, 3, 5, 8, 8, {0, 1}},
    {STRIDED, 1, 100, 100, 4000, {0, 0}},
    {STRIDED, 0, 10, 20, 30, {0, 0}},
    {STRIDED, 5, 0, 0, 16, {0, 0}},
    {STRIDED, 12, 100, 100, 100, {3, 5}},
    {STRIDED, 12, 100, 100, 101, {0, 0}},
    {STRIDED, 1000, 8, 24, 8, {0, 0}},
    {STRIDED, 1300, 16, 40, 64, {1, 7}},
    {STRIDED, 5000, 4, 12, 8, {4, 4}},
    {STRIDED, 100000, 1, 3, 2, {0, 1}},
    {STRIDED, 17, 70000, 70001, 80000, {0, 2}},
    {STRIDED, 64, 65536, 131072, 65536, {0, 0}},
    {STRIDED, 3, 4 * MIB, 4 * MIB + 4096, 5 * MIB + 1, {8, 0}},
    {STRIDED, 2, MIB, MIB, MIB, {0, 0}},
};
#define SHAPES ((int)(sizeof shapes / sizeof *shapes))

typedef struct {
    uint64_t seed;
    ulong bytes;
    int shape, src;
} header;

static unsigned char *out, *in; /* areas of the two sides */
static void **outs, **ins, **tgt_cntrs, **handlers;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static side from, to; /* of the step under way */
static uint64_t mine, theirs;
static lapi_vec_t *returned; /* what the header handler returns */
static volatile int arrived, completed, sent;

static side make(int number, int which) {
    ulong *len;
    uint i;
    side s;
    uint64_t seed = t_seed((uint64_t)number, 0, 1);
    if (shapes[number].type == STRIDED)
        return v_strided(shapes[number].count, shapes[number].a, which ? shapes[number].c : shapes[number].b,
                         (ulong)shapes[number].placements[which]);
    len = v_alloc(shapes[number].count * sizeof *len);
    for (i = 0; i < shapes[number].count; i++)
        len[i] = shapes[number].a + t_below(&seed, shapes[number].b - shapes[number].a + 1);
    s = v_pieces(IO, shapes[number].count, len, shapes[number].placements[which],
                 t_seed((uint64_t)number, (uint64_t)which, 2));
    free(len);
    return s;
}

/* Whether both sides are contiguous, so that the program may declare it. */
static int contiguous(int number) {
    if (shapes[number].type == STRIDED)
        return shapes[number].count > 0 && shapes[number].a == shapes[number].b && shapes[number].b == shapes[number].c;
    return shapes[number].placements[0] == TOUCHING && shapes[number].placements[1] == TOUCHING;
}

/* --- handlers --- */

static void whole(lapi_handle_t *hndl, void *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_PTR(info, &to);
    CHECK_EQ(v_differs(&to, in, to.bytes, theirs), -1);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    lapi_return_info_t *ret = (lapi_return_info_t *)len_vec;
    header *head = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_EQ(ret->msg_len, head->bytes);
    CHECK_EQ(ret->src, head->src);
    CHECK_EQ(head->seed, theirs);
    *comp_h = NULL;
    *uinfo = NULL;
    if (head->shape % 3 != 0) {
        *comp_h = whole;
        *uinfo = &to;
        if (head->shape % 3 == 2) ret->ret_flags = LAPI_LOCAL_STATE;
    }
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
    return returned;
}

static void gone(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_PTR(param, &from);
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    CHECK_EQ(v_differs(&from, out, from.bytes, mine), -1);
    memset(out, 0x11, from.area);
    __atomic_fetch_add(&sent, 1, __ATOMIC_RELEASE);
}

/* --- one transfer of each task --- */

static void start_put(int tgt, int by_xfer, int number, lapi_vec_t *org, void **tgt_vec) {
    int flags = (number % 2 ? USE_TGT_VEC_TYPE : 0) | (contiguous(number) ? BUFFER_BOTH_CONTIGUOUS : 0);
    lapi_xfer_t xfer;
    if (!by_xfer) {
        *tgt_vec = v_vector(&to, ins[tgt]);
        OK(LAPI_Putv(t_hndl, (uint)tgt, *tgt_vec, org, tgt_cntrs[tgt], &org_cntr, &cmpl_cntr));
        return;
    }
    bzero(&xfer, sizeof xfer);
    *tgt_vec = flags & USE_TGT_VEC_TYPE ? (void *)v_vector(&to, ins[tgt]) : (void *)v_long_vector(&to, ins[tgt]);
    xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
    xfer.Putv.flags = flags;
    xfer.Putv.tgt = (uint)tgt;
    xfer.Putv.shdlr = gone;
    xfer.Putv.sinfo = &from;
    xfer.Putv.org_vec = org;
    xfer.Putv.tgt_vec = *tgt_vec;
    xfer.Putv.tgt_cntr = t_long(tgt_cntrs[tgt]);
    xfer.Putv.org_cntr = &org_cntr;
    xfer.Putv.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
    memset(&xfer, 0x99, sizeof xfer);
}

static void start_get(int tgt, int by_xfer, int number, lapi_vec_t *org, void **tgt_vec) {
    int flags = (number % 2 ? USE_TGT_VEC_TYPE : 0) | (contiguous(number) ? BUFFER_BOTH_CONTIGUOUS : 0);
    lapi_xfer_t xfer;
    if (!by_xfer) {
        *tgt_vec = v_vector(&from, outs[tgt]);
        OK(LAPI_Getv(t_hndl, (uint)tgt, *tgt_vec, org, tgt_cntrs[tgt], &org_cntr));
        return;
    }
    bzero(&xfer, sizeof xfer);
    *tgt_vec = flags & USE_TGT_VEC_TYPE ? (void *)v_vector(&from, outs[tgt]) : (void *)v_long_vector(&from, outs[tgt]);
    xfer.Getv.Xfer_type = LAPI_GETV_XFER;
    xfer.Getv.flags = flags;
    xfer.Getv.tgt = (uint)tgt;
    xfer.Getv.org_vec = org;
    xfer.Getv.tgt_vec = *tgt_vec;
    xfer.Getv.tgt_cntr = t_long(tgt_cntrs[tgt]);
    xfer.Getv.org_cntr = &org_cntr;
    xfer.Getv.chndlr = whole;
    xfer.Getv.cinfo = &to;
    OK(LAPI_Xfer(t_hndl, &xfer));
    memset(&xfer, 0x99, sizeof xfer);
}

static void start_am(int tgt, int by_xfer, int number, lapi_vec_t *org, header *head) {
    lapi_xfer_t xfer;
    if (!by_xfer) {
        OK(LAPI_Amsendv(t_hndl, (uint)tgt, handlers[tgt], head, sizeof *head, org, tgt_cntrs[tgt], &org_cntr,
                        &cmpl_cntr));
        return;
    }
    bzero(&xfer, sizeof xfer);
    xfer.Amv.Xfer_type = LAPI_AMV_XFER;
    xfer.Amv.flags = contiguous(number) ? BUFFER_BOTH_CONTIGUOUS : 0;
    xfer.Amv.tgt = (uint)tgt;
    xfer.Amv.hdr_hdl = t_long(handlers[tgt]);
    xfer.Amv.uhdr_len = sizeof *head;
    xfer.Amv.uhdr = head;
    xfer.Amv.shdlr = gone;
    xfer.Amv.sinfo = &from;
    xfer.Amv.org_vec = org;
    xfer.Amv.tgt_cntr = t_long(tgt_cntrs[tgt]);
    xfer.Amv.org_cntr = &org_cntr;
    xfer.Amv.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
    memset(&xfer, 0x99, sizeof xfer);
}

static void step(const char *kind, int distance, int number) {
    int by_xfer = kind[0] == 'x', get = strstr(kind, "getv") != NULL, am = strstr(kind, "amv") != NULL;
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    lapi_vec_t *org;
    void *tgt_vec = NULL;
    header head;
    bzero(&head, sizeof head);
    mine = t_seed((uint64_t)t_me, (uint64_t)number, (uint64_t)distance);
    theirs = t_seed((uint64_t)(get ? tgt : src), (uint64_t)number, (uint64_t)distance);
    v_poison(&from, out);
    v_fill(&from, out, mine);
    v_poison(&to, in);
    returned = v_vector(&to, in);
    arrived = completed = sent = 0;
    t_fence();
    head.seed = mine;
    head.bytes = from.bytes;
    head.shape = number;
    head.src = t_me;
    org = get ? v_vector(&to, in) : v_vector(&from, out);
    if (get)
        start_get(tgt, by_xfer, number, org, &tgt_vec);
    else if (am)
        start_am(tgt, by_xfer, number, org, &head);
    else
        start_put(tgt, by_xfer, number, org, &tgt_vec);

    if (get) {
        t_wait_exact(&tgt_cntr, 1);
        memset(out, 0x11, from.area);
        t_wait_exact(&org_cntr, 1);
        if (by_xfer) t_probe_until(&completed, 1);
    } else {
        t_wait_exact(&org_cntr, 1);
        if (by_xfer) t_probe_until(&sent, 1);
        memset(out, 0x11, from.area);
        memset(&head, 0x11, sizeof head);
    }
    v_spoil(org);
    if (tgt_vec != NULL && (!by_xfer || number % 2)) v_spoil(tgt_vec);
    else if (tgt_vec != NULL) v_spoil_long(tgt_vec);
    if (!get) t_wait_exact(&tgt_cntr, 1);
    v_spoil(returned);
    V_CHECK(&to, in, to.bytes, theirs);
    if (!get) t_wait_exact(&cmpl_cntr, 1);
    CHECK_EQ(arrived, am ? 1 : 0);
    CHECK_EQ(sent, by_xfer && !get ? 1 : 0);
    CHECK_EQ(completed, get ? by_xfer : am && number % 3 != 0);
    CHECK_EQ(t_value(&org_cntr), 0);
}

/* From now on the kernel refuses to copy between these tasks; root first has to become
 * another user. */
static void refuse_copies(void) {
    lapi_long_t pids[16];
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {&byte, 1};
    CHECK(t_tasks <= 16);
    if (geteuid() == 0) {
        CHECK_EQ(setresgid(65534, 65534, 65534), 0);
        CHECK_EQ(setresuid(65534, 65534, 65534), 0);
    }
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
    OK(LAPI_Address_init64(t_hndl, (lapi_long_t)getpid(), pids));
    errno = 0;
    CHECK_EQ(process_vm_readv((pid_t)pids[(t_me + 1) % t_tasks], &here, 1, &there, 1, 0), -1);
    CHECK_EQ(errno, EPERM);
}

int main(int argc, char **argv) {
    ulong largest, room[2] = {0, 0};
    int distance, number, which;
    CHECK(argc == 3 || argc == 4);
    largest = strtoul(argv[2], NULL, 10);
    t_init();
    if (argc == 4) refuse_copies();
    for (number = 0; number < SHAPES; number++)
        for (which = 0; which < 2; which++) {
            side s = make(number, which);
            if (s.bytes <= largest && s.area > room[which]) room[which] = s.area;
            v_free(&s);
        }
    out = v_alloc(room[0]);
    in = v_alloc(room[1]);
    outs = t_addresses(out);
    ins = t_addresses(in);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses((void *)arriving);
    for (number = 0; number < SHAPES; number++) {
        from = make(number, 0);
        to = make(number, 1);
        for (distance = 0; distance < t_tasks && from.bytes <= largest; distance++)
            step(argv[1], distance, number);
        t_fence();
        v_free(&from);
        v_free(&to);
    }
    t_done();
    return 0;
}

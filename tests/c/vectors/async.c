/*
 * Errors in the vector that a header handler returns: async CASE
 *
 *   reported every error is reported to the target's error handler, the message is buried, counters
 *            and handlers act
 *   default  without an error handler the job ends (two tasks)
 *   longer   pieces that are as many but not as long: data without a place is dropped, no other byte changes
 */
#include "vec.h"

enum { PIECES = 4, LEN = 24, LONG = 30000 };
#define ROOMY ((ulong)1 << 62)

static unsigned char landing[4096];
static void *info[PIECES + 1];
static ulong len[PIECES + 1];
static lapi_vec_t returned;
static void **handlers, **tgt_cntrs;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static volatile int reported, expected, completed, called;
static int source;

static void errors(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, expected);
    CHECK_EQ(*type, AM_ERR);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, source);
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELEASE);
}

static void completion(lapi_handle_t *hndl, void *param) {
    (void)hndl, (void)param;
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)len_vec;
    *comp_h = completion;
    *uinfo = NULL;
    __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
    return &returned;
}

/* A vector that fits a message of this type, to be spoilt. */
static void good(lapi_vectype_t type, ulong bytes) {
    int i;
    for (i = 0; i <= PIECES; i++) {
        info[i] = landing + 64 + i * 2 * LEN;
        len[i] = bytes;
    }
    if (type == LAPI_GEN_STRIDED_XFER) {
        info[1] = (void *)bytes;
        info[2] = (void *)(bytes + 8);
    }
    returned.vec_type = type;
    returned.num_vecs = PIECES;
    returned.info = info;
    returned.len = len;
}

/* Sends a vector of this type to the task `distance` further, whose `returned` makes it
 * report this code. */
static void send_one(lapi_vectype_t type, ulong bytes, int distance, int code) {
    static unsigned char data[PIECES * (LONG + 8)];
    uint tgt = (uint)((t_me + distance) % t_tasks), i;
    side from = v_strided(PIECES, bytes, bytes + 8, 0);
    lapi_vec_t *org;
    from.type = type;
    for (i = 0; i < PIECES; i++) from.at[i] -= VEC_GUARD;
    org = v_vector(&from, data);
    source = (t_me - distance + t_tasks) % t_tasks;
    expected = code;
    reported = called = completed = 0;
    memset(landing, POISON, sizeof landing);
    t_fence();
    OK(LAPI_Amsendv(t_hndl, tgt, handlers[tgt], NULL, 0, org, tgt_cntrs[tgt], &org_cntr, &cmpl_cntr));
    t_wait_exact(&org_cntr, 1);
    t_wait_exact(&tgt_cntr, 1);
    t_wait_exact(&cmpl_cntr, 1);
    t_probe_until(&reported, code != 0);
    t_fence();
    CHECK_EQ(called, 1);
    CHECK_EQ(completed, 1);
    CHECK_EQ(reported, code != 0);
    v_spoil(org);
    v_free(&from);
}

static void untouched(void) {
    CHECK(landing[0] == POISON && memcmp(landing, landing + 1, sizeof landing - 1) == 0);
}

static void report_it(ulong bytes) {
    int distance;
    lapi_vectype_t type, other;
    for (distance = 0; distance < t_tasks; distance++) {
        for (type = LAPI_GEN_IOVECTOR; type <= LAPI_GEN_GENERIC; type++) {
            for (other = LAPI_GEN_IOVECTOR; other <= LAPI_GEN_GENERIC; other++) {
                if (other == type) continue;
                good(other, LEN);
                send_one(type, bytes, distance, LAPI_ERR_VEC_TYPE_DIFF), untouched();
            }
            good(type, LEN);
            returned.vec_type = 17;
            send_one(type, bytes, distance, LAPI_ERR_TGT_VEC_TYPE), untouched();
            if (type == LAPI_GEN_GENERIC) continue;
            good(type, LEN);
            returned.num_vecs = PIECES + 1;
            send_one(type, bytes, distance, LAPI_ERR_VEC_NUM_DIFF), untouched();
            returned.num_vecs = PIECES - 1;
            send_one(type, bytes, distance, LAPI_ERR_VEC_NUM_DIFF), untouched();
        }
        for (type = LAPI_GEN_IOVECTOR; type <= LAPI_GEN_GENERIC; type += 2) {
            good(type, LEN);
            info[2] = NULL;
            send_one(type, bytes, distance, LAPI_ERR_TGT_VEC_ADDR), untouched();
            good(type, LEN);
            len[1] = len[2] = len[3] = ROOMY;
            send_one(type, bytes, distance, LAPI_ERR_TGT_VEC_LEN), untouched();
        }
        good(LAPI_GEN_STRIDED_XFER, LEN);
        info[0] = NULL;
        send_one(LAPI_GEN_STRIDED_XFER, bytes, distance, LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL), untouched();
        good(LAPI_GEN_STRIDED_XFER, LEN);
        info[2] = (void *)(LEN - 1);
        send_one(LAPI_GEN_STRIDED_XFER, bytes, distance, LAPI_ERR_TGT_STRIDE), untouched();
        good(LAPI_GEN_STRIDED_XFER, LEN);
        info[2] = (void *)ROOMY;
        send_one(LAPI_GEN_STRIDED_XFER, bytes, distance, LAPI_ERR_TGT_EXTENT), untouched();
        /* And a valid one, so that no state is left over. */
        good(LAPI_GEN_GENERIC, LEN);
        send_one(LAPI_GEN_GENERIC, bytes, distance, 0);
    }
}

/* Only the pieces of the returned vector may have changed. */
static void only_pieces(lapi_vectype_t type, ulong bytes) {
    int i;
    for (i = 0; i < PIECES; i++)
        memset(type == LAPI_GEN_STRIDED_XFER ? (char *)info[0] + (ulong)i * (bytes + 8) : info[i], POISON, bytes);
    untouched();
}

static void longer(void) {
    static const ulong there[] = {LEN, LEN, 1, 2 * LEN, LONG, 3}, here[] = {LEN - 1, 2 * LEN, LEN, 1, LEN, 0};
    int distance;
    lapi_vectype_t type;
    size_t i;
    for (distance = 0; distance < t_tasks; distance++)
        for (type = LAPI_GEN_IOVECTOR; type <= LAPI_GEN_STRIDED_XFER; type++)
            for (i = 0; i < sizeof there / sizeof *there; i++) {
                good(type, here[i]);
                send_one(type, there[i], distance, 0);
                only_pieces(type, here[i]);
            }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    lapi_info_t start;
    bzero(&start, sizeof start);
    if (strcmp(which, "default") != 0) start.err_hndlr = errors;
    t_init_with(&start);
    t_set(ERROR_CHK, 1);
    handlers = t_addresses((void *)arriving);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (strcmp(which, "reported") == 0) {
        report_it(LEN);
        report_it(LONG);
    } else if (strcmp(which, "longer") == 0) {
        longer();
    } else if (strcmp(which, "default") == 0) {
        good(t_me == 1 ? LAPI_GEN_GENERIC : LAPI_GEN_IOVECTOR, LEN);
        send_one(LAPI_GEN_IOVECTOR, LEN, 1, 0);
        T_FAIL("the job has not ended");
    } else {
        T_FAIL("there is no case \"%s\"", which);
    }
    t_done();
    return 0;
}

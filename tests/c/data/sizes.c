/*
 * Every size class: sizes KIND LARGEST [refused]
 *
 * With `refused` the tasks forbid access to their memory after LAPI_Init has found that they can
 * copy across address spaces, so that each such copy fails in the middle of its message.
 *
 * In round r task i works with task i+r, round 0 with itself, so with two tasks both directions
 * are busy at once.
 * A task that may change a buffer, because a counter says so, overwrites it at once.
 */
#include "../common/ltest.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/uio.h>

typedef struct {
    uint64_t seed;
    size_t len;
} header;

static t_arena out, in;
static void **outs, **ins, **tgt_cntrs, **handlers;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static unsigned char *expected_at; /* where the header handler shall put the message */
static size_t expected_len;
static volatile int completed;

static void completion(lapi_handle_t *hndl, void *info) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_FILLED(expected_at, expected_len, *(uint64_t *)info);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    static uint64_t seed;
    header *head = uhdr;
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*uhdr_len, sizeof *head);
    CHECK_EQ(*msg_len, head->len);
    CHECK_EQ(head->len, expected_len);
    seed = head->seed;
    *comp_h = completion;
    *uinfo = &seed;
    return expected_at;
}

static void put(int tgt, unsigned char *to, unsigned char *from, size_t len) {
    OK(LAPI_Put(t_hndl, (uint)tgt, len, to, from, tgt_cntrs[tgt], &org_cntr, &cmpl_cntr));
}

/* Hints may be followed or not: the data is the same. */
static int hint(size_t len) {
    static const int hints[] = {0, LAPI_USE_BULK_XFER, LAPI_NOT_USE_BULK_XFER,
                                LAPI_USE_BULK_XFER | LAPI_NOT_USE_BULK_XFER};
    return hints[len % 4];
}

static void xput(int tgt, unsigned char *to, unsigned char *from, size_t len) {
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    xfer.Put.Xfer_type = LAPI_PUT_XFER;
    xfer.Put.flags = hint(len);
    xfer.Put.tgt = (uint)tgt;
    xfer.Put.tgt_addr = t_long(to);
    xfer.Put.org_addr = from;
    xfer.Put.len = len;
    xfer.Put.tgt_cntr = t_long(tgt_cntrs[tgt]);
    xfer.Put.org_cntr = &org_cntr;
    xfer.Put.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
}

static void get(int tgt, unsigned char *from, unsigned char *to, size_t len) {
    OK(LAPI_Get(t_hndl, (uint)tgt, len, from, to, tgt_cntrs[tgt], &org_cntr));
}

static void xget(int tgt, unsigned char *from, unsigned char *to, size_t len) {
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    xfer.Get.Xfer_type = LAPI_GET_XFER;
    xfer.Get.flags = hint(len);
    xfer.Get.tgt = (uint)tgt;
    xfer.Get.tgt_addr = t_long(from);
    xfer.Get.org_addr = to;
    xfer.Get.len = len;
    xfer.Get.tgt_cntr = t_long(tgt_cntrs[tgt]);
    xfer.Get.org_cntr = &org_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
}

static void am(int tgt, header *head, unsigned char *from) {
    OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], head, sizeof *head, from, head->len, tgt_cntrs[tgt], &org_cntr,
                   &cmpl_cntr));
}

static void xam(int tgt, header *head, unsigned char *from) {
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    xfer.Am.Xfer_type = LAPI_AM_XFER;
    xfer.Am.flags = hint(head->len);
    xfer.Am.tgt = (uint)tgt;
    xfer.Am.hdr_hdl = t_long(handlers[tgt]);
    xfer.Am.uhdr_len = sizeof *head;
    xfer.Am.uhdr = head;
    xfer.Am.udata = from;
    xfer.Am.udata_len = head->len;
    xfer.Am.tgt_cntr = t_long(tgt_cntrs[tgt]);
    xfer.Am.org_cntr = &org_cntr;
    xfer.Am.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
}

/* One transfer of each task, with the task `distance` further. */
static void step(const char *kind, int distance, size_t len, int number) {
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks;
    int is_get = strcmp(kind, "get") == 0 || strcmp(kind, "xget") == 0;
    int is_am = strcmp(kind, "am") == 0 || strcmp(kind, "xam") == 0;
    unsigned from_misalign = (unsigned)(number * 5) % 64, to_misalign = (unsigned)(number * 11) % 64;
    header head;
    uint64_t mine = t_seed((uint64_t)t_me, len, (uint64_t)number), theirs;
    theirs = t_seed((uint64_t)(is_get ? tgt : src), len, (uint64_t)number);
    t_place(&out, len, from_misalign);
    t_place(&in, len, to_misalign);
    t_fill(out.at, len, mine);
    expected_at = in.at;
    expected_len = len;
    completed = 0;
    t_fence();
    head.seed = mine;
    head.len = len;
    if (strcmp(kind, "put") == 0)
        put(tgt, t_place_at(ins[tgt], to_misalign), out.at, len);
    else if (strcmp(kind, "xput") == 0)
        xput(tgt, t_place_at(ins[tgt], to_misalign), out.at, len);
    else if (strcmp(kind, "get") == 0)
        get(tgt, t_place_at(outs[tgt], from_misalign), in.at, len);
    else if (strcmp(kind, "xget") == 0)
        xget(tgt, t_place_at(outs[tgt], from_misalign), in.at, len);
    else if (strcmp(kind, "am") == 0)
        am(tgt, &head, out.at);
    else if (strcmp(kind, "xam") == 0)
        xam(tgt, &head, out.at);
    else
        T_FAIL("there is no kind %s", kind);

    if (is_get) {
        t_wait_exact(&tgt_cntr, 1);
        CHECK_FILLED(out.at, len, mine);
        CHECK_GUARDS(&out);
        memset(out.at, 0x11, len);
        t_wait_exact(&org_cntr, 1);
    } else {
        t_wait_exact(&org_cntr, 1);
        CHECK_FILLED(out.at, len, mine);
        CHECK_GUARDS(&out);
        memset(out.at, 0x11, len);
        memset(&head, 0x11, sizeof head);
        t_wait_exact(&tgt_cntr, 1);
        if (is_am) CHECK_EQ(completed, 1);
    }
    CHECK_FILLED(in.at, len, theirs);
    CHECK_GUARDS(&in);
    if (!is_get) t_wait_exact(&cmpl_cntr, 1);
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
    size_t lengths[128], largest, n, i;
    int distance;
    CHECK(argc == 3 || argc == 4);
    largest = strtoul(argv[2], NULL, 10);
    t_init();
    if (argc == 4) refuse_copies();
    n = t_lengths(lengths, 128, largest);
    t_arena_init(&out, largest + 1);
    t_arena_init(&in, largest + 1);
    outs = t_addresses(out.memory);
    ins = t_addresses(in.memory);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses((void *)arrived);
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < n; i++) step(argv[1], distance, lengths[i], (int)i);
    t_done();
    return 0;
}

/*
 * Where a DGSP counts from, and when it does not count: absolute CASE
 *
 *   null         a header handler that returns null and sets dgsp_handle: the offsets are addresses
 *   contiguous   BUFFER_BOTH_CONTIGUOUS: the data lies one byte after the other, whatever the DGSP or the vector says
 *   atom         LAPI_VERIFY_DGSP and an atom_size above MAX_ATOM_SIZE
 */
#include "../common/ltest.h"

#define MOST 40000

static int data[MOST], sparse[2 * MOST];
static lapi_dg_handle_t scatter;
static lapi_cntr_t org_cntr, cmpl_cntr;
static int null_buffer;

static void *into_the_program(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                              compl_hndlr_t **comp_h, void **uinfo) {
    lapi_return_info_t *info = (lapi_return_info_t *)msg_len;
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    *comp_h = NULL;
    info->ret_flags = LAPI_LOCAL_STATE;
    info->dgsp_handle = scatter;
    return null_buffer ? NULL : (void *)sparse;
}

/* A program for `count` ints, every other one from `base` on; with one instruction for
 * each block. */
static lapi_dg_handle_t every_other(long base, int count) {
    int size = LAPI_DGSM_MCOPY_SIZE + (count - 1) * LAPI_DGSM_MCOPY_BLOCK_SIZE + LAPI_DGSM_ITERATE_SIZE, i;
    int *code = calloc((size_t)size, sizeof *code);
    lapi_dgsm_mcopy_t *copy = (lapi_dgsm_mcopy_t *)code;
    lapi_dgsm_iterate_t *iterate;
    lapi_dgsp_descr_t descriptor;
    lapi_util_t util;
    CHECK(code != NULL);
    copy->opcode = LAPI_DGSM_MCOPY;
    copy->count = count;
    for (i = 0; i < count; i++) {
        copy->block[i].block_disp = base + (long)i * 2 * (long)sizeof(int);
        copy->block[i].block_len = sizeof(int);
    }
    iterate = (lapi_dgsm_iterate_t *)(code + size - LAPI_DGSM_ITERATE_SIZE);
    iterate->opcode = LAPI_DGSM_ITERATE;
    iterate->iter_loc = -(size - LAPI_DGSM_ITERATE_SIZE);
    bzero(&descriptor, sizeof descriptor);
    descriptor.code = code;
    descriptor.code_size = size;
    descriptor.depth = 1;
    descriptor.density = LAPI_DGSM_SPARSE;
    descriptor.size = (long)count * (long)sizeof(int);
    descriptor.extent = 2L * count * (long)sizeof(int);
    descriptor.lext = base;
    descriptor.rext = base + descriptor.extent;
    bzero(&util, sizeof util);
    util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
    util.RegDgsp.idgsp = &descriptor;
    OK(LAPI_Util(t_hndl, &util));
    free(code);
    return util.RegDgsp.dgsp_handle;
}

static void clear(void) {
    int i;
    for (i = 0; i < MOST; i++) data[i] = i + 1;
    memset(sparse, 0xff, sizeof sparse);
}

static void sent_to(int tgt, void *handler, int count, int by_program) {
    lapi_xfer_t xfer;
    bzero(&xfer, sizeof xfer);
    if (by_program) {
        xfer.Dgsp.Xfer_type = LAPI_DGSP_XFER;
        xfer.Dgsp.flags = BUFFER_BOTH_CONTIGUOUS;
        xfer.Dgsp.tgt = (uint)tgt;
        xfer.Dgsp.hdr_hdl = t_long(handler);
        xfer.Dgsp.udata = data;
        xfer.Dgsp.udata_len = (ulong)count * sizeof(int);
        xfer.Dgsp.dgsp = every_other(0, 1);
        xfer.Dgsp.cmpl_cntr = &cmpl_cntr;
        OK(LAPI_Xfer(t_hndl, &xfer));
    } else {
        OK(LAPI_Amsend(t_hndl, (uint)tgt, handler, NULL, 0, data, (ulong)count * sizeof(int), NULL, NULL, &cmpl_cntr));
    }
    t_wait_exact(&cmpl_cntr, 1);
}

/* Messages of one packet and of several, and one to oneself. */
static void scattered(int by_program) {
    static const int counts[] = {1, 10, 1000, MOST};
    void **handlers = t_addresses((void *)into_the_program);
    size_t i;
    int at, from, to;
    for (i = 0; i < sizeof counts / sizeof *counts; i++)
        for (from = 0; from < t_tasks; from++)
            for (to = 0; to < t_tasks; to++) {
                clear();
                scatter = every_other(null_buffer ? (long)sparse : 0, counts[i]);
                t_fence();
                if (t_me == from) sent_to(to, handlers[to], counts[i], by_program);
                t_fence();
                if (t_me != to) continue;
                for (at = 0; at < counts[i]; at++) {
                    CHECK_EQ(sparse[2 * at], at + 1);
                    CHECK_EQ(sparse[2 * at + 1], -1);
                }
                if (counts[i] < MOST) CHECK_EQ(sparse[2 * counts[i]], -1);
            }
}

/* Putv and Getv of strided vectors as one block each. */
static void vectors(void) {
    void **tables = t_addresses(sparse);
    void *here[3], *there[3];
    lapi_vec_t org = {LAPI_GEN_STRIDED_XFER, 50, here, NULL}, tgt = {LAPI_GEN_STRIDED_XFER, 50, there, NULL};
    ulong lens[2] = {0, 50 * sizeof(int)};
    lapi_xfer_t xfer;
    int i, peer = (t_me + 1) % t_tasks;
    clear();
    t_fence();
    here[0] = data, here[1] = (void *)sizeof(int), here[2] = (void *)(2 * sizeof(int));
    there[0] = tables[peer], there[1] = here[1], there[2] = (void *)(4 * sizeof(int));
    bzero(&xfer, sizeof xfer);
    xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
    xfer.Putv.flags = USE_TGT_VEC_TYPE | BUFFER_BOTH_CONTIGUOUS;
    xfer.Putv.tgt = (uint)peer;
    xfer.Putv.org_vec = &org;
    xfer.Putv.tgt_vec = &tgt;
    xfer.Putv.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
    t_wait_exact(&cmpl_cntr, 1);
    t_fence();
    for (i = 0; i < 50; i++) CHECK_EQ(sparse[i], i + 1);
    CHECK_EQ(sparse[50], -1);
    t_fence();
    memset(data, 0, sizeof data);
    bzero(&xfer, sizeof xfer);
    xfer.Getv.Xfer_type = LAPI_GETV_XFER;
    xfer.Getv.flags = USE_TGT_VEC_TYPE | BUFFER_BOTH_CONTIGUOUS;
    xfer.Getv.tgt = (uint)peer;
    xfer.Getv.org_vec = &org;
    xfer.Getv.tgt_vec = &tgt;
    xfer.Getv.org_cntr = &org_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
    t_wait_exact(&org_cntr, 1);
    for (i = 0; i < 50; i++) CHECK_EQ(data[i], i + 1);
    CHECK_EQ(data[50], 0);
    t_fence();
    /* A first piece without bytes has no address. */
    clear();
    org.vec_type = tgt.vec_type = LAPI_GEN_IOVECTOR;
    org.num_vecs = tgt.num_vecs = 2;
    org.len = tgt.len = lens;
    here[0] = there[0] = NULL;
    here[1] = data, there[1] = sparse;
    bzero(&xfer, sizeof xfer);
    xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
    xfer.Putv.flags = USE_TGT_VEC_TYPE | BUFFER_BOTH_CONTIGUOUS;
    xfer.Putv.tgt = (uint)t_me;
    xfer.Putv.org_vec = &org;
    xfer.Putv.tgt_vec = &tgt;
    xfer.Putv.cmpl_cntr = &cmpl_cntr;
    OK(LAPI_Xfer(t_hndl, &xfer));
    t_wait_exact(&cmpl_cntr, 1);
    for (i = 0; i < 50; i++) CHECK_EQ(sparse[i], i + 1);
    CHECK_EQ(sparse[50], -1);
    t_fence();
}

static void atom(void) {
    int code[16], most = t_query(MAX_ATOM_SIZE), size;
    lapi_dgsm_copy_t *copy = (lapi_dgsm_copy_t *)code;
    lapi_dgsm_iterate_t *iterate = (lapi_dgsm_iterate_t *)(code + LAPI_DGSM_COPY_SIZE);
    lapi_dgsp_descr_t descriptor;
    lapi_util_t util;
    bzero(code, sizeof code);
    copy->opcode = LAPI_DGSM_COPY;
    copy->bytes = 8;
    iterate->opcode = LAPI_DGSM_ITERATE;
    iterate->iter_loc = -LAPI_DGSM_COPY_SIZE;
    bzero(&descriptor, sizeof descriptor);
    descriptor.code = code;
    descriptor.code_size = LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE;
    descriptor.depth = 1;
    descriptor.density = LAPI_DGSM_UNIT;
    descriptor.size = descriptor.extent = descriptor.rext = 8;
    for (size = most - 1; size <= most + 1; size++) {
        bzero(&util, sizeof util);
        descriptor.atom_size = size;
        util.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
        util.RegDgsp.idgsp = &descriptor;
        RETURNS(LAPI_Util(t_hndl, &util), size > most ? LAPI_ERR_DGSP_ATOM : LAPI_SUCCESS);
    }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "null") == 0) null_buffer = 1, scattered(0);
    else if (strcmp(which, "contiguous") == 0) scattered(1), vectors();
    else if (strcmp(which, "atom") == 0) atom();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

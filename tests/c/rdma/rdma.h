/*
 * The requests and transfers of RDMA, for the programs of this folder.
 */
#ifndef RDMA_H
#define RDMA_H

#include "../common/ltest.h"

static int registration(uint operation, void *address, size_t len, lapi_user_pvo_t *pvo) {
    lapi_util_t util;
    int code;
    memset(&util, 0xa5, sizeof util);
    util.Xlate.Util_type = LAPI_XLATE_ADDRESS;
    util.Xlate.length = (uint)len;
    util.Xlate.usr_pvo = *pvo;
    util.Xlate.address = address;
    util.Xlate.operation = operation;
    code = LAPI_Util(t_hndl, &util);
    *pvo = util.Xlate.usr_pvo;
    return code;
}

static lapi_user_pvo_t acquired(void *address, size_t len) {
    lapi_user_pvo_t pvo = 0;
    OK(registration(LAPI_RDMA_ACQUIRE, address, len, &pvo));
    CHECK(pvo != 0);
    return pvo;
}

static int released(lapi_user_pvo_t pvo) { return registration(LAPI_RDMA_RELEASE, NULL, 0, &pvo); }

static int context(uint operation, int dest, lapi_user_cxt_t *number) {
    lapi_util_t util;
    int code;
    memset(&util, 0xa5, sizeof util);
    util.RemoteCxt.Util_type = LAPI_REMOTE_RCXT;
    util.RemoteCxt.operation = operation;
    util.RemoteCxt.dest = dest;
    util.RemoteCxt.usr_rcxt = *number;
    code = LAPI_Util(t_hndl, &util);
    *number = util.RemoteCxt.usr_rcxt;
    return code;
}

static lapi_user_cxt_t acquired_context(int dest) {
    lapi_user_cxt_t number = 0;
    OK(context(LAPI_RDMA_ACQUIRE, dest, &number));
    CHECK(number != 0);
    return number;
}

/* A transfer without counter and handler. Its rdma_tag has no meaning. */
static lapi_xfer_t transfer(int op, int tgt, lapi_user_cxt_t number, lapi_user_pvo_t src, lapi_user_pvo_t dst,
                            size_t len) {
    lapi_xfer_t x;
    memset(&x, 0xa5, sizeof x);
    x.HwXfer.Xfer_type = LAPI_RDMA_XFER;
    x.HwXfer.tgt = (uint)tgt;
    x.HwXfer.op = (ushort)op;
    x.HwXfer.remote_cxt = number;
    x.HwXfer.src_pvo = src;
    x.HwXfer.tgt_pvo = dst;
    x.HwXfer.src_offset = 0;
    x.HwXfer.tgt_offset = 0;
    x.HwXfer.len = len;
    x.HwXfer.org_cntr = NULL;
    x.HwXfer.shdlr = NULL;
    x.HwXfer.sinfo = NULL;
    return x;
}

/* The registrations of all tasks. */
static lapi_user_pvo_t *exchanged(lapi_user_pvo_t mine) {
    lapi_long_t *table = malloc(sizeof *table * (size_t)t_tasks);
    CHECK(table != NULL);
    OK(LAPI_Address_init64(t_hndl, mine, table));
    CHECK(table[t_me] == mine);
    return table;
}

#endif

/*
 * User headers of every length, and light-weight active messages: headers CASE
 *
 *   words   ERROR_CHK on, lengths that are multiples of 4 up to MAX_UHDR_SZ
 *   bytes   ERROR_CHK off, every length up to 1024
 *   light   LAPI_AM_LW_XFER with every division of fewer than 128 bytes
 *   limit   LAPI_AM_LW_XFER refuses 128 bytes
 *   packet  header and data of MAX_PKT_SZ bytes are one packet, however they are divided; a byte more is not
 */
#include "../common/ltest.h"

enum { INDEX = 7, ROOM = 1 << 16 };

static unsigned char *buffer, *out;
static volatile int arrivals;
static volatile uint expected_uhdr;
static volatile ulong expected_len;
static int light;

static uint64_t header_seed(uint uhdr_len, ulong len) { return t_seed(uhdr_len, len, 1); }
static uint64_t data_seed(uint uhdr_len, ulong len) { return t_seed(uhdr_len, len, 2); }

static void completed(lapi_handle_t *hndl, void *info) {
    (void)hndl;
    CHECK_FILLED(buffer, *(ulong *)info, data_seed(expected_uhdr, *(ulong *)info));
    CHECK_EQ(buffer[*(ulong *)info], 0x77);
    __atomic_fetch_add(&arrivals, 1, __ATOMIC_RELEASE);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    static ulong len;
    lapi_return_info_t *ret = (lapi_return_info_t *)msg_len;
    CHECK_EQ(*hndl, t_hndl);
    len = ret->msg_len;
    if (light) { /* many are under way, of every length, and no completion handler may be needed */
        CHECK_FILLED(ret->udata_one_pkt_ptr, len, data_seed(*uhdr_len, len));
        CHECK_FILLED(uhdr, *uhdr_len, header_seed(*uhdr_len, len));
        __atomic_fetch_add(&arrivals, 1, __ATOMIC_RELEASE);
        ret->ctl_flags = LAPI_BURY_MSG;
        *comp_h = NULL;
        return NULL;
    }
    CHECK_EQ(*uhdr_len, expected_uhdr);
    CHECK_EQ(len, expected_len);
    if (*uhdr_len > 0) {
        CHECK_EQ((uintptr_t)uhdr % 8, 0);
        CHECK_FILLED(uhdr, *uhdr_len, header_seed(*uhdr_len, len));
    }
    if (ret->udata_one_pkt_ptr != NULL && len > 0) {
        CHECK_EQ((uintptr_t)ret->udata_one_pkt_ptr % 8, 0);
        CHECK_FILLED(ret->udata_one_pkt_ptr, len, data_seed(*uhdr_len, len));
    }
    memset(buffer, 0x77, len + 1);
    *comp_h = completed;
    *uinfo = &len;
    return buffer;
}

static void lengths(uint step, uint largest) {
    static const ulong data[] = {0, 1, 8, 100, 1001, 20000};
    static lapi_cntr_t org, cmpl;
    unsigned char *uhdr = malloc(largest + 8);
    int distance;
    uint uhdr_len;
    size_t i;
    CHECK(uhdr != NULL);
    for (distance = 0; distance < t_tasks; distance++) {
        for (uhdr_len = 0; uhdr_len <= largest; uhdr_len += step) {
            ulong len = data[(uhdr_len / step) % (sizeof data / sizeof *data)];
            /* Every length of header meets every length of data where headers are short. */
            for (i = 0; i < (uhdr_len <= 64 ? sizeof data / sizeof *data : 1); i++) {
                uint tgt = (uint)((t_me + distance) % t_tasks);
                if (uhdr_len <= 64) len = data[i];
                expected_uhdr = uhdr_len;
                expected_len = len;
                arrivals = 0;
                t_fence();
                t_fill(uhdr, uhdr_len, header_seed(uhdr_len, len));
                t_fill(out, len, data_seed(uhdr_len, len));
                OK(LAPI_Amsend(t_hndl, tgt, (void *)INDEX, uhdr_len ? uhdr : NULL, uhdr_len, len ? out : NULL, len,
                               NULL, &org, &cmpl));
                t_wait_exact(&org, 1);
                memset(uhdr, 0x33, uhdr_len);
                memset(out, 0x33, len);
                t_wait_exact(&cmpl, 1);
                t_probe_until(&arrivals, 1);
            }
        }
    }
    free(uhdr);
}

static int send_light(uint tgt, uint uhdr_len, ulong len) {
    lapi_xfer_t xfer;
    /* Programs leave the fields that this transfer has no use for as they are. */
    memset(&xfer, 0xab, sizeof xfer);
    xfer.Am.Xfer_type = LAPI_AM_LW_XFER;
    xfer.Am.flags = 0;
    xfer.Am.tgt = tgt;
    xfer.Am.hdr_hdl = INDEX;
    xfer.Am.uhdr_len = uhdr_len;
    xfer.Am.uhdr = out;
    xfer.Am.udata = out + 256;
    xfer.Am.udata_len = len;
    return LAPI_Xfer(t_hndl, &xfer);
}

static void light_weight(void) {
    int distance, sent = 0;
    uint uhdr_len;
    ulong len;
    light = 1;
    t_fence();
    for (distance = 0; distance < t_tasks; distance++)
        for (uhdr_len = 0; uhdr_len < 128; uhdr_len += 4)
            for (len = 1; uhdr_len + len < 128; len += 1 + uhdr_len / 16) {
                t_fill(out, uhdr_len, header_seed(uhdr_len, len));
                t_fill(out + 256, len, data_seed(uhdr_len, len));
                OK(send_light((uint)((t_me + distance) % t_tasks), uhdr_len, len));
                /* Both buffers may be used again. */
                memset(out, 0x33, 512);
                sent++;
            }
    t_probe_until(&arrivals, sent);
    t_fence();
    CHECK_EQ(arrivals, sent);
}

static void limit(void) {
    uint tgt = (uint)((t_me + 1) % t_tasks);
    light = 1;
    memset(out, 0, 4096);
    t_fence();
    RETURNS(send_light(tgt, 0, 128), LAPI_ERR_LW_DATA_LEN);
    RETURNS(send_light(tgt, 64, 64), LAPI_ERR_LW_DATA_LEN);
    RETURNS(send_light(tgt, 128, 0), LAPI_ERR_LW_DATA_LEN);
    RETURNS(send_light(tgt, 8, 4000), LAPI_ERR_LW_DATA_LEN);
    RETURNS(send_light(tgt, 16, (ulong)-8), LAPI_ERR_LW_DATA_LEN);
    t_fence();
    CHECK_EQ(arrivals, 0);
}

static ulong max_packet;

static void *fits(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *ret, compl_hndlr_t **comp_h,
                  void **uinfo) {
    int fitting = *uhdr_len + ret->msg_len <= max_packet;
    (void)hndl, (void)uhdr, (void)uinfo;
    CHECK_FOR((ret->udata_one_pkt_ptr != NULL) == fitting, "%u + %lu bytes: the pointer to the data is %p", *uhdr_len,
              ret->msg_len, ret->udata_one_pkt_ptr);
    __atomic_fetch_add(&arrivals, 1, __ATOMIC_RELEASE);
    *comp_h = NULL;
    return NULL;
}

static void packet(void) {
    lapi_cntr_t cmpl;
    uint uhdr_len, largest = (uint)t_query(MAX_PKT_SZ);
    int distance, extra;
    unsigned char *data = calloc(largest + 16, 1);
    void **at = t_addresses((void *)fits);
    max_packet = largest;
    t_fence();
    bzero(&cmpl, sizeof cmpl);
    CHECK(data != NULL);
    for (distance = 0; distance < t_tasks; distance++)
        for (uhdr_len = 0; uhdr_len <= 40; uhdr_len++)
            for (extra = -9; extra <= 9; extra++) {
                uint tgt = (uint)((t_me + distance) % t_tasks);
                OK(LAPI_Amsend(t_hndl, tgt, at[tgt], data, uhdr_len, data, largest - uhdr_len + (uint)extra, NULL, NULL,
                               &cmpl));
                t_wait_exact(&cmpl, 1);
            }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    t_init();
    out = malloc(ROOM);
    buffer = malloc(ROOM);
    CHECK(out != NULL && buffer != NULL);
    OK(LAPI_Addr_set(t_hndl, (void *)arrived, INDEX));
    if (strcmp(argv[1], "words") == 0) {
        t_set(ERROR_CHK, 1);
        CHECK(t_query(MAX_UHDR_SZ) >= 1024);
        lengths(4, (uint)t_query(MAX_UHDR_SZ) / 4 * 4);
    } else if (strcmp(argv[1], "bytes") == 0) {
        t_set(ERROR_CHK, 0);
        lengths(1, 1024);
    } else if (strcmp(argv[1], "light") == 0) {
        light_weight();
    } else if (strcmp(argv[1], "limit") == 0) {
        limit();
    } else if (strcmp(argv[1], "packet") == 0) {
        packet();
    } else {
        T_FAIL("there is no case %s", argv[1]);
    }
    t_done();
    return 0;
}

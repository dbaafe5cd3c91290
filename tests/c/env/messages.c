/*
 * LAPI_Msg_string: every code of the manual's tables 34 and 35 has a message of its own, other
 * numbers have one too.
 */
#include "../common/ltest.h"

#include <limits.h>

static const int codes[] = {
    LAPI_SUCCESS, LAPI_ERR_UNKNOWN, LAPI_ERR_ALL_HNDL_IN_USE, LAPI_ERR_BOTH_NETSTR_SET, LAPI_ERR_CSS_LOAD_FAILED,
    LAPI_ERR_INFO_NULL, LAPI_ERR_MSG_API, LAPI_ERR_NO_NETSTR_SET, LAPI_ERR_NO_UDP_HNDLR, LAPI_ERR_HDR_HNDLR_NULL,
    LAPI_ERR_PSS_NON_ROOT, LAPI_ERR_SHM_KE_NOT_LOADED, LAPI_ERR_TIMEOUT, LAPI_ERR_REG_TIMER, LAPI_ERR_UDP_PKT_SZ,
    LAPI_ERR_USER_UDP_HNDLR_FAIL, LAPI_ERR_HNDL_INVALID, LAPI_ERR_RET_PTR_NULL, LAPI_ERR_ADDR_HNDL_RANGE,
    LAPI_ERR_ADDR_TBL_NULL, LAPI_ERR_TGT_PURGED, LAPI_ERR_MULTIPLE_WAITERS, LAPI_ERR_MEMORY_EXHAUSTED,
    LAPI_ERR_INFO_NONZERO, LAPI_ERR_ORG_ADDR_NULL, LAPI_ERR_TGT_ADDR_NULL, LAPI_ERR_DATA_LEN, LAPI_ERR_TGT,
    LAPI_ERR_UHDR_NULL, LAPI_ERR_UHDR_LEN, LAPI_ERR_HDR_LEN, LAPI_ERR_ORG_EXTENT, LAPI_ERR_ORG_STRIDE,
    LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_ADAPTERS_DOWN, LAPI_ERR_RECV_INCOMP, LAPI_ERR_SEND_INCOMP,
    LAPI_ERR_SEND_TIMEOUT, LAPI_ERR_SHM_SETUP, LAPI_ERR_ORG_VEC_ADDR, LAPI_ERR_ORG_VEC_LEN, LAPI_ERR_ORG_VEC_NULL,
    LAPI_ERR_ORG_VEC_TYPE, LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL, LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL, LAPI_ERR_TGT_EXTENT,
    LAPI_ERR_TGT_STRIDE, LAPI_ERR_TGT_VEC_ADDR, LAPI_ERR_TGT_VEC_LEN, LAPI_ERR_TGT_VEC_NULL, LAPI_ERR_TGT_VEC_TYPE,
    LAPI_ERR_VEC_NUM_DIFF, LAPI_ERR_VEC_TYPE_DIFF, LAPI_ERR_VEC_LEN_DIFF, LAPI_ERR_MSG_INFO_NULL, LAPI_ERR_CNTR_NULL,
    LAPI_ERR_CNTR_VAL, LAPI_ERR_QUERY_TYPE, LAPI_ERR_IN_VAL_NULL, LAPI_ERR_RMW_OP, LAPI_ERR_TGT_VAR_NULL,
    LAPI_ERR_SET_VAL, LAPI_ERR_DGSP, LAPI_ERR_DGSP_ATOM, LAPI_ERR_DGSP_BRANCH, LAPI_ERR_DGSP_CTL,
    LAPI_ERR_DGSP_COPY_SZ, LAPI_ERR_DGSP_FREE, LAPI_ERR_DGSP_OPC, LAPI_ERR_DGSP_REPS, LAPI_ERR_DGSP_STACK,
    LAPI_ERR_OP_SZ, LAPI_ERR_UDP_PORT_INFO, LAPI_ERR_XFER_CMD, LAPI_ERR_UTIL_CMD, LAPI_ERR_CATALOG_FAIL,
    LAPI_ERR_PACK_SZ, LAPI_ERR_DGSP_OTHER, LAPI_ERR_UDP_SOCKET, LAPI_ERR_COLLECTIVE_PSS, LAPI_ERR_TGT_CONTEXT,
    LAPI_ERR_SRC_CONTEXT, LAPI_ERR_TGT_BUFHNDL, LAPI_ERR_SRC_BUFHNDL, LAPI_ERR_TGT_OFFSET, LAPI_ERR_SRC_OFFSET,
    LAPI_ERR_NO_RDMA_RESOURCE, LAPI_ERR_NO_ENV_VAR, LAPI_ERR_CODE_UNKNOWN,
    /* later level */
    LAPI_ERR_CKPT_LOAD_FAILED, LAPI_WARN_PARM_NULL, LAPI_ERR_CKPT, LAPI_ERR_POLLING_NET, LAPI_ERR_XLATE_FAILED,
    LAPI_ERR_RDMA_RESOURCES, LAPI_ERR_LW_DATA_LEN, LAPI_ERR_NO_HNDLR_SET, LAPI_ERR_OFFSET_LEN};
#define CODES (sizeof codes / sizeof *codes)

static const int strangers[] = {-1, 399, 483, 600, 1000, 0x12345678, INT_MIN, INT_MAX};

/* The last byte of the buffer is the program's: a message is a string of fewer than
 * LAPI_MAX_ERR_STRING bytes. */
static void message(int code, int expected, char *text) {
    char buffer[LAPI_MAX_ERR_STRING + 8];
    size_t i;
    memset(buffer, 'x', sizeof buffer);
    RETURNS(LAPI_Msg_string(code, buffer), expected);
    for (i = 0; i < LAPI_MAX_ERR_STRING && buffer[i] != 0; i++) CHECK(buffer[i] >= ' ' && buffer[i] <= '~');
    CHECK_FOR(i > 0 && i < LAPI_MAX_ERR_STRING, "the message of code %d has %zu bytes", code, i);
    CHECK_EQ(memcmp(buffer + LAPI_MAX_ERR_STRING, "xxxxxxxx", 8), 0);
    memcpy(text, buffer, i + 1);
}

static void all(void) {
    static char texts[CODES][LAPI_MAX_ERR_STRING];
    char text[LAPI_MAX_ERR_STRING];
    size_t i, j;
    for (i = 0; i < CODES; i++) {
        message(codes[i], LAPI_SUCCESS, texts[i]);
        for (j = 0; j < i; j++)
            CHECK_FOR(strcmp(texts[i], texts[j]) != 0, "codes %d and %d have one message: %s", codes[j], codes[i],
                      texts[i]);
    }
    for (i = 0; i < sizeof strangers / sizeof *strangers; i++) message(strangers[i], LAPI_ERR_CODE_UNKNOWN, text);
    for (i = 485; i <= 491; i++) message((int)i, LAPI_SUCCESS, text); /* attention messages */
    for (i = 499; i <= 509; i++) message((int)i, LAPI_SUCCESS, text);
    message(519, LAPI_SUCCESS, text);
    RETURNS(LAPI_Msg_string(LAPI_ERR_TGT, NULL), LAPI_ERR_RET_PTR_NULL);
}

int main(void) {
    all(); /* before LAPI_Init */
    t_init();
    all();
    OK(LAPI_Term(t_hndl));
    all(); /* after LAPI_Term */
    t_pass();
    return 0;
}

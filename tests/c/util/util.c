/*
 * LAPI_Util itself: util CASE
 *
 *   requests   invalid requests, for every request number; a null structure
 *   handles    which requests use the handle, and what they return when it is invalid
 */
#include "../common/ltest.h"

/* A request of this type with all other fields 0. */
static lapi_util_t empty(int type) {
    lapi_util_t util;
    bzero(&util, sizeof util);
    util.Util_type = (lapi_util_type_t)type;
    return util;
}

static int request(lapi_handle_t hndl, int type) {
    lapi_util_t util = empty(type);
    return LAPI_Util(hndl, &util);
}

static void requests(int checked) {
    static const int none[] = {15, 16, 99, 1000000, INT32_MAX, -1, -2, INT32_MIN};
    /* LAPI_ADD_UDP_DEST_PORT is for programs that have given LAPI_Init addresses, without
     * a launcher. */
    static const int later[] = {LAPI_ADD_UDP_DEST_EXT, LAPI_ADD_UDP_DEST_PORT};
    /* Without MP_RDMA_COUNT. */
    static const int rdma[] = {LAPI_REMOTE_RCXT, LAPI_XLATE_ADDRESS};
    size_t i;
    t_set(ERROR_CHK, checked);
    for (i = 0; i < sizeof none / sizeof *none; i++) RETURNS(request(t_hndl, none[i]), LAPI_ERR_UTIL_CMD);
    for (i = 0; i < sizeof later / sizeof *later; i++) RETURNS(request(t_hndl, later[i]), LAPI_ERR_UTIL_CMD);
    for (i = 0; i < sizeof rdma / sizeof *rdma; i++) RETURNS(request(t_hndl, rdma[i]), LAPI_ERR_NO_RDMA_RESOURCE);
    CHECK(LAPI_Util(t_hndl, NULL) >= LAPI_ERR_UNKNOWN);
    RETURNS(request(t_hndl, LAPI_REGISTER_DGSP), LAPI_ERR_DGSP);
    RETURNS(request(t_hndl, LAPI_RESERVE_DGSP), LAPI_ERR_DGSP);
    RETURNS(request(t_hndl, LAPI_UNRESERVE_DGSP), LAPI_ERR_DGSP);
    RETURNS(request(t_hndl, LAPI_DGSP_PACK), LAPI_ERR_DGSP);
    RETURNS(request(t_hndl, LAPI_DGSP_UNPACK), LAPI_ERR_DGSP);
    OK(request(t_hndl, LAPI_REG_DDM_FUNC)); /* no function from now on */
    OK(request(t_hndl, LAPI_GET_THREAD_FUNC));
}

static void handles(void) {
    lapi_handle_t wrong[] = {t_hndl + 1, 500, LAPI_VOID_HANDLE, 0xdeadbeef};
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        RETURNS(request(wrong[i], LAPI_DGSP_PACK), LAPI_ERR_HNDL_INVALID);
        RETURNS(request(wrong[i], LAPI_DGSP_UNPACK), LAPI_ERR_HNDL_INVALID);
        RETURNS(request(wrong[i], LAPI_REG_DDM_FUNC), LAPI_ERR_HNDL_INVALID);
        RETURNS(request(wrong[i], LAPI_GET_THREAD_FUNC), LAPI_ERR_HNDL_INVALID);
        RETURNS(request(wrong[i], LAPI_ADD_UDP_DEST_PORT), LAPI_ERR_HNDL_INVALID);
        /* These do not use it: they have another error. */
        RETURNS(request(wrong[i], LAPI_REGISTER_DGSP), LAPI_ERR_DGSP);
        RETURNS(request(wrong[i], LAPI_RESERVE_DGSP), LAPI_ERR_DGSP);
        RETURNS(request(wrong[i], LAPI_UNRESERVE_DGSP), LAPI_ERR_DGSP);
    }
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "requests") == 0) requests(0), requests(1);
    else if (strcmp(which, "handles") == 0) handles();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

/* The layouts as DGSPs, through LAPI_Util. */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"

const char *const system_name = "lapi";

static lapi_handle_t hndl;

static void check(int rc, const char *call)
{
    if (rc != LAPI_SUCCESS) {
        fprintf(stderr, "%s: %d\n", call, rc);
        exit(1);
    }
}

void system_start(int *argc, char ***argv)
{
    lapi_info_t info;

    (void)argc, (void)argv;
    memset(&info, 0, sizeof info);
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
}

void system_end(void)
{
    check(LAPI_Term(hndl), "LAPI_Term");
}

/* One routine per dimension, the innermost copies. */
void *system_prepare(const struct layout *l)
{
    long ints = l->dims * (LAPI_DGSM_GOSUB_SIZE + LAPI_DGSM_ITERATE_SIZE) + LAPI_DGSM_MCOPY_SIZE
        + (l->blocks - 1) * LAPI_DGSM_MCOPY_BLOCK_SIZE + LAPI_DGSM_ITERATE_SIZE;
    int *code = calloc(ints, sizeof *code), *at = code;
    lapi_dgsp_descr_t descr;
    lapi_reg_dgsp_t reg;

    for (int d = 0; d < l->dims; d++) {
        lapi_dgsm_gosub_t gosub = {0};
        gosub.opcode = LAPI_DGSM_GOSUB;
        gosub.to_loc = LAPI_DGSM_GOSUB_SIZE + LAPI_DGSM_ITERATE_SIZE;
        gosub.ret_loc = LAPI_DGSM_GOSUB_SIZE;
        gosub.reps = l->count[d];
        gosub.stride = l->stride[d];
        memcpy(at, &gosub, sizeof gosub);
        at[LAPI_DGSM_GOSUB_SIZE] = LAPI_DGSM_ITERATE;
        at[LAPI_DGSM_GOSUB_SIZE + 1] = -LAPI_DGSM_GOSUB_SIZE;
        at += LAPI_DGSM_GOSUB_SIZE + LAPI_DGSM_ITERATE_SIZE;
    }
    int *leaf = at;
    lapi_dgsm_mcopy_t *mcopy = (lapi_dgsm_mcopy_t *)at;
    mcopy->opcode = LAPI_DGSM_MCOPY;
    mcopy->count = l->blocks;
    for (long i = 0; i < l->blocks; i++) {
        lapi_dgsm_block_t block;
        block.block_disp = l->block[i].offset;
        block.block_len = l->block[i].len;
        memcpy(&mcopy->block[i], &block, sizeof block);
    }
    at += LAPI_DGSM_MCOPY_SIZE + (l->blocks - 1) * LAPI_DGSM_MCOPY_BLOCK_SIZE;
    at[0] = LAPI_DGSM_ITERATE;
    at[1] = leaf - at;

    memset(&descr, 0, sizeof descr);
    descr.code = code;
    descr.code_size = ints;
    descr.depth = l->dims + 1;
    descr.density = LAPI_DGSM_SPARSE;
    descr.size = l->size;
    descr.extent = l->extent;
    descr.lext = l->low;
    descr.rext = l->high;
    memset(&reg, 0, sizeof reg);
    reg.Util_type = LAPI_REGISTER_DGSP;
    reg.idgsp = &descr;
    check(LAPI_Util(hndl, (lapi_util_t *)&reg), "LAPI_REGISTER_DGSP");
    free(code);
    return reg.dgsp_handle;
}

void system_release(void *prepared)
{
    lapi_dref_dgsp_t dref;

    memset(&dref, 0, sizeof dref);
    dref.Util_type = LAPI_UNRESERVE_DGSP;
    dref.dgsp_handle = prepared;
    check(LAPI_Util(hndl, (lapi_util_t *)&dref), "LAPI_UNRESERVE_DGSP");
}

void system_gather(void *prepared, const struct layout *l, const char *memory, char *packed)
{
    lapi_pack_dgsp_t pack;

    memset(&pack, 0, sizeof pack);
    pack.Util_type = LAPI_DGSP_PACK;
    pack.dgsp = prepared;
    pack.in_buf = (void *)memory;
    pack.bytes = pack.out_size = l->size * l->repeat;
    pack.out_buf = packed;
    check(LAPI_Util(hndl, (lapi_util_t *)&pack), "LAPI_DGSP_PACK");
}

void system_scatter(void *prepared, const struct layout *l, char *memory, const char *packed)
{
    lapi_unpack_dgsp_t unpack;

    memset(&unpack, 0, sizeof unpack);
    unpack.Util_type = LAPI_DGSP_UNPACK;
    unpack.dgsp = prepared;
    unpack.in_buf = (void *)packed;
    unpack.bytes = unpack.in_size = l->size * l->repeat;
    unpack.out_buf = memory;
    check(LAPI_Util(hndl, (lapi_util_t *)&unpack), "LAPI_DGSP_UNPACK");
}

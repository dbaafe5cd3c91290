/*
 * A profiling library as in chapter 9 of the manual: LAPI_Init by both its C and its Fortran name,
 * LAPI_Senv and LAPI_Fence by their C names alone, LAPI_GFENCE by the name that gfortran gives it.
 */
#include <lapi.h>
#include <stdio.h>

static int c_init, fortran_init, c_senv, c_fence, fortran_gfence, c_gfence;
int fortran_probe_count_;

int plapi_init(lapi_handle_t *hndl, lapi_info_t *lapi_info, int *err);
void plapi_gfence_(lapi_handle_t *hndl, int *err);

int LAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info) {
    c_init++;
    return PLAPI_Init(hndl, lapi_info);
}

int lapi_init(lapi_handle_t *hndl, lapi_info_t *lapi_info, int *err) {
    fortran_init++;
    return plapi_init(hndl, lapi_info, err);
}

int LAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int value) {
    if (query == ERROR_CHK && value == 1) c_senv++;
    return PLAPI_Senv(hndl, query, value);
}

int LAPI_Fence(lapi_handle_t hndl) {
    c_fence++;
    return PLAPI_Fence(hndl);
}

int LAPI_Gfence(lapi_handle_t hndl) {
    c_gfence++;
    return PLAPI_Gfence(hndl);
}

void lapi_gfence_(lapi_handle_t *hndl, int *err) {
    fortran_gfence++;
    plapi_gfence_(hndl, err);
}

void count_probe_(void) { fortran_probe_count_++; }

void report_(void) {
    printf("init %d %d, senv %d, fence %d, gfence %d %d, probe %d\n", c_init, fortran_init, c_senv, c_fence, c_gfence,
           fortran_gfence, fortran_probe_count_);
}

/*
 * Wrappers of three calls, as a program or a library may have them: each counts, and makes the call
 * by its other name with the arguments that it was given. The count is printed at LAPI_Term.
 */
#include <lapi.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

static int seen_puts, seen_fences, seen_bytes;

int LAPI_Put(lapi_handle_t hndl, uint tgt, ulong len, void *tgt_addr, void *org_addr, lapi_cntr_t *tgt_cntr,
             lapi_cntr_t *org_cntr, lapi_cntr_t *cmpl_cntr)
{
    int code = PLAPI_Put(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, cmpl_cntr);
    seen_puts++;
    seen_bytes += (int)len;
    return code;
}

int LAPI_Gfence(lapi_handle_t hndl)
{
    seen_fences++;
    return PLAPI_Gfence(hndl);
}

int LAPI_Term(lapi_handle_t hndl)
{
    int me = -1;
    PLAPI_Qenv(hndl, TASK_ID, &me);
    printf("%s: task %d: %d puts, %d bytes, %d fences\n", WHERE, me, seen_puts, seen_bytes, seen_fences);
    fflush(stdout);
    return PLAPI_Term(hndl);
}

#ifdef __cplusplus
}
#endif

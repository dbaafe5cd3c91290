/*
 * A profiling layer: says when LAPI_Init and LAPI_Term are called and what they return.
 *
 * The program calls LAPI_Init and comes here, because this library is linked before LAPI's. The
 * call itself is made by its other name, with the arguments of the program, and its return code
 * is passed back.
 */
#include <lapi.h>
#include <stdio.h>

int LAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info)
{
    int code = PLAPI_Init(hndl, lapi_info);

    if (code == LAPI_SUCCESS) {
        int me;
        /* By its other name too: what the layer asks for itself is not the program's. */
        PLAPI_Qenv(*hndl, TASK_ID, &me);
        printf("task %d: profiling layer: LAPI_Init has returned LAPI_SUCCESS\n", me);
    } else {
        printf("profiling layer: LAPI_Init has returned %d\n", code);
    }
    fflush(stdout);
    return code;
}

int LAPI_Term(lapi_handle_t hndl)
{
    int me;

    if (PLAPI_Qenv(hndl, TASK_ID, &me) == LAPI_SUCCESS)
        printf("task %d: profiling layer: LAPI_Term is called\n", me);
    fflush(stdout);
    return PLAPI_Term(hndl);
}

/* The names of a call for Fortran, as compilers make them; each from a line of its own. */
void lapi_fence_(int *handle, int *ierror);
void lapi_fence(int *handle, int *ierror);
void LAPI_FENCE(int *handle, int *ierror);
void LAPI_FENCE_(int *handle, int *ierror);

void spelled_(int *handle)
{
    int ierror;
    lapi_fence_(handle, &ierror);
    lapi_fence(handle, &ierror);
    LAPI_FENCE(handle, &ierror);
    LAPI_FENCE_(handle, &ierror);
}

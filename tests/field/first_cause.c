/* One task of a job fails, in the way that the argument names, and the others find out in
 * LAPI_Gfence. */
#include <lapi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    lapi_handle_t t;
    lapi_info_t info;
    int me, n, rc;
    void *table[64];
    memset(&info, 0, sizeof info);
    if (LAPI_Init(&t, &info) != LAPI_SUCCESS) return 1;
    LAPI_Qenv(t, TASK_ID, &me);
    LAPI_Qenv(t, NUM_TASKS, &n);
    int last = me == n - 1;
    if (last && strcmp(how, "early") == 0) exit(3);
    if (LAPI_Gfence(t) != LAPI_SUCCESS) abort();
    if (last && strcmp(how, "exit") == 0) exit(3);
    if (last && strcmp(how, "leave") == 0) exit(0);
    rc = last && strcmp(how, "mismatch") == 0 ? LAPI_Address_init(t, &me, table) : LAPI_Gfence(t);
    if (rc != LAPI_SUCCESS) abort();
    LAPI_Term(t);
    return 0;
}

/* The headers in C: nothing else is needed before them. */
#include <fam/fam_c.h>
#include <string.h>

int main(void) {
    c_fam *one = c_fam_create();
    Fam_Options options;
    Fam_Region_Attributes attributes = {NONE, VOLATILE, ENABLE, REGION};
    uint64_t pending = 0;
    memset(&options, 0, sizeof(options));
    options.grpcPort = "1";
    options.runtime = "NONE";
    if (!one || c_fam_initialize(one, "group", &options) != -1)
        return 1;
    if (c_fam_error() != FAM_ERR_RPC_CLIENT_NOTFOUND || !*c_fam_error_msg())
        return 2;
    if (c_fam_create_region(one, "name", 1, 0777, &attributes) || c_fam_error() != FAM_ERR_INVALID)
        return 3;
    if (c_fam_progress(one, &pending) != -1 || c_fam_quiet(NULL) != -1)
        return 4;
    if (c_fam_put_blocking(one, &pending, NULL, 0, 8) != -1 || c_fam_error() != FAM_ERR_INVALID)
        return 5;
    c_fam_delete(one);
    return 0;
}

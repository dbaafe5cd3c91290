/* A note in memory that outlives programs: `note write TEXT`, `note read`, `note remove`. */
#include <stdio.h>
#include <string.h>

#include <fam/fam_c.h>

#define LENGTH 128

static int failed(const char *what) {
    printf("%s: error %d: %s\n", what, c_fam_error(), c_fam_error_msg());
    return 1;
}

static int act(c_fam *fam, const char *what, const char *text) {
    char note[LENGTH] = "";
    uint64_t times;
    c_fam_desc *item;
    if (strcmp(what, "write") == 0) {
        Fam_Region_Attributes attributes = {NONE, PERSISTENT, DISABLE, REGION};
        c_fam_region_desc *region = c_fam_create_region(fam, "notes", LENGTH, 0600, &attributes);
        if (!region)
            return failed("c_fam_create_region");
        item = c_fam_allocate_named(fam, "note", LENGTH + 8, 0600, region);
        strncpy(note, text, LENGTH - 1);
        if (!item || c_fam_put_blocking(fam, note, item, 8, LENGTH) != 0)
            return failed("c_fam_put_blocking");
        return 0;
    }
    if (strcmp(what, "remove") == 0) {
        c_fam_region_desc *region = c_fam_lookup_region(fam, "notes");
        return region && c_fam_destroy_region(fam, region) == 0 ? 0 : failed("c_fam_destroy_region");
    }
    item = c_fam_lookup(fam, "note", "notes");
    if (!item || c_fam_get_blocking(fam, note, item, 8, LENGTH) != 0)
        return failed("c_fam_get_blocking");
    if (c_fam_fetch_add_uint64(fam, item, 0, 1, &times) != 0)
        return failed("c_fam_fetch_add_uint64");
    printf("%s (read %lu times before)\n", note, (unsigned long)times);
    return 0;
}

int main(int argc, char **argv) {
    c_fam *fam = c_fam_create();
    int status;
    if (argc < 2 || !fam || c_fam_initialize(fam, "note", NULL) != 0)
        return failed("c_fam_initialize");
    status = act(fam, argv[1], argc > 2 ? argv[2] : "");
    if (c_fam_finalize(fam, "note") != 0)
        status = failed("c_fam_finalize");
    c_fam_delete(fam);
    return status;
}

// The conformance program: `conformance CASE`, or all cases that need no daemon. A case that needs
// one finds it as fam_pe_config.yaml says.
#include "conformance.h"

#include <unistd.h>

fam *pool;

std::string fresh(const char *what) {
    static int last = 0;
    return std::string(what) + std::to_string(getpid()) + "." + std::to_string(++last);
}

Fam_Region_Descriptor *region(uint64_t size, mode_t perm, Fam_Permission_Level level) {
    Fam_Region_Attributes attributes = {REDUNDANCY_LEVEL_DEFAULT, MEMORY_TYPE_DEFAULT,
                                        INTERLEAVE_DEFAULT, level};
    return pool->fam_create_region(fresh("region").c_str(), size, perm, &attributes);
}

Fam_Descriptor *item(uint64_t size, mode_t perm) {
    return pool->fam_allocate(fresh("item").c_str(), size, perm, region(size, perm));
}

static bool run(const Case *cases, const char *name) {
    for (const Case *one = cases; one->name; one++) {
        if (name ? std::strcmp(name, one->name) != 0 : one->served)
            continue;
        fam object;
        if (one->served) {
            pool = &object;
            object.fam_initialize("conformance", nullptr);
        }
        one->run();
        if (one->served)
            object.fam_finalize("conformance");
        std::printf("OK %s\n", one->name);
        if (name)
            return true;
    }
    return name == nullptr;
}

static void list(const Case *cases) {
    for (const Case *one = cases; one->name; one++)
        if (one->served)
            std::printf("%s\n", one->name);
}

int main(int argc, char **argv) {
    const Case *all[] = {start_cases, region_cases, data_cases, atomic_cases, context_cases,
                         copy_cases};
    const char *name = argc > 1 ? argv[1] : nullptr;
    try {
        for (auto cases : all) {
            if (name && std::strcmp(name, "--list") == 0)
                list(cases);
            else if (run(cases, name) && name)
                return 0;
        }
        return name && std::strcmp(name, "--list") != 0;
    } catch (Fam_Exception &e) {
        std::printf("error %d: %s\n", e.fam_error(), e.fam_error_msg());
        return 1;
    }
}

// What a launcher has started: `launched alone`, a PE by runtime NONE, or `launched abort STATUS`,
// of which the last PE ends all.
#include "conformance.h"

#include <unistd.h>

namespace {

int number(fam &object, const char *name) {
    auto value = static_cast<const int *>(object.fam_get_option(const_cast<char *>(name)));
    int found = *value;
    std::free(const_cast<int *>(value));
    return found;
}

} // namespace

int main(int argc, char **argv) {
    fam object;
    Fam_Options options;
    std::memset(&options, 0, sizeof(options));
    bool alone = std::strcmp(argv[1], "alone") == 0;
    if (alone)
        options.runtime = const_cast<char *>("NONE");
    try {
        object.fam_initialize("launched", &options);
        int own = number(object, "PE_ID"), count = number(object, "PE_COUNT");
        if (alone) {
            SAME(own, 0);
            SAME(count, 1);
            // Both do nothing.
            object.fam_barrier_all();
            object.fam_abort(7);
            object.fam_finalize("launched");
            std::printf("OK alone\n");
            return 0;
        }
        CHECK(argc == 3 && count > 1);
        object.fam_barrier_all();
        if (own == count - 1)
            object.fam_abort(std::atoi(argv[2]));
        // The others make no call: they are ended where they are.
        for (;;)
            pause();
    } catch (Fam_Exception &e) {
        std::printf("error %d: %s\n", e.fam_error(), e.fam_error_msg());
        return 1;
    }
}

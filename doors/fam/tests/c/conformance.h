// What the cases of the conformance program share.
#ifndef OPENLAPI_FAM_CONFORMANCE_H
#define OPENLAPI_FAM_CONFORMANCE_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fam/fam.h>
#include <fam/fam_exception.h>

using namespace openfam;

// Ends the program where a condition does not hold.
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

// Ends the program where two numbers differ.
#define SAME(found, expected) same(__FILE__, __LINE__, #found, (found), (expected))

template <typename A, typename B>
void same(const char *file, int line, const char *what, A found, B expected) {
    if (static_cast<long long>(found) != static_cast<long long>(expected)) {
        std::printf("%s:%d: %s is %lld, not %lld\n", file, line, what,
                    static_cast<long long>(found), static_cast<long long>(expected));
        std::exit(1);
    }
}

// Ends the program where a call does not throw this error, with a text.
#define THROWS(error, call) SAME(thrown([&] { call; }), error)

// The error that a call throws, or FAM_NO_ERROR.
template <typename Call> int thrown(Call call) {
    try {
        call();
    } catch (Fam_Exception &e) {
        CHECK(std::strlen(e.fam_error_msg()) > 0);
        CHECK(std::strcmp(e.what(), e.fam_error_msg()) == 0);
        return e.fam_error();
    }
    return FAM_NO_ERROR;
}

// A case: its name, whether it needs a daemon, and what it does.
struct Case {
    const char *name;
    bool served;
    void (*run)();
};

extern const Case start_cases[], region_cases[], data_cases[], atomic_cases[], context_cases[],
    copy_cases[];

// The object of a case that is served, which is initialized.
extern fam *pool;

// A region of this size with a name of its own, which the case ends itself.
Fam_Region_Descriptor *region(uint64_t size = 1 << 20, mode_t perm = 0777,
                              Fam_Permission_Level level = REGION);
// An item in a region of its own.
Fam_Descriptor *item(uint64_t size, mode_t perm = 0777);
// Another name at each call, of this process.
std::string fresh(const char *what);

#endif

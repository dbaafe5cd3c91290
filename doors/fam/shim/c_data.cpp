// The C interface: data, atomics, order and ends.
#include "c.h"

using namespace openfam;

extern "C" {

int c_fam_get_blocking(c_fam *given, void *local, c_fam_desc *what, uint64_t offset,
                       size_t nbytes) {
    return status([&] { object(given)->fam_get_blocking(local, item(what), offset, nbytes); });
}

int c_fam_get_nonblocking(c_fam *given, void *local, c_fam_desc *what, uint64_t offset,
                          size_t nbytes) {
    return status([&] { object(given)->fam_get_nonblocking(local, item(what), offset, nbytes); });
}

int c_fam_put_blocking(c_fam *given, void *local, c_fam_desc *what, uint64_t offset,
                       size_t nbytes) {
    return status([&] { object(given)->fam_put_blocking(local, item(what), offset, nbytes); });
}

int c_fam_put_nonblocking(c_fam *given, void *local, c_fam_desc *what, uint64_t offset,
                          size_t nbytes) {
    return status([&] { object(given)->fam_put_nonblocking(local, item(what), offset, nbytes); });
}

void *c_fam_map(c_fam *given, c_fam_desc *what) {
    return made([&] { return object(given)->fam_map(item(what)); });
}

int c_fam_unmap(c_fam *given, void *local, c_fam_desc *what) {
    return status([&] { object(given)->fam_unmap(local, item(what)); });
}

// A gather or scatter of both shapes.
#define BOTH_SHAPES(CALL)                                                                          \
    int c_fam_##CALL##_stride(c_fam *given, void *local, c_fam_desc *what, uint64_t elements,      \
                              uint64_t first, uint64_t stride, uint64_t size) {                    \
        return status([&] {                                                                        \
            object(given)->fam_##CALL(local, item(what), elements, first, stride, size);           \
        });                                                                                        \
    }                                                                                              \
    int c_fam_##CALL##_index(c_fam *given, void *local, c_fam_desc *what, uint64_t elements,       \
                             uint64_t *index, uint64_t size) {                                     \
        return status(                                                                             \
            [&] { object(given)->fam_##CALL(local, item(what), elements, index, size); });         \
    }

BOTH_SHAPES(gather_blocking)
BOTH_SHAPES(gather_nonblocking)
BOTH_SHAPES(scatter_blocking)
BOTH_SHAPES(scatter_nonblocking)

int c_fam_fence(c_fam *given) {
    return status([&] { object(given)->fam_fence(); });
}

int c_fam_quiet(c_fam *given) {
    return status([&] { object(given)->fam_quiet(); });
}

int c_fam_progress(c_fam *given, uint64_t *pending) {
    return status([&] {
        if (!pending)
            throw Fam_Exception(FAM_ERR_INVALID, "there is no place for the number");
        *pending = object(given)->fam_progress();
    });
}

// The calls of a name for each of its types, whose name ends in TYPE's.
#define CHANGE(NAME, SUFFIX, TYPE)                                                                 \
    int c_fam_##NAME##_##SUFFIX(c_fam *given, c_fam_desc *what, uint64_t offset, TYPE value) {     \
        return status([&] { object(given)->fam_##NAME(item(what), offset, value); });              \
    }
#define FETCH(NAME, SUFFIX, TYPE)                                                                  \
    int c_fam_##NAME##_##SUFFIX(c_fam *given, c_fam_desc *what, uint64_t offset, TYPE value,       \
                                TYPE *old) {                                                       \
        return status([&] {                                                                        \
            auto before = object(given)->fam_##NAME(item(what), offset, value);                    \
            if (old)                                                                               \
                *old = before;                                                                     \
        });                                                                                        \
    }
#define READ(SUFFIX, TYPE)                                                                         \
    int c_fam_fetch_##SUFFIX(c_fam *given, c_fam_desc *what, uint64_t offset, TYPE *old) {         \
        return status([&] {                                                                        \
            if (!old)                                                                              \
                throw Fam_Exception(FAM_ERR_INVALID, "there is no place for the number");          \
            *old = object(given)->fam_fetch_##SUFFIX(item(what), offset);                          \
        });                                                                                        \
    }
#define COMPARE(SUFFIX, TYPE)                                                                      \
    int c_fam_compare_swap_##SUFFIX(c_fam *given, c_fam_desc *what, uint64_t offset,               \
                                    TYPE expected, TYPE value, TYPE *old) {                        \
        return status([&] {                                                                        \
            auto before = object(given)->fam_compare_swap(item(what), offset, expected, value);    \
            if (old)                                                                               \
                *old = before;                                                                     \
        });                                                                                        \
    }
#define NUMBERS(CALL, NAME)                                                                        \
    CALL(NAME, int32, int32_t)                                                                     \
    CALL(NAME, int64, int64_t)                                                                     \
    CALL(NAME, uint32, uint32_t)                                                                   \
    CALL(NAME, uint64, uint64_t)                                                                   \
    CALL(NAME, float, float)                                                                       \
    CALL(NAME, double, double)
#define BITS(CALL, NAME)                                                                           \
    CALL(NAME, uint32, uint32_t)                                                                   \
    CALL(NAME, uint64, uint64_t)

NUMBERS(CHANGE, set)
CHANGE(set, int128, int128_t)
NUMBERS(CHANGE, add)
NUMBERS(CHANGE, subtract)
NUMBERS(CHANGE, min)
NUMBERS(CHANGE, max)
BITS(CHANGE, and)
BITS(CHANGE, or)
BITS(CHANGE, xor)

READ(int32, int32_t)
READ(int64, int64_t)
READ(int128, int128_t)
READ(uint32, uint32_t)
READ(uint64, uint64_t)
READ(float, float)
READ(double, double)

NUMBERS(FETCH, swap)
NUMBERS(FETCH, fetch_add)
NUMBERS(FETCH, fetch_subtract)
NUMBERS(FETCH, fetch_min)
NUMBERS(FETCH, fetch_max)
BITS(FETCH, fetch_and)
BITS(FETCH, fetch_or)
BITS(FETCH, fetch_xor)

COMPARE(int32, int32_t)
COMPARE(int64, int64_t)
COMPARE(uint32, uint32_t)
COMPARE(uint64, uint64_t)
COMPARE(int128, int128_t)

} // extern "C"

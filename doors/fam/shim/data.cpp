// Class fam: data, atomics, order and ends.
#include "abi.h"

namespace openfam {

namespace {

olfam_elements strided(uint64_t count, uint64_t first, uint64_t stride, uint64_t size) {
    return olfam_elements{count, first, stride, nullptr, size};
}

olfam_elements indexed(uint64_t count, const uint64_t *index, uint64_t size) {
    if (!index)
        throw Fam_Exception(FAM_ERR_INVALID, "the indices are NULL");
    return olfam_elements{count, 0, 0, index, size};
}

// The number of a type.
template <typename T> struct Type;

template <> struct Type<int32_t> { enum { number = OLFAM_INT32 }; };
template <> struct Type<int64_t> { enum { number = OLFAM_INT64 }; };
template <> struct Type<int128_t> { enum { number = OLFAM_INT128 }; };
template <> struct Type<uint32_t> { enum { number = OLFAM_UINT32 }; };
template <> struct Type<uint64_t> { enum { number = OLFAM_UINT64 }; };
template <> struct Type<float> { enum { number = OLFAM_FLOAT }; };
template <> struct Type<double> { enum { number = OLFAM_DOUBLE }; };

// An atomic that returns nothing, and does not wait.
template <typename T>
void change(void *impl, Fam_Descriptor *descriptor, uint64_t offset, int operation, T value) {
    check(olfam_atomic(context_of(impl), Descriptor_Access::item(descriptor), offset, operation,
                       Type<T>::number, &value, nullptr, nullptr));
}

// An atomic that returns the old value.
template <typename T>
T fetch(void *impl, Fam_Descriptor *descriptor, uint64_t offset, int operation, T value = T(),
        T comparand = T()) {
    T old = T();
    check(olfam_atomic(context_of(impl), Descriptor_Access::item(descriptor), offset, operation,
                       Type<T>::number, &value, &comparand, &old));
    return old;
}

} // namespace

int fam::fam_get_blocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                          uint64_t nbytes) {
    check(olfam_get(context_of(pimpl_), Descriptor_Access::item(descriptor), local, offset,
                    nbytes, 1));
    return FAM_SUCCESS;
}

void fam::fam_get_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                              uint64_t nbytes) {
    check(olfam_get(context_of(pimpl_), Descriptor_Access::item(descriptor), local, offset,
                    nbytes, 0));
}

int fam::fam_put_blocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                          uint64_t nbytes) {
    check(olfam_put(context_of(pimpl_), Descriptor_Access::item(descriptor), local, offset,
                    nbytes, 1));
    return FAM_SUCCESS;
}

void fam::fam_put_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                              uint64_t nbytes) {
    check(olfam_put(context_of(pimpl_), Descriptor_Access::item(descriptor), local, offset,
                    nbytes, 0));
}

// A gather or scatter of both shapes.
#define VECTOR(CALL, KIND, BLOCKING)                                                               \
    void fam::fam_##CALL##_##KIND(void *local, Fam_Descriptor *descriptor, uint64_t nElements,     \
                                  uint64_t firstElement, uint64_t stride, uint64_t elementSize) {  \
        auto elements = strided(nElements, firstElement, stride, elementSize);                     \
        check(olfam_##CALL(context_of(pimpl_), Descriptor_Access::item(descriptor), local,         \
                           &elements, BLOCKING));                                                  \
    }                                                                                              \
    void fam::fam_##CALL##_##KIND(void *local, Fam_Descriptor *descriptor, uint64_t nElements,     \
                                  uint64_t *elementIndex, uint64_t elementSize) {                  \
        auto elements = indexed(nElements, elementIndex, elementSize);                             \
        check(olfam_##CALL(context_of(pimpl_), Descriptor_Access::item(descriptor), local,         \
                           &elements, BLOCKING));                                                  \
    }

VECTOR(gather, blocking, 1)
VECTOR(gather, nonblocking, 0)
VECTOR(scatter, blocking, 1)
VECTOR(scatter, nonblocking, 0)

void *fam::fam_map(Fam_Descriptor *descriptor) {
    void *local = nullptr;
    check(olfam_map(context_of(pimpl_), Descriptor_Access::item(descriptor), &local));
    return local;
}

void fam::fam_unmap(void *local, Fam_Descriptor *descriptor) {
    check(olfam_unmap(context_of(pimpl_), Descriptor_Access::item(descriptor), local));
}

void fam::fam_fence(void) { check(olfam_fence(context_of(pimpl_))); }

void fam::fam_quiet(void) { check(olfam_quiet(context_of(pimpl_))); }

uint64_t fam::fam_progress(void) {
    uint64_t pending = 0;
    check(olfam_progress(context_of(pimpl_), &pending));
    return pending;
}

// The calls of a name for each of its types.
#define CHANGE(NAME, OPERATION, TYPE)                                                              \
    void fam::fam_##NAME(Fam_Descriptor *descriptor, uint64_t offset, TYPE value) {                \
        change<TYPE>(pimpl_, descriptor, offset, OPERATION, value);                                \
    }
#define FETCH(NAME, OPERATION, TYPE)                                                               \
    TYPE fam::fam_##NAME(Fam_Descriptor *descriptor, uint64_t offset, TYPE value) {                \
        return fetch<TYPE>(pimpl_, descriptor, offset, OPERATION, value);                          \
    }
#define READ(NAME, TYPE)                                                                           \
    TYPE fam::fam_fetch_##NAME(Fam_Descriptor *descriptor, uint64_t offset) {                      \
        return fetch<TYPE>(pimpl_, descriptor, offset, OLFAM_READ);                                \
    }
#define COMPARE(TYPE)                                                                              \
    TYPE fam::fam_compare_swap(Fam_Descriptor *descriptor, uint64_t offset, TYPE oldValue,         \
                               TYPE newValue) {                                                    \
        return fetch<TYPE>(pimpl_, descriptor, offset, OLFAM_COMPARE_SWAP, newValue, oldValue);    \
    }
#define NUMBERS(CALL, NAME, OPERATION)                                                             \
    CALL(NAME, OPERATION, int32_t)                                                                 \
    CALL(NAME, OPERATION, int64_t)                                                                 \
    CALL(NAME, OPERATION, uint32_t)                                                                \
    CALL(NAME, OPERATION, uint64_t)                                                                \
    CALL(NAME, OPERATION, float)                                                                   \
    CALL(NAME, OPERATION, double)
#define BITS(CALL, NAME, OPERATION)                                                                \
    CALL(NAME, OPERATION, uint32_t)                                                                \
    CALL(NAME, OPERATION, uint64_t)

NUMBERS(CHANGE, set, OLFAM_SET)
CHANGE(set, OLFAM_SET, int128_t)
NUMBERS(CHANGE, add, OLFAM_ADD)
NUMBERS(CHANGE, subtract, OLFAM_SUBTRACT)
NUMBERS(CHANGE, min, OLFAM_MIN)
NUMBERS(CHANGE, max, OLFAM_MAX)
BITS(CHANGE, and, OLFAM_AND)
BITS(CHANGE, or, OLFAM_OR)
BITS(CHANGE, xor, OLFAM_XOR)

READ(int32, int32_t)
READ(int64, int64_t)
READ(int128, int128_t)
READ(uint32, uint32_t)
READ(uint64, uint64_t)
READ(float, float)
READ(double, double)

NUMBERS(FETCH, swap, OLFAM_SWAP)
NUMBERS(FETCH, fetch_add, OLFAM_ADD)
NUMBERS(FETCH, fetch_subtract, OLFAM_SUBTRACT)
NUMBERS(FETCH, fetch_min, OLFAM_MIN)
NUMBERS(FETCH, fetch_max, OLFAM_MAX)
BITS(FETCH, fetch_and, OLFAM_AND)
BITS(FETCH, fetch_or, OLFAM_OR)
BITS(FETCH, fetch_xor, OLFAM_XOR)

COMPARE(int32_t)
COMPARE(int64_t)
COMPARE(uint32_t)
COMPARE(uint64_t)
COMPARE(int128_t)

} // namespace openfam

// Atomics of every type.
#include "conformance.h"

#include <cmath>

namespace {

template <typename T> T read(Fam_Descriptor *item, uint64_t offset) {
    T value;
    pool->fam_get_blocking(&value, item, offset, sizeof(T));
    return value;
}

// The calls that all numbers but those of 128 bits have. `old` is what it was before, `value` what
// the call is given.
template <typename T> void numbers(T old, T value) {
    auto one = item(1024);
    const uint64_t at = 64;
    pool->fam_set(one, at, old);
    pool->fam_quiet();
    CHECK(read<T>(one, at) == old);
    // Neighbours stay.
    CHECK(read<T>(one, at - sizeof(T)) == T(0) && read<T>(one, at + sizeof(T)) == T(0));
    CHECK(pool->fam_swap(one, at, value) == old && read<T>(one, at) == value);
    CHECK(pool->fam_swap(one, at, old) == value);
    CHECK(pool->fam_fetch_add(one, at, value) == old);
    CHECK(read<T>(one, at) == T(old + value));
    CHECK(pool->fam_fetch_subtract(one, at, value) == T(old + value));
    CHECK(read<T>(one, at) == old);
    T less = value < old ? value : old, more = value < old ? old : value;
    CHECK(pool->fam_fetch_min(one, at, value) == old && read<T>(one, at) == less);
    CHECK(pool->fam_fetch_max(one, at, more) == less && read<T>(one, at) == more);
    pool->fam_set(one, at, old);
    pool->fam_fence();
    pool->fam_add(one, at, value);
    pool->fam_fence();
    pool->fam_subtract(one, at, value);
    pool->fam_fence();
    pool->fam_min(one, at, value);
    pool->fam_quiet();
    CHECK(read<T>(one, at) == less);
    pool->fam_max(one, at, more);
    pool->fam_quiet();
    CHECK(read<T>(one, at) == more);
    THROWS(FAM_ERR_INVALID, pool->fam_set(one, at + 1, value));
    THROWS(FAM_ERR_INVALID, pool->fam_fetch_add(one, at + sizeof(T) / 2, value));
    THROWS(FAM_ERR_INVALID, pool->fam_add(static_cast<Fam_Descriptor *>(nullptr), at, value));
}

template <typename T> void bits(T old, T value) {
    auto one = item(1024);
    pool->fam_set(one, 8, old);
    pool->fam_fence();
    CHECK(pool->fam_fetch_and(one, 8, value) == old && read<T>(one, 8) == (old & value));
    CHECK(pool->fam_fetch_or(one, 8, old) == (old & value) && read<T>(one, 8) == old);
    CHECK(pool->fam_fetch_xor(one, 8, value) == old && read<T>(one, 8) == (old ^ value));
    pool->fam_xor(one, 8, value);
    pool->fam_fence();
    pool->fam_and(one, 8, value);
    pool->fam_quiet();
    CHECK(read<T>(one, 8) == (old & value));
    pool->fam_or(one, 8, old);
    pool->fam_quiet();
    CHECK(read<T>(one, 8) == old);
}

template <typename T> void compare(T old, T value) {
    auto one = item(1024);
    pool->fam_set(one, 32, old);
    pool->fam_quiet();
    CHECK(pool->fam_compare_swap(one, 32, value, T(0)) == old && read<T>(one, 32) == old);
    CHECK(pool->fam_compare_swap(one, 32, old, value) == old && read<T>(one, 32) == value);
}

void types() {
    numbers<int32_t>(-7, 5);
    numbers<int32_t>(INT32_MAX, INT32_MIN + 3);
    numbers<uint32_t>(7, UINT32_MAX);
    numbers<int64_t>(INT64_MIN, -1);
    numbers<uint64_t>(UINT64_MAX, 1);
    numbers<float>(1.5f, -2.25f);
    numbers<double>(-1e300, 4.5e299);
    bits<uint32_t>(0xf0f01234u, 0x0ff00ff0u);
    bits<uint64_t>(0xf0f0123456789abcull, 0x0ff00ff00ff00ff0ull);
    compare<int32_t>(-1, 9);
    compare<int64_t>(-1, INT64_MAX);
    compare<uint32_t>(1, UINT32_MAX);
    compare<uint64_t>(1, UINT64_MAX);
}

void of_128_bits() {
    int128_t value = static_cast<int128_t>(1) << 100, old = 77 - value;
    compare<int128_t>(old, value);
    auto one = item(1024);
    pool->fam_set(one, 16, old);
    pool->fam_quiet();
    CHECK(pool->fam_fetch_int128(one, 16) == old);
    THROWS(FAM_ERR_INVALID, pool->fam_set(one, 8, old));
}

void fetches() {
    auto one = item(1024);
    double number = -0.5;
    float shorter = 0.25f;
    int32_t negative = -3;
    pool->fam_put_blocking(&number, one, 0, 8);
    pool->fam_put_blocking(&shorter, one, 8, 4);
    pool->fam_put_blocking(&negative, one, 12, 4);
    CHECK(pool->fam_fetch_double(one, 0) == number);
    CHECK(pool->fam_fetch_float(one, 8) == shorter);
    CHECK(pool->fam_fetch_int32(one, 12) == negative);
    CHECK(pool->fam_fetch_uint32(one, 12) == static_cast<uint32_t>(negative));
    CHECK(pool->fam_fetch_int64(one, 16) == 0);
    CHECK(pool->fam_fetch_uint64(one, 16) == 0);
}

} // namespace

const Case atomic_cases[] = {
    {"types", true, types},
    {"of_128_bits", true, of_128_bits},
    {"fetches", true, fetches},
    {nullptr, false, nullptr},
};

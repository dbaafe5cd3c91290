/* Atomics of the C interface, each of every type that it has. */
#include "plain.h"

enum { AT = 64, AROUND = 16, BEYOND = 1 << 20 };

/* Whether the number at AT is this one, and there are zeros around it. */
static int holds(c_fam_desc *one, const void *expected, size_t size) {
    unsigned char image[3 * AROUND] = {0};
    memcpy(image + AROUND, expected, size);
    DONE(c_fam_quiet(pool));
    return has(one, AT - AROUND, image, sizeof(image));
}

#define HOLDS(VALUE) CHECK(holds(one, &(VALUE), sizeof(VALUE)))
#define SET(SUFFIX)                                                                                \
    DONE(c_fam_set_##SUFFIX(pool, one, AT, a));                                                    \
    DONE(c_fam_fence(pool));

/* A call that does not return the old value: of `a` and `b` it makes RESULT. */
#define CHANGE(NAME, SUFFIX, RESULT)                                                               \
    SET(SUFFIX)                                                                                    \
    DONE(c_fam_##NAME##_##SUFFIX(pool, one, AT, b));                                               \
    HOLDS(RESULT);                                                                                 \
    REFUSED(FAM_ERR_INVALID, c_fam_##NAME##_##SUFFIX(pool, one, AT + 1, b));                       \
    REFUSED(FAM_ERR_INVALID, c_fam_##NAME##_##SUFFIX(pool, NULL, AT, b));                          \
    DONE(c_fam_##NAME##_##SUFFIX(pool, one, BEYOND, b));                                           \
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_quiet(pool));

/* One that does, where there is a place for it. */
#define FETCH(NAME, SUFFIX, RESULT)                                                                \
    SET(SUFFIX)                                                                                    \
    old = b;                                                                                       \
    DONE(c_fam_##NAME##_##SUFFIX(pool, one, AT, b, &old));                                         \
    CHECK(old == a);                                                                               \
    HOLDS(RESULT);                                                                                 \
    SET(SUFFIX)                                                                                    \
    DONE(c_fam_##NAME##_##SUFFIX(pool, one, AT, b, NULL));                                         \
    HOLDS(RESULT);                                                                                 \
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_##NAME##_##SUFFIX(pool, one, BEYOND, b, &old));              \
    REFUSED(FAM_ERR_INVALID, c_fam_##NAME##_##SUFFIX(pool, one, AT + 1, b, &old));                 \
    REFUSED(FAM_ERR_INVALID, c_fam_##NAME##_##SUFFIX(pool, NULL, AT, b, &old));

#define READ(SUFFIX)                                                                               \
    SET(SUFFIX)                                                                                    \
    old = b;                                                                                       \
    DONE(c_fam_fetch_##SUFFIX(pool, one, AT, &old));                                               \
    CHECK(old == a);                                                                               \
    HOLDS(a);                                                                                      \
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_fetch_##SUFFIX(pool, one, BEYOND, &old));                    \
    REFUSED(FAM_ERR_INVALID, c_fam_fetch_##SUFFIX(pool, one, AT, NULL));                           \
    REFUSED(FAM_ERR_INVALID, c_fam_fetch_##SUFFIX(pool, NULL, AT, &old));

/* The calls that all numbers but those of 128 bits have, with the numbers in both orders. */
#define NUMBERS(SUFFIX, T, FIRST, SECOND)                                                          \
    static void SUFFIX##_numbers(c_fam_desc *one) {                                                \
        const T pairs[2][2] = {{FIRST, SECOND}, {SECOND, FIRST}};                                  \
        int i;                                                                                     \
        for (i = 0; i < 2; i++) {                                                                  \
            const T a = pairs[i][0], b = pairs[i][1], sum = a + b, difference = a - b;             \
            const T least = a < b ? a : b, most = a < b ? b : a;                                   \
            T old;                                                                                 \
            CHANGE(set, SUFFIX, b)                                                                 \
            CHANGE(add, SUFFIX, sum)                                                               \
            CHANGE(subtract, SUFFIX, difference)                                                   \
            CHANGE(min, SUFFIX, least)                                                             \
            CHANGE(max, SUFFIX, most)                                                              \
            READ(SUFFIX)                                                                           \
            FETCH(swap, SUFFIX, b)                                                                 \
            FETCH(fetch_add, SUFFIX, sum)                                                          \
            FETCH(fetch_subtract, SUFFIX, difference)                                              \
            FETCH(fetch_min, SUFFIX, least)                                                        \
            FETCH(fetch_max, SUFFIX, most)                                                         \
        }                                                                                          \
    }

#define BITS(SUFFIX, T, FIRST, SECOND)                                                             \
    static void SUFFIX##_bits(c_fam_desc *one) {                                                   \
        const T a = FIRST, b = SECOND, both = a & b, any = a | b, other = a ^ b;                   \
        T old;                                                                                     \
        CHANGE(and, SUFFIX, both)                                                                  \
        CHANGE(or, SUFFIX, any)                                                                    \
        CHANGE(xor, SUFFIX, other)                                                                 \
        FETCH(fetch_and, SUFFIX, both)                                                             \
        FETCH(fetch_or, SUFFIX, any)                                                               \
        FETCH(fetch_xor, SUFFIX, other)                                                            \
    }

#define COMPARE(SUFFIX, T, FIRST, SECOND)                                                          \
    static void SUFFIX##_compare(c_fam_desc *one) {                                                \
        const T a = FIRST, b = SECOND;                                                             \
        T old = b;                                                                                 \
        SET(SUFFIX)                                                                                \
        DONE(c_fam_compare_swap_##SUFFIX(pool, one, AT, b, a + 1, &old));                          \
        CHECK(old == a);                                                                           \
        HOLDS(a);                                                                                  \
        old = b;                                                                                   \
        DONE(c_fam_compare_swap_##SUFFIX(pool, one, AT, a, b, &old));                              \
        CHECK(old == a);                                                                           \
        HOLDS(b);                                                                                  \
        DONE(c_fam_compare_swap_##SUFFIX(pool, one, AT, b, a, NULL));                              \
        HOLDS(a);                                                                                  \
        REFUSED(FAM_ERR_OUTOFRANGE, c_fam_compare_swap_##SUFFIX(pool, one, BEYOND, a, b, &old));   \
        REFUSED(FAM_ERR_INVALID, c_fam_compare_swap_##SUFFIX(pool, NULL, AT, a, b, &old));         \
    }

/* Numbers that a type of another sign, or of half the bits, would order or add otherwise. */
NUMBERS(int32, int32_t, -70000, 900)
NUMBERS(int64, int64_t, -7000000000, 900000000000)
NUMBERS(uint32, uint32_t, UINT32_MAX - 700, 900)
NUMBERS(uint64, uint64_t, UINT64_MAX - 700, 900000000000)
NUMBERS(float, float, -70.5f, 900.25f)
NUMBERS(double, double, -7e100, 9.5e100)
BITS(uint32, uint32_t, 0xf0f01234u, 0x0ff00ff0u)
BITS(uint64, uint64_t, 0xf0f0123456789abcu, 0x0ff00ff00ff00ff0u)
COMPARE(int32, int32_t, -70000, 900)
COMPARE(int64, int64_t, -7000000000, 900000000000)
COMPARE(uint32, uint32_t, UINT32_MAX - 700, 900)
COMPARE(uint64, uint64_t, UINT64_MAX - 700, 900000000000)
COMPARE(int128, int128_t, -((int128_t)1 << 100), (int128_t)7 << 70)

static void of_128_bits(c_fam_desc *one) {
    const int128_t a = ((int128_t)5 << 90) + 3, b = -a, zero = 0;
    int128_t old;
    CHANGE(set, int128, b)
    READ(int128)
    int128_compare(one);
    DONE(c_fam_set_int128(pool, one, AT, zero));
    HOLDS(zero);
}

void atomics(c_fam_desc *one) {
    const uint64_t zero = 0;
    void (*const all[])(c_fam_desc *) = {
        int32_numbers, int64_numbers, uint32_numbers, uint64_numbers, float_numbers,
        double_numbers, uint32_bits, uint64_bits, int32_compare, int64_compare, uint32_compare,
        uint64_compare, of_128_bits};
    size_t i;
    for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
        all[i](one);
        DONE(c_fam_set_uint64(pool, one, AT, zero));
        HOLDS(zero);
    }
}

/* The atomic operations of AIX's C library, which old programs call, often without a declaration.
 * All are weak: a program's own definition takes precedence. */
#include <sys/atomic_op.h>

#define HELPER __attribute__((weak))

HELPER int fetch_and_add(atomic_p word, int value) { return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); }

HELPER int fetch_and_or(atomic_p word, unsigned int mask) { return __atomic_fetch_or(word, (int)mask, __ATOMIC_SEQ_CST); }

HELPER int fetch_and_and(atomic_p word, unsigned int mask) { return __atomic_fetch_and(word, (int)mask, __ATOMIC_SEQ_CST); }

HELPER long fetch_and_addlp(atomic_l word, unsigned long value) {
    return __atomic_fetch_add(word, (long)value, __ATOMIC_SEQ_CST);
}

HELPER long fetch_and_orlp(atomic_l word, unsigned long mask) {
    return __atomic_fetch_or(word, (long)mask, __ATOMIC_SEQ_CST);
}

HELPER long fetch_and_andlp(atomic_l word, unsigned long mask) {
    return __atomic_fetch_and(word, (long)mask, __ATOMIC_SEQ_CST);
}

HELPER int compare_and_swap(atomic_p word, int *expected, int value) {
    return __atomic_compare_exchange_n(word, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

HELPER int compare_and_swaplp(atomic_l word, long *expected, long value) {
    return __atomic_compare_exchange_n(word, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

HELPER int _check_lock(atomic_p word, int expected, int value) { return !compare_and_swap(word, &expected, value); }

HELPER void _clear_lock(atomic_p word, int value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

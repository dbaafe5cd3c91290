/* AIX's atomic operations, for programs that were written for it. The functions are in
 * libaixcompat.a, which the compile wrappers link. All are sequentially consistent. */
#ifndef OPENLAPI_SYS_ATOMIC_OP_H
#define OPENLAPI_SYS_ATOMIC_OP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef int *atomic_p;
typedef unsigned short *atomic_h;
typedef long *atomic_l;

/* Each returns the previous value of the word. */
int fetch_and_add(atomic_p word, int value);
int fetch_and_or(atomic_p word, unsigned int mask);
int fetch_and_and(atomic_p word, unsigned int mask);
long fetch_and_addlp(atomic_l word, unsigned long value);
long fetch_and_orlp(atomic_l word, unsigned long mask);
long fetch_and_andlp(atomic_l word, unsigned long mask);

/* Stores `value` when the word equals `*expected` and returns 1; otherwise stores the word in
 * `*expected` and returns 0. */
int compare_and_swap(atomic_p word, int *expected, int value);
int compare_and_swaplp(atomic_l word, long *expected, long value);

/* Stores `value` when the word equals `expected` and returns 0; otherwise returns 1. */
int _check_lock(atomic_p word, int expected, int value);

/* Stores `value` after all earlier writes. */
void _clear_lock(atomic_p word, int value);

#ifdef __cplusplus
}
#endif

#endif

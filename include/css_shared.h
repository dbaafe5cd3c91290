/*
 * css_shared.h: what LAPI shares with its transports and with other libraries.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef CSS_SHARED_H
#define CSS_SHARED_H

#include <sys/types.h>
#include <pthread.h>

/* uint and ulong, where the C library hides them from a strictly standard program. */
#if defined(__GLIBC__)
#  if !defined(__USE_MISC)
#    define CSS_SHARED_UINT
#  endif
#elif defined(__STRICT_ANSI__) && !defined(_GNU_SOURCE) && !defined(_BSD_SOURCE)
#  define CSS_SHARED_UINT
#endif
#ifdef CSS_SHARED_UINT
#  undef CSS_SHARED_UINT
typedef unsigned int uint;
typedef unsigned long ulong;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How bytes travel; LAPI_Init reports it in lapi_info_t.protocol. */
typedef enum {
  NULL_DEV = 0,
  UDP_DEV = 8,
  LAPI_SHM_DEV = 32, /* shared memory: every task of the job is on this machine */
  LAPI_SELF_DEV = 33, /* the job has one task */
  LAPI_FABRIC_DEV = 34 /* libfabric, and shared memory within a host */
} css_dev_t;
typedef css_dev_t lapi_dev_t;

/* The number of a task. */
typedef uint css_task_t;

/* How a library is to start its threads. */
typedef struct com_thread_info_t {
  pthread_attr_t *thread_attr;                /* for pthread_create, or null */
  void *(*thread_init_func)(void *, void *); /* called first in every new thread, or null */
  void *parm_ptr;                             /* its first argument */
  void *extra_ptr;                            /* its second argument */
} com_thread_info_t;

#ifdef __cplusplus
}
#endif

#endif /* CSS_SHARED_H */

/*
 * librpmem.h: replication of a memory pool to another host, interface 1.3.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The calls are described in rpmem_create(3) and rpmem_persist(3). Those that return int return 0,
 * or -1 and set errno.
 */
#ifndef LIBRPMEM_H
#define LIBRPMEM_H 1

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RPMEM_MAJOR_VERSION 1
#define RPMEM_MINOR_VERSION 3

/* Lengths in struct rpmem_pool_attr, in bytes. */
#define RPMEM_POOL_HDR_SIG_LEN 8
#define RPMEM_POOL_HDR_UUID_LEN 16
#define RPMEM_POOL_USER_FLAGS_LEN 16

/* rpmem_persist, rpmem_flush: the data need not land as a whole. */
#define RPMEM_PERSIST_RELAXED 1u
#define RPMEM_FLUSH_RELAXED 1u

/* rpmem_remove */
#define RPMEM_REMOVE_FORCE 1
#define RPMEM_REMOVE_POOL_SET 2

/* The smallest pool and the smallest part file, in bytes. */
#define RPMEM_MIN_POOL ((size_t)8192)
#define RPMEM_MIN_PART ((size_t)(2u << 20))

/* An open remote pool. */
typedef struct rpmem_pool RPMEMpool;

/* What a pool's headers have of it. */
struct rpmem_pool_attr {
	char signature[RPMEM_POOL_HDR_SIG_LEN];
	uint32_t major;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t ro_compat_features;
	unsigned char poolset_uuid[RPMEM_POOL_HDR_UUID_LEN];
	unsigned char uuid[RPMEM_POOL_HDR_UUID_LEN];
	unsigned char next_uuid[RPMEM_POOL_HDR_UUID_LEN];
	unsigned char prev_uuid[RPMEM_POOL_HDR_UUID_LEN];
	unsigned char user_flags[RPMEM_POOL_USER_FLAGS_LEN];
};

RPMEMpool *rpmem_create(const char *target, const char *pool_set_name, void *pool_addr,
		size_t pool_size, unsigned *nlanes, const struct rpmem_pool_attr *create_attr);
RPMEMpool *rpmem_open(const char *target, const char *pool_set_name, void *pool_addr,
		size_t pool_size, unsigned *nlanes, struct rpmem_pool_attr *open_attr);
int rpmem_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr);
int rpmem_close(RPMEMpool *rpp);
int rpmem_remove(const char *target, const char *pool_set_name, int flags);

int rpmem_flush(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane, unsigned flags);
int rpmem_drain(RPMEMpool *rpp, unsigned lane, unsigned flags);
int rpmem_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane, unsigned flags);
int rpmem_deep_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane);
int rpmem_read(RPMEMpool *rpp, void *buff, size_t offset, size_t length, unsigned lane);

/* NULL if the library has this version of the interface, otherwise a sentence. */
const char *rpmem_check_version(unsigned major_required, unsigned minor_required);
/* What the last failure of the calling thread was. */
const char *rpmem_errormsg(void);

#ifdef __cplusplus
}
#endif

#endif

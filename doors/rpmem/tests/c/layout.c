/*
 * Numbers and places of librpmem.h, for C and C++: compiled, and not run. The expected ones are
 * those of the interface, which programs were compiled with.
 */
#include <librpmem.h>

#ifdef __cplusplus
#define IS(what, number) static_assert((what) == (number), #what)
#else
#define IS(what, number) _Static_assert((what) == (number), #what)
#endif
#define AT(member, offset) IS(offsetof(struct rpmem_pool_attr, member), offset)

IS(RPMEM_MAJOR_VERSION, 1);
IS(RPMEM_MINOR_VERSION, 3);
IS(RPMEM_POOL_HDR_SIG_LEN, 8);
IS(RPMEM_POOL_HDR_UUID_LEN, 16);
IS(RPMEM_POOL_USER_FLAGS_LEN, 16);
IS(RPMEM_PERSIST_RELAXED, 1u);
IS(RPMEM_FLUSH_RELAXED, 1u);
IS(RPMEM_REMOVE_FORCE, 1);
IS(RPMEM_REMOVE_POOL_SET, 2);
IS(RPMEM_MIN_POOL, 8192u);
IS(sizeof(RPMEM_MIN_POOL), sizeof(size_t));
IS(RPMEM_MIN_PART, 2u * 1024 * 1024);
IS(sizeof(RPMEM_MIN_PART), sizeof(size_t));

IS(sizeof(struct rpmem_pool_attr), 104u);
AT(signature, 0u);
AT(major, 8u);
AT(compat_features, 12u);
AT(incompat_features, 16u);
AT(ro_compat_features, 20u);
AT(poolset_uuid, 24u);
AT(uuid, 40u);
AT(next_uuid, 56u);
AT(prev_uuid, 72u);
AT(user_flags, 88u);

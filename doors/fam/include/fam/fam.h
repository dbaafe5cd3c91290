/* OpenFAM 3.2: memory that is attached to the network and outlives programs. See fam(7).
 *
 * C++14: class fam. In C the numbers and structures alone are here; the calls are in fam_c.h. */
#ifndef OPENLAPI_FAM_H
#define OPENLAPI_FAM_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#else
#include <stddef.h>
#include <stdint.h>
#endif
#include <sys/types.h>

#define FAM_SUCCESS 0

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 int128_t;
#else
typedef long long int128_t;
#endif

#ifdef __cplusplus
namespace openfam {
extern "C" {
#endif

typedef enum {
    INTERLEAVE_DEFAULT = 0,
    ENABLE,
    DISABLE
} Fam_Interleave_Enable;

typedef enum {
    MEMORY_TYPE_DEFAULT = 0,
    VOLATILE,
    PERSISTENT
} Fam_Memory_Type;

typedef enum {
    REDUNDANCY_LEVEL_DEFAULT = 0,
    NONE,
    RAID1,
    RAID5
} Fam_Redundancy_Level;

typedef enum {
    PERMISSION_LEVEL_DEFAULT = 0,
    REGION,
    DATAITEM
} Fam_Permission_Level;

typedef enum {
    DESC_INVALID = 0,
    DESC_INIT_DONE,
    DESC_INIT_DONE_BUT_KEY_NOT_VALID,
    DESC_UNINITIALIZED
} Fam_Descriptor_Status;

enum Fam_Error {
    FAM_NO_ERROR = 0,
    FAM_ERR_UNKNOWN,
    FAM_ERR_NOPERM,
    FAM_ERR_TIMEOUT,
    FAM_ERR_INVALID,
    FAM_ERR_LIBFABRIC,
    FAM_ERR_SHM,
    FAM_ERR_NOT_CREATED,
    FAM_ERR_NOTFOUND,
    FAM_ERR_ALREADYEXIST,
    FAM_ERR_ALLOCATOR,
    FAM_ERR_RPC,
    FAM_ERR_PMI,
    FAM_ERR_OUTOFRANGE,
    FAM_ERR_NO_SPACE,
    FAM_ERR_NULLPTR,
    FAM_ERR_UNIMPL,
    FAM_ERR_RESOURCE,
    FAM_ERR_INVALIDOP,
    FAM_ERR_RPC_CLIENT_NOTFOUND,
    FAM_ERR_MEMSERV_LIST_EMPTY,
    FAM_ERR_METADATA,
    FAM_ERR_MEMORY,
    FAM_ERR_NAME_TOO_LONG,
    FAM_ERR_ATL_QUEUE_FULL,
    FAM_ERR_ATL_QUEUE_INSERT,
    FAM_ERR_ATL_NOT_ENABLED,
    FAM_ERR_ATL,
    FAM_BACKUP_NOT_CREATED,
    FAM_BACKUP_NOTFOUND,
    FAM_BACKUP_INFO_NOTFOUND,
    FAM_ERR_NOT_PWR_TWO
};

typedef struct {
    Fam_Redundancy_Level redundancyLevel; /* stored and shown, not acted upon */
    Fam_Memory_Type memoryType;
    Fam_Interleave_Enable interleaveEnable;
    Fam_Permission_Level permissionLevel;
} Fam_Region_Attributes;

/* What a region or an item is called in the pool: of a region the offset is 0. */
typedef struct {
    uint64_t regionId;
    uint64_t offset;
} Fam_Global_Descriptor;

typedef struct {
    uint64_t size; /* bytes */
    mode_t perm;
    char *name; /* to be freed by free() */
    uint32_t uid;
    uint32_t gid;
    Fam_Region_Attributes region_attributes;
    uint64_t num_memservers;
    uint64_t interleaveSize; /* bytes; 0 when it is on one server */
    uint64_t memory_servers[256];
} Fam_Stat;

typedef struct {
    uint32_t backup_option_reserved;
} Fam_Backup_Options;

/* A member that is NULL or 0 has the value of the file fam_pe_config.yaml, or the default. */
typedef struct {
    char *defaultRegionName;
    char *cisServer;
    char *grpcPort;
    char *libfabricProvider;
    char *famThreadModel;
    char *cisInterfaceType;
    char *openFamModel;
    char *famContextModel;
    char *numConsumer;
    char *runtime;
    char *fam_default_memory_type;
    char *if_device;
    void *local_buf_addr;
    uint64_t local_buf_size; /* bytes */
} Fam_Options;

#ifdef __cplusplus
} // extern "C"

class Fam_Descriptor {
  public:
    /* An item by its global descriptor: size and rights are fetched at its first use. */
    Fam_Descriptor(Fam_Global_Descriptor globalDescriptor, uint64_t itemSize);
    Fam_Descriptor(Fam_Global_Descriptor globalDescriptor);
    Fam_Descriptor();
    ~Fam_Descriptor();
    Fam_Descriptor(const Fam_Descriptor &) = delete;
    Fam_Descriptor &operator=(const Fam_Descriptor &) = delete;

    Fam_Global_Descriptor get_global_descriptor();
    /* A number of Fam_Descriptor_Status. */
    int get_desc_status();
    void set_desc_status(int descStatus);
    /* The program's own; the library does not look at it. */
    void *get_context();
    void set_context(void *context);
    uint64_t get_size();
    void set_size(uint64_t itemSize);
    uint64_t get_interleave_size();
    void set_interleave_size(uint64_t interleaveSize);
    mode_t get_perm();
    void set_perm(mode_t perm);
    /* The name belongs to the descriptor; set_name copies. */
    char *get_name();
    void set_name(char *itemName);
    uint32_t get_uid();
    void set_uid(uint32_t uid);
    uint32_t get_gid();
    void set_gid(uint32_t gid);
    Fam_Permission_Level get_permissionLevel();
    void set_permissionLevel(Fam_Permission_Level permissionLevel);
    uint64_t get_used_memsrv_cnt();
    /* An array of get_used_memsrv_cnt() numbers, which belongs to the descriptor. */
    uint64_t *get_memserver_ids();
    uint64_t get_first_memserver_id();

  private:
    class FamDescriptorImpl_;
    FamDescriptorImpl_ *fdimpl_;
    friend struct Descriptor_Access;
};

class Fam_Region_Descriptor {
  public:
    Fam_Region_Descriptor(Fam_Global_Descriptor globalDescriptor, uint64_t regionSize);
    Fam_Region_Descriptor(Fam_Global_Descriptor globalDescriptor);
    Fam_Region_Descriptor();
    ~Fam_Region_Descriptor();
    Fam_Region_Descriptor(const Fam_Region_Descriptor &) = delete;
    Fam_Region_Descriptor &operator=(const Fam_Region_Descriptor &) = delete;

    Fam_Global_Descriptor get_global_descriptor();
    int get_desc_status();
    void set_desc_status(int descStatus);
    void *get_context();
    void set_context(void *context);
    uint64_t get_size();
    void set_size(uint64_t regionSize);
    mode_t get_perm();
    void set_perm(mode_t perm);
    char *get_name();
    void set_name(char *regionName);
    uint32_t get_uid();
    void set_uid(uint32_t uid);
    uint32_t get_gid();
    void set_gid(uint32_t gid);
    Fam_Redundancy_Level get_redundancyLevel();
    void set_redundancyLevel(Fam_Redundancy_Level redundancyLevel);
    Fam_Memory_Type get_memoryType();
    void set_memoryType(Fam_Memory_Type memoryType);
    Fam_Interleave_Enable get_interleaveEnable();
    void set_interleaveEnable(Fam_Interleave_Enable interleaveEnable);
    Fam_Permission_Level get_permissionLevel();
    void set_permissionLevel(Fam_Permission_Level permissionLevel);
    /* The first of its servers. */
    uint64_t get_memserver_id();

  private:
    class FamRegionDescriptorImpl_;
    FamRegionDescriptorImpl_ *frdimpl_;
    friend struct Descriptor_Access;
};

class fam_context;

/* A process's access to a pool. Every call throws Fam_Exception when it fails; see fam(7). */
class fam {
  public:
    fam();
    ~fam();
    fam(const fam &) = delete;
    fam &operator=(const fam &) = delete;

    /* Start and end. */
    void fam_initialize(const char *groupName, Fam_Options *options);
    void fam_finalize(const char *groupName);
    void fam_abort(int status);
    void fam_barrier_all(void);
    /* Names, and NULL after the last; one allocation of malloc(). */
    const char **fam_list_options(void);
    /* An int (PE_COUNT, PE_ID), a uint64_t (LOC_BUF_SIZE) or a text, to be freed by free(). */
    const void *fam_get_option(char *optionName);

    /* Regions and items. Descriptors that are returned are deleted by the program. */
    Fam_Region_Descriptor *fam_lookup_region(const char *name);
    Fam_Descriptor *fam_lookup(const char *itemName, const char *regionName);
    Fam_Region_Descriptor *fam_create_region(const char *name, uint64_t size, mode_t permissions,
                                             Fam_Region_Attributes *regionAttributes);
    void fam_destroy_region(Fam_Region_Descriptor *descriptor);
    void fam_resize_region(Fam_Region_Descriptor *descriptor, uint64_t nbytes);
    Fam_Descriptor *fam_allocate(uint64_t nbytes, mode_t accessPermissions,
                                 Fam_Region_Descriptor *region);
    Fam_Descriptor *fam_allocate(const char *name, uint64_t nbytes, mode_t accessPermissions,
                                 Fam_Region_Descriptor *region);
    void fam_deallocate(Fam_Descriptor *descriptor);
    /* This process is done with the item; its next use opens it again. */
    void fam_close(Fam_Descriptor *descriptor);
    void fam_change_permissions(Fam_Descriptor *descriptor, mode_t accessPermissions);
    void fam_change_permissions(Fam_Region_Descriptor *descriptor, mode_t accessPermissions);
    void fam_stat(Fam_Descriptor *descriptor, Fam_Stat *famInfo);
    void fam_stat(Fam_Region_Descriptor *descriptor, Fam_Stat *famInfo);

    /* Data. Blocking calls return 0. Local memory of nonblocking ones is in use until fam_quiet. */
    int fam_get_blocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                         uint64_t nbytes);
    void fam_get_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                             uint64_t nbytes);
    int fam_put_blocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                         uint64_t nbytes);
    void fam_put_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t offset,
                             uint64_t nbytes);
    void *fam_map(Fam_Descriptor *descriptor);
    void fam_unmap(void *local, Fam_Descriptor *descriptor);

    /* Element i lies at (firstElement + i * stride) * elementSize, or elementIndex[i] *
     * elementSize. */
    void fam_gather_blocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                             uint64_t firstElement, uint64_t stride, uint64_t elementSize);
    void fam_gather_blocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                             uint64_t *elementIndex, uint64_t elementSize);
    void fam_gather_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                                uint64_t firstElement, uint64_t stride, uint64_t elementSize);
    void fam_gather_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                                uint64_t *elementIndex, uint64_t elementSize);
    void fam_scatter_blocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                              uint64_t firstElement, uint64_t stride, uint64_t elementSize);
    void fam_scatter_blocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                              uint64_t *elementIndex, uint64_t elementSize);
    void fam_scatter_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                                 uint64_t firstElement, uint64_t stride, uint64_t elementSize);
    void fam_scatter_nonblocking(void *local, Fam_Descriptor *descriptor, uint64_t nElements,
                                 uint64_t *elementIndex, uint64_t elementSize);

    /* Copies and backups. What they return goes to the call that waits for it, which frees it. */
    void *fam_copy(Fam_Descriptor *src, uint64_t srcOffset, Fam_Descriptor *dest,
                   uint64_t destOffset, uint64_t nbytes);
    void fam_copy_wait(void *waitObj);
    void *fam_backup(Fam_Descriptor *src, const char *backupName,
                     Fam_Backup_Options *backupOptions);
    void fam_backup_wait(void *waitObj);
    void *fam_restore(const char *backupName, Fam_Descriptor *dest);
    void *fam_restore(const char *backupName, Fam_Region_Descriptor *destRegion,
                      const char *itemName, mode_t accessPermissions, Fam_Descriptor **dest);
    void fam_restore_wait(void *waitObj);
    void *fam_delete_backup(const char *backupName);
    void fam_delete_backup_wait(void *waitObj);
    /* A text to be freed by free(). */
    char *fam_list_backup(const char *backupName);

    /* Order and ends. */
    void fam_fence(void);
    void fam_quiet(void);
    /* Operations that are not complete yet. */
    uint64_t fam_progress(void);
    fam_context *fam_context_open();
    void fam_context_close(fam_context *context);

    /* Atomics. An offset is in bytes, and a multiple of the size of the type. Those that return a
     * value return the old one. */
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, int128_t value);
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, float value);
    void fam_set(Fam_Descriptor *descriptor, uint64_t offset, double value);
    void fam_add(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    void fam_add(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    void fam_add(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_add(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_add(Fam_Descriptor *descriptor, uint64_t offset, float value);
    void fam_add(Fam_Descriptor *descriptor, uint64_t offset, double value);
    void fam_subtract(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    void fam_subtract(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    void fam_subtract(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_subtract(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_subtract(Fam_Descriptor *descriptor, uint64_t offset, float value);
    void fam_subtract(Fam_Descriptor *descriptor, uint64_t offset, double value);
    void fam_min(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    void fam_min(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    void fam_min(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_min(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_min(Fam_Descriptor *descriptor, uint64_t offset, float value);
    void fam_min(Fam_Descriptor *descriptor, uint64_t offset, double value);
    void fam_max(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    void fam_max(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    void fam_max(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_max(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_max(Fam_Descriptor *descriptor, uint64_t offset, float value);
    void fam_max(Fam_Descriptor *descriptor, uint64_t offset, double value);
    void fam_and(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_and(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_or(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_or(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    void fam_xor(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    void fam_xor(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    int32_t fam_fetch_int32(Fam_Descriptor *descriptor, uint64_t offset);
    int64_t fam_fetch_int64(Fam_Descriptor *descriptor, uint64_t offset);
    int128_t fam_fetch_int128(Fam_Descriptor *descriptor, uint64_t offset);
    uint32_t fam_fetch_uint32(Fam_Descriptor *descriptor, uint64_t offset);
    uint64_t fam_fetch_uint64(Fam_Descriptor *descriptor, uint64_t offset);
    float fam_fetch_float(Fam_Descriptor *descriptor, uint64_t offset);
    double fam_fetch_double(Fam_Descriptor *descriptor, uint64_t offset);
    int32_t fam_swap(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    int64_t fam_swap(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    uint32_t fam_swap(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_swap(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    float fam_swap(Fam_Descriptor *descriptor, uint64_t offset, float value);
    double fam_swap(Fam_Descriptor *descriptor, uint64_t offset, double value);
    int32_t fam_fetch_add(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    int64_t fam_fetch_add(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    uint32_t fam_fetch_add(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_add(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    float fam_fetch_add(Fam_Descriptor *descriptor, uint64_t offset, float value);
    double fam_fetch_add(Fam_Descriptor *descriptor, uint64_t offset, double value);
    int32_t fam_fetch_subtract(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    int64_t fam_fetch_subtract(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    uint32_t fam_fetch_subtract(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_subtract(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    float fam_fetch_subtract(Fam_Descriptor *descriptor, uint64_t offset, float value);
    double fam_fetch_subtract(Fam_Descriptor *descriptor, uint64_t offset, double value);
    int32_t fam_fetch_min(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    int64_t fam_fetch_min(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    uint32_t fam_fetch_min(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_min(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    float fam_fetch_min(Fam_Descriptor *descriptor, uint64_t offset, float value);
    double fam_fetch_min(Fam_Descriptor *descriptor, uint64_t offset, double value);
    int32_t fam_fetch_max(Fam_Descriptor *descriptor, uint64_t offset, int32_t value);
    int64_t fam_fetch_max(Fam_Descriptor *descriptor, uint64_t offset, int64_t value);
    uint32_t fam_fetch_max(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_max(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    float fam_fetch_max(Fam_Descriptor *descriptor, uint64_t offset, float value);
    double fam_fetch_max(Fam_Descriptor *descriptor, uint64_t offset, double value);
    uint32_t fam_fetch_and(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_and(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    uint32_t fam_fetch_or(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_or(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    uint32_t fam_fetch_xor(Fam_Descriptor *descriptor, uint64_t offset, uint32_t value);
    uint64_t fam_fetch_xor(Fam_Descriptor *descriptor, uint64_t offset, uint64_t value);
    int32_t fam_compare_swap(Fam_Descriptor *descriptor, uint64_t offset,
        int32_t oldValue, int32_t newValue);
    int64_t fam_compare_swap(Fam_Descriptor *descriptor, uint64_t offset,
        int64_t oldValue, int64_t newValue);
    uint32_t fam_compare_swap(Fam_Descriptor *descriptor, uint64_t offset,
        uint32_t oldValue, uint32_t newValue);
    uint64_t fam_compare_swap(Fam_Descriptor *descriptor, uint64_t offset,
        uint64_t oldValue, uint64_t newValue);
    int128_t fam_compare_swap(Fam_Descriptor *descriptor, uint64_t offset,
        int128_t oldValue, int128_t newValue);

  protected:
    class Impl_;
    Impl_ *pimpl_;
};

/* A context of its own for data: its fam_quiet, fam_fence and fam_progress know its operations
 * alone. Other calls through it throw FAM_ERR_NOPERM. */
class fam_context : public fam {
  public:
    fam_context(void *inp_fam_impl);
    ~fam_context();
};

} // namespace openfam

using openfam::Fam_Backup_Options;
using openfam::Fam_Error;
using openfam::Fam_Global_Descriptor;
using openfam::Fam_Interleave_Enable;
using openfam::Fam_Memory_Type;
using openfam::Fam_Options;
using openfam::Fam_Permission_Level;
using openfam::Fam_Redundancy_Level;
using openfam::Fam_Region_Attributes;
using openfam::Fam_Stat;
#endif

#endif

/* OpenFAM 3.2 in C: libopenfam_c. See fam(7).
 *
 * Each call is that of class fam with the same name. Those that return int return 0, or -1 where
 * the class throws; those that return a pointer return NULL then. c_fam_error and c_fam_error_msg
 * say why, of the calling thread's last failure. A context may stand for a c_fam in calls that
 * move data. */
#ifndef OPENLAPI_FAM_C_H
#define OPENLAPI_FAM_C_H

#include "fam/fam.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void c_fam;
typedef void c_fam_desc;
typedef void c_fam_region_desc;
typedef void c_fam_context;

c_fam *c_fam_create(void);
void c_fam_delete(c_fam *fam);
/* A number of enum Fam_Error, and its text, which lives until the thread's next failure. */
int c_fam_error(void);
const char *c_fam_error_msg(void);

int c_fam_initialize(c_fam *fam, const char *group, Fam_Options *options);
int c_fam_finalize(c_fam *fam, const char *group);
int c_fam_abort(c_fam *fam, int status);
int c_fam_barrier_all(c_fam *fam);
const char **c_fam_list_options(c_fam *fam);
const void *c_fam_get_option(c_fam *fam, char *name);

c_fam_region_desc *c_fam_lookup_region(c_fam *fam, const char *name);
c_fam_desc *c_fam_lookup(c_fam *fam, const char *item, const char *region);
c_fam_region_desc *c_fam_create_region(c_fam *fam, const char *name, size_t size,
    mode_t permissions, Fam_Region_Attributes *attributes);
int c_fam_destroy_region(c_fam *fam, c_fam_region_desc *region);
int c_fam_resize_region(c_fam *fam, c_fam_region_desc *region, size_t size);
c_fam_desc *c_fam_allocate(c_fam *fam, size_t size, mode_t permissions,
    c_fam_region_desc *region);
c_fam_desc *c_fam_allocate_named(c_fam *fam, const char *name, size_t size, mode_t permissions,
    c_fam_region_desc *region);
int c_fam_deallocate(c_fam *fam, c_fam_desc *descriptor);
int c_fam_close(c_fam *fam, c_fam_desc *descriptor);
int c_fam_change_permissions_data(c_fam *fam, c_fam_desc *descriptor, mode_t permissions);
int c_fam_change_permissions_region(c_fam *fam, c_fam_region_desc *region, mode_t permissions);
int c_fam_stat_data(c_fam *fam, c_fam_desc *descriptor, Fam_Stat *info);
int c_fam_stat_region(c_fam *fam, c_fam_region_desc *region, Fam_Stat *info);

int c_fam_get_blocking(c_fam *fam, void *local, c_fam_desc *descriptor, uint64_t offset,
    size_t nbytes);
int c_fam_get_nonblocking(c_fam *fam, void *local, c_fam_desc *descriptor, uint64_t offset,
    size_t nbytes);
int c_fam_put_blocking(c_fam *fam, void *local, c_fam_desc *descriptor, uint64_t offset,
    size_t nbytes);
int c_fam_put_nonblocking(c_fam *fam, void *local, c_fam_desc *descriptor, uint64_t offset,
    size_t nbytes);
void *c_fam_map(c_fam *fam, c_fam_desc *descriptor);
int c_fam_unmap(c_fam *fam, void *local, c_fam_desc *descriptor);

int c_fam_gather_blocking_stride(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t first, uint64_t stride, uint64_t element_size);
int c_fam_gather_blocking_index(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t *index, uint64_t element_size);
int c_fam_gather_nonblocking_stride(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t first, uint64_t stride, uint64_t element_size);
int c_fam_gather_nonblocking_index(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t *index, uint64_t element_size);
int c_fam_scatter_blocking_stride(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t first, uint64_t stride, uint64_t element_size);
int c_fam_scatter_blocking_index(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t *index, uint64_t element_size);
int c_fam_scatter_nonblocking_stride(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t first, uint64_t stride, uint64_t element_size);
int c_fam_scatter_nonblocking_index(c_fam *fam, void *local, c_fam_desc *descriptor,
    uint64_t elements, uint64_t *index, uint64_t element_size);

void *c_fam_copy(c_fam *fam, c_fam_desc *source, uint64_t source_offset, c_fam_desc *target,
    uint64_t target_offset, size_t nbytes);
int c_fam_copy_wait(c_fam *fam, void *wait);
void *c_fam_backup(c_fam *fam, c_fam_desc *source, const char *backup,
    Fam_Backup_Options *options);
int c_fam_backup_wait(c_fam *fam, void *wait);
void *c_fam_restore(c_fam *fam, const char *backup, c_fam_desc *target);
void *c_fam_restore_region(c_fam *fam, const char *backup, c_fam_region_desc *region,
    const char *item, mode_t permissions, c_fam_desc **target);
int c_fam_restore_wait(c_fam *fam, void *wait);
void *c_fam_delete_backup(c_fam *fam, const char *backup);
int c_fam_delete_backup_wait(c_fam *fam, void *wait);
char *c_fam_list_backup(c_fam *fam, const char *backup);

int c_fam_fence(c_fam *fam);
int c_fam_quiet(c_fam *fam);
int c_fam_progress(c_fam *fam, uint64_t *pending);
c_fam_context *c_fam_context_open(c_fam *fam);
int c_fam_context_close(c_fam *fam, c_fam_context *context);

/* Atomics. The old value is stored at `old`. */
int c_fam_set_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value);
int c_fam_set_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value);
int c_fam_set_int128(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int128_t value);
int c_fam_set_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_set_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_set_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value);
int c_fam_set_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value);
int c_fam_add_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value);
int c_fam_add_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value);
int c_fam_add_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_add_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_add_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value);
int c_fam_add_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value);
int c_fam_subtract_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value);
int c_fam_subtract_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value);
int c_fam_subtract_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_subtract_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_subtract_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value);
int c_fam_subtract_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value);
int c_fam_min_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value);
int c_fam_min_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value);
int c_fam_min_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_min_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_min_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value);
int c_fam_min_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value);
int c_fam_max_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value);
int c_fam_max_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value);
int c_fam_max_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_max_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_max_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value);
int c_fam_max_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value);
int c_fam_and_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_and_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_or_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_or_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_xor_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value);
int c_fam_xor_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value);
int c_fam_fetch_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t *old);
int c_fam_fetch_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t *old);
int c_fam_fetch_int128(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int128_t *old);
int c_fam_fetch_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t *old);
int c_fam_fetch_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t *old);
int c_fam_fetch_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float *old);
int c_fam_fetch_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double *old);
int c_fam_swap_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value,
    int32_t *old);
int c_fam_swap_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value,
    int64_t *old);
int c_fam_swap_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_swap_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_swap_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value, float *old);
int c_fam_swap_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value,
    double *old);
int c_fam_fetch_add_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value,
    int32_t *old);
int c_fam_fetch_add_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value,
    int64_t *old);
int c_fam_fetch_add_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_add_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_fetch_add_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value,
    float *old);
int c_fam_fetch_add_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value,
    double *old);
int c_fam_fetch_subtract_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value,
    int32_t *old);
int c_fam_fetch_subtract_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value,
    int64_t *old);
int c_fam_fetch_subtract_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_subtract_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_fetch_subtract_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value,
    float *old);
int c_fam_fetch_subtract_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value,
    double *old);
int c_fam_fetch_min_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value,
    int32_t *old);
int c_fam_fetch_min_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value,
    int64_t *old);
int c_fam_fetch_min_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_min_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_fetch_min_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value,
    float *old);
int c_fam_fetch_min_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value,
    double *old);
int c_fam_fetch_max_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t value,
    int32_t *old);
int c_fam_fetch_max_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t value,
    int64_t *old);
int c_fam_fetch_max_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_max_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_fetch_max_float(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, float value,
    float *old);
int c_fam_fetch_max_double(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, double value,
    double *old);
int c_fam_fetch_and_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_and_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_fetch_or_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_or_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_fetch_xor_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint32_t value,
    uint32_t *old);
int c_fam_fetch_xor_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, uint64_t value,
    uint64_t *old);
int c_fam_compare_swap_int32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int32_t expected,
    int32_t value, int32_t *old);
int c_fam_compare_swap_int64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset, int64_t expected,
    int64_t value, int64_t *old);
int c_fam_compare_swap_uint32(c_fam *fam, c_fam_desc *descriptor, uint64_t offset,
    uint32_t expected, uint32_t value, uint32_t *old);
int c_fam_compare_swap_uint64(c_fam *fam, c_fam_desc *descriptor, uint64_t offset,
    uint64_t expected, uint64_t value, uint64_t *old);
int c_fam_compare_swap_int128(c_fam *fam, c_fam_desc *descriptor, uint64_t offset,
    int128_t expected, int128_t value, int128_t *old);

#ifdef __cplusplus
}
#endif

#endif

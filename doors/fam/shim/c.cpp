// The C interface: start and end, regions and items, copies and backups.
#include "c.h"

using namespace openfam;

namespace {

// Of the calling thread's last failure.
thread_local int last_code = FAM_NO_ERROR;
thread_local std::string last_text;

} // namespace

void openfam::keep(int code, const char *text) noexcept {
    last_code = code;
    try {
        last_text = text;
    } catch (...) {
        last_text.clear();
    }
}

extern "C" {

int c_fam_error(void) { return last_code; }

const char *c_fam_error_msg(void) { return last_text.c_str(); }

c_fam *c_fam_create(void) {
    return made([] { return new fam(); });
}

void c_fam_delete(c_fam *given) { delete static_cast<fam *>(given); }

int c_fam_initialize(c_fam *given, const char *group, Fam_Options *options) {
    return status([&] { object(given)->fam_initialize(group, options); });
}

int c_fam_finalize(c_fam *given, const char *group) {
    return status([&] { object(given)->fam_finalize(group); });
}

int c_fam_abort(c_fam *given, int code) {
    return status([&] { object(given)->fam_abort(code); });
}

int c_fam_barrier_all(c_fam *given) {
    return status([&] { object(given)->fam_barrier_all(); });
}

const char **c_fam_list_options(c_fam *given) {
    return made([&] { return object(given)->fam_list_options(); });
}

const void *c_fam_get_option(c_fam *given, char *name) {
    return made([&] { return object(given)->fam_get_option(name); });
}

c_fam_region_desc *c_fam_lookup_region(c_fam *given, const char *name) {
    return made([&] { return object(given)->fam_lookup_region(name); });
}

c_fam_desc *c_fam_lookup(c_fam *given, const char *name, const char *region) {
    return made([&] { return object(given)->fam_lookup(name, region); });
}

c_fam_region_desc *c_fam_create_region(c_fam *given, const char *name, size_t size,
                                       mode_t permissions, Fam_Region_Attributes *attributes) {
    return made([&] {
        return object(given)->fam_create_region(name, size, permissions, attributes);
    });
}

int c_fam_destroy_region(c_fam *given, c_fam_region_desc *where) {
    return status([&] { object(given)->fam_destroy_region(region(where)); });
}

int c_fam_resize_region(c_fam *given, c_fam_region_desc *where, size_t size) {
    return status([&] { object(given)->fam_resize_region(region(where), size); });
}

c_fam_desc *c_fam_allocate(c_fam *given, size_t size, mode_t permissions,
                           c_fam_region_desc *where) {
    return made([&] { return object(given)->fam_allocate(size, permissions, region(where)); });
}

c_fam_desc *c_fam_allocate_named(c_fam *given, const char *name, size_t size, mode_t permissions,
                                 c_fam_region_desc *where) {
    return made([&] {
        return object(given)->fam_allocate(name, size, permissions, region(where));
    });
}

int c_fam_deallocate(c_fam *given, c_fam_desc *what) {
    return status([&] { object(given)->fam_deallocate(item(what)); });
}

int c_fam_close(c_fam *given, c_fam_desc *what) {
    return status([&] { object(given)->fam_close(item(what)); });
}

int c_fam_change_permissions_data(c_fam *given, c_fam_desc *what, mode_t permissions) {
    return status([&] { object(given)->fam_change_permissions(item(what), permissions); });
}

int c_fam_change_permissions_region(c_fam *given, c_fam_region_desc *where, mode_t permissions) {
    return status([&] { object(given)->fam_change_permissions(region(where), permissions); });
}

int c_fam_stat_data(c_fam *given, c_fam_desc *what, Fam_Stat *info) {
    return status([&] { object(given)->fam_stat(item(what), info); });
}

int c_fam_stat_region(c_fam *given, c_fam_region_desc *where, Fam_Stat *info) {
    return status([&] { object(given)->fam_stat(region(where), info); });
}

void *c_fam_copy(c_fam *given, c_fam_desc *source, uint64_t source_offset, c_fam_desc *target,
                 uint64_t target_offset, size_t nbytes) {
    return made([&] {
        return object(given)->fam_copy(item(source), source_offset, item(target), target_offset,
                                       nbytes);
    });
}

int c_fam_copy_wait(c_fam *given, void *wait) {
    return status([&] { object(given)->fam_copy_wait(wait); });
}

void *c_fam_backup(c_fam *given, c_fam_desc *source, const char *backup,
                   Fam_Backup_Options *options) {
    return made([&] { return object(given)->fam_backup(item(source), backup, options); });
}

int c_fam_backup_wait(c_fam *given, void *wait) {
    return status([&] { object(given)->fam_backup_wait(wait); });
}

void *c_fam_restore(c_fam *given, const char *backup, c_fam_desc *target) {
    return made([&] { return object(given)->fam_restore(backup, item(target)); });
}

void *c_fam_restore_region(c_fam *given, const char *backup, c_fam_region_desc *where,
                           const char *name, mode_t permissions, c_fam_desc **target) {
    return made([&] {
        if (!target)
            throw Fam_Exception(FAM_ERR_INVALID, "there is no place for the descriptor");
        Fam_Descriptor *found = nullptr;
        void *wait = object(given)->fam_restore(backup, region(where), name, permissions, &found);
        *target = found;
        return wait;
    });
}

int c_fam_restore_wait(c_fam *given, void *wait) {
    return status([&] { object(given)->fam_restore_wait(wait); });
}

void *c_fam_delete_backup(c_fam *given, const char *backup) {
    return made([&] { return object(given)->fam_delete_backup(backup); });
}

int c_fam_delete_backup_wait(c_fam *given, void *wait) {
    return status([&] { object(given)->fam_delete_backup_wait(wait); });
}

char *c_fam_list_backup(c_fam *given, const char *backup) {
    return made([&] { return object(given)->fam_list_backup(backup); });
}

c_fam_context *c_fam_context_open(c_fam *given) {
    return made([&] { return static_cast<fam *>(object(given)->fam_context_open()); });
}

int c_fam_context_close(c_fam *given, c_fam_context *context) {
    return status([&] {
        object(given)->fam_context_close(static_cast<fam_context *>(static_cast<fam *>(context)));
    });
}

} // extern "C"

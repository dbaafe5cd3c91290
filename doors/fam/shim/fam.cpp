// Class fam: start and end, regions and items, copies and backups.
#include "abi.h"

#include <cstdlib>
#include <cstring>

namespace openfam {

namespace {

void tell(const olfam_facts &facts, Fam_Stat *info) {
    std::memset(info, 0, sizeof(*info));
    info->size = facts.size;
    info->perm = facts.perm;
    info->name = strdup(facts.name);
    info->uid = facts.uid;
    info->gid = facts.gid;
    info->region_attributes.redundancyLevel = static_cast<Fam_Redundancy_Level>(facts.redundancy);
    info->region_attributes.memoryType = static_cast<Fam_Memory_Type>(facts.memory);
    info->region_attributes.interleaveEnable =
        static_cast<Fam_Interleave_Enable>(facts.interleaved);
    info->region_attributes.permissionLevel = static_cast<Fam_Permission_Level>(facts.level);
    info->num_memservers = facts.servers;
    info->interleaveSize = facts.interleave;
    std::memcpy(info->memory_servers, facts.ids, sizeof(facts.ids));
}

} // namespace

fam::fam() : pimpl_(nullptr) {}

fam::~fam() { olfam_context_free(reinterpret_cast<olfam_context *>(pimpl_)); }

fam_context::fam_context(void *inp_fam_impl) { pimpl_ = static_cast<Impl_ *>(inp_fam_impl); }

fam_context::~fam_context() {}

void fam::fam_initialize(const char *groupName, Fam_Options *options) {
    if (pimpl_)
        check(olfam_control(context_of(pimpl_)));
    if (pimpl_)
        throw Fam_Exception(FAM_ERR_INVALID, "fam_initialize was called before");
    olfam_context *made = nullptr;
    check(olfam_initialize(groupName, options, &made));
    pimpl_ = reinterpret_cast<Impl_ *>(made);
}

void fam::fam_finalize(const char *groupName) {
    if (!pimpl_)
        return;
    auto context = context_of(pimpl_);
    // A fam_context refuses, and stays.
    check(olfam_control(context));
    pimpl_ = nullptr;
    check(olfam_finalize(context, groupName));
}

void fam::fam_abort(int status) { check(olfam_abort(context_of(pimpl_), status)); }

void fam::fam_barrier_all(void) { check(olfam_barrier(context_of(pimpl_))); }

const char **fam::fam_list_options(void) {
    const char **names = olfam_list_options();
    if (!names)
        throw Fam_Exception(FAM_ERR_RESOURCE, "no memory for the names of options");
    return names;
}

const void *fam::fam_get_option(char *optionName) {
    const void *value = nullptr;
    check(olfam_option(context_of(pimpl_), optionName, &value));
    return value;
}

Fam_Region_Descriptor *fam::fam_lookup_region(const char *name) {
    olfam_facts facts;
    check(olfam_region_lookup(context_of(pimpl_), name, &facts));
    return Descriptor_Access::region(facts);
}

Fam_Descriptor *fam::fam_lookup(const char *itemName, const char *regionName) {
    olfam_facts facts;
    check(olfam_item_lookup(context_of(pimpl_), itemName, regionName, &facts));
    return Descriptor_Access::data(facts);
}

Fam_Region_Descriptor *fam::fam_create_region(const char *name, uint64_t size, mode_t permissions,
                                              Fam_Region_Attributes *regionAttributes) {
    olfam_facts facts;
    check(olfam_region_create(context_of(pimpl_), name, size, permissions, regionAttributes,
                              &facts));
    return Descriptor_Access::region(facts);
}

void fam::fam_destroy_region(Fam_Region_Descriptor *descriptor) {
    auto region = Descriptor_Access::region(descriptor);
    check(olfam_region_destroy(context_of(pimpl_), region));
}

void fam::fam_resize_region(Fam_Region_Descriptor *descriptor, uint64_t nbytes) {
    auto region = Descriptor_Access::region(descriptor);
    check(olfam_region_resize(context_of(pimpl_), region, nbytes));
    // What it has now, which may be more.
    olfam_facts facts;
    check(olfam_region_stat(context_of(pimpl_), region, &facts));
    Descriptor_Access::learn(descriptor, facts);
}

Fam_Descriptor *fam::fam_allocate(uint64_t nbytes, mode_t accessPermissions,
                                  Fam_Region_Descriptor *region) {
    olfam_facts facts;
    check(olfam_item_allocate(context_of(pimpl_), nullptr, nbytes, accessPermissions,
                              Descriptor_Access::region(region), &facts));
    return Descriptor_Access::data(facts);
}

Fam_Descriptor *fam::fam_allocate(const char *name, uint64_t nbytes, mode_t accessPermissions,
                                  Fam_Region_Descriptor *region) {
    if (!name)
        throw Fam_Exception(FAM_ERR_INVALID, "the item's name is NULL");
    olfam_facts facts;
    check(olfam_item_allocate(context_of(pimpl_), name, nbytes, accessPermissions,
                              Descriptor_Access::region(region), &facts));
    return Descriptor_Access::data(facts);
}

void fam::fam_deallocate(Fam_Descriptor *descriptor) {
    check(olfam_item_deallocate(context_of(pimpl_), Descriptor_Access::item(descriptor)));
}

void fam::fam_close(Fam_Descriptor *descriptor) {
    check(olfam_item_close(context_of(pimpl_), Descriptor_Access::item(descriptor)));
}

void fam::fam_change_permissions(Fam_Descriptor *descriptor, mode_t accessPermissions) {
    auto item = Descriptor_Access::item(descriptor);
    check(olfam_item_protect(context_of(pimpl_), item, accessPermissions));
    descriptor->set_perm(accessPermissions);
}

void fam::fam_change_permissions(Fam_Region_Descriptor *descriptor, mode_t accessPermissions) {
    auto region = Descriptor_Access::region(descriptor);
    check(olfam_region_protect(context_of(pimpl_), region, accessPermissions));
    descriptor->set_perm(accessPermissions);
}

void fam::fam_stat(Fam_Descriptor *descriptor, Fam_Stat *famInfo) {
    auto item = Descriptor_Access::item(descriptor);
    if (!famInfo)
        throw Fam_Exception(FAM_ERR_INVALID, "the Fam_Stat is NULL");
    olfam_facts facts;
    check(olfam_item_stat(context_of(pimpl_), item, &facts));
    Descriptor_Access::learn(descriptor, facts);
    tell(facts, famInfo);
}

void fam::fam_stat(Fam_Region_Descriptor *descriptor, Fam_Stat *famInfo) {
    auto region = Descriptor_Access::region(descriptor);
    if (!famInfo)
        throw Fam_Exception(FAM_ERR_INVALID, "the Fam_Stat is NULL");
    olfam_facts facts;
    check(olfam_region_stat(context_of(pimpl_), region, &facts));
    Descriptor_Access::learn(descriptor, facts);
    tell(facts, famInfo);
}

void *fam::fam_copy(Fam_Descriptor *src, uint64_t srcOffset, Fam_Descriptor *dest,
                    uint64_t destOffset, uint64_t nbytes) {
    olfam_wait *wait = nullptr;
    auto source = Descriptor_Access::item(src);
    auto target = Descriptor_Access::item(dest);
    check(olfam_copy(context_of(pimpl_), source, srcOffset, target, destOffset, nbytes, &wait));
    return wait;
}

void fam::fam_copy_wait(void *waitObj) {
    check(olfam_wait_for(context_of(pimpl_), static_cast<olfam_wait *>(waitObj), OLFAM_COPY));
}

void *fam::fam_backup(Fam_Descriptor *src, const char *backupName, Fam_Backup_Options *) {
    olfam_wait *wait = nullptr;
    auto item = Descriptor_Access::item(src);
    check(olfam_backup(context_of(pimpl_), item, backupName, &wait));
    return wait;
}

void fam::fam_backup_wait(void *waitObj) {
    check(olfam_wait_for(context_of(pimpl_), static_cast<olfam_wait *>(waitObj), OLFAM_BACKUP));
}

void *fam::fam_restore(const char *backupName, Fam_Descriptor *dest) {
    olfam_wait *wait = nullptr;
    auto item = Descriptor_Access::item(dest);
    check(olfam_restore(context_of(pimpl_), backupName, item, &wait));
    return wait;
}

void *fam::fam_restore(const char *backupName, Fam_Region_Descriptor *destRegion,
                       const char *itemName, mode_t accessPermissions, Fam_Descriptor **dest) {
    if (!dest)
        throw Fam_Exception(FAM_ERR_INVALID, "there is no place for the descriptor");
    uint64_t size = 0;
    Descriptor_Access::region(destRegion);
    check(olfam_backup_size(context_of(pimpl_), backupName, &size));
    Fam_Descriptor *made = itemName ? fam_allocate(itemName, size, accessPermissions, destRegion)
                                    : fam_allocate(size, accessPermissions, destRegion);
    try {
        void *wait = fam_restore(backupName, made);
        *dest = made;
        return wait;
    } catch (...) {
        olfam_item_deallocate(context_of(pimpl_), Descriptor_Access::item(made));
        delete made;
        throw;
    }
}

void fam::fam_restore_wait(void *waitObj) {
    check(olfam_wait_for(context_of(pimpl_), static_cast<olfam_wait *>(waitObj), OLFAM_RESTORE));
}

void *fam::fam_delete_backup(const char *backupName) {
    olfam_wait *wait = nullptr;
    check(olfam_delete_backup(context_of(pimpl_), backupName, &wait));
    return wait;
}

void fam::fam_delete_backup_wait(void *waitObj) {
    check(olfam_wait_for(context_of(pimpl_), static_cast<olfam_wait *>(waitObj), OLFAM_DELETE));
}

char *fam::fam_list_backup(const char *backupName) {
    char *text = nullptr;
    check(olfam_list_backup(context_of(pimpl_), backupName, &text));
    return text;
}

fam_context *fam::fam_context_open() {
    olfam_context *made = nullptr;
    check(olfam_context_open(context_of(pimpl_), &made));
    return new fam_context(made);
}

void fam::fam_context_close(fam_context *context) {
    if (!context)
        throw Fam_Exception(FAM_ERR_INVALID, "the context is NULL");
    auto closed = context_of(context->pimpl_);
    // After fam_finalize there is nobody to ask.
    if (pimpl_)
        check(olfam_may_close(context_of(pimpl_), closed));
    int code = olfam_quiet(closed);
    delete context;
    check(code);
}

} // namespace openfam

// Fam_Descriptor and Fam_Region_Descriptor.
#include "abi.h"

#include <cstring>

namespace openfam {

namespace {

olfam_facts facts_of(Fam_Global_Descriptor global, uint64_t size) {
    olfam_facts facts;
    std::memset(&facts, 0, sizeof(facts));
    facts.region = global.regionId;
    facts.offset = global.offset;
    facts.size = size;
    return facts;
}

void rename(olfam_facts &facts, const char *name) {
    std::memset(facts.name, 0, sizeof(facts.name));
    if (name)
        std::strncpy(facts.name, name, sizeof(facts.name) - 1);
}

const Fam_Global_Descriptor nothing = {0, 0};

} // namespace

Fam_Descriptor::FamDescriptorImpl_::FamDescriptorImpl_(Fam_Global_Descriptor global, uint64_t size)
    : item(olfam_item_new(global.regionId, global.offset)), facts(facts_of(global, size)),
      known(false), status(DESC_UNINITIALIZED), context(nullptr) {}

Fam_Descriptor::FamDescriptorImpl_::~FamDescriptorImpl_() { olfam_item_free(item); }

olfam_facts &Fam_Descriptor::FamDescriptorImpl_::all() {
    std::lock_guard<std::mutex> held(one);
    if (!known && olfam_item_facts(item, &facts)) {
        known = true;
        status = DESC_INIT_DONE;
    }
    return facts;
}

Fam_Descriptor::Fam_Descriptor(Fam_Global_Descriptor globalDescriptor, uint64_t itemSize)
    : fdimpl_(new FamDescriptorImpl_(globalDescriptor, itemSize)) {}

Fam_Descriptor::Fam_Descriptor(Fam_Global_Descriptor globalDescriptor)
    : Fam_Descriptor(globalDescriptor, 0) {}

Fam_Descriptor::Fam_Descriptor() : Fam_Descriptor(nothing, 0) { fdimpl_->status = DESC_INVALID; }

Fam_Descriptor::~Fam_Descriptor() { delete fdimpl_; }

Fam_Global_Descriptor Fam_Descriptor::get_global_descriptor() {
    return Fam_Global_Descriptor{fdimpl_->facts.region, fdimpl_->facts.offset};
}

int Fam_Descriptor::get_desc_status() {
    fdimpl_->all();
    return fdimpl_->status;
}

void Fam_Descriptor::set_desc_status(int descStatus) {
    fdimpl_->all();
    fdimpl_->status = descStatus;
}

void *Fam_Descriptor::get_context() { return fdimpl_->context; }

void Fam_Descriptor::set_context(void *context) { fdimpl_->context = context; }

uint64_t Fam_Descriptor::get_size() { return fdimpl_->all().size; }

void Fam_Descriptor::set_size(uint64_t itemSize) { fdimpl_->all().size = itemSize; }

uint64_t Fam_Descriptor::get_interleave_size() { return fdimpl_->all().interleave; }

void Fam_Descriptor::set_interleave_size(uint64_t interleaveSize) {
    fdimpl_->all().interleave = interleaveSize;
}

mode_t Fam_Descriptor::get_perm() { return fdimpl_->all().perm; }

void Fam_Descriptor::set_perm(mode_t perm) { fdimpl_->all().perm = perm; }

char *Fam_Descriptor::get_name() { return fdimpl_->all().name; }

void Fam_Descriptor::set_name(char *itemName) { rename(fdimpl_->all(), itemName); }

uint32_t Fam_Descriptor::get_uid() { return fdimpl_->all().uid; }

void Fam_Descriptor::set_uid(uint32_t uid) { fdimpl_->all().uid = uid; }

uint32_t Fam_Descriptor::get_gid() { return fdimpl_->all().gid; }

void Fam_Descriptor::set_gid(uint32_t gid) { fdimpl_->all().gid = gid; }

Fam_Permission_Level Fam_Descriptor::get_permissionLevel() {
    return static_cast<Fam_Permission_Level>(fdimpl_->all().level);
}

void Fam_Descriptor::set_permissionLevel(Fam_Permission_Level permissionLevel) {
    fdimpl_->all().level = permissionLevel;
}

uint64_t Fam_Descriptor::get_used_memsrv_cnt() { return fdimpl_->all().servers; }

uint64_t *Fam_Descriptor::get_memserver_ids() { return fdimpl_->all().ids; }

uint64_t Fam_Descriptor::get_first_memserver_id() { return fdimpl_->all().ids[0]; }

Fam_Region_Descriptor::Fam_Region_Descriptor(Fam_Global_Descriptor globalDescriptor,
                                             uint64_t regionSize)
    : frdimpl_(new FamRegionDescriptorImpl_{facts_of(globalDescriptor, regionSize),
                                            DESC_UNINITIALIZED, nullptr}) {}

Fam_Region_Descriptor::Fam_Region_Descriptor(Fam_Global_Descriptor globalDescriptor)
    : Fam_Region_Descriptor(globalDescriptor, 0) {}

Fam_Region_Descriptor::Fam_Region_Descriptor() : Fam_Region_Descriptor(nothing, 0) {
    frdimpl_->status = DESC_INVALID;
}

Fam_Region_Descriptor::~Fam_Region_Descriptor() { delete frdimpl_; }

Fam_Global_Descriptor Fam_Region_Descriptor::get_global_descriptor() {
    return Fam_Global_Descriptor{frdimpl_->facts.region, frdimpl_->facts.offset};
}

int Fam_Region_Descriptor::get_desc_status() { return frdimpl_->status; }

void Fam_Region_Descriptor::set_desc_status(int descStatus) { frdimpl_->status = descStatus; }

void *Fam_Region_Descriptor::get_context() { return frdimpl_->context; }

void Fam_Region_Descriptor::set_context(void *context) { frdimpl_->context = context; }

uint64_t Fam_Region_Descriptor::get_size() { return frdimpl_->facts.size; }

void Fam_Region_Descriptor::set_size(uint64_t regionSize) { frdimpl_->facts.size = regionSize; }

mode_t Fam_Region_Descriptor::get_perm() { return frdimpl_->facts.perm; }

void Fam_Region_Descriptor::set_perm(mode_t perm) { frdimpl_->facts.perm = perm; }

char *Fam_Region_Descriptor::get_name() { return frdimpl_->facts.name; }

void Fam_Region_Descriptor::set_name(char *regionName) { rename(frdimpl_->facts, regionName); }

uint32_t Fam_Region_Descriptor::get_uid() { return frdimpl_->facts.uid; }

void Fam_Region_Descriptor::set_uid(uint32_t uid) { frdimpl_->facts.uid = uid; }

uint32_t Fam_Region_Descriptor::get_gid() { return frdimpl_->facts.gid; }

void Fam_Region_Descriptor::set_gid(uint32_t gid) { frdimpl_->facts.gid = gid; }

Fam_Redundancy_Level Fam_Region_Descriptor::get_redundancyLevel() {
    return static_cast<Fam_Redundancy_Level>(frdimpl_->facts.redundancy);
}

void Fam_Region_Descriptor::set_redundancyLevel(Fam_Redundancy_Level redundancyLevel) {
    frdimpl_->facts.redundancy = redundancyLevel;
}

Fam_Memory_Type Fam_Region_Descriptor::get_memoryType() {
    return static_cast<Fam_Memory_Type>(frdimpl_->facts.memory);
}

void Fam_Region_Descriptor::set_memoryType(Fam_Memory_Type memoryType) {
    frdimpl_->facts.memory = memoryType;
}

Fam_Interleave_Enable Fam_Region_Descriptor::get_interleaveEnable() {
    return static_cast<Fam_Interleave_Enable>(frdimpl_->facts.interleaved);
}

void Fam_Region_Descriptor::set_interleaveEnable(Fam_Interleave_Enable interleaveEnable) {
    frdimpl_->facts.interleaved = interleaveEnable;
}

Fam_Permission_Level Fam_Region_Descriptor::get_permissionLevel() {
    return static_cast<Fam_Permission_Level>(frdimpl_->facts.level);
}

void Fam_Region_Descriptor::set_permissionLevel(Fam_Permission_Level permissionLevel) {
    frdimpl_->facts.level = permissionLevel;
}

uint64_t Fam_Region_Descriptor::get_memserver_id() { return frdimpl_->facts.ids[0]; }

olfam_item *Descriptor_Access::item(Fam_Descriptor *descriptor) {
    if (!descriptor)
        throw Fam_Exception(FAM_ERR_INVALID, "the descriptor is NULL");
    if (descriptor->fdimpl_->status == DESC_INVALID)
        throw Fam_Exception(FAM_ERR_INVALID, "the descriptor names no item, or one that is gone");
    return descriptor->fdimpl_->item;
}

uint64_t Descriptor_Access::region(Fam_Region_Descriptor *descriptor) {
    if (!descriptor)
        throw Fam_Exception(FAM_ERR_INVALID, "the region's descriptor is NULL");
    if (descriptor->frdimpl_->status == DESC_INVALID)
        throw Fam_Exception(FAM_ERR_INVALID, "the descriptor names no region, or one that is gone");
    return descriptor->frdimpl_->facts.region;
}

void Descriptor_Access::learn(Fam_Descriptor *descriptor, const olfam_facts &facts) {
    std::lock_guard<std::mutex> held(descriptor->fdimpl_->one);
    descriptor->fdimpl_->facts = facts;
    descriptor->fdimpl_->known = true;
    descriptor->fdimpl_->status = DESC_INIT_DONE;
}

void Descriptor_Access::learn(Fam_Region_Descriptor *descriptor, const olfam_facts &facts) {
    descriptor->frdimpl_->facts = facts;
    descriptor->frdimpl_->status = DESC_INIT_DONE;
}

Fam_Descriptor *Descriptor_Access::data(const olfam_facts &facts) {
    auto descriptor = new Fam_Descriptor(Fam_Global_Descriptor{facts.region, facts.offset});
    learn(descriptor, facts);
    return descriptor;
}

Fam_Region_Descriptor *Descriptor_Access::region(const olfam_facts &facts) {
    auto descriptor = new Fam_Region_Descriptor(Fam_Global_Descriptor{facts.region, facts.offset});
    learn(descriptor, facts);
    return descriptor;
}

} // namespace openfam

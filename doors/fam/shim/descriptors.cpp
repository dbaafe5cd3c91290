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

const Fam_Global_Descriptor nothing = {0, 0};

} // namespace

char *Known::name() {
    std::lock_guard<std::mutex> held(one);
    look();
    return facts.name;
}

void Known::set_name(const char *name) {
    std::lock_guard<std::mutex> held(one);
    look();
    std::memset(facts.name, 0, sizeof(facts.name));
    if (name)
        std::strncpy(facts.name, name, sizeof(facts.name) - 1);
}

uint64_t *Known::ids() {
    std::lock_guard<std::mutex> held(one);
    look();
    return facts.ids;
}

uint64_t Known::first_id() {
    std::lock_guard<std::mutex> held(one);
    look();
    return facts.ids[0];
}

Fam_Global_Descriptor Known::global() {
    std::lock_guard<std::mutex> held(one);
    return Fam_Global_Descriptor{facts.region, facts.offset};
}

int Known::get_status() {
    std::lock_guard<std::mutex> held(one);
    look();
    return status;
}

void Known::set_status(int given) {
    std::lock_guard<std::mutex> held(one);
    look();
    status = given;
}

void Known::learn(const olfam_facts &said) {
    std::lock_guard<std::mutex> held(one);
    // Programs have the addresses of both.
    if (std::memcmp(facts.name, said.name, sizeof(said.name)))
        std::memcpy(facts.name, said.name, sizeof(said.name));
    if (std::memcmp(facts.ids, said.ids, sizeof(said.ids)))
        std::memcpy(facts.ids, said.ids, sizeof(said.ids));
    facts.region = said.region;
    facts.offset = said.offset;
    facts.size = said.size;
    facts.interleave = said.interleave;
    facts.perm = said.perm;
    facts.uid = said.uid;
    facts.gid = said.gid;
    facts.redundancy = said.redundancy;
    facts.memory = said.memory;
    facts.interleaved = said.interleaved;
    facts.level = said.level;
    facts.servers = said.servers;
    known = true;
    status = DESC_INIT_DONE;
}

Fam_Descriptor::FamDescriptorImpl_::FamDescriptorImpl_(const olfam_facts &given)
    : Known(given), item(olfam_item_new(given.region, given.offset)) {}

Fam_Descriptor::FamDescriptorImpl_::~FamDescriptorImpl_() { olfam_item_free(item); }

void Fam_Descriptor::FamDescriptorImpl_::look() {
    if (!known && olfam_item_facts(item, &facts)) {
        known = true;
        status = DESC_INIT_DONE;
    }
}

Fam_Descriptor::Fam_Descriptor(Fam_Global_Descriptor globalDescriptor, uint64_t itemSize)
    : fdimpl_(new FamDescriptorImpl_(facts_of(globalDescriptor, itemSize))) {}

Fam_Descriptor::Fam_Descriptor(Fam_Global_Descriptor globalDescriptor)
    : Fam_Descriptor(globalDescriptor, 0) {}

Fam_Descriptor::Fam_Descriptor() : Fam_Descriptor(nothing, 0) {
    fdimpl_->set_status(DESC_INVALID);
}

Fam_Descriptor::~Fam_Descriptor() { delete fdimpl_; }

Fam_Global_Descriptor Fam_Descriptor::get_global_descriptor() { return fdimpl_->global(); }

int Fam_Descriptor::get_desc_status() { return fdimpl_->get_status(); }

void Fam_Descriptor::set_desc_status(int descStatus) { fdimpl_->set_status(descStatus); }

void *Fam_Descriptor::get_context() { return fdimpl_->context; }

void Fam_Descriptor::set_context(void *context) { fdimpl_->context = context; }

uint64_t Fam_Descriptor::get_size() { return fdimpl_->get(&olfam_facts::size); }

void Fam_Descriptor::set_size(uint64_t itemSize) { fdimpl_->set(&olfam_facts::size, itemSize); }

uint64_t Fam_Descriptor::get_interleave_size() { return fdimpl_->get(&olfam_facts::interleave); }

void Fam_Descriptor::set_interleave_size(uint64_t interleaveSize) {
    fdimpl_->set(&olfam_facts::interleave, interleaveSize);
}

mode_t Fam_Descriptor::get_perm() { return fdimpl_->get(&olfam_facts::perm); }

void Fam_Descriptor::set_perm(mode_t perm) { fdimpl_->set(&olfam_facts::perm, perm); }

char *Fam_Descriptor::get_name() { return fdimpl_->name(); }

void Fam_Descriptor::set_name(char *itemName) { fdimpl_->set_name(itemName); }

uint32_t Fam_Descriptor::get_uid() { return fdimpl_->get(&olfam_facts::uid); }

void Fam_Descriptor::set_uid(uint32_t uid) { fdimpl_->set(&olfam_facts::uid, uid); }

uint32_t Fam_Descriptor::get_gid() { return fdimpl_->get(&olfam_facts::gid); }

void Fam_Descriptor::set_gid(uint32_t gid) { fdimpl_->set(&olfam_facts::gid, gid); }

Fam_Permission_Level Fam_Descriptor::get_permissionLevel() {
    return static_cast<Fam_Permission_Level>(fdimpl_->get(&olfam_facts::level));
}

void Fam_Descriptor::set_permissionLevel(Fam_Permission_Level permissionLevel) {
    fdimpl_->set(&olfam_facts::level, permissionLevel);
}

uint64_t Fam_Descriptor::get_used_memsrv_cnt() { return fdimpl_->get(&olfam_facts::servers); }

uint64_t *Fam_Descriptor::get_memserver_ids() { return fdimpl_->ids(); }

uint64_t Fam_Descriptor::get_first_memserver_id() { return fdimpl_->first_id(); }

Fam_Region_Descriptor::Fam_Region_Descriptor(Fam_Global_Descriptor globalDescriptor,
                                             uint64_t regionSize)
    : frdimpl_(new FamRegionDescriptorImpl_(facts_of(globalDescriptor, regionSize))) {}

Fam_Region_Descriptor::Fam_Region_Descriptor(Fam_Global_Descriptor globalDescriptor)
    : Fam_Region_Descriptor(globalDescriptor, 0) {}

Fam_Region_Descriptor::Fam_Region_Descriptor() : Fam_Region_Descriptor(nothing, 0) {
    frdimpl_->set_status(DESC_INVALID);
}

Fam_Region_Descriptor::~Fam_Region_Descriptor() { delete frdimpl_; }

Fam_Global_Descriptor Fam_Region_Descriptor::get_global_descriptor() { return frdimpl_->global(); }

int Fam_Region_Descriptor::get_desc_status() { return frdimpl_->get_status(); }

void Fam_Region_Descriptor::set_desc_status(int descStatus) { frdimpl_->set_status(descStatus); }

void *Fam_Region_Descriptor::get_context() { return frdimpl_->context; }

void Fam_Region_Descriptor::set_context(void *context) { frdimpl_->context = context; }

uint64_t Fam_Region_Descriptor::get_size() { return frdimpl_->get(&olfam_facts::size); }

void Fam_Region_Descriptor::set_size(uint64_t regionSize) {
    frdimpl_->set(&olfam_facts::size, regionSize);
}

mode_t Fam_Region_Descriptor::get_perm() { return frdimpl_->get(&olfam_facts::perm); }

void Fam_Region_Descriptor::set_perm(mode_t perm) { frdimpl_->set(&olfam_facts::perm, perm); }

char *Fam_Region_Descriptor::get_name() { return frdimpl_->name(); }

void Fam_Region_Descriptor::set_name(char *regionName) { frdimpl_->set_name(regionName); }

uint32_t Fam_Region_Descriptor::get_uid() { return frdimpl_->get(&olfam_facts::uid); }

void Fam_Region_Descriptor::set_uid(uint32_t uid) { frdimpl_->set(&olfam_facts::uid, uid); }

uint32_t Fam_Region_Descriptor::get_gid() { return frdimpl_->get(&olfam_facts::gid); }

void Fam_Region_Descriptor::set_gid(uint32_t gid) { frdimpl_->set(&olfam_facts::gid, gid); }

Fam_Redundancy_Level Fam_Region_Descriptor::get_redundancyLevel() {
    return static_cast<Fam_Redundancy_Level>(frdimpl_->get(&olfam_facts::redundancy));
}

void Fam_Region_Descriptor::set_redundancyLevel(Fam_Redundancy_Level redundancyLevel) {
    frdimpl_->set(&olfam_facts::redundancy, redundancyLevel);
}

Fam_Memory_Type Fam_Region_Descriptor::get_memoryType() {
    return static_cast<Fam_Memory_Type>(frdimpl_->get(&olfam_facts::memory));
}

void Fam_Region_Descriptor::set_memoryType(Fam_Memory_Type memoryType) {
    frdimpl_->set(&olfam_facts::memory, memoryType);
}

Fam_Interleave_Enable Fam_Region_Descriptor::get_interleaveEnable() {
    return static_cast<Fam_Interleave_Enable>(frdimpl_->get(&olfam_facts::interleaved));
}

void Fam_Region_Descriptor::set_interleaveEnable(Fam_Interleave_Enable interleaveEnable) {
    frdimpl_->set(&olfam_facts::interleaved, interleaveEnable);
}

Fam_Permission_Level Fam_Region_Descriptor::get_permissionLevel() {
    return static_cast<Fam_Permission_Level>(frdimpl_->get(&olfam_facts::level));
}

void Fam_Region_Descriptor::set_permissionLevel(Fam_Permission_Level permissionLevel) {
    frdimpl_->set(&olfam_facts::level, permissionLevel);
}

uint64_t Fam_Region_Descriptor::get_memserver_id() { return frdimpl_->first_id(); }

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
    return descriptor->frdimpl_->global().regionId;
}

void Descriptor_Access::learn(Fam_Descriptor *descriptor, const olfam_facts &facts) {
    descriptor->fdimpl_->learn(facts);
}

void Descriptor_Access::learn(Fam_Region_Descriptor *descriptor, const olfam_facts &facts) {
    descriptor->frdimpl_->learn(facts);
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

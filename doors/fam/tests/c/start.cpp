// Start and end, options, exceptions and descriptors: what needs no daemon.
#include "conformance.h"

namespace {

// Options for a port at which no daemon listens.
Fam_Options nowhere() {
    Fam_Options options;
    std::memset(&options, 0, sizeof(options));
    options.grpcPort = const_cast<char *>("1");
    options.runtime = const_cast<char *>("NONE");
    return options;
}

void exceptions() {
    Fam_Exception plain, text("a text"), both(FAM_ERR_RPC, "lost");
    SAME(plain.fam_error(), FAM_ERR_UNKNOWN);
    SAME(text.fam_error(), FAM_ERR_UNKNOWN);
    CHECK(std::strcmp(text.fam_error_msg(), "a text") == 0);
    Fam_Exception copy(both);
    SAME(copy.fam_error(), FAM_ERR_RPC);
    plain = copy;
    CHECK(std::strcmp(plain.what(), "lost") == 0);
    try {
        throw both;
    } catch (std::exception &e) {
        CHECK(dynamic_cast<Fam_Exception *>(&e) != nullptr);
    }
}

void numbers() {
    SAME(FAM_SUCCESS, 0);
    SAME(FAM_ERR_NOPERM, 2);
    SAME(FAM_ERR_INVALID, 4);
    SAME(FAM_ERR_RPC_CLIENT_NOTFOUND, 19);
    SAME(FAM_BACKUP_NOT_CREATED, 28);
    SAME(FAM_ERR_NOT_PWR_TWO, 31);
    SAME(DISABLE, 2);
    SAME(PERSISTENT, 2);
    SAME(RAID5, 3);
    SAME(DATAITEM, 2);
    SAME(DESC_UNINITIALIZED, 3);
    SAME(sizeof(Fam_Options), 14 * 8);
    SAME(sizeof(Fam_Stat), 8 + 8 + 8 + 8 + 16 + 8 + 8 + 256 * 8);
    SAME(sizeof(fam), sizeof(void *));
    SAME(sizeof(Fam_Descriptor), sizeof(void *));
    SAME(sizeof(Fam_Region_Descriptor), sizeof(void *));
    // At global scope.
    ::Fam_Global_Descriptor global = {1, 2};
    SAME(global.offset, 2);
}

void options() {
    fam one;
    const char **names = one.fam_list_options();
    const char *expected[] = {
        "VERSION", "DEFAULT_REGION_NAME", "CIS_SERVER", "GRPC_PORT", "LIBFABRIC_PROVIDER",
        "FAM_THREAD_MODEL", "CIS_INTERFACE_TYPE", "OPENFAM_MODEL", "FAM_CONTEXT_MODEL",
        "PE_COUNT", "PE_ID", "RUNTIME", "NUM_CONSUMER", "FAM_DEFAULT_MEMORY_TYPE", "IF_DEVICE",
        "LOC_BUF_ADDR", "LOC_BUF_SIZE"};
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        CHECK(std::strcmp(names[i], expected[i]) == 0);
    CHECK(names[17] == nullptr);
    std::free(names);
}

void refused_starts() {
    fam one;
    Fam_Options options = nowhere();
    THROWS(FAM_ERR_INVALID, one.fam_initialize(nullptr, &options));
    THROWS(FAM_NO_ERROR, one.fam_finalize(nullptr));
    THROWS(FAM_ERR_RPC_CLIENT_NOTFOUND, one.fam_initialize("group", &options));
    char *Fam_Options::*members[] = {&Fam_Options::famThreadModel, &Fam_Options::cisInterfaceType,
                                     &Fam_Options::openFamModel, &Fam_Options::famContextModel,
                                     &Fam_Options::numConsumer, &Fam_Options::runtime,
                                     &Fam_Options::fam_default_memory_type,
                                     &Fam_Options::grpcPort};
    for (auto member : members) {
        Fam_Options wrong = nowhere();
        wrong.*member = const_cast<char *>("no such value");
        THROWS(FAM_ERR_INVALID, one.fam_initialize("group", &wrong));
    }
    options.cisServer = const_cast<char *>("no.such.host.invalid");
    THROWS(FAM_ERR_RPC_CLIENT_NOTFOUND, one.fam_initialize("group", &options));
}

void before_the_start() {
    fam one;
    Fam_Descriptor descriptor(Fam_Global_Descriptor{1, 1}), none;
    uint64_t local = 0;
    THROWS(FAM_ERR_INVALID, one.fam_barrier_all());
    THROWS(FAM_ERR_INVALID, one.fam_lookup("item", "region"));
    THROWS(FAM_ERR_INVALID, one.fam_get_blocking(&local, &descriptor, 0, 8));
    THROWS(FAM_ERR_INVALID, one.fam_put_nonblocking(&local, nullptr, 0, 8));
    THROWS(FAM_ERR_INVALID, one.fam_add(&none, 0, 1));
    THROWS(FAM_ERR_INVALID, one.fam_quiet());
    THROWS(FAM_ERR_INVALID, one.fam_context_open());
}

void descriptors() {
    Fam_Descriptor one(Fam_Global_Descriptor{7, 9}, 100);
    SAME(one.get_global_descriptor().regionId, 7);
    SAME(one.get_global_descriptor().offset, 9);
    SAME(one.get_size(), 100);
    SAME(one.get_desc_status(), DESC_UNINITIALIZED);
    int mine = 0;
    one.set_context(&mine);
    CHECK(one.get_context() == &mine);
    char name[] = "a name";
    one.set_name(name);
    CHECK(std::strcmp(one.get_name(), "a name") == 0 && one.get_name() != name);
    one.set_size(5);
    one.set_interleave_size(6);
    one.set_perm(0640);
    one.set_uid(8);
    one.set_gid(10);
    one.set_permissionLevel(DATAITEM);
    SAME(one.get_size(), 5);
    SAME(one.get_interleave_size(), 6);
    SAME(one.get_perm(), 0640);
    SAME(one.get_uid(), 8);
    SAME(one.get_gid(), 10);
    SAME(one.get_permissionLevel(), DATAITEM);
    one.set_desc_status(DESC_INIT_DONE_BUT_KEY_NOT_VALID);
    SAME(one.get_desc_status(), DESC_INIT_DONE_BUT_KEY_NOT_VALID);
    Fam_Descriptor none;
    SAME(none.get_desc_status(), DESC_INVALID);
    Fam_Region_Descriptor region(Fam_Global_Descriptor{7, 0});
    SAME(region.get_size(), 0);
    region.set_redundancyLevel(RAID1);
    region.set_memoryType(PERSISTENT);
    region.set_interleaveEnable(DISABLE);
    SAME(region.get_redundancyLevel(), RAID1);
    SAME(region.get_memoryType(), PERSISTENT);
    SAME(region.get_interleaveEnable(), DISABLE);
    SAME(region.get_global_descriptor().regionId, 7);
    SAME(region.get_desc_status(), DESC_UNINITIALIZED);
    region.set_desc_status(DESC_INIT_DONE);
    SAME(region.get_desc_status(), DESC_INIT_DONE);
    region.set_context(&mine);
    CHECK(region.get_context() == &mine);
    region.set_name(name);
    CHECK(std::strcmp(region.get_name(), "a name") == 0 && region.get_name() != name);
    region.set_size(5);
    region.set_perm(0640);
    region.set_uid(8);
    region.set_gid(10);
    region.set_permissionLevel(DATAITEM);
    SAME(region.get_size(), 5);
    SAME(region.get_perm(), 0640);
    SAME(region.get_uid(), 8);
    SAME(region.get_gid(), 10);
    SAME(region.get_permissionLevel(), DATAITEM);
}

} // namespace

const Case start_cases[] = {
    {"exceptions", false, exceptions},
    {"numbers", false, numbers},
    {"options", false, options},
    {"refused_starts", false, refused_starts},
    {"before_the_start", false, before_the_start},
    {"descriptors", false, descriptors},
    {nullptr, false, nullptr},
};

// Regions and items: names, sizes, rights and what is known of them.
#include "conformance.h"

#include <unistd.h>

namespace {

void served() {
    // The conformance program's object is initialized: its options are those of the file.
    char name[] = "PE_COUNT", version[] = "VERSION", wrong[] = "NONE_SUCH", size[] = "LOC_BUF_SIZE";
    int *count = static_cast<int *>(const_cast<void *>(pool->fam_get_option(name)));
    SAME(*count, 1);
    std::free(count);
    char *text = static_cast<char *>(const_cast<void *>(pool->fam_get_option(version)));
    CHECK(std::strcmp(text, "3.2.0") == 0);
    std::free(text);
    auto bytes = static_cast<uint64_t *>(const_cast<void *>(pool->fam_get_option(size)));
    SAME(*bytes, 0);
    std::free(bytes);
    THROWS(FAM_ERR_INVALID, pool->fam_get_option(wrong));
    THROWS(FAM_ERR_INVALID, pool->fam_initialize("again", nullptr));
    pool->fam_barrier_all();
    pool->fam_abort(1);
}

void names() {
    std::string name = fresh("region");
    auto made = pool->fam_create_region(name.c_str(), 1 << 20, 0777, nullptr);
    THROWS(FAM_ERR_ALREADYEXIST, pool->fam_create_region(name.c_str(), 1 << 20, 0777, nullptr));
    auto found = pool->fam_lookup_region(name.c_str());
    SAME(found->get_global_descriptor().regionId, made->get_global_descriptor().regionId);
    CHECK(std::strcmp(found->get_name(), name.c_str()) == 0);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup_region("no such region"));
    THROWS(FAM_ERR_INVALID, pool->fam_lookup_region(nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_create_region(nullptr, 1, 0777, nullptr));
    std::string longest(40, 'r'), longer(41, 'r');
    longest.replace(0, fresh("").size(), fresh(""));
    THROWS(FAM_ERR_NAME_TOO_LONG, pool->fam_create_region(longer.c_str(), 1, 0777, nullptr));
    pool->fam_destroy_region(pool->fam_create_region(longest.c_str(), 1, 0777, nullptr));

    auto one = pool->fam_allocate("item", 1000, 0777, made);
    THROWS(FAM_ERR_ALREADYEXIST, pool->fam_allocate("item", 1000, 0777, made));
    THROWS(FAM_ERR_ALREADYEXIST, pool->fam_allocate("item", 5, 0777, made));
    THROWS(FAM_ERR_NAME_TOO_LONG, pool->fam_allocate(longer.c_str(), 8, 0777, made));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("other", name.c_str()));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("item", "no such region"));
    THROWS(FAM_ERR_INVALID, pool->fam_allocate(8, 0777, nullptr));
    auto again = pool->fam_lookup("item", name.c_str());
    SAME(again->get_global_descriptor().offset, one->get_global_descriptor().offset);
    // Items without a name are as many as fit.
    auto first = pool->fam_allocate(100, 0777, made), second = pool->fam_allocate(100, 0777, made);
    CHECK(first->get_global_descriptor().offset != second->get_global_descriptor().offset);

    pool->fam_deallocate(one);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("item", name.c_str()));
    uint64_t local = 0;
    THROWS(FAM_ERR_NOTFOUND, pool->fam_get_blocking(&local, again, 0, 8));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_deallocate(again));
    pool->fam_allocate("item", 1000, 0777, made);
    pool->fam_destroy_region(made);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup_region(name.c_str()));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_get_blocking(&local, first, 0, 8));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_destroy_region(found));
}

void sizes() {
    Fam_Stat info;
    auto made = region(1);
    pool->fam_stat(made, &info);
    CHECK(info.size >= 1 << 20);
    std::free(info.name);
    auto small = pool->fam_allocate("small", 1, 0777, made);
    pool->fam_stat(small, &info);
    CHECK(info.size >= 128);
    SAME(small->get_size(), info.size);
    CHECK(std::strcmp(info.name, "small") == 0);
    std::free(info.name);
    // A region has no room for more than it has.
    THROWS(FAM_ERR_NO_SPACE, pool->fam_allocate(2 << 20, 0777, made));
    auto most = pool->fam_allocate(1000 << 10, 0777, made);
    THROWS(FAM_ERR_NO_SPACE, pool->fam_allocate(100 << 10, 0777, made));
    pool->fam_resize_region(made, (4 << 20) - 100);
    SAME(made->get_size(), 4 << 20);
    auto more = pool->fam_allocate(2 << 20, 0777, made);
    uint64_t value = 5, back = 0;
    pool->fam_put_blocking(&value, more, (2 << 20) - 8, 8);
    pool->fam_put_blocking(&value, most, 0, 8);
    pool->fam_get_blocking(&back, most, 0, 8);
    SAME(back, 5);
    pool->fam_deallocate(most);
    pool->fam_allocate(900 << 10, 0777, made);
    // What is freed is zero again for the next one.
    pool->fam_get_blocking(&back, pool->fam_allocate(100, 0777, made), 0, 8);
    SAME(back, 0);
    pool->fam_stat(made, &info);
    SAME(info.size, 4 << 20);
    std::free(info.name);
    THROWS(FAM_ERR_INVALID, pool->fam_stat(made, nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_stat(static_cast<Fam_Descriptor *>(nullptr), &info));
    pool->fam_destroy_region(made);
}

void attributes() {
    Fam_Stat info;
    auto plain = pool->fam_create_region(fresh("plain").c_str(), 1, 0640, nullptr);
    pool->fam_stat(plain, &info);
    SAME(info.region_attributes.redundancyLevel, NONE);
    SAME(info.region_attributes.memoryType, VOLATILE);
    SAME(info.region_attributes.interleaveEnable, ENABLE);
    SAME(info.region_attributes.permissionLevel, REGION);
    SAME(info.perm, 0640);
    SAME(info.uid, geteuid());
    SAME(info.gid, getegid());
    std::free(info.name);
    SAME(plain->get_memoryType(), VOLATILE);
    pool->fam_destroy_region(plain);
    Fam_Region_Attributes given = {RAID1, VOLATILE, DISABLE, DATAITEM};
    auto other = pool->fam_create_region(fresh("other").c_str(), 1, 0777, &given);
    pool->fam_stat(other, &info);
    SAME(info.region_attributes.redundancyLevel, RAID1);
    SAME(info.region_attributes.interleaveEnable, DISABLE);
    SAME(info.region_attributes.permissionLevel, DATAITEM);
    std::free(info.name);
    SAME(other->get_redundancyLevel(), RAID1);
    SAME(other->get_permissionLevel(), DATAITEM);
    pool->fam_destroy_region(other);
    Fam_Region_Attributes wrong = given;
    wrong.redundancyLevel = static_cast<Fam_Redundancy_Level>(77);
    THROWS(FAM_ERR_INVALID, pool->fam_create_region("wrong", 1, 0777, &wrong));
    wrong = given;
    wrong.memoryType = static_cast<Fam_Memory_Type>(3);
    THROWS(FAM_ERR_INVALID, pool->fam_create_region("wrong", 1, 0777, &wrong));
    wrong = given;
    wrong.interleaveEnable = static_cast<Fam_Interleave_Enable>(3);
    THROWS(FAM_ERR_INVALID, pool->fam_create_region("wrong", 1, 0777, &wrong));
    wrong = given;
    wrong.permissionLevel = static_cast<Fam_Permission_Level>(3);
    THROWS(FAM_ERR_INVALID, pool->fam_create_region("wrong", 1, 0777, &wrong));
}

void not_offered() {
    // The daemon of this case has volatile memory alone.
    Fam_Region_Attributes given = {NONE, PERSISTENT, ENABLE, REGION};
    THROWS(FAM_ERR_NOT_CREATED, pool->fam_create_region("kept", 1, 0777, &given));
}

void rights_of_regions() {
    auto one = item(1000, 0600);
    uint64_t local = 1;
    // They hold for all items, whose own cannot be changed.
    CHECK(thrown([&] { pool->fam_change_permissions(one, 0400); }) != FAM_NO_ERROR);
    Fam_Region_Descriptor where(Fam_Global_Descriptor{one->get_global_descriptor().regionId, 0});
    pool->fam_put_blocking(&local, one, 0, 8);
    pool->fam_change_permissions(&where, 0400);
    // What a descriptor may do was decided at its first use.
    pool->fam_put_blocking(&local, one, 0, 8);
    Fam_Descriptor later(one->get_global_descriptor());
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, &later, 0, 8));
    pool->fam_get_blocking(&local, &later, 0, 8);
    SAME(later.get_size(), one->get_size());
    SAME(later.get_perm(), 0400);
    pool->fam_put_nonblocking(&local, &later, 0, 8);
    THROWS(FAM_ERR_NOPERM, pool->fam_quiet());
    pool->fam_quiet();
    // No root, no owner: the right to write is needed to allocate and to resize.
    THROWS(FAM_ERR_NOPERM, pool->fam_allocate(100, 0777, &where));
    THROWS(FAM_ERR_NOPERM, pool->fam_resize_region(&where, 2 << 20));
    pool->fam_change_permissions(&where, 0000);
    Fam_Descriptor last(one->get_global_descriptor());
    THROWS(FAM_ERR_NOPERM, pool->fam_get_blocking(&local, &last, 0, 8));
    // The owner may end it all the same.
    pool->fam_deallocate(one);
    pool->fam_destroy_region(&where);
}

void rights_of_items() {
    auto where = region(1 << 20, 0777, DATAITEM);
    auto reads = pool->fam_allocate("reads", 100, 0444, where);
    auto writes = pool->fam_allocate("writes", 100, 0222, where);
    uint64_t local = 1;
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, reads, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_set(reads, 0, local); pool->fam_quiet());
    THROWS(FAM_ERR_NOPERM, pool->fam_fetch_add(reads, 0, local));
    pool->fam_get_blocking(&local, reads, 0, 8);
    SAME(pool->fam_fetch_uint64(reads, 0), 0);
    pool->fam_put_blocking(&local, writes, 0, 8);
    THROWS(FAM_ERR_NOPERM, pool->fam_get_blocking(&local, writes, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_fetch_uint64(writes, 0));
    pool->fam_change_permissions(reads, 0666);
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, reads, 0, 8));
    std::string name = where->get_name();
    pool->fam_put_blocking(&local, pool->fam_lookup("reads", name.c_str()), 0, 8);
    // Closed and opened again it has the rights of today, too.
    pool->fam_close(reads);
    pool->fam_put_blocking(&local, reads, 0, 8);
    pool->fam_destroy_region(where);
}

void global_descriptors() {
    auto one = item(4096);
    uint64_t value = 77, back = 0;
    pool->fam_put_blocking(&value, one, 4088, 8);
    Fam_Descriptor twin(one->get_global_descriptor(), 5);
    SAME(twin.get_desc_status(), DESC_UNINITIALIZED);
    pool->fam_get_blocking(&back, &twin, 4088, 8);
    SAME(back, 77);
    SAME(twin.get_desc_status(), DESC_INIT_DONE);
    SAME(twin.get_size(), 4096);
    SAME(twin.get_used_memsrv_cnt(), one->get_used_memsrv_cnt());
    SAME(twin.get_first_memserver_id(), one->get_memserver_ids()[0]);
    CHECK(std::strcmp(twin.get_name(), one->get_name()) == 0);
    // What a program has set holds: a descriptor that is marked invalid is not used.
    Fam_Region_Descriptor where(Fam_Global_Descriptor{one->get_global_descriptor().regionId, 0});
    Fam_Stat info;
    twin.set_desc_status(DESC_INVALID);
    where.set_desc_status(DESC_INVALID);
    THROWS(FAM_ERR_INVALID, pool->fam_get_blocking(&back, &twin, 4088, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_put_nonblocking(&back, &twin, 4088, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_stat(&where, &info));
    THROWS(FAM_ERR_INVALID, pool->fam_destroy_region(&where));
    twin.set_desc_status(DESC_INIT_DONE);
    where.set_desc_status(DESC_UNINITIALIZED);
    pool->fam_get_blocking(&back, &twin, 4088, 8);
    pool->fam_stat(&where, &info);
    std::free(info.name);
    SAME(where.get_desc_status(), DESC_INIT_DONE);
    SAME(where.get_memserver_id(), info.memory_servers[0]);
    Fam_Descriptor nobody(Fam_Global_Descriptor{987654321, 5});
    THROWS(FAM_ERR_NOTFOUND, pool->fam_get_blocking(&back, &nobody, 0, 8));
    pool->fam_get_nonblocking(&back, &nobody, 0, 8);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_quiet());
}

} // namespace

const Case region_cases[] = {
    {"served", true, served},
    {"names", true, names},
    {"sizes", true, sizes},
    {"attributes", true, attributes},
    {"not_offered", true, not_offered},
    {"rights_of_regions", true, rights_of_regions},
    {"rights_of_items", true, rights_of_items},
    {"global_descriptors", true, global_descriptors},
    {nullptr, false, nullptr},
};

// Copies and backups.
#include "conformance.h"

namespace {

std::vector<unsigned char> bytes(size_t length) {
    std::vector<unsigned char> all(length);
    for (size_t i = 0; i < length; i++)
        all[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return all;
}

void copies() {
    const uint64_t size = 5 << 20;
    auto first = region(16 << 20), second = region(16 << 20);
    auto from = pool->fam_allocate("from", size, 0777, first);
    auto to = pool->fam_allocate("to", size, 0777, second);
    auto data = bytes(size);
    std::vector<unsigned char> expected(size, 0), back(size);
    pool->fam_put_blocking(data.data(), from, 0, size);
    const struct {
        uint64_t source, target, length;
    } all[] = {{0, 0, 8}, {1, (1 << 20) - 3, 1 << 20}, {77, size - 1000, 1000}, {0, 0, size}};
    for (auto each : all) {
        void *wait = pool->fam_copy(from, each.source, to, each.target, each.length);
        pool->fam_copy_wait(wait);
        std::memcpy(&expected[each.target], &data[each.source], each.length);
        pool->fam_get_blocking(back.data(), to, 0, size);
        CHECK(back == expected);
    }
    // Inside of one item, and several at a time.
    void *one = pool->fam_copy(from, 0, from, 3 << 20, 1 << 20);
    void *two = pool->fam_copy(from, 1 << 20, to, 0, 1 << 20);
    pool->fam_quiet();
    pool->fam_copy_wait(two);
    pool->fam_copy_wait(one);
    pool->fam_get_blocking(back.data(), from, 3 << 20, 1 << 20);
    CHECK(std::memcmp(back.data(), data.data(), 1 << 20) == 0);
    THROWS(FAM_ERR_INVALID, pool->fam_copy(from, 0, nullptr, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_copy(nullptr, 0, to, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_copy(from, 0, to, 0, 0));
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_copy_wait(pool->fam_copy(from, size - 4, to, 0, 8)));
    THROWS(FAM_ERR_INVALID, pool->fam_copy_wait(nullptr));
    pool->fam_destroy_region(first);
    pool->fam_destroy_region(second);
}

void backups() {
    const uint64_t size = 3 << 20;
    auto where = region(16 << 20);
    auto one = pool->fam_allocate("one", size, 0777, where);
    auto data = bytes(size);
    std::vector<unsigned char> back(size);
    pool->fam_put_blocking(data.data(), one, 0, size);
    std::string name = fresh("backup");
    Fam_Backup_Options options = {0};
    pool->fam_backup_wait(pool->fam_backup(one, name.c_str(), &options));
    THROWS(FAM_ERR_ALREADYEXIST,
           pool->fam_backup_wait(pool->fam_backup(one, name.c_str(), nullptr)));
    char *list = pool->fam_list_backup(name.c_str());
    CHECK(std::strstr(list, name.c_str()) != nullptr);
    CHECK(std::strstr(list, std::to_string(one->get_size()).c_str()) != nullptr);
    std::free(list);

    std::vector<unsigned char> zeros(size, 0);
    pool->fam_put_blocking(zeros.data(), one, 0, size);
    pool->fam_restore_wait(pool->fam_restore(name.c_str(), one));
    pool->fam_get_blocking(back.data(), one, 0, size);
    CHECK(back == data);
    Fam_Descriptor *made = nullptr;
    pool->fam_restore_wait(pool->fam_restore(name.c_str(), where, "made", 0777, &made));
    SAME(made->get_size(), one->get_size());
    pool->fam_get_blocking(back.data(), made, 0, size);
    CHECK(back == data);
    auto small = pool->fam_allocate("small", 1000, 0777, where);
    CHECK(thrown([&] { pool->fam_restore_wait(pool->fam_restore(name.c_str(), small)); }) !=
          FAM_NO_ERROR);

    THROWS(FAM_BACKUP_NOTFOUND, pool->fam_restore_wait(pool->fam_restore("none such", one)));
    THROWS(FAM_BACKUP_NOTFOUND, pool->fam_restore("none such", where, "other", 0777, &made));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("other", where->get_name()));
    THROWS(FAM_ERR_INVALID, pool->fam_backup(one, nullptr, nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_backup(nullptr, "other", nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_list_backup(nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_delete_backup(nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_restore(nullptr, one));
    THROWS(FAM_ERR_INVALID, pool->fam_restore(name.c_str(), nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_restore(nullptr, where, "other", 0777, &made));
    THROWS(FAM_ERR_INVALID, pool->fam_restore(name.c_str(), nullptr, "other", 0777, &made));
    THROWS(FAM_ERR_INVALID, pool->fam_restore(name.c_str(), where, "other", 0777, nullptr));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("other", where->get_name()));
    THROWS(FAM_ERR_INVALID, pool->fam_backup_wait(nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_restore_wait(nullptr));
    THROWS(FAM_ERR_INVALID, pool->fam_delete_backup_wait(nullptr));
    // A wait of another kind leaves it as it is.
    auto wait = pool->fam_delete_backup("none such");
    THROWS(FAM_ERR_INVALID, pool->fam_copy_wait(wait));
    THROWS(FAM_BACKUP_NOTFOUND, pool->fam_delete_backup_wait(wait));
    pool->fam_delete_backup_wait(pool->fam_delete_backup(name.c_str()));
    THROWS(FAM_BACKUP_NOTFOUND,
           pool->fam_delete_backup_wait(pool->fam_delete_backup(name.c_str())));
    pool->fam_destroy_region(where);
}

} // namespace

const Case copy_cases[] = {
    {"copies", true, copies},
    {"backups", true, backups},
    {nullptr, false, nullptr},
};

// Threads that read one descriptor while others ask the daemon for what it says of the item.
#include "conformance.h"

#include <thread>

#include <unistd.h>

int main() {
    fam pool;
    try {
        pool.fam_initialize("getters", nullptr);
        Fam_Region_Attributes given = {NONE, VOLATILE, ENABLE, DATAITEM};
        auto where = pool.fam_create_region("getters", 1 << 20, 0600, &given);
        auto made = pool.fam_allocate("one", 4096, 0600, where);
        // Nothing is known of it at first.
        Fam_Descriptor one(made->get_global_descriptor());
        std::vector<std::thread> all;
        for (int number = 0; number < 4; number++)
            all.emplace_back([&, number] {
                for (int turn = 0; turn < 100; turn++) {
                    if (number < 2) {
                        Fam_Stat info;
                        pool.fam_stat(made, &info);
                        std::free(info.name);
                        pool.fam_stat(&one, &info);
                        SAME(info.size, 4096);
                        std::free(info.name);
                        pool.fam_stat(where, &info);
                        std::free(info.name);
                        pool.fam_change_permissions(&one, turn % 2 ? 0600 : 0640);
                        continue;
                    }
                    uint64_t size = one.get_size(), servers = one.get_used_memsrv_cnt();
                    CHECK((size == 0 || size == 4096) && servers <= 1);
                    CHECK((one.get_perm() & ~0640u) == 0);
                    CHECK(one.get_uid() <= geteuid() && one.get_gid() <= getegid());
                    CHECK(one.get_desc_status() != DESC_INVALID);
                    CHECK(one.get_first_memserver_id() == where->get_memserver_id());
                    CHECK(!std::strcmp(made->get_name(), "one"));
                    CHECK(where->get_size() == 1 << 20 && !std::strcmp(where->get_name(), "getters"));
                }
            });
        for (auto &each : all)
            each.join();
        pool.fam_destroy_region(where);
        delete made;
        delete where;
        pool.fam_finalize("getters");
        std::printf("OK getters\n");
        return 0;
    } catch (Fam_Exception &failure) {
        std::printf("error %d: %s\n", failure.fam_error(), failure.fam_error_msg());
        return 1;
    }
}

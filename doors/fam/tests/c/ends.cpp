// What outlives what: `ends WHAT REGION`. With `killed` and `kept` the program writes, waits for
// SIGUSR1 while the daemon is killed, and goes on.
#include "stages.h"

#include <algorithm>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

fam *pool;

namespace {

const uint64_t size = 3 << 20;
std::vector<uint64_t> pattern() {
    std::vector<uint64_t> all(size / 8);
    for (size_t i = 0; i < all.size(); i++)
        all[i] = i * 2654435761u;
    return all;
}

// A daemon dies, and comes back: `kept` is whether its memory does.
void killed(const char *name, bool kept) {
    Fam_Region_Attributes given = {NONE, kept ? PERSISTENT : VOLATILE, ENABLE, REGION};
    auto made = pool->fam_create_region(name, 8 << 20, 0600, &given);
    auto one = pool->fam_allocate("one", size, 0600, made);
    auto data = pattern(), back = data;
    pool->fam_put_blocking(data.data(), one, 0, size);
    wait_for_the_test("written");
    // It is gone: what is under way fails, and nothing hangs.
    SAME(pool->fam_progress(), 0);
    int code = thrown([&] { pool->fam_get_blocking(back.data(), one, 0, size); });
    CHECK(code == FAM_ERR_RPC || code == FAM_ERR_RPC_CLIENT_NOTFOUND);
    for (int i = 0; i < 3; i++) {
        pool->fam_put_nonblocking(data.data(), one, 0, 8);
        code = thrown([&] { pool->fam_quiet(); });
        CHECK(code == FAM_ERR_RPC || code == FAM_ERR_RPC_CLIENT_NOTFOUND);
    }
    wait_for_the_test("lost");
    if (!kept) {
        THROWS(FAM_ERR_NOTFOUND, pool->fam_get_blocking(back.data(), one, 0, size));
        THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("one", name));
        pool->fam_create_region(name, 1, 0600, &given);
        return;
    }
    std::fill(back.begin(), back.end(), 0);
    pool->fam_get_blocking(back.data(), one, 0, size);
    CHECK(back == data);
    Fam_Stat info;
    pool->fam_stat(pool->fam_lookup_region(name), &info);
    SAME(info.region_attributes.memoryType, PERSISTENT);
    SAME(info.perm, 0600);
    std::free(info.name);
    pool->fam_copy_wait(pool->fam_copy(one, 0, one, size / 2, 1000));
    pool->fam_add(one, 0, static_cast<uint64_t>(5));
    pool->fam_quiet();
    SAME(pool->fam_fetch_uint64(one, 0), 5);
    pool->fam_destroy_region(made);
}

// One daemon of three dies, and comes back: items with a piece there end, and the region stays.
void one_of_three(const char *name) {
    Fam_Region_Attributes given = {NONE, VOLATILE, ENABLE, REGION};
    // It has no room for two of this size.
    auto made = pool->fam_create_region(name, size + (1 << 20), 0600, &given);
    auto spread = pool->fam_allocate("spread", size, 0600, made);
    auto data = pattern(), back = data;
    pool->fam_put_blocking(data.data(), spread, 0, size);
    const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
    for (auto &one : names)
        pool->fam_put_blocking(data.data(), pool->fam_allocate(one.c_str(), 128, 0600, made), 0, 128);
    wait_for_the_test("written");
    wait_for_the_test("lost");
    int code;
    do {
        // The keeper has not met it again.
        code = thrown([&] { pool->fam_get_blocking(back.data(), spread, 0, size); });
        usleep(1000);
    } while (code == FAM_ERR_RPC || code == FAM_ERR_RPC_CLIENT_NOTFOUND);
    SAME(code, FAM_ERR_NOTFOUND);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_get_blocking(back.data(), spread, 0, 8));
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("spread", name));
    int left = 0;
    for (auto &one : names) {
        Fam_Descriptor *found = nullptr;
        if (thrown([&] { found = pool->fam_lookup(one.c_str(), name); }) == FAM_ERR_NOTFOUND)
            continue;
        left++;
        std::fill(back.begin(), back.end(), 0);
        pool->fam_get_blocking(back.data(), found, 0, 128);
        CHECK(std::equal(back.begin(), back.begin() + 16, data.begin()));
    }
    // They lie on the three in turn.
    SAME(left, 4);
    THROWS(FAM_ERR_ALREADYEXIST, pool->fam_create_region(name, 1, 0600, &given));
    // Everything of it is used again.
    spread = pool->fam_allocate("spread", size, 0600, pool->fam_lookup_region(name));
    pool->fam_get_blocking(back.data(), spread, 0, size);
    CHECK(std::count(back.begin(), back.end(), 0) == static_cast<long>(back.size()));
    pool->fam_put_blocking(data.data(), spread, 0, size);
    pool->fam_get_blocking(back.data(), spread, 0, size);
    CHECK(back == data);
    for (int i = 0; i < 3; i++)
        pool->fam_put_blocking(data.data(), pool->fam_allocate(128, 0600, made), 0, 128);
    pool->fam_destroy_region(made);
    pool->fam_create_region(name, 1, 0600, &given);
}

// One daemon of two dies, and comes back: a descriptor may what it might at its first use.
void rights(const char *name) {
    Fam_Region_Attributes given = {NONE, PERSISTENT, ENABLE, DATAITEM};
    auto made = pool->fam_create_region(name, 8 << 20, 0600, &given);
    auto one = pool->fam_allocate("one", size, 0600, made);
    auto data = pattern(), back = data;
    pool->fam_put_blocking(data.data(), one, 0, size);
    pool->fam_change_permissions(one, 0);
    wait_for_the_test("written");
    wait_for_the_test("lost");
    std::fill(back.begin(), back.end(), 0);
    int code;
    do {
        // The keeper has not met it again.
        code = thrown([&] { pool->fam_get_blocking(back.data(), one, 0, size); });
        usleep(1000);
    } while (code == FAM_ERR_RPC || code == FAM_ERR_RPC_CLIENT_NOTFOUND);
    SAME(code, 0);
    CHECK(back == data);
    pool->fam_put_blocking(data.data(), one, 0, size);
    pool->fam_copy_wait(pool->fam_copy(one, 0, one, size / 2, 1000));
    THROWS(FAM_ERR_NOPERM, pool->fam_get_blocking(&back[0], pool->fam_lookup("one", name), 0, 8));
    pool->fam_destroy_region(made);
}

// A daemon dies and comes back while nothing is under way: the next operation of each kind finds it.
void again(const char *name) {
    Fam_Region_Attributes given = {NONE, PERSISTENT, ENABLE, REGION};
    auto made = pool->fam_create_region(name, 8 << 20, 0600, &given);
    auto one = pool->fam_allocate("one", size, 0600, made);
    auto data = pattern(), back = data;
    pool->fam_put_blocking(data.data(), one, 0, size);
    wait_for_the_test("written");
    pool->fam_put_blocking(&data[1], one, 0, 8);
    wait_for_the_test("put");
    pool->fam_get_blocking(back.data(), one, 0, size);
    SAME(back[0], data[1]);
    back[0] = data[0];
    CHECK(back == data);
    wait_for_the_test("got");
    SAME(pool->fam_fetch_add(one, 0, data[2]), data[1]);
    wait_for_the_test("added");
    pool->fam_put_nonblocking(data.data(), one, 0, size);
    pool->fam_quiet();
    pool->fam_destroy_region(made);
}

// A child that exits, with the object's destructor, while the parent's operations are under way.
void forked(const char *name) {
    auto where = pool->fam_create_region(name, 32 << 20, 0600, nullptr);
    auto one = pool->fam_allocate("one", 20 << 20, 0600, where);
    std::vector<char> data(20 << 20, 'a'), back(data.size());
    for (int round = 0; round < 5; round++) {
        std::fill(data.begin(), data.end(), 'a' + round);
        for (size_t i = 0; i < data.size(); i += 1 << 20)
            pool->fam_put_nonblocking(&data[i], one, i, 1 << 20);
        pid_t child = fork();
        if (child == 0) {
            bool refused = thrown([&] { pool->fam_get_blocking(&back[0], one, 0, 8); }) == FAM_ERR_RPC;
            refused = refused && thrown([&] { pool->fam_quiet(); }) == FAM_ERR_RPC;
            pool->~fam();
            _exit(refused ? 0 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        pool->fam_quiet();
        pool->fam_get_blocking(back.data(), one, 0, back.size());
        CHECK(back == data);
    }
    pool->fam_destroy_region(where);
}

// Destructors of static objects run when the thread's own have run.
struct Late {
    fam *object = nullptr;
    Fam_Descriptor *one = nullptr;

    ~Late() {
        if (!object)
            return;
        uint64_t data = 5, back = 0;
        object->fam_put_blocking(&data, one, 8, 8);
        object->fam_get_blocking(&back, one, 8, 8);
        SAME(back, 5);
        SAME(object->fam_fetch_add(one, 8, data), 5);
        THROWS(FAM_ERR_OUTOFRANGE, object->fam_get_blocking(&back, one, 1 << 20, 8));
        object->fam_finalize("ends");
        std::printf("OK late\n");
    }
} late;

void begin_late(const char *name) {
    late.object = new fam;
    late.object->fam_initialize("ends", nullptr);
    auto where = late.object->fam_create_region(name, 1 << 20, 0600, nullptr);
    late.one = late.object->fam_allocate("one", 100, 0600, where);
    uint64_t back = 0;
    late.object->fam_get_blocking(&back, late.one, 8, 8);
}

// Numbers at the server are given back with the descriptors.
void descriptors(const char *name) {
    auto where = pool->fam_create_region(name, 1 << 20, 0600, nullptr);
    auto one = pool->fam_allocate("one", 100, 0600, where);
    uint64_t data = 1, back = 0;
    for (data = 1; data < 2000; data++) {
        auto found = pool->fam_lookup("one", name);
        pool->fam_put_nonblocking(&data, found, 8, 8);
        delete found;
        if (data % 100 == 0) {
            pool->fam_quiet();
            pool->fam_get_blocking(&back, one, 8, 8);
            SAME(back, data);
            pool->fam_close(one);
        }
    }
    pool->fam_quiet();
    pool->fam_deallocate(one);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_get_blocking(&back, one, 8, 8));
    pool->fam_destroy_region(where);
}

// A thread waits for one server, while another one begins operations at others and joins it.
void threads(const char *name) {
    const uint64_t block = 1 << 20;
    auto where = pool->fam_create_region(name, 8 * block, 0600, nullptr);
    auto one = pool->fam_allocate("one", 3 * block, 0600, where);
    std::vector<char> data(block, 'x');
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 8; i++)
            pool->fam_put_nonblocking(data.data(), one, 0, block);
        std::thread waits([] { pool->fam_quiet(); });
        usleep(100 * (round % 8));
        for (int i = 1; i < 3; i++)
            pool->fam_put_nonblocking(data.data(), one, i * block, 100);
        waits.join();
        pool->fam_quiet();
        SAME(pool->fam_progress(), 0);
    }
    pool->fam_destroy_region(where);
}

// Many gathers and scatters without a wait: those that the daemon could not keep wait.
void vectors(const char *name) {
    const uint64_t half = 1 << 19, count = 150;
    auto where = pool->fam_create_region(name, 8 << 20, 0600, nullptr);
    auto one = pool->fam_allocate("one", 4 << 20, 0600, where);
    std::vector<char> data(2 * half, 'v'), back(count * 2 * half);
    pool->fam_scatter_blocking(data.data(), one, 2, 0, 2, half);
    for (uint64_t i = 0; i < count; i++)
        pool->fam_gather_nonblocking(&back[i * 2 * half], one, 2, 0, 2, half);
    pool->fam_quiet();
    CHECK(std::count(back.begin(), back.end(), 'v') == static_cast<long>(back.size()));
    uint64_t index[] = {1, 3};
    for (uint64_t i = 0; i < count; i++)
        pool->fam_scatter_nonblocking(&back[i * 2 * half], one, 2, index, half);
    pool->fam_quiet();
    std::fill(data.begin(), data.end(), 0);
    pool->fam_gather_blocking(data.data(), one, 2, index, half);
    CHECK(std::count(data.begin(), data.end(), 'v') == static_cast<long>(data.size()));
    pool->fam_destroy_region(where);
}

} // namespace

int main(int, char **argv) {
    std::string what = argv[1];
    block_the_signal();
    fam object;
    pool = &object;
    if (what == "deaf") {
        // What listens there takes what it is asked, and does not answer.
        THROWS(FAM_ERR_TIMEOUT, object.fam_initialize("ends", nullptr));
        std::printf("OK deaf\n");
        return 0;
    }
    try {
        object.fam_initialize("ends", nullptr);
        if (what == "again")
            again(argv[2]);
        else if (what == "killed")
            killed(argv[2], false);
        else if (what == "kept")
            killed(argv[2], true);
        else if (what == "part")
            one_of_three(argv[2]);
        else if (what == "rights")
            rights(argv[2]);
        else if (what == "forked")
            forked(argv[2]);
        else if (what == "late")
            begin_late(argv[2]);
        else if (what == "descriptors")
            descriptors(argv[2]);
        else if (what == "vectors")
            vectors(argv[2]);
        else if (what == "threads")
            threads(argv[2]);
        else
            return 1;
        object.fam_finalize("ends");
        std::printf("OK %s\n", argv[1]);
        return 0;
    } catch (Fam_Exception &e) {
        std::printf("error %d: %s\n", e.fam_error(), e.fam_error_msg());
        return 1;
    }
}

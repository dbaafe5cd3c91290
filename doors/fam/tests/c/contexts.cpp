// Contexts, order, and threads.
#include "conformance.h"

#include <thread>

#include <dirent.h>

namespace {

void contexts() {
    auto one = item(1 << 16);
    uint64_t value = 3, back = 0;
    std::vector<fam_context *> all;
    for (int i = 0; i < 60; i++)
        all.push_back(pool->fam_context_open());
    for (uint64_t i = 0; i < all.size(); i++) {
        uint64_t number = i * i;
        all[i]->fam_put_blocking(&number, one, i * 8, 8);
        all[i]->fam_add(one, i * 8, value);
    }
    for (uint64_t i = 0; i < all.size(); i++) {
        all[i]->fam_quiet();
        SAME(all[i]->fam_progress(), 0);
        SAME(all[i]->fam_fetch_uint64(one, i * 8), i * i + 3);
    }
    // A failure belongs to its context.
    all[0]->fam_get_nonblocking(&back, one, 1 << 20, 8);
    all[1]->fam_quiet();
    pool->fam_quiet();
    THROWS(FAM_ERR_OUTOFRANGE, all[0]->fam_quiet());
    // Data alone.
    THROWS(FAM_ERR_NOPERM, all[0]->fam_create_region("r", 1, 0777, nullptr));
    THROWS(FAM_ERR_NOPERM, all[0]->fam_lookup("item", "region"));
    THROWS(FAM_ERR_NOPERM, all[0]->fam_deallocate(one));
    THROWS(FAM_ERR_NOPERM, all[0]->fam_barrier_all());
    // It refuses, and stays.
    THROWS(FAM_ERR_NOPERM, all[0]->fam_finalize("x"));
    THROWS(FAM_ERR_NOPERM, all[0]->fam_finalize("x"));
    THROWS(FAM_ERR_NOPERM, all[0]->fam_context_open());
    THROWS(FAM_ERR_NOPERM, all[0]->fam_backup(one, "b", nullptr));
    THROWS(FAM_ERR_NOPERM, all[0]->fam_context_close(all[1]));
    for (auto context : all)
        pool->fam_context_close(context);
    THROWS(FAM_ERR_INVALID, pool->fam_context_close(nullptr));
}

void fences() {
    // Each write is ordered behind the one before by a fence.
    auto one = item(1 << 20);
    std::vector<uint64_t> large(1 << 14);
    for (uint64_t i = 1; i <= 200; i++) {
        std::fill(large.begin(), large.end(), i);
        pool->fam_put_nonblocking(large.data(), one, 0, large.size() * 8);
        pool->fam_fence();
        pool->fam_set(one, 8 * (i % large.size()), i + 1000);
        pool->fam_fence();
        SAME(pool->fam_fetch_uint64(one, 8 * (i % large.size())), i + 1000);
        SAME(pool->fam_fetch_uint64(one, 8 * ((i + 1) % large.size())), i);
    }
    pool->fam_quiet();
    // A fence keeps failures for quiet.
    pool->fam_put_nonblocking(large.data(), one, 1 << 20, 8);
    pool->fam_fence();
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_quiet());
}

// Scatters and copies on both sides of a fence.
void fences_of_others() {
    const uint64_t half = 1 << 19, places = half / 8;
    auto one = item(4 * half);
    std::vector<uint64_t> data(2 * places), found(4 * places);
    for (uint64_t i = 1; i <= 20; i++) {
        std::fill(data.begin(), data.end(), i);
        // A scatter behind a put, to the same two places, and an atomic behind the scatter.
        pool->fam_put_nonblocking(data.data(), one, 0, half);
        pool->fam_fence();
        std::vector<uint64_t> later(2 * places, i + 100);
        pool->fam_scatter_nonblocking(later.data(), one, 2, 0, 2, half);
        pool->fam_fence();
        pool->fam_set(one, half - 8, i + 200);
        pool->fam_fence();
        // A copy reads what came before it, and what comes behind it is not read.
        void *copy = pool->fam_copy(one, 0, one, 3 * half, half);
        pool->fam_fence();
        pool->fam_put_nonblocking(data.data(), one, 0, half);
        pool->fam_fence();
        // A put to where a copy has written.
        pool->fam_put_nonblocking(data.data(), one, 3 * half, 8);
        pool->fam_quiet();
        pool->fam_copy_wait(copy);
        pool->fam_get_blocking(found.data(), one, 0, 4 * half);
        for (uint64_t at = 0; at < places; at++) {
            SAME(found[at], i);
            SAME(found[2 * places + at], i + 100);
            SAME(found[3 * places + at], at == 0 ? i : at == places - 1 ? i + 200 : i + 100);
        }
    }
}

void threads() {
    auto one = item(1 << 16);
    std::vector<std::thread> all;
    const int count = 8, rounds = 300;
    for (int number = 0; number < count; number++)
        all.emplace_back([=] {
            fam_context *own = pool->fam_context_open();
            std::vector<uint64_t> data(64, number), back(64);
            for (int i = 0; i < rounds; i++) {
                pool->fam_add(one, 0, static_cast<uint64_t>(1));
                own->fam_fetch_add(one, 8, static_cast<int64_t>(number));
                own->fam_put_nonblocking(data.data(), one, 1024 + number * 512, 512);
                own->fam_quiet();
                own->fam_get_blocking(back.data(), one, 1024 + number * 512, 512);
                CHECK(back == data);
            }
            pool->fam_context_close(own);
        });
    for (auto &each : all)
        each.join();
    pool->fam_quiet();
    SAME(pool->fam_fetch_uint64(one, 0), count * rounds);
    SAME(pool->fam_fetch_int64(one, 8), rounds * count * (count - 1) / 2);
}

int descriptors() {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

// A context that is closed after its opener has ended holds nothing any more.
void closed_late() {
    int before = descriptors();
    fam other;
    other.fam_initialize("other", nullptr);
    auto context = other.fam_context_open();
    other.fam_finalize("other");
    CHECK(descriptors() > before);
    THROWS(FAM_ERR_INVALID, other.fam_context_close(nullptr));
    other.fam_context_close(context);
    SAME(descriptors(), before);
}

void two_objects() {
    fam other;
    other.fam_initialize("other", nullptr);
    auto one = item(1024);
    uint64_t value = 9;
    pool->fam_put_blocking(&value, one, 0, 8);
    // A descriptor serves every object.
    SAME(other.fam_fetch_uint64(one, 0), 9);
    other.fam_add(one, 0, value);
    other.fam_finalize("other");
    SAME(pool->fam_fetch_uint64(one, 0), 18);
    // What one object has opened stays open when the other one uses the descriptor.
    pool->fam_add(one, 0, value);
    pool->fam_quiet();
    other.fam_initialize("other", nullptr);
    SAME(other.fam_fetch_uint64(one, 0), 27);
    other.fam_finalize(nullptr);
}

} // namespace

const Case context_cases[] = {
    {"contexts", true, contexts},
    {"fences", true, fences},
    {"fences_of_others", true, fences_of_others},
    {"threads", true, threads},
    {"closed_late", true, closed_late},
    {"two_objects", true, two_objects},
    {nullptr, false, nullptr},
};

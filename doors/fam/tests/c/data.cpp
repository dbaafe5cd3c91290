// Put, get, gather and scatter, blocking and not, and fam_map.
#include "conformance.h"

namespace {

// Bytes that tell where they belong.
std::vector<unsigned char> pattern(size_t length, unsigned seed) {
    std::vector<unsigned char> bytes(length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = static_cast<unsigned char>((i + seed) * 2654435761u >> 13);
    return bytes;
}

void put_and_get() {
    const uint64_t size = 3 << 20;
    auto where = region(16 << 20);
    auto one = pool->fam_allocate("one", size, 0777, where);
    std::vector<unsigned char> expected(size, 0), back(size, 1);
    SAME(pool->fam_get_blocking(back.data(), one, 0, size), 0);
    CHECK(back == expected);
    const struct {
        uint64_t offset, length;
    } ranges[] = {{0, 1},        {7, 8},         {4096, 4096},        {1000000, 70000},
                  {size - 1, 1}, {1 << 20, 8},   {(1 << 20) - 3, 77}, {0, size},
                  {5, size - 9}, {123457, 2047}, {65536, 2049},       {(1 << 20) - 50000, 1 << 20}};
    unsigned seed = 0;
    for (auto range : ranges) {
        auto data = pattern(range.length, ++seed);
        SAME(pool->fam_put_blocking(data.data(), one, range.offset, range.length), 0);
        std::memcpy(&expected[range.offset], data.data(), range.length);
        std::fill(back.begin(), back.end(), 0xee);
        pool->fam_get_blocking(back.data(), one, range.offset, range.length);
        CHECK(std::memcmp(back.data(), &expected[range.offset], range.length) == 0);
        // No byte more.
        CHECK(range.length == size || back[range.length] == 0xee);
        pool->fam_get_blocking(back.data(), one, 0, size);
        CHECK(back == expected);
    }
    pool->fam_destroy_region(where);
}

void nonblocking() {
    const int count = 2000;
    auto where = region(32 << 20);
    auto one = pool->fam_allocate("one", count * 5000, 0777, where);
    std::vector<std::vector<unsigned char>> data, back(count);
    for (int i = 0; i < count; i++) {
        data.push_back(pattern(1 + i * 7 % 5000, i));
        back[i].resize(data[i].size());
        pool->fam_put_nonblocking(data[i].data(), one, i * 5000, data[i].size());
    }
    pool->fam_quiet();
    SAME(pool->fam_progress(), 0);
    for (int i = 0; i < count; i++)
        pool->fam_get_nonblocking(back[i].data(), one, i * 5000, back[i].size());
    pool->fam_quiet();
    CHECK(data == back);
    pool->fam_destroy_region(where);
}

void wrong_arguments() {
    auto one = item(1000);
    char local[8] = {0};
    uint64_t index[1] = {0};
    THROWS(FAM_ERR_INVALID, pool->fam_put_blocking(nullptr, one, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_get_blocking(nullptr, one, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_put_blocking(local, nullptr, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_get_blocking(local, one, 0, 0));
    THROWS(FAM_ERR_INVALID, pool->fam_put_nonblocking(nullptr, one, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_get_nonblocking(local, nullptr, 0, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_get_nonblocking(local, one, 0, 0));
    THROWS(FAM_ERR_INVALID, pool->fam_gather_blocking(nullptr, one, 1, 0, 1, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_gather_blocking(local, one, 0, 0, 1, 8));
    THROWS(FAM_ERR_INVALID, pool->fam_scatter_nonblocking(local, one, 1, 0, 1, 0));
    THROWS(FAM_ERR_INVALID, pool->fam_scatter_blocking(local, nullptr, 1, index, 8));
    uint64_t *nothing = nullptr;
    THROWS(FAM_ERR_INVALID, pool->fam_gather_blocking(local, one, 1, nothing, 8));
    pool->fam_quiet();
}

void ranges() {
    auto one = item(1000);
    uint64_t size = one->get_size();
    char local[8] = {0};
    uint64_t index[2] = {0, size / 8};
    const struct {
        uint64_t offset, length;
    } beyond[] = {{size, 1}, {size - 7, 8}, {UINT64_MAX, 1}, {UINT64_MAX - 3, 8}};
    for (auto range : beyond) {
        THROWS(FAM_ERR_OUTOFRANGE, pool->fam_put_blocking(local, one, range.offset, range.length));
        THROWS(FAM_ERR_OUTOFRANGE, pool->fam_get_blocking(local, one, range.offset, range.length));
        pool->fam_get_nonblocking(local, one, range.offset, range.length);
        pool->fam_put_nonblocking(local, one, range.offset, range.length);
        THROWS(FAM_ERR_OUTOFRANGE, pool->fam_quiet());
        // The context is clean again.
        pool->fam_quiet();
    }
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_get_blocking(local, one, 0, UINT64_MAX >> 1));
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_gather_blocking(local, one, 2, index, 8));
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_scatter_blocking(local, one, 2, 0, UINT64_MAX, 8));
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_fetch_int64(one, (size + 7) / 8 * 8));
    pool->fam_scatter_nonblocking(local, one, 2, index, 8);
    THROWS(FAM_ERR_OUTOFRANGE, pool->fam_quiet());
    pool->fam_put_blocking(local, one, size - 8, 8);
}

// Elements of every kind, against plain puts and gets of the same places.
void vectors(uint64_t size, bool blocking) {
    const uint64_t bytes = 5 << 19, count = 600;
    auto where = region(8 << 20);
    auto one = pool->fam_allocate("one", bytes, 0777, where);
    auto expected = pattern(bytes, 1), image = expected;
    pool->fam_put_blocking(expected.data(), one, 0, bytes);
    std::vector<uint64_t> index;
    for (uint64_t i = 0; i < count; i++)
        index.push_back((i * 7919 + i / 3) % (bytes / size));
    std::vector<unsigned char> local(count * size), found(bytes);
    const uint64_t first = 3, stride = bytes / size / count - 1;
    auto place = [&](bool listed, uint64_t i) {
        return (listed ? index[i] : first + i * stride) * size;
    };
    for (bool listed : {false, true}) {
        if (listed && blocking)
            pool->fam_gather_blocking(local.data(), one, count, index.data(), size);
        else if (listed)
            pool->fam_gather_nonblocking(local.data(), one, count, index.data(), size);
        else if (blocking)
            pool->fam_gather_blocking(local.data(), one, count, first, stride, size);
        else
            pool->fam_gather_nonblocking(local.data(), one, count, first, stride, size);
        pool->fam_quiet();
        for (uint64_t i = 0; i < count; i++)
            CHECK(std::memcmp(&local[i * size], &image[place(listed, i)], size) == 0);
        // Each element has bytes of its own, also where two have the same place: equal ones then.
        for (uint64_t i = 0; i < count; i++)
            for (uint64_t j = 0; j < size; j++)
                local[i * size + j] =
                    static_cast<unsigned char>(place(listed, i) * 31 + j + listed);
        if (listed && blocking)
            pool->fam_scatter_blocking(local.data(), one, count, index.data(), size);
        else if (listed)
            pool->fam_scatter_nonblocking(local.data(), one, count, index.data(), size);
        else if (blocking)
            pool->fam_scatter_blocking(local.data(), one, count, first, stride, size);
        else
            pool->fam_scatter_nonblocking(local.data(), one, count, first, stride, size);
        pool->fam_quiet();
        for (uint64_t i = 0; i < count; i++)
            std::memcpy(&image[place(listed, i)], &local[i * size], size);
        pool->fam_get_blocking(found.data(), one, 0, bytes);
        CHECK(found == image);
    }
    pool->fam_destroy_region(where);
}

void gather_and_scatter() {
    for (uint64_t size : {1, 4, 8, 24, 4000})
        vectors(size, true);
}

// An index may come again: a list is longer than what it names.
void indices_that_come_again() {
    const uint64_t places = 128, count = 4000;
    auto where = region(1 << 20);
    auto one = pool->fam_allocate("one", places * 8, 0777, where);
    std::vector<uint64_t> index, local(count), found(places);
    for (uint64_t i = 0; i < count; i++) {
        index.push_back(i * 7 % places);
        local[i] = 3 * index[i] + 1;
    }
    pool->fam_scatter_blocking(local.data(), one, count, index.data(), 8);
    pool->fam_get_blocking(found.data(), one, 0, places * 8);
    for (uint64_t i = 0; i < places; i++)
        SAME(found[i], 3 * i + 1);
    std::fill(local.begin(), local.end(), 0);
    pool->fam_gather_blocking(local.data(), one, count, index.data(), 8);
    for (uint64_t i = 0; i < count; i++)
        SAME(local[i], 3 * index[i] + 1);
    pool->fam_destroy_region(where);
}

// A stride of 0 names one element as often as there are elements: more bytes than the item has, and
// more than one message takes.
void a_stride_of_nothing() {
    auto where = region(1 << 20);
    auto one = pool->fam_allocate("one", 128, 0777, where);
    for (uint64_t count : {2, 200, 10000})
        for (bool blocking : {true, false}) {
            const uint64_t size = 8, first = 3, value = 2 * count + blocking;
            std::vector<uint64_t> local(count, value), found(16);
            pool->fam_put_blocking(found.data(), one, 0, 128);
            if (blocking)
                pool->fam_scatter_blocking(local.data(), one, count, first, 0, size);
            else
                pool->fam_scatter_nonblocking(local.data(), one, count, first, 0, size);
            pool->fam_quiet();
            pool->fam_get_blocking(found.data(), one, 0, 128);
            for (uint64_t i = 0; i < 16; i++)
                SAME(found[i], i == first ? value : 0);
            std::fill(local.begin(), local.end(), 0);
            if (blocking)
                pool->fam_gather_blocking(local.data(), one, count, first, 0, size);
            else
                pool->fam_gather_nonblocking(local.data(), one, count, first, 0, size);
            pool->fam_quiet();
            for (uint64_t each : local)
                SAME(each, value);
        }
    pool->fam_destroy_region(where);
}

void gather_and_scatter_nonblocking() {
    for (uint64_t size : {2, 8, 100, 3000})
        vectors(size, false);
}

void mapped() {
    // Where the model is shared_memory; elsewhere it is FAM_ERR_UNIMPL.
    char name[] = "OPENFAM_MODEL";
    char *model = static_cast<char *>(const_cast<void *>(pool->fam_get_option(name)));
    Fam_Region_Attributes given = {NONE, VOLATILE, DISABLE, REGION};
    auto where = pool->fam_create_region(fresh("map").c_str(), 1 << 20, 0777, &given);
    auto one = pool->fam_allocate("one", 10000, 0777, where);
    if (std::strcmp(model, "shared_memory") != 0) {
        THROWS(FAM_ERR_UNIMPL, pool->fam_map(one));
    } else {
        auto memory = static_cast<char *>(pool->fam_map(one));
        std::strcpy(memory + 5000, "by memory");
        char back[16] = {0};
        pool->fam_get_blocking(back, one, 5000, 10);
        CHECK(std::strcmp(back, "by memory") == 0);
        pool->fam_put_blocking(back, one, 9000, 10);
        CHECK(std::strcmp(memory + 9000, "by memory") == 0);
        THROWS(FAM_ERR_INVALID, pool->fam_unmap(back, one));
        pool->fam_unmap(memory, one);
        THROWS(FAM_ERR_INVALID, pool->fam_unmap(memory, one));
    }
    std::free(model);
    pool->fam_destroy_region(where);
}

void interleaved() {
    // With n servers, and blocks of the size that fam_stat shows.
    auto where = region(16 << 20);
    auto one = pool->fam_allocate("one", 9 << 20, 0777, where);
    Fam_Stat info;
    pool->fam_stat(one, &info);
    std::free(info.name);
    CHECK(info.num_memservers >= 1);
    SAME(one->get_used_memsrv_cnt(), info.num_memservers);
    if (info.num_memservers == 1) {
        SAME(info.interleaveSize, 0);
    } else {
        SAME(info.interleaveSize, one->get_interleave_size());
        CHECK(info.memory_servers[0] != info.memory_servers[1]);
        auto small = pool->fam_allocate("small", info.interleaveSize, 0777, where);
        SAME(small->get_used_memsrv_cnt(), 1);
    }
    Fam_Region_Attributes given = {NONE, VOLATILE, DISABLE, REGION};
    auto plain = pool->fam_create_region(fresh("plain").c_str(), 16 << 20, 0777, &given);
    auto whole = pool->fam_allocate("whole", 9 << 20, 0777, plain);
    SAME(whole->get_used_memsrv_cnt(), 1);
    auto data = pattern(9 << 20, 4), back = pattern(9 << 20, 5);
    for (auto each : {one, whole}) {
        pool->fam_put_blocking(data.data(), each, 0, data.size());
        pool->fam_get_blocking(back.data(), each, 0, back.size());
        CHECK(data == back);
    }
    pool->fam_destroy_region(where);
    pool->fam_destroy_region(plain);
}

} // namespace

const Case data_cases[] = {
    {"put_and_get", true, put_and_get},
    {"nonblocking", true, nonblocking},
    {"wrong_arguments", true, wrong_arguments},
    {"ranges", true, ranges},
    {"gather_and_scatter", true, gather_and_scatter},
    {"gather_and_scatter_nonblocking", true, gather_and_scatter_nonblocking},
    {"indices_that_come_again", true, indices_that_come_again},
    {"a_stride_of_nothing", true, a_stride_of_nothing},
    {"mapped", true, mapped},
    {"interleaved", true, interleaved},
    {nullptr, false, nullptr},
};

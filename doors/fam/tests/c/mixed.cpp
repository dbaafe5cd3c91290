// Operations of all kinds by several PEs, against a model: `mixed OPERATIONS SEED`.
//
// Each PE has a part of the item of its own, of which it has a copy in its memory, and compares all
// that it reads. A table of counters belongs to all: at the end each has the sum of what was added.
#include "conformance.h"

#include <algorithm>

fam *pool;

namespace {

const uint64_t part = 1 << 18, counters = 64;

// Numbers that follow from a seed.
class Numbers {
  public:
    explicit Numbers(uint64_t seed) : state(seed * 2654435761u + 1) {}
    uint64_t below(uint64_t end) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (state >> 33) % end;
    }

  private:
    uint64_t state;
};

int number(const char *name) {
    auto value = static_cast<const int *>(pool->fam_get_option(const_cast<char *>(name)));
    int found = *value;
    std::free(const_cast<int *>(value));
    return found;
}

// A PE's part of the item, and what is in it.
class Part {
  public:
    Part(Fam_Descriptor *item, uint64_t begin, uint64_t seed)
        : item(item), begin(begin), model(part, 0), local(part), numbers(seed) {}

    void step() {
        uint64_t offset = numbers.below(part), length = 1 + numbers.below(part - offset);
        if (numbers.below(8))
            length = 1 + (length - 1) % 64;
        switch (numbers.below(12)) {
        case 0:
        case 1:
            draw(length);
            pool->fam_put_blocking(local.data(), item, begin + offset, length);
            std::memcpy(&model[offset], local.data(), length);
            break;
        case 2:
            // Several at a time, to places of their own.
            for (uint64_t i = 0; i < 16; i++) {
                local[i] = static_cast<unsigned char>(numbers.below(256));
                model[i * (part / 16)] = local[i];
                pool->fam_put_nonblocking(&local[i], item, begin + i * (part / 16), 1);
            }
            pool->fam_quiet();
            break;
        case 3:
        case 4:
            pool->fam_get_blocking(local.data(), item, begin + offset, length);
            CHECK(std::memcmp(local.data(), &model[offset], length) == 0);
            break;
        case 5:
            swap(offset & ~static_cast<uint64_t>(7));
            break;
        case 6:
        case 7:
            vector(numbers.below(2) != 0);
            break;
        case 9:
            gets();
            break;
        case 10:
            strided(numbers.below(2) != 0, numbers.below(2) != 0);
            break;
        case 11:
            atomics(offset & ~static_cast<uint64_t>(7));
            break;
        case 8: {
            uint64_t half = part / 2, count = 1 + length % half;
            pool->fam_copy_wait(pool->fam_copy(item, begin, item, begin + half, count));
            std::memcpy(&model[half], &model[0], count);
            break;
        }
        }
    }

    void compare() {
        pool->fam_get_blocking(local.data(), item, begin, part);
        CHECK(local == model);
    }

  private:
    void draw(uint64_t length) {
        for (uint64_t i = 0; i < length; i++)
            local[i] = static_cast<unsigned char>(numbers.below(256));
    }

    // Several at a time, of lengths of their own.
    void gets() {
        const uint64_t count = 16, room = part / count;
        uint64_t offsets[count], lengths[count];
        for (uint64_t i = 0; i < count; i++) {
            lengths[i] = 1 + numbers.below(i ? 64 : room);
            offsets[i] = numbers.below(part - lengths[i] + 1);
            pool->fam_get_nonblocking(&local[i * room], item, begin + offsets[i], lengths[i]);
        }
        pool->fam_quiet();
        for (uint64_t i = 0; i < count; i++)
            CHECK(std::memcmp(&local[i * room], &model[offsets[i]], lengths[i]) == 0);
    }

    // Elements at equal distances.
    void strided(bool writes, bool waits) {
        const uint64_t sizes[] = {1, 4, 8, 24, 1000}, size = sizes[numbers.below(5)];
        // Elements are counted from the item's beginning, and the part's may be within one.
        const uint64_t first = (begin + size - 1) / size + numbers.below(100);
        const uint64_t room = (begin + part) / size - first, count = 1 + numbers.below(40);
        const uint64_t stride = 1 + numbers.below(room / count);
        auto place = [&](uint64_t i) { return &model[(first + i * stride) * size - begin]; };
        if (writes) {
            draw(count * size);
            if (waits)
                pool->fam_scatter_blocking(local.data(), item, count, first, stride, size);
            else
                pool->fam_scatter_nonblocking(local.data(), item, count, first, stride, size);
            pool->fam_quiet();
            for (uint64_t i = 0; i < count; i++)
                std::memcpy(place(i), &local[i * size], size);
        } else {
            if (waits)
                pool->fam_gather_blocking(local.data(), item, count, first, stride, size);
            else
                pool->fam_gather_nonblocking(local.data(), item, count, first, stride, size);
            pool->fam_quiet();
            for (uint64_t i = 0; i < count; i++)
                CHECK(std::memcmp(&local[i * size], place(i), size) == 0);
        }
    }

    void atomics(uint64_t offset) {
        switch (numbers.below(6)) {
        case 0:
            return atomic<int32_t>(offset);
        case 1:
            return atomic<int64_t>(offset);
        case 2:
            return atomic<uint32_t>(offset);
        case 3:
            return atomic<uint64_t>(offset);
        case 4:
            return atomic<float>(offset);
        default:
            return atomic<double>(offset);
        }
    }

    // Of a number that is set before: other bytes may be no number. Quarters are exact.
    template <typename T> void atomic(uint64_t offset) {
        auto draw = [&] { return static_cast<T>(static_cast<int>(numbers.below(4001)) - 2000) / 4; };
        const uint64_t at = begin + offset;
        const T before = draw(), other = draw();
        T after = before;
        pool->fam_set(item, at, before);
        pool->fam_fence();
        const bool fetches = numbers.below(2) != 0;
        switch (numbers.below(4)) {
        case 0:
            after = std::min(before, other);
            fetches ? same(pool->fam_fetch_min(item, at, other), before) : pool->fam_min(item, at, other);
            break;
        case 1:
            after = std::max(before, other);
            fetches ? same(pool->fam_fetch_max(item, at, other), before) : pool->fam_max(item, at, other);
            break;
        case 2:
            after += other;
            fetches ? same(pool->fam_fetch_add(item, at, other), before) : pool->fam_add(item, at, other);
            break;
        case 3:
            after -= other;
            fetches ? same(pool->fam_fetch_subtract(item, at, other), before)
                    : pool->fam_subtract(item, at, other);
            break;
        }
        pool->fam_quiet();
        std::memcpy(&model[offset], &after, sizeof(T));
    }

    template <typename T> static void same(T found, T expected) { CHECK(found == expected); }

    void swap(uint64_t offset) {
        uint64_t value = numbers.below(UINT64_MAX), old;
        std::memcpy(&old, &model[offset], 8);
        if (numbers.below(2)) {
            CHECK(pool->fam_swap(item, begin + offset, value) == old);
        } else {
            CHECK(pool->fam_fetch_xor(item, begin + offset, value) == old);
            value ^= old;
        }
        std::memcpy(&model[offset], &value, 8);
    }

    void vector(bool writes) {
        const uint64_t size = 8, count = 1 + numbers.below(40);
        std::vector<uint64_t> index;
        for (uint64_t i = 0; i < count; i++)
            index.push_back(begin / size + (i * 801 + numbers.below(700)) % (part / size));
        if (writes) {
            // An element that has two places in the list is written twice: with the same.
            for (uint64_t i = 0; i < count; i++)
                std::memcpy(&local[i * size], &index[i], size);
            pool->fam_scatter_blocking(local.data(), item, count, index.data(), size);
            for (uint64_t i = 0; i < count; i++)
                std::memcpy(&model[index[i] * size - begin], &index[i], size);
        } else {
            pool->fam_gather_blocking(local.data(), item, count, index.data(), size);
            for (uint64_t i = 0; i < count; i++)
                CHECK(std::memcmp(&local[i * size], &model[index[i] * size - begin], size) == 0);
        }
    }

    Fam_Descriptor *item;
    uint64_t begin;
    std::vector<unsigned char> model, local;
    Numbers numbers;
};

int run(uint64_t operations, uint64_t seed, const std::string &name) {
    int own = number("PE_ID"), count = number("PE_COUNT");
    if (own == 0) {
        auto made = pool->fam_create_region(name.c_str(), (count + 2) * part, 0600, nullptr);
        pool->fam_allocate("parts", count * part, 0600, made);
        pool->fam_allocate("counters", counters * 8, 0600, made);
    }
    pool->fam_barrier_all();
    auto sums = pool->fam_lookup("counters", name.c_str());
    Part mine(pool->fam_lookup("parts", name.c_str()), own * part, seed + own);
    std::vector<uint64_t> added(counters, 0);
    for (uint64_t i = 0; i < operations; i++) {
        mine.step();
        // Numbers of all PEs follow from the seed, so that each knows the sums.
        uint64_t which = (i * 7 + own) % counters;
        if (i % 2)
            pool->fam_add(sums, which * 8, i);
        else
            pool->fam_fetch_add(sums, which * 8, i);
    }
    pool->fam_quiet();
    mine.compare();
    pool->fam_barrier_all();
    for (int pe = 0; pe < count; pe++)
        for (uint64_t i = 0; i < operations; i++)
            added[(i * 7 + pe) % counters] += i;
    std::vector<uint64_t> found(counters);
    pool->fam_get_blocking(found.data(), sums, 0, counters * 8);
    CHECK(found == added);
    pool->fam_barrier_all();
    if (own == 0)
        pool->fam_destroy_region(pool->fam_lookup_region(name.c_str()));
    std::printf("OK %d of %d\n", own, count);
    return 0;
}

} // namespace

int main(int, char **argv) {
    fam object;
    pool = &object;
    try {
        object.fam_initialize("mixed", nullptr);
        int failed = run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                         std::string("mixed") + argv[2]);
        object.fam_finalize("mixed");
        return failed;
    } catch (Fam_Exception &e) {
        std::printf("error %d: %s\n", e.fam_error(), e.fam_error_msg());
        return 1;
    }
}

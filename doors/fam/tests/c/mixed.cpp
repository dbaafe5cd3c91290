// Operations of all kinds by several PEs, against a model: `mixed OPERATIONS SEED`.
//
// Each PE has a part of the item of its own, of which it has a copy in its memory, and compares all
// that it reads. A table of counters belongs to all: at the end each has the sum of what was added.
#include "conformance.h"

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
        switch (numbers.below(9)) {
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

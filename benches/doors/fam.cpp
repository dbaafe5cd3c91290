// How long blocking puts and gets of a fam object take: microseconds, the median over batches, and
// MB/s.
#include <fam/fam.h>
#include <fam/fam_exception.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace openfam;

namespace {

const int batches = 31;
const uint64_t most = 1 << 20;

// It begins with a line of the cache, as that of the program of LAPI does.
alignas(64) char memory[most];

template <typename Call> void measure(const char *what, uint64_t bytes, int count, Call call) {
    std::vector<double> all;
    for (int batch = 0; batch < batches; batch++) {
        auto begun = std::chrono::steady_clock::now();
        for (int n = 0; n < count; n++)
            call();
        std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begun;
        all.push_back(time.count() / count);
    }
    std::sort(all.begin(), all.end());
    double median = all[batches / 2];
    std::printf("fam %s %llu: %.3f us (best %.3f), %.0f MB/s\n", what,
                static_cast<unsigned long long>(bytes), median, all[0], bytes / median);
}

} // namespace

int main() {
    static const struct {
        uint64_t bytes;
        int count;
    } sizes[] = {{8, 2000}, {4096, 1000}, {most, 40}};
    fam pool;
    try {
        pool.fam_initialize("bench", nullptr);
        auto region = pool.fam_create_region("bench", 2 * most, 0600, nullptr);
        auto item = pool.fam_allocate("item", most, 0600, region);
        uint64_t bytes = 0;
        auto put = [&] { pool.fam_put_blocking(memory, item, 0, bytes); };
        auto get = [&] { pool.fam_get_blocking(memory, item, 0, bytes); };
        auto add = [&] { pool.fam_fetch_add(item, 0, static_cast<uint64_t>(1)); };
        for (auto &size : sizes) {
            bytes = size.bytes;
            measure("put", bytes, size.count, put);
            measure("get", bytes, size.count, get);
        }
        measure("fetch_add", 8, 2000, add);
        pool.fam_destroy_region(region);
        delete item;
        delete region;
        pool.fam_finalize("bench");
    } catch (Fam_Exception &failure) {
        std::fprintf(stderr, "%s\n", failure.fam_error_msg());
        return 1;
    }
    return 0;
}

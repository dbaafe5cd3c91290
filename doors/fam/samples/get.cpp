// Gets of both kinds out of an item of 50 integers, which the program makes first: `get GROUP`.
#include <cstdio>
#include <vector>

#include <fam/fam.h>
#include <fam/fam_exception.h>

using namespace openfam;

int main(int argc, char **argv) {
    fam pool;
    try {
        pool.fam_initialize(argc > 1 ? argv[1] : "sample", nullptr);
        Fam_Region_Descriptor *region = pool.fam_create_region("samples", 1 << 20, 0600, nullptr);
        Fam_Descriptor *item = pool.fam_allocate("squares", 50 * sizeof(int), 0600, region);
        std::vector<int> squares(50);
        for (int i = 0; i < 50; i++)
            squares[i] = i * i;
        pool.fam_put_blocking(squares.data(), item, 0, 50 * sizeof(int));

        // Any program that may read it finds the item by its name.
        Fam_Descriptor *found = pool.fam_lookup("squares", "samples");
        int some[10], others[10];
        pool.fam_get_blocking(some, found, 6 * sizeof(int), sizeof(some));
        std::printf("elements 6 to 15:");
        for (int number : some)
            std::printf(" %d", number);

        // Two at a time: the data is there when fam_quiet returns.
        pool.fam_get_nonblocking(some, found, 16 * sizeof(int), sizeof(some));
        pool.fam_get_nonblocking(others, found, 26 * sizeof(int), sizeof(others));
        pool.fam_quiet();
        std::printf("\nelements 16 to 35:");
        for (int number : some)
            std::printf(" %d", number);
        for (int number : others)
            std::printf(" %d", number);
        std::printf("\n");

        delete found;
        pool.fam_destroy_region(region);
        delete item;
        delete region;
        pool.fam_finalize("sample");
    } catch (Fam_Exception &e) {
        std::printf("OpenFAM: error %d: %s\n", e.fam_error(), e.fam_error_msg());
        return 1;
    }
    return 0;
}

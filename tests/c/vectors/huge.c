/*
 * Vectors of more than 4 GiB in all, between two tasks: huge KIND (putv, getv or amv)
 *
 * 66 blocks of 64 MiB and some, put by task 0 to task 1, got by task 1 from task 0, or sent. Most
 * of the memory is never written and reads as zero; every block holds a few stamps. "SKIP" is
 * printed when the machine has not enough memory.
 */
#include "vec.h"

#include <sys/mman.h>

enum { BLOCKS = 66, STAMPS = 5, MARGIN = 4096 };
#define BLOCK ((64ul << 20) + 1111)
#define FROM_STRIDE (BLOCK + 4096 + 8)
#define TO_STRIDE (BLOCK + 777)

static unsigned char *area;
static void **areas, **handlers, **tgt_cntrs;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static ulong room;

static ulong stamp_at(int block, int i) {
    static const ulong edges[] = {0, BLOCK - 8, BLOCK / 2, 4096 - 3};
    return i < 4 ? edges[i] : t_seed((uint64_t)block, (uint64_t)i, 1) % (BLOCK - 8);
}
static uint64_t stamp_of(int block, int i) { return t_seed((uint64_t)block, (uint64_t)i, 2) | 1; }

static void stamp(void) {
    int block, i;
    for (block = 0; block < BLOCKS; block++)
        for (i = STAMPS - 1; i >= 0; i--) {
            uint64_t value = stamp_of(block, i);
            memcpy(area + MARGIN + (ulong)block * FROM_STRIDE + stamp_at(block, i), &value, 8);
        }
}

/* Checks the stamps and clears them; all other bytes must be zero. */
static void check(void) {
    int block, i, j;
    ulong k;
    for (block = 0; block < BLOCKS; block++) {
        unsigned char *at = area + MARGIN + (ulong)block * TO_STRIDE;
        for (i = 0; i < STAMPS; i++) {
            uint64_t found, value = stamp_of(block, i);
            int covered = 0;
            for (j = 0; j < i; j++)
                covered |= stamp_at(block, i) < stamp_at(block, j) + 8 && stamp_at(block, j) < stamp_at(block, i) + 8;
            memcpy(&found, at + stamp_at(block, i), 8);
            CHECK_FOR(covered || found == value, "stamp %d of block %d is %#lx", i, block, (ulong)found);
        }
        for (i = 0; i < STAMPS; i++) memset(at + stamp_at(block, i), 0, 8);
    }
    for (k = 0; k < room; k += 1 << 20) {
        ulong now = room - k < 1 << 20 ? room - k : 1 << 20;
        CHECK_FOR(area[k] == 0 && memcmp(area + k, area + k + 1, now - 1) == 0, "something else lies in MiB %lu", k >> 20);
    }
}

static side part(int target) {
    side s = v_strided(BLOCKS, BLOCK, target ? TO_STRIDE : FROM_STRIDE, MARGIN - VEC_GUARD);
    s.type = LAPI_GEN_IOVECTOR; /* described block by block, */
    return s;
}

static lapi_vec_t *arriving(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                            void **uinfo) {
    side s = part(1);
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)uinfo;
    CHECK_EQ(*len_vec, BLOCKS * BLOCK);
    s.type = LAPI_GEN_STRIDED_XFER; /* or as a template */
    *comp_h = NULL;
    return v_vector(&s, area);
}

static unsigned long available(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long kilobytes = 0;
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lu", &kilobytes) == 1) break;
    fclose(file);
    return kilobytes << 10;
}

int main(int argc, char **argv) {
    lapi_long_t enough[2];
    side from = part(0), to = part(1);
    CHECK(argc == 2);
    t_init();
    CHECK_EQ(t_tasks, 2);
    room = 2 * MARGIN + BLOCKS * FROM_STRIDE;
    area = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    OK(LAPI_Address_init64(t_hndl, area != MAP_FAILED && available() > room + room / 2 + (1ul << 30), enough));
    if (!enough[0] || !enough[1]) {
        printf("SKIP: %lu MiB of memory are not enough for vectors of %lu MiB\n", available() >> 20, room >> 20);
        t_done();
        return 0;
    }
    areas = t_addresses(area);
    handlers = t_addresses((void *)arriving);
    tgt_cntrs = t_addresses(&tgt_cntr);
    if (t_me == 0) stamp();
    t_fence();
    if (strcmp(argv[1], "putv") == 0 && t_me == 0) {
        OK(LAPI_Putv(t_hndl, 1, v_vector(&to, areas[1]), v_vector(&from, area), tgt_cntrs[1], &org_cntr, &cmpl_cntr));
        t_wait_exact(&org_cntr, 1);
        t_wait_exact(&cmpl_cntr, 1);
    } else if (strcmp(argv[1], "amv") == 0 && t_me == 0) {
        from.type = LAPI_GEN_STRIDED_XFER;
        OK(LAPI_Amsendv(t_hndl, 1, handlers[1], NULL, 0, v_vector(&from, area), tgt_cntrs[1], &org_cntr, &cmpl_cntr));
        t_wait_exact(&org_cntr, 1);
        t_wait_exact(&cmpl_cntr, 1);
    } else if (strcmp(argv[1], "getv") == 0 && t_me == 1) {
        OK(LAPI_Getv(t_hndl, 0, v_vector(&from, areas[0]), v_vector(&to, area), tgt_cntrs[0], &org_cntr));
        t_wait_exact(&org_cntr, 1);
    } else {
        t_wait_exact(&tgt_cntr, 1);
    }
    if (t_me == 1) check();
    t_done();
    return 0;
}

/*
 * Messages of a GiB and of more than 4 GiB between tasks 0 and 1: huge GIB
 *
 * Zeroed memory uses no pages before it is written, so the origin is zeros with a word in some
 * places, and at any time at most one of the two areas is real. The receiver looks at every word.
 */
#include "../common/ltest.h"

#include <sys/mman.h>

static uint64_t *area;
static size_t len; /* in bytes, not a multiple of anything: the last word is cut */
static void **areas, **tgt_cntrs, **handlers;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;
static volatile int handled;

static size_t stamp_place(size_t i) { return (i << 20) / 8 + t_seed(i, 77, 0) % ((1 << 20) / 8); }
static size_t stamps(void) { return len >> 20; }

/* Makes the area a zero one again, as far as memory goes, with its stamps. */
static void stamp(uint64_t seed) {
    size_t i;
    CHECK_EQ(madvise(area, len, MADV_DONTNEED), 0);
    for (i = 0; i < stamps(); i++) area[stamp_place(i)] = t_seed(seed, i, 1) | 1;
    ((unsigned char *)area)[len - 1] = (unsigned char)seed;
}

static void clear(void) { CHECK_EQ(madvise(area, len, MADV_DONTNEED), 0); }

static void check(uint64_t seed) {
    const unsigned char *bytes = (const unsigned char *)area;
    size_t words = len / 8, next, i = 0;
    for (next = 0; next <= stamps(); next++) {
        size_t place = next < stamps() ? stamp_place(next) : words;
        uint64_t expected = t_seed(seed, next, 1) | 1;
        for (; i < place; i++)
            if (area[i] != 0) T_FAIL("word %zu is %#lx, expected 0", i, (ulong)area[i]);
        if (next == stamps()) break;
        if (area[i] != expected) T_FAIL("word %zu is %#lx, expected %#lx", i, (ulong)area[i], (ulong)expected);
        i++;
    }
    CHECK_EQ(bytes[len - 1], (unsigned char)seed);
    CHECK_EQ(bytes[len], 0);
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    lapi_return_info_t *ret = (lapi_return_info_t *)msg_len;
    (void)hndl, (void)uhdr, (void)uhdr_len;
    CHECK_EQ(*msg_len, len);
    CHECK_PTR(ret->udata_one_pkt_ptr, NULL);
    handled++;
    *comp_h = NULL;
    *uinfo = NULL;
    return area;
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
    CHECK(argc == 2);
    len = (strtoul(argv[1], NULL, 10) << 30) + 4093;
    t_init();
    CHECK_EQ(t_tasks, 2);
    area = mmap(NULL, len + 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    OK(LAPI_Address_init64(t_hndl, area != MAP_FAILED && available() > len + len / 2 + (1ul << 30), enough));
    if (!enough[0] || !enough[1]) {
        printf("SKIP: %lu MiB of memory are not enough for messages of %zu MiB\n", available() >> 20, len >> 20);
        t_done();
        return 0;
    }
    areas = t_addresses(area);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses((void *)arrived);

    /* put from 0 to 1 */
    if (t_me == 0) {
        stamp(1);
        OK(LAPI_Put(t_hndl, 1, len, areas[1], area, tgt_cntrs[1], &org_cntr, &cmpl_cntr));
        t_wait_exact(&org_cntr, 1);
        t_wait_exact(&cmpl_cntr, 1);
        clear();
    } else {
        t_wait_exact(&tgt_cntr, 1);
        check(1);
        stamp(2);
    }
    t_fence();

    /* get by 0 from 1 */
    if (t_me == 0) {
        OK(LAPI_Get(t_hndl, 1, len, areas[1], area, tgt_cntrs[1], &org_cntr));
        t_wait_exact(&org_cntr, 1);
        check(2);
        clear();
    } else {
        t_wait_exact(&tgt_cntr, 1);
        stamp(3);
    }
    t_fence();

    /* active message from 1 to 0 */
    if (t_me == 1) {
        OK(LAPI_Amsend(t_hndl, 0, handlers[0], NULL, 0, area, len, tgt_cntrs[0], &org_cntr, &cmpl_cntr));
        t_wait_exact(&org_cntr, 1);
        clear();
        t_wait_exact(&cmpl_cntr, 1);
    } else {
        t_wait_exact(&tgt_cntr, 1);
        CHECK_EQ(handled, 1);
        check(3);
        clear();
    }
    t_done();
    return 0;
}

/*
 * Every misalignment of both sides: align KIND LARGEST
 *
 * 256 transfers of one length at a time, one for each pair of misalignments 0 to 15, between slots
 * that have room around the data. The memory around it must not change.
 */
#include "../common/ltest.h"

enum { PAIRS = 256, MARGIN = 32, POISON = 0xee };

static const size_t lengths[] = {0,  1,  2,  3,   7,   8,   9,   15,  16,  17,  31,   33,   63,   64,
                                 65, 100, 127, 128, 129, 255, 256, 1023, 4095, 4097, 8193, 16384, 65537};

static unsigned char *out, *in;
static void **outs, **ins, **tgt_cntrs, **handlers;
static lapi_cntr_t tgt_cntr, org_cntr, cmpl_cntr;

static size_t slot_size(size_t len) { return (MARGIN + 16 + len + MARGIN + 63) / 64 * 64; }

static unsigned char *slot(void *memory, size_t len, int pair, int misalign) {
    return (unsigned char *)memory + (size_t)pair * slot_size(len) + MARGIN + misalign;
}

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    ulong len = *msg_len;
    int pair;
    (void)hndl;
    CHECK_EQ(*uhdr_len, sizeof pair);
    memcpy(&pair, uhdr, sizeof pair);
    CHECK(pair >= 0 && pair < PAIRS);
    *comp_h = NULL;
    *uinfo = NULL;
    return slot(in, len, pair, pair % 16);
}

static void all_pairs(const char *kind, int distance, size_t len) {
    int tgt = (t_me + distance) % t_tasks, src = (t_me - distance + t_tasks) % t_tasks, pair;
    int is_get = strcmp(kind, "get") == 0;
    size_t size = slot_size(len), i;
    memset(in, POISON, PAIRS * size);
    memset(out, POISON, PAIRS * size);
    for (pair = 0; pair < PAIRS; pair++)
        t_fill(slot(out, len, pair, pair / 16), len, t_seed((uint64_t)t_me, len, (uint64_t)pair));
    t_fence();
    for (pair = 0; pair < PAIRS; pair++) {
        unsigned char *mine = slot(out, len, pair, pair / 16);
        if (is_get)
            OK(LAPI_Get(t_hndl, (uint)tgt, len, slot(outs[tgt], len, pair, pair / 16), slot(in, len, pair, pair % 16),
                        tgt_cntrs[tgt], &org_cntr));
        else if (strcmp(kind, "put") == 0)
            OK(LAPI_Put(t_hndl, (uint)tgt, len, slot(ins[tgt], len, pair, pair % 16), mine, tgt_cntrs[tgt], &org_cntr,
                        &cmpl_cntr));
        else
            OK(LAPI_Amsend(t_hndl, (uint)tgt, handlers[tgt], &pair, sizeof pair, mine, len, tgt_cntrs[tgt], NULL,
                           &cmpl_cntr));
        /* The user header is in a variable that the next round changes. */
        if (strcmp(kind, "am") == 0) t_wait_exact(&cmpl_cntr, 1);
    }
    if (strcmp(kind, "am") != 0) t_wait_exact(&org_cntr, PAIRS);
    if (strcmp(kind, "put") == 0) t_wait_exact(&cmpl_cntr, PAIRS);
    t_wait_exact(&tgt_cntr, PAIRS);
    for (pair = 0; pair < PAIRS; pair++) {
        unsigned char *data = slot(in, len, pair, pair % 16), *begin = in + (size_t)pair * size;
        uint64_t seed = t_seed((uint64_t)(is_get ? tgt : src), len, (uint64_t)pair);
        long where = t_differs(data, len, seed);
        CHECK_FOR(where < 0, "%s of %zu bytes from misalignment %d to %d: byte %ld is wrong", kind, len, pair / 16,
                  pair % 16, where);
        for (i = 0; i < size; i++)
            CHECK_FOR((begin + i >= data && begin + i < data + len) || begin[i] == POISON,
                      "%s of %zu bytes from misalignment %d to %d: byte %ld of the room around has changed", kind, len,
                      pair / 16, pair % 16, (long)(begin + i - data));
    }
}

int main(int argc, char **argv) {
    size_t largest, room, i;
    int distance;
    CHECK(argc == 3);
    largest = strtoul(argv[2], NULL, 10);
    room = PAIRS * slot_size(largest);
    t_init();
    CHECK_EQ(posix_memalign((void **)&out, 4096, room), 0);
    CHECK_EQ(posix_memalign((void **)&in, 4096, room), 0);
    outs = t_addresses(out);
    ins = t_addresses(in);
    tgt_cntrs = t_addresses(&tgt_cntr);
    handlers = t_addresses((void *)arrived);
    for (distance = 0; distance < t_tasks; distance++)
        for (i = 0; i < sizeof lengths / sizeof *lengths && lengths[i] <= largest; i++)
            all_pairs(argv[1], distance, lengths[i]);
    t_done();
    return 0;
}

/*
 * LAPI_DGSP_PACK and LAPI_DGSP_UNPACK: pack CASE
 *
 *   random SEED CASES   random programs packed into one buffer, one behind the other, and unpacked again
 *   errors              every error leaves position and buffers as they were
 *   edges               no bytes, LAPI_BYTE, offsets that are addresses, a function that takes what is unpacked
 */
#include "message.h"

enum { PARTS = 5, GUARD = 64, LONGEST = 20000, ROOM = PARTS * LONGEST + 2 * GUARD };

static lapi_util_t packing(lapi_dg_handle_t dgsp, const void *in, long bytes, void *out, ulong out_size,
                           ulong position) {
    lapi_util_t util;
    bzero(&util, sizeof util);
    util.PackDgsp.Util_type = LAPI_DGSP_PACK;
    util.PackDgsp.dgsp = dgsp;
    util.PackDgsp.in_buf = (void *)in;
    util.PackDgsp.bytes = (ulong)bytes;
    util.PackDgsp.out_buf = out;
    util.PackDgsp.out_size = out_size;
    util.PackDgsp.position = position;
    return util;
}

static lapi_util_t unpacking(lapi_dg_handle_t dgsp, const void *in, ulong in_size, void *out, long bytes,
                             ulong position) {
    lapi_util_t util;
    bzero(&util, sizeof util);
    util.UnpackDgsp.Util_type = LAPI_DGSP_UNPACK;
    util.UnpackDgsp.dgsp_handle = dgsp;
    util.UnpackDgsp.buf = (void *)in;
    util.UnpackDgsp.in_size = in_size;
    util.UnpackDgsp.out_buf = out;
    util.UnpackDgsp.bytes = (ulong)bytes;
    util.UnpackDgsp.position = position;
    return util;
}

/* --- random --- */

static void randomly(uint64_t seed, int cases) {
    static const taste tastes[] = {
        {8, 1, 100, 2000, 6000, 0}, {4, 4, 4, 400, 3000, 0}, {3, 8, 8, 400, 9000, 0}, {2, 16, 16, 900, 9000, 0},
        {3, 2, 2, 300, 3000, 0},    {2, 1, 1, 60, 500, 0},
    };
    int number, i;
    printf("seed %llu\n", (unsigned long long)seed);
    for (number = 0; number < cases; number++) {
        uint64_t random = t_seed(seed, (uint64_t)t_me, (uint64_t)number);
        unsigned char packed[ROOM], before[ROOM], *source[PARTS], *stream[PARTS];
        end from[PARTS];
        ulong at = GUARD, start = GUARD, size;
        /* Each part starts its program from the beginning. */
        for (i = 0; i < PARTS; i++) {
            program *p = p_random(&random, &tastes[t_below(&random, sizeof tastes / sizeof *tastes)]);
            long bytes = (long)t_below(&random, 3 * (uint64_t)p->size + 1);
            from[i] = e_make(p, bytes < LONGEST ? bytes : LONGEST);
            e_register(&from[i]);
            source[i] = malloc((size_t)from[i].area);
            CHECK(source[i] != NULL);
            t_fill(source[i], (size_t)from[i].area, t_seed(seed, (uint64_t)number, (uint64_t)i));
            stream[i] = e_stream(&from[i], source[i]);
            at += (ulong)from[i].bytes;
        }
        size = at;
        t_fill(packed, sizeof packed, 1);
        t_fill(before, sizeof before, 1);
        for (at = start, i = 0; i < PARTS; i++) {
            lapi_util_t util =
                packing(from[i].p->handle, e_base(&from[i], source[i]), from[i].bytes, packed, size, at);
            OK(LAPI_Util(t_hndl, &util));
            memcpy(before + at, stream[i], (size_t)from[i].bytes);
            at += (ulong)from[i].bytes;
            CHECK_EQ(util.PackDgsp.position, at);
            CHECK_FOR(memcmp(packed, before, sizeof packed) == 0, "case %d: part %d is packed wrongly", number, i);
        }
        /* Back through programs of their own, the parts in another order. */
        for (i = PARTS - 1; i >= 0; i--) {
            program *p = p_random(&random, &tastes[t_below(&random, sizeof tastes / sizeof *tastes)]);
            end to = e_make(p, from[i].bytes);
            unsigned char *target = malloc((size_t)to.area);
            lapi_util_t util;
            CHECK(target != NULL);
            e_register(&to);
            t_fill(target, (size_t)to.area, 9);
            at -= (ulong)from[i].bytes;
            util = unpacking(p->handle, packed, size, e_base(&to, target), to.bytes, at);
            OK(LAPI_Util(t_hndl, &util));
            CHECK_EQ(util.UnpackDgsp.position, at + (ulong)to.bytes);
            E_CHECK(&to, target, 9, stream[i]);
            CHECK(memcmp(packed, before, sizeof packed) == 0);
            e_unreserve(&to);
            e_free(&to);
            free(target);
        }
        for (i = 0; i < PARTS; i++) {
            e_unreserve(&from[i]);
            e_free(&from[i]);
            free(source[i]);
            free(stream[i]);
        }
    }
}

/* --- errors --- */

static program *fields(void) {
    program *p = p_new();
    p_copy(p, 0, 3, 1);
    p_copy(p, 0, 4, 8);
    p_write(p, 12, 1);
    p_register(p);
    return p;
}

static program *controlled(void) {
    program *p = p_new();
    p_control(p, 0, 4, 5);
    p_copy(p, 0, 4, 0);
    p_write(p, 8, 1);
    p_register(p);
    return p;
}

/* A call that is refused: neither position nor any byte changes. */
static void refused(int line, lapi_util_t util, lapi_handle_t hndl, int code) {
    lapi_util_t asked = util;
    unsigned char *out = util.Util_type == LAPI_DGSP_PACK ? util.PackDgsp.out_buf : util.UnpackDgsp.out_buf;
    int result;
    if (out != NULL) memset(out, 0xee, 100);
    result = LAPI_Util(hndl, &util);
    if (result != code) t_fail(__FILE__, line, "the request returns %d, expected %d", result, code);
    if (asked.PackDgsp.position != util.PackDgsp.position) t_fail(__FILE__, line, "position has changed");
    if (out != NULL && (out[0] != 0xee || memcmp(out, out + 1, 99) != 0)) t_fail(__FILE__, line, "data has changed");
}
#define REFUSED(util, code) refused(__LINE__, (util), t_hndl, (code))

static void errors(void) {
    program *p = fields(), *gone = fields(), *control = controlled();
    unsigned char in[256], out[256];
    lapi_dg_handle_t h = p->handle;
    t_fill(in, sizeof in, 3);
    OK(p_unreserve(gone->handle));
    REFUSED(packing(h, in, 21, out, 20, 0), LAPI_ERR_PACK_SZ);
    REFUSED(packing(h, in, 7, out, 20, 14), LAPI_ERR_PACK_SZ);
    REFUSED(packing(h, in, 1, out, 20, 20), LAPI_ERR_PACK_SZ);
    REFUSED(packing(h, in, 0, out, 20, 21), LAPI_ERR_PACK_SZ);
    REFUSED(packing(h, in, 2, out, 20, ~0ul), LAPI_ERR_PACK_SZ);
    REFUSED(packing(h, in, -1, out, 20, 2), LAPI_ERR_PACK_SZ);
    REFUSED(unpacking(h, in, 20, out, 21, 0), LAPI_ERR_PACK_SZ);
    REFUSED(unpacking(h, in, 20, out, 7, 14), LAPI_ERR_PACK_SZ);
    REFUSED(unpacking(h, in, 20, out, 1, 20), LAPI_ERR_PACK_SZ);
    REFUSED(unpacking(h, in, 20, out, 2, ~0ul), LAPI_ERR_PACK_SZ);
    REFUSED(unpacking(h, in, 0, out, 1, 0), LAPI_ERR_PACK_SZ);
    REFUSED(packing(NULL, in, 7, out, 20, 0), LAPI_ERR_DGSP);
    REFUSED(unpacking(NULL, in, 20, out, 7, 0), LAPI_ERR_DGSP);
    REFUSED(packing(gone->handle, in, 7, out, 20, 0), LAPI_ERR_DGSP);
    REFUSED(unpacking(gone->handle, in, 20, out, 7, 0), LAPI_ERR_DGSP);
    REFUSED(packing((lapi_dg_handle_t)&p->descr, in, 7, out, 20, 0), LAPI_ERR_DGSP);
    REFUSED(packing(control->handle, in, 4, out, 20, 0), LAPI_ERR_DGSP_CTL);
    REFUSED(unpacking(control->handle, in, 20, out, 4, 0), LAPI_ERR_DGSP_CTL); /* without a function */
    refused(__LINE__, packing(h, in, 7, out, 20, 0), t_hndl + 1, LAPI_ERR_HNDL_INVALID);
    refused(__LINE__, unpacking(h, in, 20, out, 7, 0), LAPI_VOID_HANDLE, LAPI_ERR_HNDL_INVALID);
    OK(p_unreserve(h));
    OK(p_unreserve(control->handle));
    free(p);
    free(gone);
    free(control);
}

/* --- edges --- */

static int taken;

static long take(void *data, void *inout, long bytes, int operand, int operation) {
    CHECK_EQ(operation, 4);
    CHECK_EQ(operand, 5);
    CHECK_EQ(bytes, 4);
    *(int *)inout -= *(int *)data;
    taken++;
    return bytes;
}

static void edges(void) {
    static int scattered[40];
    program *p = fields(), *control = controlled(), *addresses = p_new();
    unsigned char in[64], out[64];
    int packed[4] = {1, 2, 3, 4}, matrix[8] = {10, 20, 30, 40, 50, 60, 70, 80}, i;
    lapi_util_t util;
    t_fill(in, sizeof in, 3);
    memset(out, 0xee, sizeof out);
    /* Nothing, at the very end of a buffer, and from nowhere to nowhere. */
    util = packing(p->handle, in, 0, out, 20, 20);
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(util.PackDgsp.position, 20);
    util = packing(p->handle, NULL, 0, NULL, 0, 0);
    OK(LAPI_Util(t_hndl, &util));
    util = unpacking(p->handle, NULL, 0, NULL, 0, 0);
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(out[0], 0xee);
    /* Bytes as they are. */
    util = packing(LAPI_BYTE, in, 30, out, sizeof out, 3);
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(util.PackDgsp.position, 33);
    CHECK_EQ(memcmp(out + 3, in, 30), 0);
    CHECK(out[2] == 0xee && out[33] == 0xee);
    util = unpacking(LAPI_BYTE, in, sizeof in, out, 64, 0);
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(memcmp(out, in, 64), 0);
    /* Two and a half times the program. */
    util = packing(p->handle, in, 17, out, 17, 0);
    OK(LAPI_Util(t_hndl, &util));
    for (i = 0; i < 17; i++) CHECK_EQ(out[i], in[i / 7 * 12 + (i % 7 < 3 ? 1 + i % 7 : 5 + i % 7)]);
    /* Offsets that are addresses: no buffer. */
    p_copy(addresses, 0, 4, (long)(uintptr_t)&scattered[30]);
    p_copy(addresses, 0, 4, (long)(uintptr_t)&scattered[2]);
    p_write(addresses, 0, 1);
    p_register(addresses);
    scattered[30] = 77;
    scattered[2] = 88;
    util = packing(addresses->handle, NULL, 8, packed, sizeof packed, 4);
    OK(LAPI_Util(t_hndl, &util));
    CHECK(packed[0] == 1 && packed[1] == 77 && packed[2] == 88 && packed[3] == 4);
    packed[1] = 1000;
    util = unpacking(addresses->handle, packed, sizeof packed, NULL, 8, 4);
    OK(LAPI_Util(t_hndl, &util));
    CHECK(scattered[30] == 1000 && scattered[2] == 88);
    /* The function takes ints out. */
    packed[1] = 2;
    packed[2] = 3;
    OK(p_ddm(t_hndl, take));
    util = unpacking(control->handle, packed, sizeof packed, matrix, 16, 0);
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(taken, 4);
    for (i = 0; i < 8; i++) CHECK_EQ(matrix[i], 10 * (i + 1) - (i % 2 ? 0 : packed[i / 2]));
    OK(p_unreserve(p->handle));
    OK(p_unreserve(control->handle));
    OK(p_unreserve(addresses->handle));
    free(p);
    free(control);
    free(addresses);
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "random") == 0 && argc == 4) randomly(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    else if (strcmp(which, "errors") == 0) errors();
    else if (strcmp(which, "edges") == 0) edges();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}

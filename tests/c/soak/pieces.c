/* Operations on data in pieces: vectors, and layouts of the gather/scatter machine. */
#include "../dgsp/program.h"
#include "operations.h"

side shape(uint64_t seed, int type, int which) {
    uint64_t random = seed;
    uint count = 1 + (uint)t_below(&random, 12), i;
    ulong len[12], total = 0, block = 1 + t_below(&random, 2000);
    if (type == LAPI_GEN_STRIDED_XFER)
        return v_strided(count, block, block + (seed >> which * 8 & 255), seed >> which * 4 & 15);
    for (i = 0; i < count; i++) total += len[i] = t_below(&random, 3000);
    /* A target of another shape than the origin, for that type alone. */
    if (type == LAPI_GEN_GENERIC && which == TARGET) return v_pieces(type, 1, &total, 0, seed + 1);
    return v_pieces(type, count, len, (int)((seed >> which) % PLACEMENTS), seed + (uint64_t)which);
}

int do_vectors(worker_t *w, int tgt) {
    uint64_t seed = t_random(&w->random);
    int type = (int)t_below(&w->random, 2), plain = (int)t_below(&w->random, 2), came = 0;
    side from = shape(seed, type, ORIGIN), to = shape(seed, type, TARGET), home = shape(seed, type, HOME);
    lapi_vec_t *org = v_vector(&from, w->vector), *tgt_vec = v_vector(&to, places[t_me][w->number].vector),
               *back = v_vector(&home, w->vector_home);
    lapi_lvec_t *wide = v_long_vector(&to, places[t_me][w->number].vector);
    lapi_xfer_t xfer;
    v_fill(&from, w->vector, seed);
    v_poison(&home, w->vector_home);
    prepare(w, tgt, 1);
    if (plain) {
        if (!WENT(LAPI_Putv(t_hndl, (uint)tgt, tgt_vec, org, ARRIVAL, &w->org, &w->cntr), tgt)) goto out;
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Putv.Xfer_type = LAPI_PUTV_XFER;
        xfer.Putv.tgt = (uint)tgt;
        xfer.Putv.org_vec = org;
        xfer.Putv.tgt_vec = wide;
        xfer.Putv.shdlr = sending_is_over;
        xfer.Putv.sinfo = w;
        xfer.Putv.tgt_cntr = t_long(ARRIVAL);
        xfer.Putv.org_cntr = &w->org;
        xfer.Putv.cmpl_cntr = &w->cntr;
        if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) goto out;
        w->accepted++;
    }
    came = settle(w, tgt, 1);
    origin_settles(w, tgt, 1);
    if (!came) goto out;
    came = 0;
    sent[tgt].counters++;
    work_done(PUTV, from.bytes);
    prepare(w, tgt, 1);
    if (plain) {
        if (!WENT(LAPI_Getv(t_hndl, (uint)tgt, tgt_vec, back, ARRIVAL, &w->cntr), tgt)) goto out;
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Getv.Xfer_type = LAPI_GETV_XFER;
        xfer.Getv.flags = USE_TGT_VEC_TYPE;
        xfer.Getv.tgt = (uint)tgt;
        xfer.Getv.org_vec = back;
        xfer.Getv.tgt_vec = tgt_vec;
        xfer.Getv.tgt_cntr = t_long(ARRIVAL);
        xfer.Getv.org_cntr = &w->cntr;
        if (!WENT(LAPI_Xfer(t_hndl, &xfer), tgt)) goto out;
    }
    if (!settle(w, tgt, 1)) goto out;
    sent[tgt].counters++;
    V_CHECK(&home, w->vector_home, home.bytes, seed);
    work_done(GETV, home.bytes);
    came = 1;
out:
    v_spoil(org), v_spoil(tgt_vec), v_spoil(back), v_spoil_long(wide);
    v_free(&from), v_free(&to), v_free(&home);
    return came;
}

int do_vector_message(worker_t *w, int tgt) {
    uint64_t seed = t_random(&w->random);
    int type = (int)t_below(&w->random, 3), came = 0;
    side from = shape(seed, type, ORIGIN);
    lapi_vec_t *org = v_vector(&from, w->vector);
    note_t note = note_of(w, PIECES, from.bytes, seed, type);
    lapi_xfer_t xfer;
    v_fill(&from, w->vector, seed);
    prepare(w, tgt, 1);
    if (t_below(&w->random, 2)) {
        came = WENT(LAPI_Amsendv(t_hndl, (uint)tgt, (void *)arrived_in_pieces, &note, sizeof note, org, ARRIVAL, &w->org,
                                 &w->cntr), tgt);
    } else {
        bzero(&xfer, sizeof xfer);
        xfer.Amv.Xfer_type = LAPI_AMV_XFER;
        xfer.Amv.tgt = (uint)tgt;
        xfer.Amv.hdr_hdl = t_long((void *)arrived_in_pieces);
        xfer.Amv.uhdr = &note;
        xfer.Amv.uhdr_len = sizeof note;
        xfer.Amv.shdlr = sending_is_over;
        xfer.Amv.sinfo = w;
        xfer.Amv.org_vec = org;
        xfer.Amv.tgt_cntr = t_long(ARRIVAL);
        xfer.Amv.org_cntr = &w->org;
        xfer.Amv.cmpl_cntr = &w->cntr;
        came = WENT(LAPI_Xfer(t_hndl, &xfer), tgt);
        w->accepted += (uint64_t)came;
    }
    if (came) {
        came = settle(w, tgt, 1);
        origin_settles(w, tgt, 1);
    }
    if (came) {
        sent[tgt].counters++;
        sent[tgt].messages++;
        work_done(AMV, from.bytes);
    }
    v_spoil(org);
    v_free(&from);
    return came;
}

/* Columns of a matrix, packed, unpacked, and sent. */
int do_layout(worker_t *w, int tgt) {
    long piece = 1 + (long)t_below(&w->random, 300), apart = piece + (long)t_below(&w->random, 200), i;
    long count = 1 + (long)t_below(&w->random, 100), bytes = piece * count;
    uint64_t seed = t_random(&w->random);
    program *p = p_new();
    lapi_dg_handle_t handle;
    note_t note = note_of(w, PLACED, (size_t)bytes, seed, 0);
    lapi_xfer_t xfer;
    lapi_util_t util;
    int came;
    p_gosub(p, 0, 1, count, 0, apart);
    p_copy(p, 1, piece, 0);
    p->depth = p_depth(p, 0);
    p_write(p, apart * count, 1);
    handle = p_register(p);
    OK(p_reserve(handle));
    free(p);
    t_fill(w->home, (size_t)bytes, seed);
    for (i = 0; i < count; i++) memcpy(w->out + i * apart, w->home + i * piece, (size_t)piece);
    bzero(&util, sizeof util);
    util.PackDgsp.Util_type = LAPI_DGSP_PACK;
    util.PackDgsp.dgsp = handle;
    util.PackDgsp.in_buf = w->out;
    util.PackDgsp.bytes = (ulong)bytes;
    util.PackDgsp.out_buf = w->vector;
    util.PackDgsp.out_size = sizeof w->vector;
    OK(LAPI_Util(t_hndl, &util));
    CHECK_EQ(util.PackDgsp.position, bytes);
    CHECK_FILLED(w->vector, (size_t)bytes, seed);
    bzero(&util, sizeof util);
    util.UnpackDgsp.Util_type = LAPI_DGSP_UNPACK;
    util.UnpackDgsp.dgsp = handle;
    util.UnpackDgsp.in_buf = w->vector;
    util.UnpackDgsp.in_size = (ulong)bytes;
    util.UnpackDgsp.out_buf = w->home;
    util.UnpackDgsp.bytes = (ulong)bytes;
    OK(LAPI_Util(t_hndl, &util));
    for (i = 0; i < count; i++)
        CHECK(memcmp(w->home + i * apart, w->out + i * apart, (size_t)piece) == 0);
    work_done(PACK, 2 * (uint64_t)bytes);
    prepare(w, tgt, 1);
    bzero(&xfer, sizeof xfer);
    xfer.Dgsp.Xfer_type = LAPI_DGSP_XFER;
    xfer.Dgsp.tgt = (uint)tgt;
    xfer.Dgsp.hdr_hdl = t_long((void *)arrived);
    xfer.Dgsp.uhdr = &note;
    xfer.Dgsp.uhdr_len = sizeof note;
    xfer.Dgsp.udata = w->out;
    xfer.Dgsp.udata_len = (ulong)bytes;
    xfer.Dgsp.dgsp = handle;
    xfer.Dgsp.shdlr = sending_is_over;
    xfer.Dgsp.sinfo = w;
    xfer.Dgsp.tgt_cntr = t_long(ARRIVAL);
    xfer.Dgsp.org_cntr = &w->org;
    xfer.Dgsp.cmpl_cntr = &w->cntr;
    came = WENT(LAPI_Xfer(t_hndl, &xfer), tgt);
    w->accepted += (uint64_t)came;
    /* The operation keeps the parts that it needs. */
    OK(p_unreserve(handle));
    OK(p_unreserve(handle));
    if (came) {
        came = settle(w, tgt, 1);
        origin_settles(w, tgt, 1);
    }
    if (!came) return 0;
    sent[tgt].counters++;
    sent[tgt].messages++;
    work_done(DGSP, (uint64_t)bytes);
    return 1;
}

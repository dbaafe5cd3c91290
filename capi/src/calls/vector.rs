//! LAPI_Amsendv, LAPI_Putv, LAPI_Getv.

use super::done;
use crate::table;
use libc::{c_int, c_uint, c_void};
use openlapi::abi::*;
use openlapi::api::vector::{self, Pair};
use openlapi::base::bytes::Piece;
use openlapi::dgsp::vector::Vector;
use openlapi::engine::context::request::{GetDone, Hint, Message};
use openlapi::proto::content::Content;
use std::ptr;

pub(crate) unsafe fn amsendv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    hdr_hdl: *mut c_void,
    uhdr: *mut c_void,
    uhdr_len: c_uint,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    let message = Message {
        tgt,
        handler: hdr_hdl as u64,
        header: Piece { ptr: uhdr as *const u8, len: uhdr_len as usize },
        data: Content::EMPTY,
        shape: None,
        atom: 0,
        tgt_cntr: tgt_cntr as u64,
        cmpl_cntr: cmpl_cntr as usize,
        done: done(tgt, org_cntr, None, ptr::null_mut(), 0),
        hint: Hint::None,
        copied: false,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Amsendv", hndl, |held| unsafe {
        vector::amsend(held, message, Vector::of(org_vec).as_ref())
    })
}

pub(crate) unsafe fn putv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    tgt_vec: *mut lapi_vec_t,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: null, or vectors of the program.
    let (origin, target) = unsafe { (Vector::of(org_vec), Vector::of(tgt_vec)) };
    let pair = Pair {
        tgt,
        origin: origin.as_ref(),
        target: target.as_ref(),
        tgt_cntr: tgt_cntr as u64,
        hint: Hint::None,
    };
    let done = done(tgt, org_cntr, None, ptr::null_mut(), 0);
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Putv", hndl, |held| unsafe { vector::put(held, &pair, cmpl_cntr as usize, done) })
}

pub(crate) unsafe fn getv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    tgt_vec: *mut lapi_vec_t,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: null, or vectors of the program.
    let (origin, target) = unsafe { (Vector::of(org_vec), Vector::of(tgt_vec)) };
    let pair = Pair {
        tgt,
        origin: origin.as_ref(),
        target: target.as_ref(),
        tgt_cntr: tgt_cntr as u64,
        hint: Hint::None,
    };
    let done = GetDone { org_cntr: org_cntr as usize, handler: None, parameter: 0 };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Getv", hndl, |held| unsafe { vector::get(held, &pair, done) })
}

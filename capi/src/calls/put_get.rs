//! LAPI_Put and LAPI_Get.

use super::done;
use crate::table;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::put_get;
use openlapi::base::bytes::Piece;
use openlapi::engine::context::request::{Get, Hint, Put};
use std::ptr;

#[inline]
pub(crate) unsafe fn put(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    let put = Put {
        tgt,
        addr: tgt_addr as u64,
        data: Piece { ptr: org_addr as *const u8, len: len as usize },
        tgt_cntr: tgt_cntr as u64,
        cmpl_cntr: cmpl_cntr as usize,
        done: done(tgt, org_cntr, None, ptr::null_mut(), len),
        hint: Hint::None,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Put", hndl, |held| unsafe { put_get::put(held, &put) })
}

#[inline]
pub(crate) unsafe fn get(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    let get = Get {
        tgt,
        addr: tgt_addr as u64,
        buffer: org_addr as usize,
        len: wide(len),
        tgt_cntr: tgt_cntr as u64,
        org_cntr: org_cntr as usize,
        handler: None,
        parameter: 0,
        hint: Hint::None,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Get", hndl, |held| unsafe { put_get::get(held, &get) })
}

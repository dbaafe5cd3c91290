//! LAPI_Put and LAPI_Get.

use crate::boundary;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::put_get;
use openlapi_runtime::request;

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
    // SAFETY: the caller's promise.
    unsafe { put_in::<0>(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, cmpl_cntr) }
}

/// LAPI_Put in the caller's own frame, where the arguments on the stack are read without being
/// copied. Each `FRAME` has code of its own.
#[inline(always)]
pub(crate) unsafe fn put_in<const FRAME: u8>(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    let put = request::PlainPut {
        tgt,
        local: org_addr as usize,
        remote: tgt_addr as lapi_long_t,
        len: len as usize,
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr: org_cntr as usize,
        cmpl_cntr: cmpl_cntr as usize,
    };
    let outcome = match boundary::enter(hndl) {
        // SAFETY: what the man page asks of the program is what the core asks.
        Ok(mut held) => unsafe { put_get::plain_put(&mut held, put) },
        Err(error) => Err(error),
    };
    boundary::code("LAPI_Put", hndl, outcome)
}

/// LAPI_Get in the caller's own frame.
#[inline(always)]
pub(crate) unsafe fn get(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    let get = request::PlainGet {
        tgt,
        remote: tgt_addr as lapi_long_t,
        local: org_addr as usize,
        len: len as usize,
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr: org_cntr as usize,
    };
    let outcome = match boundary::enter(hndl) {
        // SAFETY: what the man page asks of the program is what the core asks.
        Ok(mut held) => unsafe { put_get::plain_get(&mut held, get) },
        Err(error) => Err(error),
    };
    boundary::code("LAPI_Get", hndl, outcome)
}

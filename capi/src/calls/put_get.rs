//! LAPI_Put and LAPI_Get.

use crate::boundary;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::{Clear, put_get};
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
    if put.len <= put_get::SHORT
        && let Some(call) = boundary::short(hndl, Clear::TO_SEND)
        // SAFETY: what the man page asks of the program is what the core asks.
        && unsafe { put_get::put_shortly::<false>(call, &put) }
    {
        return LAPI_SUCCESS;
    }
    // SAFETY: the caller's promise.
    unsafe { any_put(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, cmpl_cntr) }
}

#[inline(never)]
unsafe fn any_put(
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
    if put.len > put_get::SHORT
        && let Some(call) = boundary::short(hndl, Clear::TO_SEND)
        // SAFETY: what the man page asks of the program is what the core asks.
        && unsafe { put_get::put_shortly::<true>(call, &put) }
    {
        return LAPI_SUCCESS;
    }
    // SAFETY: what the man page asks of the program is what the core asks.
    boundary::call("LAPI_Put", hndl, |held| unsafe { put_get::put(held, &put.into()) })
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
    if let Some(call) = boundary::short(hndl, Clear::TO_SEND)
        // SAFETY: what the man page asks of the program is what the core asks.
        && unsafe { put_get::get_shortly(call, &get) }
    {
        return LAPI_SUCCESS;
    }
    // SAFETY: the caller's promise.
    unsafe { any_get(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr) }
}

#[inline(never)]
unsafe fn any_get(
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
    // SAFETY: what the man page asks of the program is what the core asks.
    boundary::call("LAPI_Get", hndl, |held| unsafe { put_get::get(held, &get.into()) })
}

//! LAPI_Rmw and LAPI_Rmw64.

use crate::boundary;
use libc::{c_int, c_longlong, c_uint, c_void};
use openlapi::abi::*;
use openlapi::api::rmw as api;
use openlapi_runtime::request;
use std::ptr;

pub(crate) unsafe fn rmw(
    hndl: lapi_handle_t,
    op: RMW_ops_t,
    tgt: c_uint,
    tgt_var: *mut c_int,
    in_val: *mut c_int,
    prev_tgt_val: *mut c_int,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        start("LAPI_Rmw", hndl, op, 32, tgt, tgt_var.cast(), in_val.cast(), prev_tgt_val.cast(), org_cntr)
    }
}

pub(crate) unsafe fn rmw64(
    hndl: lapi_handle_t,
    op: RMW_ops_t,
    tgt: c_uint,
    tgt_var: *mut c_longlong,
    in_val: *mut c_longlong,
    prev_tgt_val: *mut c_longlong,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        start("LAPI_Rmw64", hndl, op, 64, tgt, tgt_var.cast(), in_val.cast(), prev_tgt_val.cast(), org_cntr)
    }
}

/// Starts the operation for a variable of `size` bits.
///
/// # Safety
/// The addresses must be as the man page wants them.
unsafe fn start(
    name: &str,
    hndl: lapi_handle_t,
    op: RMW_ops_t,
    size: c_uint,
    tgt: c_uint,
    tgt_var: *mut c_void,
    in_val: *mut c_void,
    prev_tgt_val: *mut c_void,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    let request = request::read_modify_write(&lapi_rmw_t {
        Xfer_type: LAPI_RMW_XFER,
        op,
        tgt,
        size,
        tgt_var: tgt_var as lapi_long_t,
        in_val,
        prev_tgt_val,
        org_cntr,
        shdlr: None,
        sinfo: ptr::null_mut(),
    });
    // SAFETY: what the man page asks of the program is what the core asks.
    boundary::call(name, hndl, |held| unsafe { api::rmw(held, &request) })
}

//! LAPI_Rmw and LAPI_Rmw64.

use super::done;
use crate::table;
use libc::{c_int, c_longlong, c_uint};
use openlapi::abi::*;
use openlapi::api::rmw::{self, Request};
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
    let request = Request {
        tgt,
        op,
        size: 32,
        var: tgt_var as u64,
        in_val: in_val as usize,
        previous: prev_tgt_val as usize,
        done: done(tgt, org_cntr, None, ptr::null_mut(), 0),
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Rmw", hndl, |held| unsafe { rmw::rmw(held, &request) })
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
    let request = Request {
        tgt,
        op,
        size: 64,
        var: tgt_var as u64,
        in_val: in_val as usize,
        previous: prev_tgt_val as usize,
        done: done(tgt, org_cntr, None, ptr::null_mut(), 0),
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Rmw64", hndl, |held| unsafe { rmw::rmw(held, &request) })
}

//! LAPI_Amsendv, LAPI_Putv, LAPI_Getv: not built yet.

use crate::table;
use libc::{c_int, c_uint, c_void};
use openlapi::abi::{lapi_cntr_t, lapi_handle_t, lapi_vec_t};
use openlapi::api::unbuilt;

pub(crate) unsafe fn amsendv(
    hndl: lapi_handle_t,
    _tgt: c_uint,
    _hdr_hdl: *mut c_void,
    _uhdr: *mut c_void,
    _uhdr_len: c_uint,
    _org_vec: *mut lapi_vec_t,
    _tgt_cntr: *mut lapi_cntr_t,
    _org_cntr: *mut lapi_cntr_t,
    _cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    table::call("LAPI_Amsendv", hndl, |_| Err(unbuilt::call("LAPI_Amsendv")))
}

pub(crate) unsafe fn putv(
    hndl: lapi_handle_t,
    _tgt: c_uint,
    _tgt_vec: *mut lapi_vec_t,
    _org_vec: *mut lapi_vec_t,
    _tgt_cntr: *mut lapi_cntr_t,
    _org_cntr: *mut lapi_cntr_t,
    _cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    table::call("LAPI_Putv", hndl, |_| Err(unbuilt::call("LAPI_Putv")))
}

pub(crate) unsafe fn getv(
    hndl: lapi_handle_t,
    _tgt: c_uint,
    _tgt_vec: *mut lapi_vec_t,
    _org_vec: *mut lapi_vec_t,
    _tgt_cntr: *mut lapi_cntr_t,
    _org_cntr: *mut lapi_cntr_t,
) -> c_int {
    table::call("LAPI_Getv", hndl, |_| Err(unbuilt::call("LAPI_Getv")))
}

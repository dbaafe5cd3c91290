//! LAPI_Amsendv, LAPI_Putv, LAPI_Getv.

use crate::boundary;
use libc::{c_int, c_uint, c_void};
use openlapi::abi::*;
use openlapi::api::vector;
use openlapi_runtime::request;
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
    let message = request::vector_message(&lapi_amv_t {
        Xfer_type: LAPI_AMV_XFER,
        flags: 0,
        tgt,
        pad: 0,
        hdr_hdl: hdr_hdl as lapi_long_t,
        uhdr_len,
        pad2: 0,
        uhdr,
        shdlr: None,
        sinfo: ptr::null_mut(),
        org_vec,
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr,
        cmpl_cntr,
    });
    // SAFETY: what the man page asks of the program is what the core asks.
    boundary::call("LAPI_Amsendv", hndl, |held| unsafe {
        vector::amsend(held, message, request::origin_vector(org_vec), false)
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
    let command = lapi_putv_t {
        Xfer_type: LAPI_PUTV_XFER,
        flags: USE_TGT_VEC_TYPE,
        tgt,
        pad: 0,
        shdlr: None,
        sinfo: ptr::null_mut(),
        org_vec,
        tgt_vec: tgt_vec.cast(),
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr,
        cmpl_cntr,
    };
    boundary::call("LAPI_Putv", hndl, |held| {
        // SAFETY: what the man page asks of the program is what the core asks.
        unsafe { vector::put(held, request::put_vector(&command)) }
    })
}

pub(crate) unsafe fn getv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    tgt_vec: *mut lapi_vec_t,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    let command = lapi_getv_t {
        Xfer_type: LAPI_GETV_XFER,
        flags: USE_TGT_VEC_TYPE,
        tgt,
        pad: 0,
        org_vec,
        tgt_vec: tgt_vec.cast(),
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr,
        chndlr: None,
        cinfo: ptr::null_mut(),
    };
    boundary::call("LAPI_Getv", hndl, |held| {
        // SAFETY: what the man page asks of the program is what the core asks.
        unsafe { vector::get(held, request::get_vector(&command)) }
    })
}

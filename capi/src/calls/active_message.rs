//! LAPI_Amsend.

use crate::boundary;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::{active_message, request};
use std::ptr;

#[inline]
pub(crate) unsafe fn amsend(
    hndl: lapi_handle_t,
    tgt: c_uint,
    hdr_hdl: *mut c_void,
    uhdr: *mut c_void,
    uhdr_len: c_uint,
    udata: *mut c_void,
    udata_len: c_ulong,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    let message = request::active_message(&lapi_am_t {
        Xfer_type: LAPI_AM_XFER,
        flags: 0,
        tgt,
        pad: 0,
        hdr_hdl: hdr_hdl as lapi_long_t,
        uhdr_len,
        pad2: 0,
        uhdr,
        udata,
        udata_len,
        shdlr: None,
        sinfo: ptr::null_mut(),
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr,
        cmpl_cntr,
    });
    // SAFETY: what the man page asks of the program is what the core asks.
    boundary::call("LAPI_Amsend", hndl, |held| unsafe { active_message::amsend(held, &message) })
}

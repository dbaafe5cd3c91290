//! LAPI_Amsend.

use crate::boundary;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::active_message;
use openlapi_runtime::request;

#[inline(always)]
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
    let message = request::PlainMessage {
        tgt,
        handler: hdr_hdl as lapi_long_t,
        header: request::piece(uhdr, uhdr_len as usize),
        data: request::piece(udata, udata_len as usize),
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr: org_cntr as usize,
        cmpl_cntr: cmpl_cntr as usize,
    };
    let outcome = match boundary::enter(hndl) {
        // SAFETY: what the man page asks of the program is what the core asks.
        Ok(mut held) => unsafe { active_message::plain_amsend(&mut held, message) },
        Err(error) => Err(error),
    };
    boundary::code("LAPI_Amsend", hndl, outcome)
}

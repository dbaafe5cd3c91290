//! LAPI_Amsend.

use crate::boundary;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::{Clear, active_message};
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
    let message = plain(tgt, hdr_hdl, (uhdr, uhdr_len), (udata, udata_len), tgt_cntr, org_cntr, cmpl_cntr);
    if !active_message::is_long(&message)
        && let Some(call) = boundary::short(hndl, Clear::TO_SEND)
        // SAFETY: what the man page asks of the program is what the core asks.
        && unsafe { active_message::amsend_shortly::<false>(call, &message) }
    {
        return LAPI_SUCCESS;
    }
    // SAFETY: the caller's promise.
    unsafe { any_amsend(hndl, tgt, hdr_hdl, uhdr, uhdr_len, udata, udata_len, tgt_cntr, org_cntr, cmpl_cntr) }
}

#[inline(never)]
unsafe fn any_amsend(
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
    let message = plain(tgt, hdr_hdl, (uhdr, uhdr_len), (udata, udata_len), tgt_cntr, org_cntr, cmpl_cntr);
    if active_message::is_long(&message)
        && let Some(call) = boundary::short(hndl, Clear::TO_SEND)
        // SAFETY: what the man page asks of the program is what the core asks.
        && unsafe { active_message::amsend_shortly::<true>(call, &message) }
    {
        return LAPI_SUCCESS;
    }
    // SAFETY: what the man page asks of the program is what the core asks.
    boundary::call("LAPI_Amsend", hndl, |held| unsafe { active_message::amsend(held, &message.into()) })
}

#[inline(always)]
fn plain(
    tgt: c_uint,
    handler: *mut c_void,
    (uhdr, uhdr_len): (*mut c_void, c_uint),
    (udata, udata_len): (*mut c_void, c_ulong),
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> request::PlainMessage {
    request::PlainMessage {
        tgt,
        handler: handler as lapi_long_t,
        header: request::piece(uhdr, uhdr_len as usize),
        data: request::piece(udata, udata_len as usize),
        tgt_cntr: tgt_cntr as lapi_long_t,
        org_cntr: org_cntr as usize,
        cmpl_cntr: cmpl_cntr as usize,
    }
}

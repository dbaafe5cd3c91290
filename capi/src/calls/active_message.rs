//! LAPI_Amsend.

use super::done;
use crate::table;
use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::active_message;
use openlapi::base::bytes::Piece;
use openlapi::engine::context::request::{Hint, Message};
use openlapi::proto::content::Content;
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
    let message = Message {
        tgt,
        handler: hdr_hdl as u64,
        header: Piece { ptr: uhdr as *const u8, len: uhdr_len as usize },
        data: Content::Piece(Piece { ptr: udata as *const u8, len: udata_len as usize }),
        shape: None,
        atom: 0,
        tgt_cntr: tgt_cntr as u64,
        cmpl_cntr: cmpl_cntr as usize,
        done: done(tgt, org_cntr, None, ptr::null_mut(), udata_len),
        hint: Hint::None,
        copied: false,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    table::call("LAPI_Amsend", hndl, |held| unsafe { active_message::amsend(held, &message) })
}

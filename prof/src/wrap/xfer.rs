//! LAPI_Xfer: any transfer. A handler of the origin gets a wrapper, in a copy of the program's structure.

use super::arguments::{Arguments as _, LAPI_Xfer};
use super::sizes;
use crate::calls::Call;
use crate::handlers;
use crate::record::{Before, Seen, Traffic, call_begins, record, untimed};
use libc::{c_int, c_void};
use openlapi::abi::{
    LAPI_AM_LW_XFER, LAPI_AM_XFER, LAPI_AMV_XFER, LAPI_DGSP_XFER, LAPI_GET_XFER, LAPI_GETV_XFER,
    LAPI_PUT_XFER, LAPI_PUTV_XFER, LAPI_RMW_XFER, LAPI_SUCCESS, lapi_xfer_t,
};
use openlapi::base::clock::ticks;
use std::mem::MaybeUninit;
use std::ptr::{self, null_mut};

impl LAPI_Xfer {
    /// # Safety
    ///
    /// As LAPI_Xfer.
    pub unsafe fn profiled(self, site: usize, _: Option<Traffic>) -> c_int {
        Self::find();
        // SAFETY: null, or a structure of its type.
        let (call, traffic) = unsafe { look(self.xfer_cmd) };
        let mut copy = MaybeUninit::uninit();
        // SAFETY: as above.
        let loan = unsafe { with_wrapper(call, self.xfer_cmd, &mut copy) };
        let xfer_cmd = if loan.is_null() { self.xfer_cmd } else { copy.as_mut_ptr() };
        let untimed = if call.moves() { untimed(call, site) } else { None };
        let start = if untimed.is_none() { ticks() } else { 0 };
        let before = if untimed.is_none() { call_begins(call, site, start) } else { Before::default() };
        // SAFETY: the program's structure, or a copy that differs in the handler and its parameter.
        let code = unsafe { Self { xfer_cmd, ..self }.make() };
        if code != LAPI_SUCCESS && !loan.is_null() {
            handlers::give_up(loan);
        }
        match untimed {
            Some(untimed) => untimed.ended(code == LAPI_SUCCESS, traffic),
            None => {
                let good = code == LAPI_SUCCESS;
                record(Seen { call, site, start, end: ticks(), good, traffic }, before);
            }
        }
        code
    }
}

/// The requested call, and what it moves.
///
/// # Safety
///
/// `request` is null or what LAPI_Xfer takes.
unsafe fn look(request: *const lapi_xfer_t) -> (Call, Option<Traffic>) {
    if request.is_null() {
        return (Call::LAPI_Xfer, None);
    }
    let message = |header: u32, data: u64| u64::from(header).saturating_add(data);
    // SAFETY: the type names the member, and only that one is read: the program may have allocated no more.
    let (call, peer, bytes) = unsafe {
        match *request.cast() {
            LAPI_GET_XFER => (Call::XferGet, (*request).Get.tgt, (*request).Get.len),
            LAPI_PUT_XFER => (Call::XferPut, (*request).Put.tgt, (*request).Put.len),
            LAPI_AM_XFER => {
                (Call::XferAm, (*request).Am.tgt, message((*request).Am.uhdr_len, (*request).Am.udata_len))
            }
            LAPI_AM_LW_XFER => {
                (Call::XferAmLw, (*request).Am.tgt, message((*request).Am.uhdr_len, (*request).Am.udata_len))
            }
            LAPI_DGSP_XFER => (
                Call::XferDgsp,
                (*request).Dgsp.tgt,
                message((*request).Dgsp.uhdr_len, (*request).Dgsp.udata_len),
            ),
            LAPI_AMV_XFER => {
                let data = sizes::of((*request).Amv.org_vec);
                (Call::XferAmv, (*request).Amv.tgt, message((*request).Amv.uhdr_len, data))
            }
            LAPI_GETV_XFER => (Call::XferGetv, (*request).Getv.tgt, sizes::of((*request).Getv.org_vec)),
            LAPI_PUTV_XFER => (Call::XferPutv, (*request).Putv.tgt, sizes::of((*request).Putv.org_vec)),
            LAPI_RMW_XFER => (Call::XferRmw, (*request).Rmw.tgt, u64::from((*request).Rmw.size / 8)),
            _ => return (Call::LAPI_Xfer, None),
        }
    };
    (call, Some(Traffic { peer, bytes }))
}

/// Makes a copy with a wrapper in place of the handler, and returns the handler's loan. Returns null, and makes no copy, when
/// there is no handler or no free loan.
///
/// # Safety
///
/// The conditions of [`look`] hold; `call` is what it returned.
unsafe fn with_wrapper(
    call: Call,
    request: *const lapi_xfer_t,
    copy: &mut MaybeUninit<lapi_xfer_t>,
) -> *mut c_void {
    /// Copies one member, and puts a wrapper into the two fields of its handler.
    macro_rules! member {
        ($member:ident, $handler:ident, $parameter:ident, $wrap:path) => {{
            // SAFETY: the type names this member; nothing beyond it is read.
            unsafe {
                let original = ptr::addr_of!((*request).$member);
                let Some((wrapper, loan)) =
                    (*original).$handler.and_then(|h| $wrap(h, (*original).$parameter))
                else {
                    return null_mut();
                };
                let own = ptr::addr_of_mut!((*copy.as_mut_ptr()).$member);
                ptr::copy_nonoverlapping(original, own, 1);
                (*own).$handler = Some(wrapper);
                (*own).$parameter = loan;
                loan
            }
        }};
    }
    match call {
        Call::XferGet => member!(Get, chndlr, cinfo, handlers::completion),
        Call::XferGetv => member!(Getv, chndlr, cinfo, handlers::completion),
        Call::XferPut => member!(Put, shdlr, sinfo, handlers::send_completion),
        Call::XferPutv => member!(Putv, shdlr, sinfo, handlers::send_completion),
        Call::XferAm => member!(Am, shdlr, sinfo, handlers::send_completion),
        Call::XferAmv => member!(Amv, shdlr, sinfo, handlers::send_completion),
        Call::XferDgsp => member!(Dgsp, shdlr, sinfo, handlers::send_completion),
        Call::XferRmw => member!(Rmw, shdlr, sinfo, handlers::send_completion),
        // In a light-weight message these fields are not used and may have any value.
        _ => null_mut(),
    }
}

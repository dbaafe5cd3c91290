//! LAPI_Xfer: any transfer, counted by its type.

use super::arguments::{Arguments as _, LAPI_Xfer};
use super::sizes;
use crate::calls::Call;
use crate::record::{Before, Seen, Traffic, call_begins, record, untimed};
use libc::{c_int, c_uint};
use openlapi::abi::{
    LAPI_AM_LW_XFER, LAPI_AM_XFER, LAPI_AMV_XFER, LAPI_DGSP_XFER, LAPI_GET_XFER, LAPI_GETV_XFER,
    LAPI_PUT_XFER, LAPI_PUTV_XFER, LAPI_RDMA_GET, LAPI_RDMA_XFER, LAPI_RMW_XFER, LAPI_SUCCESS, lapi_xfer_t,
};
use openlapi::base::clock::ticks;

impl LAPI_Xfer {
    /// # Safety
    ///
    /// As LAPI_Xfer.
    pub unsafe fn profiled(self, site: usize, _: Option<Traffic>) -> c_int {
        Self::find();
        // SAFETY: null, or a structure of its type.
        let (call, traffic) = unsafe { look(self.xfer_cmd) };
        let untimed = if call.moves() { untimed(call, site) } else { None };
        let start = if untimed.is_none() { ticks() } else { 0 };
        let before = if untimed.is_none() { call_begins(call, site, start) } else { Before::default() };
        // SAFETY: the caller's promise.
        let code = unsafe { self.make() };
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
    // SAFETY: the type names the member, and only that one is read: the program may have
    // allocated no more.
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
            LAPI_RDMA_XFER => {
                let gets = c_uint::from((*request).HwXfer.op) == LAPI_RDMA_GET;
                let call = if gets { Call::XferRdmaGet } else { Call::XferRdmaPut };
                (call, (*request).HwXfer.tgt, (*request).HwXfer.len)
            }
            _ => return (Call::LAPI_Xfer, None),
        }
    };
    (call, Some(Traffic { peer, bytes }))
}

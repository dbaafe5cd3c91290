//! RDMA transfers, of a later level of LAPI: memory and contexts by LAPI_Util, and the transfers.

use super::{check, put_get};
use crate::abi::{
    LAPI_ERR_TGT, LAPI_ERR_UTIL_CMD, LAPI_ERR_XFER_CMD, LAPI_RDMA_ACQUIRE, LAPI_RDMA_GET, LAPI_RDMA_PUT,
    LAPI_RDMA_RELEASE,
};
use crate::engine::context::Held;
pub use crate::engine::context::RdmaAddress;
use crate::engine::context::counter_status::Handled;
use crate::engine::context::request::{Get, Hint, Put};
use crate::engine::progress::operations;
use crate::error::{Error, Result};
use crate::proto::outbox::SendDone;

/// What the program gives for a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The other task.
    pub tgt: u32,
    /// LAPI_RDMA_PUT or LAPI_RDMA_GET.
    pub op: u32,
    /// The number of a context of that task.
    pub context: u32,
    /// The data at this task.
    pub source: RdmaAddress,
    /// The data at the other task.
    pub target: RdmaAddress,
    /// The data's length in bytes.
    pub len: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The send completion handler, or 0.
    pub handler: usize,
    /// The handler's parameter.
    pub info: usize,
}

/// Starts a transfer (man page LAPI_Xfer). The counter is incremented when it is complete: the data
/// of a put is at the target, that of a get here. The handler is called after that. A call that
/// fails has started nothing.
///
/// # Safety
/// The addresses must be as the man page wants them.
pub unsafe fn transfer(held: &mut Held<'_>, request: &Request) -> Result<()> {
    let &Request { tgt, op, context, source, target, len, org_cntr, handler, info } = request;
    check::target(held, tgt)?;
    let is_put = match op {
        LAPI_RDMA_PUT => true,
        LAPI_RDMA_GET => false,
        _ => {
            let detail = format!("op is {op:#x}; it is LAPI_RDMA_GET or LAPI_RDMA_PUT");
            return Err(Error::new(LAPI_ERR_XFER_CMD, detail));
        }
    };
    check::length(len)?;
    let places = held.rdma_places(tgt, context, source, target, len)?;
    // What ends with the peer has its handler called: there must be nothing of a refused call.
    operations::check_reachable(held, tgt)?;
    let cntr = match handler {
        0 => org_cntr,
        _ => held.handle_completion(Handled { cntr: org_cntr, peer: tgt, handler, info }),
    };
    let hint = Hint::Bulk;
    let started = if is_put {
        let done = SendDone { bytes: len, user: true, ..SendDone::nothing(tgt) };
        // SAFETY: the caller's promise.
        unsafe { put_get::put(held, &Put { tgt, places, tgt_cntr: 0, cmpl_cntr: cntr, done, hint }) }
    } else {
        let get = Get { tgt, places, tgt_cntr: 0, org_cntr: cntr, handler: None, parameter: 0, hint };
        // SAFETY: the caller's promise.
        unsafe { put_get::get(held, &get) }
    };
    if started.is_err() && handler != 0 {
        held.forget_completion(cntr);
    }
    started
}

/// Registers memory, or ends a registration (man page LAPI_Util, LAPI_XLATE_ADDRESS). Returns
/// usr_pvo.
pub fn memory(held: &mut Held<'_>, operation: u32, usr_pvo: u64, address: u64, len: u64) -> Result<u64> {
    match operation {
        LAPI_RDMA_ACQUIRE => held.rdma()?.register(address, len),
        LAPI_RDMA_RELEASE => held.rdma()?.release(usr_pvo).map(|()| usr_pvo),
        _ => Err(unknown(operation)),
    }
}

/// Takes a context of another task, or gives one back (man page LAPI_Util, LAPI_REMOTE_RCXT).
/// Returns its number.
pub fn context(held: &mut Held<'_>, operation: u32, dest: i32, usr_rcxt: u32) -> Result<u32> {
    let dest = u32::try_from(dest).map_err(|_| Error::new(LAPI_ERR_TGT, format!("task {dest}")))?;
    check::target(held, dest)?;
    match operation {
        LAPI_RDMA_ACQUIRE => held.acquire_context(dest),
        LAPI_RDMA_RELEASE => held.rdma()?.give_back(dest, usr_rcxt).map(|()| usr_rcxt),
        _ => Err(unknown(operation)),
    }
}

#[cold]
fn unknown(operation: u32) -> Error {
    let detail = format!("operation {operation}; it is LAPI_RDMA_ACQUIRE or LAPI_RDMA_RELEASE");
    Error::new(LAPI_ERR_UTIL_CMD, detail)
}

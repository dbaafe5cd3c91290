//! LAPI_Put and LAPI_Get, and their forms in LAPI_Xfer.

use super::{check, nudge};
use crate::engine::context::Held;
use crate::engine::context::request::{Get, Put};
use crate::engine::transfer::origin;
use crate::error::Result;

/// Starts a put (man page LAPI_Put).
///
/// # Safety
/// The addresses must be as the man page wants them.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    check::target(held, put.tgt)?;
    check::length(put.data.len as u64)?;
    if check::wanted(held) {
        check::origin_address(put.data.ptr as usize, put.data.len as u64)?;
        check::target_address(put.addr, put.data.len as u64)?;
    }
    // SAFETY: the caller's promise.
    unsafe { origin::put(held, put) }?;
    nudge(held, put.tgt);
    Ok(())
}

/// Starts a get (man page LAPI_Get).
///
/// # Safety
/// The addresses must be as the man page wants them.
#[inline]
pub unsafe fn get(held: &mut Held<'_>, get: &Get) -> Result<()> {
    check::target(held, get.tgt)?;
    check::length(get.len)?;
    if check::wanted(held) {
        check::origin_address(get.buffer, get.len)?;
        check::target_address(get.addr, get.len)?;
    }
    // SAFETY: the caller's promise.
    unsafe { origin::get(held, get) }?;
    nudge(held, get.tgt);
    Ok(())
}

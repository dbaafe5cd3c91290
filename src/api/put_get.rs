//! LAPI_Put and LAPI_Get, and their forms in LAPI_Xfer.

use super::check;
use crate::engine::context::Held;
use crate::engine::context::request::{Get, Places, Put};
use crate::engine::progress::operations;
use crate::error::Result;

/// Starts a put (man page LAPI_Put).
///
/// # Safety
/// The addresses must be as the man page wants them.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    check::target(held, put.tgt)?;
    check_places(held, &put.places)?;
    // SAFETY: the caller's promise.
    unsafe { operations::put(held, put) }
}

/// Starts a get (man page LAPI_Get).
///
/// # Safety
/// The addresses must be as the man page wants them.
#[inline]
pub unsafe fn get(held: &mut Held<'_>, get: &Get) -> Result<()> {
    check::target(held, get.tgt)?;
    check_places(held, &get.places)?;
    // SAFETY: the caller's promise.
    unsafe { operations::get(held, get) }
}

/// Layouts were checked when they were made.
#[inline(always)]
fn check_places(held: &Held<'_>, places: &Places) -> Result<()> {
    let Places::Contiguous { local, remote, len } = *places else { return Ok(()) };
    check::length(len as u64)?;
    if check::wanted(held) {
        check::origin_address(local, len as u64)?;
        check::target_address(remote, len as u64)?;
    }
    Ok(())
}

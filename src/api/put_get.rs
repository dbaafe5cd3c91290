//! LAPI_Put and LAPI_Get, and their forms in LAPI_Xfer.

use super::check;
use crate::abi::{LAPI_ERR_ORG_ADDR_NULL, LAPI_ERR_TGT_ADDR_NULL};
use crate::base::ring::SHORT_BODY;
use crate::engine::context::Held;
use crate::engine::context::request::{Get, Places, PlainGet, PlainPut, Put};
pub use crate::engine::progress::short::{call_get as get_shortly, call_put as put_shortly};
use crate::engine::progress::{operations, short};
use crate::error::Result;

/// A put of more bytes is long: the ring to a peer of this machine keeps its data elsewhere than
/// its head.
pub const SHORT: usize = SHORT_BODY;

/// Starts a put (man page LAPI_Put).
///
/// # Safety
/// The addresses must be as the man page wants them.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match PlainPut::of(put) {
            Some(plain) if short::within(held, put.tgt, |way| short::put(way, &plain)) => Ok(()),
            _ => any_put(held, put),
        }
    }
}

/// A put that may be long, or wrong, or have to wait.
///
/// # Safety
/// The conditions of [`put`] hold.
#[inline(never)]
unsafe fn any_put(held: &mut Held<'_>, put: &Put) -> Result<()> {
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
    // SAFETY: the caller's promise.
    unsafe {
        match PlainGet::of(get) {
            Some(plain) if short::within(held, get.tgt, |way| short::get(way, &plain)) => Ok(()),
            _ => any_get(held, get),
        }
    }
}

/// A get that may be long, or wrong, or have to wait.
///
/// # Safety
/// The conditions of [`get`] hold.
#[inline(never)]
unsafe fn any_get(held: &mut Held<'_>, get: &Get) -> Result<()> {
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
        check::address(local as u64, len as u64, LAPI_ERR_ORG_ADDR_NULL)?;
        check::address(remote, len as u64, LAPI_ERR_TGT_ADDR_NULL)?;
    }
    Ok(())
}

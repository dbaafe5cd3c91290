//! LAPI_Amsend, its form in LAPI_Xfer, and the light-weight active message.

use super::check;
use crate::abi::{LAPI_ERR_ADDR_HNDL_RANGE, LAPI_ERR_LW_DATA_LEN, LAPI_ERR_ORG_ADDR_NULL};
use crate::engine::context::request::{Message, PlainMessage};
use crate::engine::context::{ADDRESS_TABLE, Held};
pub use crate::engine::progress::short::{call_active_message as amsend_shortly, is_long};
use crate::engine::progress::{operations, short};
use crate::error::{Error, Result};

/// User header and data of a light-weight active message stay below this, in bytes.
pub const LIGHT_WEIGHT: usize = 128;

/// Starts an active message (man page LAPI_Amsend).
///
/// # Safety
/// The addresses must be as the man page wants them.
#[inline]
pub unsafe fn amsend(held: &mut Held<'_>, message: &Message) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match PlainMessage::of(message) {
            Some(plain) if short::within(held, plain.tgt, |way| short::active_message(way, &plain)) => Ok(()),
            _ => any_amsend(held, message),
        }
    }
}

/// An active message that may be long, or wrong, or have to wait.
///
/// # Safety
/// The conditions of [`amsend`] hold.
#[inline(never)]
unsafe fn any_amsend(held: &mut Held<'_>, message: &Message) -> Result<()> {
    check_message(held, message)?;
    // SAFETY: the caller's promise.
    unsafe { operations::active_message(held, message) }
}

/// All that is checked of an active message.
pub(super) fn check_message(held: &mut Held<'_>, message: &Message) -> Result<()> {
    check::target(held, message.tgt)?;
    check::header_handler(message.handler)?;
    check::header_fits(message.header.len)?;
    check::length(message.data.len() as u64)?;
    if check::wanted(held) {
        check::header(message.header.ptr as usize, message.header.len)?;
        if let Some(data) = message.data.as_piece() {
            check::address(data.ptr as u64, data.len as u64, LAPI_ERR_ORG_ADDR_NULL)?;
        }
    }
    Ok(())
}

/// Starts a light-weight active message (man page LAPI_Xfer): short, by index, without counters,
/// and its buffers are free at once.
///
/// # Safety
/// The conditions of [`amsend`] hold.
#[inline]
pub unsafe fn light_weight(held: &mut Held<'_>, message: &Message) -> Result<()> {
    let bytes = message.header.len.saturating_add(message.data.len());
    if bytes >= LIGHT_WEIGHT {
        return Err(Error::new(
            LAPI_ERR_LW_DATA_LEN,
            format!("a light-weight message of {bytes} bytes, header included; at most {}", LIGHT_WEIGHT - 1),
        ));
    }
    if message.handler >= ADDRESS_TABLE as u64 && check::wanted(held) {
        return Err(Error::new(
            LAPI_ERR_ADDR_HNDL_RANGE,
            format!("a light-weight message takes an index below {ADDRESS_TABLE} as its header handler"),
        ));
    }
    // SAFETY: the caller's promise.
    unsafe { amsend(held, message) }
}

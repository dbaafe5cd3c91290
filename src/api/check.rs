//! Checks of parameters, as the man pages demand.

use super::MAX_UHDR;
use crate::abi::{
    LAPI_ERR_DATA_LEN, LAPI_ERR_HDR_HNDLR_NULL, LAPI_ERR_HDR_LEN, LAPI_ERR_TGT, LAPI_ERR_UHDR_LEN,
    LAPI_ERR_UHDR_NULL, LONGEST,
};
use crate::engine::context::Held;
use crate::error::{Error, Result};
use libc::c_int;
use std::sync::atomic::Ordering;

/// Whether ERROR_CHK is on.
#[inline]
pub fn wanted(held: &Held<'_>) -> bool {
    held.context().settings.error_check.load(Ordering::Relaxed)
}

/// The target is a task of the job. Always checked.
///
/// # Errors
/// `LAPI_ERR_TGT`: the job has no such task.
#[inline]
pub fn target(held: &mut Held<'_>, tgt: u32) -> Result<()> {
    let tasks = held.options().tasks;
    if tgt < tasks {
        return Ok(());
    }
    Err(Error::new(LAPI_ERR_TGT, format!("task {tgt}; the job has the tasks 0 to {}", tasks - 1)))
}

/// The length is valid. Always checked.
///
/// # Errors
/// `LAPI_ERR_DATA_LEN`: the length is more than [`LONGEST`].
#[inline]
pub fn length(len: u64) -> Result<()> {
    // One comparison with a number of 32 bits for all but very long messages.
    if len < 1 << 30 { Ok(()) } else { long_length(len) }
}

#[cold]
fn long_length(len: u64) -> Result<()> {
    if len <= LONGEST {
        return Ok(());
    }
    let detail = format!("{len} bytes; at most {LONGEST}; was a 4-byte INTEGER passed for len?");
    Err(Error::new(LAPI_ERR_DATA_LEN, detail))
}

/// An address is not null if there are bytes.
///
/// # Errors
/// `code`: there are bytes, and the address is null.
#[inline]
pub fn address(address: u64, len: u64, code: c_int) -> Result<()> {
    if address != 0 || len == 0 {
        return Ok(());
    }
    Err(Error::new(code, format!("null address for {}", bytes(len))))
}

fn bytes(len: u64) -> String {
    if len == 1 { "1 byte".to_owned() } else { format!("{len} bytes") }
}

/// The header handler is given. Always checked.
///
/// # Errors
/// `LAPI_ERR_HDR_HNDLR_NULL`: the handler is null.
#[inline]
pub fn header_handler(handler: u64) -> Result<()> {
    if handler != 0 {
        return Ok(());
    }
    Err(Error::new(LAPI_ERR_HDR_HNDLR_NULL, "a null header handler"))
}

/// The user header fits a packet. Always checked.
///
/// # Errors
/// `LAPI_ERR_UHDR_LEN`: the header is longer than [`MAX_UHDR`].
#[inline]
pub fn header_fits(len: usize) -> Result<()> {
    if len <= MAX_UHDR {
        return Ok(());
    }
    Err(Error::new(LAPI_ERR_UHDR_LEN, format!("a user header of {len} bytes; at most {MAX_UHDR}")))
}

/// The user header is as the man page demands.
///
/// # Errors
/// `LAPI_ERR_HDR_LEN`: the length is not a multiple of 4. `LAPI_ERR_UHDR_NULL`: there are bytes,
/// and the address is null.
#[inline]
pub fn header(address: usize, len: usize) -> Result<()> {
    if !len.is_multiple_of(4) {
        return Err(Error::new(
            LAPI_ERR_HDR_LEN,
            format!("a user header of {len} bytes, not a multiple of 4"),
        ));
    }
    if address == 0 && len != 0 {
        return Err(Error::new(
            LAPI_ERR_UHDR_NULL,
            format!("a null address for a user header of {len} bytes"),
        ));
    }
    Ok(())
}

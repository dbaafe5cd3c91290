//! LAPI_Fence and LAPI_Gfence.

use crate::engine::context::Held;
use crate::engine::progress::fence;
use crate::error::Result;

/// Waits until the data of all operations that this task has started is in place (man
/// page LAPI_Fence).
///
/// # Errors
/// As the man page of LAPI_Fence says.
pub fn fence(held: &mut Held<'_>) -> Result<()> {
    fence::fence(held)
}

/// Waits until each task has called, and nothing more is under way (man page LAPI_Gfence).
///
/// # Errors
/// As the man page of LAPI_Gfence says.
pub fn gfence(held: &mut Held<'_>) -> Result<()> {
    fence::gfence(held)
}

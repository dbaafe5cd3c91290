//! The two hooks of a checkpoint, of `lapi_checkpoint.h`: requests of LAPI_Util that the manual
//! does not have.

use crate::engine::context::Held;
use crate::engine::progress::checkpoint;
use crate::error::Result;

/// Waits until nothing is under way between this task and any other, and parts from all of them:
/// what others send to it from then on waits for its return.
///
/// # Errors
/// `LAPI_ERR_CKPT`: a handler calls, or the task has parted already. `LAPI_ERR_HNDL_INVALID`: the
/// handle was ended meanwhile.
pub fn before(held: &mut Held<'_>) -> Result<()> {
    checkpoint::part_from_all(held)
}

/// Lets all tasks rejoin from which [`before`] has parted.
///
/// # Errors
/// `LAPI_ERR_CKPT`: the task has not parted from the others. `LAPI_ERR_SHM_SETUP`: the system lacks
/// what is needed; the call may be repeated.
pub fn after(held: &mut Held<'_>) -> Result<()> {
    checkpoint::rejoin_all(held)
}

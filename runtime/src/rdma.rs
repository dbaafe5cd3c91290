//! LAPI_Util's requests of RDMA, by C's structures.

use openlapi::abi::{lapi_get_pvo_t, lapi_remote_cxt_t};
use openlapi::api::{Held, rdma};
use openlapi::error::Result;

/// Registers memory, or ends a registration (LAPI_XLATE_ADDRESS).
///
/// # Errors
/// As the man page of LAPI_Util says.
pub fn memory(held: &mut Held<'_>, command: &mut lapi_get_pvo_t) -> Result<()> {
    let lapi_get_pvo_t { length, usr_pvo, address, operation, .. } = *command;
    command.usr_pvo = rdma::memory(held, operation, usr_pvo, address as usize as u64, length.into())?;
    Ok(())
}

/// Takes a context of another task, or gives one back (LAPI_REMOTE_RCXT).
///
/// # Errors
/// As the man page of LAPI_Util says.
pub fn context(held: &mut Held<'_>, command: &mut lapi_remote_cxt_t) -> Result<()> {
    let lapi_remote_cxt_t { operation, dest, usr_rcxt, .. } = *command;
    command.usr_rcxt = rdma::context(held, operation, dest, usr_rcxt)?;
    Ok(())
}

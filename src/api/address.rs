//! LAPI_Address_init, LAPI_Address_init64, LAPI_Addr_set, LAPI_Addr_get.

use crate::abi::LAPI_ERR_ADDR_HNDL_RANGE;
use crate::engine::context::{ADDRESS_TABLE, Core, Held};
use crate::engine::progress::collective;
use crate::error::{Error, Result};

/// Every task gives a value and gets those of all, by task (man page LAPI_Address_init64).
pub fn exchange(held: &mut Held<'_>, value: u64) -> Result<Vec<u64>> {
    collective::exchange(held, value)
}

/// Registers a function under an index (man page LAPI_Addr_set).
pub fn set(held: &mut Held<'_>, index: i32, function: usize) -> Result<()> {
    *slot(held.core(), index)? = function;
    Ok(())
}

/// The function under an index, 0 when none was set (man page LAPI_Addr_get).
pub fn get(held: &mut Held<'_>, index: i32) -> Result<usize> {
    slot(held.core(), index).copied()
}

fn slot(core: &mut Core, index: i32) -> Result<&mut usize> {
    match usize::try_from(index) {
        Ok(at @ 1..ADDRESS_TABLE) => Ok(&mut core.addresses[at]),
        _ => Err(Error::new(
            LAPI_ERR_ADDR_HNDL_RANGE,
            format!("index {index}; indices are 1 to {}", ADDRESS_TABLE - 1),
        )),
    }
}

//! LAPI_Address_init, LAPI_Address_init64, LAPI_Addr_set, LAPI_Addr_get.

use crate::engine::context::Held;
use crate::engine::progress::collective;
use crate::error::Result;

/// Every task gives a value and gets those of all, by task (man page LAPI_Address_init64).
///
/// # Errors
/// As the man page of LAPI_Address_init64 says.
pub fn exchange(held: &mut Held<'_>, value: u64) -> Result<Vec<u64>> {
    collective::exchange(held, value)
}

/// Registers a function under an index (man page LAPI_Addr_set).
///
/// # Errors
/// As the man page of LAPI_Addr_set says.
pub fn set(held: &mut Held<'_>, index: i32, function: usize) -> Result<()> {
    held.register_function(index, function)
}

/// The function under an index, 0 when none was set (man page LAPI_Addr_get).
///
/// # Errors
/// As the man page of LAPI_Addr_get says.
pub fn get(held: &mut Held<'_>, index: i32) -> Result<usize> {
    held.registered_function(index)
}

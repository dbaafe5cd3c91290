//! Calls of the manual that are not implemented: they return an error that states this.

use openlapi::abi::{LAPI_ERR_UTIL_CMD, LAPI_ERR_XFER_CMD};
use openlapi::error::Error;

/// A kind of LAPI_Xfer that is not implemented, or that does not exist.
pub fn transfer(kind: u32) -> Error {
    Error::new(LAPI_ERR_XFER_CMD, format!("transfer type {kind} is unknown or not implemented"))
}

/// A kind of LAPI_Util that is not implemented, or that does not exist.
pub fn utility(kind: u32) -> Error {
    Error::new(LAPI_ERR_UTIL_CMD, format!("utility type {kind} is unknown or not implemented"))
}

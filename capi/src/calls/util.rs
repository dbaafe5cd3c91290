//! LAPI_Util.

use crate::table;
use libc::c_int;
use openlapi::abi::{LAPI_ERR_UTIL_CMD, lapi_handle_t, lapi_util_t};
use openlapi::api::unbuilt;
use openlapi::error::Error;

pub(crate) unsafe fn util(hndl: lapi_handle_t, util_cmd: *mut lapi_util_t) -> c_int {
    // SAFETY: null, or the program's structure, which begins with its type.
    let outcome = match unsafe { util_cmd.as_ref() } {
        None => Err(Error::new(LAPI_ERR_UTIL_CMD, "a null pointer to the command")),
        // SAFETY: every member begins with the type.
        Some(command) => Err(unbuilt::utility(unsafe { command.Util_type })),
    };
    table::code("LAPI_Util", hndl, outcome)
}

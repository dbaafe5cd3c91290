//! Data that an operation owns, until LAPI has no use for it.

use openlapi::abi::{lapi_handle_t, lapi_sh_info_t};
use std::any::Any;

/// Data that an operation owns, for [`drop_owned`].
pub(crate) fn into_raw(data: impl Any + Send) -> *mut libc::c_void {
    let data: Box<dyn Any + Send> = Box::new(data);
    Box::into_raw(Box::new(data)).cast()
}

/// The send completion handler of operations that own their data.
pub(crate) unsafe extern "C" fn drop_owned(
    _handle: *mut lapi_handle_t,
    data: *mut libc::c_void,
    _info: *mut lapi_sh_info_t,
) {
    // SAFETY: from `into_raw`, and the core calls this once for each operation.
    drop(unsafe { Box::from_raw(data.cast::<Box<dyn Any + Send>>()) });
}

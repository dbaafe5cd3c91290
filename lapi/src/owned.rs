//! Data that an operation owns, until LAPI has no use for it.

use openlapi::abi::{lapi_handle_t, lapi_sh_info_t};
use openlapi::error::Result;
use std::any::Any;

/// Data that an operation owns, for [`drop_owned`].
pub(crate) fn into_raw(data: impl Any + Send) -> *mut libc::c_void {
    let data: Box<dyn Any + Send> = Box::new(data);
    Box::into_raw(Box::new(data)).cast()
}

/// The outcome of a call that was to start an operation with this data. When it has started none,
/// the data is dropped.
///
/// # Safety
/// `data` must come from [`into_raw`], and nothing else may use it if the operation was refused.
pub(crate) unsafe fn kept_if_started<R>(outcome: Result<R>, data: *mut libc::c_void) -> Result<R> {
    if outcome.is_err() {
        // SAFETY: from `into_raw`; the caller's promise.
        drop(unsafe { Box::from_raw(data.cast::<Box<dyn Any + Send>>()) });
    }
    outcome
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

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi::error::Error;
    use std::ptr;
    use std::sync::Arc;

    #[test]
    fn data_of_an_operation_is_dropped_once() {
        let data = Arc::new(());
        let given = into_raw(data.clone());
        // SAFETY: from `into_raw`, and no operation has it.
        let refused: Result<()> = unsafe { kept_if_started(Err(Error::from(400)), given) };
        assert_eq!((refused.map_err(|error| error.code), Arc::strong_count(&data)), (Err(400), 1));
        let given = into_raw(data.clone());
        // SAFETY: the same; the handler is called once.
        unsafe {
            kept_if_started(Ok(()), given).expect("it was started");
            assert_eq!(Arc::strong_count(&data), 2);
            drop_owned(ptr::null_mut(), given, ptr::null_mut());
        }
        assert_eq!(Arc::strong_count(&data), 1);
    }
}

//! LAPI_Init and LAPI_Term.

use crate::boundary;
use crate::handles::{self, Instance};
use libc::c_int;
use openlapi::abi::*;
use openlapi::error::{Error, Result};
use openlapi_runtime::init::{self, Request};

pub(crate) unsafe fn init(hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t) -> c_int {
    // SAFETY: null, or as the man page wants them.
    boundary::code("LAPI_Init", LAPI_VOID_HANDLE, unsafe { open(hndl, lapi_info) })
}

/// # Safety
/// Both must be null or as the man page wants them.
unsafe fn open(hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t) -> Result<()> {
    if hndl.is_null() {
        return Err(Error::new(LAPI_ERR_HNDL_INVALID, "a null pointer to the handle"));
    }
    // SAFETY: the caller's promise.
    let info = unsafe { lapi_info.as_mut() }
        .ok_or_else(|| Error::new(LAPI_ERR_INFO_NULL, "a null pointer to lapi_info_t"))?;
    if info.info6 != 0 {
        let detail = format!("info6 is {}; clear the structure before its fields are set", info.info6);
        return Err(Error::new(LAPI_ERR_INFO_NONZERO, detail));
    }
    let place = Instance::take(info.instance_no)?;
    // SAFETY: the caller's promise.
    let request = unsafe { Request::new(place.handle(), place.index(), info) };
    // Before the threads run: a handler may use the program's own variable, on another
    // thread and before this call returns. So it is written through the pointer, and no
    // reference to it exists.
    // SAFETY: not null, and the program's.
    unsafe { hndl.write(request.handle) };
    match init::init(place.context(), &request) {
        Ok(device) => {
            info.protocol = device;
            place.keep();
            Ok(())
        }
        Err(error) => {
            // SAFETY: not null, and the program's.
            unsafe { hndl.write(LAPI_VOID_HANDLE) };
            Err(error)
        }
    }
}

pub(crate) unsafe fn term(hndl: lapi_handle_t) -> c_int {
    let outcome = handles::find(hndl).and_then(|context| {
        handles::note_end(hndl);
        init::term(context, hndl)
    });
    if outcome.is_ok() {
        // LAPI_Term may have taken long.
        handles::note_end(hndl);
        handles::free(hndl);
    }
    boundary::code("LAPI_Term", hndl, outcome)
}

//! The functions that the classes in `shim` are made of: `shim/abi.h` declares them. Each returns a
//! number of [`FamError`], and [`olfam_text`] says more about the calling thread's last failure.
//! Nothing unwinds through them.

mod control;
mod data;
mod facts;
mod start;

use crate::client::Context;
use crate::error::{Failure, FamError, Result};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// What more is to be said about the last failure of the calling thread. It lives until the next.
#[unsafe(no_mangle)]
pub extern "C" fn olfam_text() -> *const c_char {
    // A thread that ends has lost it already when destructors of the program run.
    TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The number of a result.
fn code(result: Result<()>) -> c_int {
    match result {
        Ok(()) => FamError::NoError.code(),
        Err(Failure { error, text }) => {
            let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
            let _ = TEXT.try_with(|last| last.replace(text));
            error.code()
        }
    }
}

/// Gives what a call makes to where the caller wants it.
///
/// # Safety
/// `out` may be written.
unsafe fn give<T>(result: Result<T>, out: *mut T) -> c_int {
    code(result.map(|value| {
        // SAFETY: the caller's promise.
        unsafe { out.write(value) };
    }))
}

/// A context of the shim.
///
/// # Safety
/// It was made by this library, and not freed since.
unsafe fn context<'a>(context: *const Context) -> Result<&'a Context> {
    let none = || FamError::Invalid.because("fam_initialize was not called");
    // SAFETY: the caller's promise.
    unsafe { context.as_ref() }.ok_or_else(none)
}

/// A text of the program; `None`: NULL.
///
/// # Errors
/// [`FamError::Invalid`]: it is no UTF-8.
///
/// # Safety
/// It is NULL, or ends by 0.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| FamError::Invalid.because(format!("{what} is no UTF-8")))
}

/// A name that there must be.
///
/// # Errors
/// [`FamError::Invalid`]: it is NULL, empty or no UTF-8.
///
/// # Safety
/// That of [`text`].
unsafe fn name(name: *const c_char, what: &str) -> Result<String> {
    // SAFETY: the caller's promise.
    match unsafe { text(name, what)? } {
        None | Some("") => Err(FamError::Invalid.because(format!("{what} is NULL or empty"))),
        Some(name) => Ok(name.to_owned()),
    }
}

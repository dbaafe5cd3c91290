//! Why a call fails: errno, and a sentence.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::io;

/// The result of what may fail by a [`Failure`].
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of the constants of errno.h.
    pub errno: i32,
    /// A sentence for the reader.
    pub text: String,
}

impl Failure {
    /// A failure with this errno.
    pub fn new(errno: i32, text: impl Into<String>) -> Self {
        Self { errno, text: text.into() }
    }

    /// An argument that no call takes: EINVAL.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, text)
    }

    /// A step that the system refuses, with its errno.
    pub fn system(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(error.raw_os_error().unwrap_or(libc::EIO), format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

thread_local! {
    /// The text of the thread's last failure.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Sets the calling thread's errno, and the text that [`last_text`] returns.
pub fn report(failure: &Failure) {
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = failure.errno };
}

/// The text of this thread's last failure; empty when there was none. Valid until the next one.
pub fn last_text() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(CStr::as_ptr(c""))
}

//! The twins of the profiler's functions, for calls from a place that is set ([`crate::places`]).

use libc::{c_char, c_void};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// What an interpreter, or LAPI's own layer for Fortran, calls in place of the function of this
/// name that it has found: that function itself when it is not the profiler's, but that of another
/// layer above.
///
/// # Safety
///
/// The name ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapiprof_placed(name: *const c_char, found: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    let twin = super::twin(unsafe { CStr::from_ptr(name) }.to_bytes());
    match twin {
        Some(twin) if object(found) == object(twin) => twin,
        _ => found,
    }
}

/// Where the file with this code is in memory.
fn object(code: *const c_void) -> Option<usize> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it takes any address, and fills the structure in when it returns other than 0.
    unsafe { (libc::dladdr(code, info.as_mut_ptr()) != 0).then(|| info.assume_init().dli_fbase as usize) }
}

//! The twins of the profiler's functions, for calls from a place that is set ([`crate::places`]).

use libc::{c_char, c_void};
use openlapi::base::loader::object_at;
use std::ffi::CStr;

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
        Some(twin) if base(found) == base(twin) => twin,
        _ => found,
    }
}

/// Where the file with this code is in memory.
fn base(code: *const c_void) -> Option<usize> {
    Some(object_at(code.addr())?.base)
}

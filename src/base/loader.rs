//! What the loader has mapped.

use libc::c_void;
use std::mem;

/// The code at this address must not be unmapped while a signal may lead to it: a program that closes the library (dlclose)
/// keeps it.
pub(crate) fn stay_loaded(code: *const c_void) {
    // SAFETY: the structure lives during the call; the name that it is given is the loader's own, and is only read.
    unsafe {
        let mut found: libc::Dl_info = mem::zeroed();
        if libc::dladdr(code, &mut found) != 0 && !found.dli_fname.is_null() {
            // Null in a program that has the library built in, which stays anyway.
            libc::dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

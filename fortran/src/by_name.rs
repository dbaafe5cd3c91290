//! Functions that are called by their names.

use libc::c_void;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that is known by its name: the first of this name in the program and its libraries.
///
/// It is looked up when it is first called. The address of the library's own function would not
/// do: where two functions do the same, as LAPI_X and PLAPI_X, the compiler may take one's address
/// for the other's.
pub struct ByName {
    name: &'static CStr,
    /// Null until it has been looked up.
    found: AtomicPtr<c_void>,
}

impl ByName {
    /// The function of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The address of the function, or `own`, that of the library's, when the name leads nowhere.
    #[inline]
    pub fn address(&self, own: *const c_void) -> *const c_void {
        // Relaxed: every thread that looks it up finds the same, and code is there before its
        // address is known.
        let found = self.found.load(Ordering::Relaxed);
        if found.is_null() { self.look_up(own) } else { found }
    }

    #[cold]
    fn look_up(&self, own: *const c_void) -> *const c_void {
        // SAFETY: a string that ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) };
        let found = if found.is_null() { own.cast_mut() } else { found };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

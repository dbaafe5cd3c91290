//! Functions that are called by their names.

use libc::{c_char, c_void};
use std::ffi::CStr;
use std::mem;
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
        let found = if found.is_null() { own.cast_mut() } else { placed(self.name, found) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// What to call for the function of this name that was found: where it is the profiler's, its twin,
/// whose calls come from the place that the profiler has noted at the entry for Fortran, and not
/// from this library.
fn placed(name: &CStr, found: *mut c_void) -> *mut c_void {
    // SAFETY: a C string; the profiler's function of this name has this type
    // (prof/src/wrap/placed.rs).
    unsafe {
        let placed = libc::dlsym(libc::RTLD_DEFAULT, c"lapiprof_placed".as_ptr());
        if placed.is_null() {
            return found;
        }
        type Placed = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void;
        mem::transmute::<*mut c_void, Placed>(placed)(name.as_ptr(), found)
    }
}

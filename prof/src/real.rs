//! LAPI's own functions: PLAPI_X, looked up by the first LAPI_Init, and those for Fortran, looked
//! up at their first call.
//!
//! They are not linked: a preloaded profiler is in every process of a job, including the launcher,
//! and must not load LAPI there.

use openlapi::base::patient;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A symbol of the library.
#[derive(Debug)]
pub struct Real {
    name: &'static CStr,
    /// Where the loader searches first.
    scope: Scope,
    at: AtomicPtr<c_void>,
}

/// Which libraries are searched for a name.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// All.
    All,
    /// Those after the profiler, which has the name too.
    After,
}

impl Real {
    /// Not found yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, scope: Scope::All, at: AtomicPtr::new(null_mut()) }
    }

    /// A symbol of a name that the profiler has too; not found yet.
    #[cfg(call_sites)]
    pub const fn after(name: &'static CStr) -> Self {
        Self { name, scope: Scope::After, at: AtomicPtr::new(null_mut()) }
    }

    /// The address of the real function.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() { self.find() } else { at }
    }

    /// Looks the function up now, under the loader's lock; one that the library does not have stays
    /// unknown.
    pub fn prepare(&self) {
        let at = self.look(libc::RTLD_DEFAULT);
        if !at.is_null() {
            self.at.store(at, Ordering::Relaxed);
        }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let mut at = self.look(match self.scope {
            Scope::All => libc::RTLD_DEFAULT,
            Scope::After => libc::RTLD_NEXT,
        });
        if at.is_null() {
            // The linker drops a library of which no symbol is used: the program uses only those
            // of the profiler.
            // SAFETY: LAPI's library does nothing when it is loaded.
            let library =
                unsafe { libc::dlopen(c"liblapi_r.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if !library.is_null() {
                at = self.look(library);
            }
        }
        if at.is_null() {
            let name = self.name.to_string_lossy();
            let why = "not found: the program is not linked with LAPI's library";
            patient::say(format!("lapiprof: {name} {why}\n").as_bytes());
            std::process::abort();
        }
        self.at.store(at, Ordering::Relaxed);
        at
    }

    fn look(&self, library: *mut c_void) -> *mut c_void {
        // SAFETY: the name is a C string.
        unsafe { libc::dlsym(library, self.name.as_ptr()) }
    }
}

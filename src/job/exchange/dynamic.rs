//! Libraries and functions that are found at run time: LAPI is neither built nor linked with them.

use crate::base::undisturbed;
use std::ffi::{CStr, c_void};

/// A library that stays open until the process ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Library(*mut c_void);

// SAFETY: a handle of dlopen is not bound to a thread.
unsafe impl Send for Library {}
// SAFETY: any thread may look up names in what dlopen has opened.
unsafe impl Sync for Library {}

/// What the process has loaded with global scope, the program and the libraries that it is linked
/// with among it.
pub(super) const PROCESS: Library = Library(libc::RTLD_DEFAULT);

impl Library {
    /// Opens a library by the name of its file.
    ///
    /// # Errors
    /// The text of the dynamic linker.
    pub(super) fn open(name: &CStr) -> Result<Self, String> {
        // SAFETY: the name ends with a zero byte. The library's own initialisation runs here: it is
        // a library that the system has installed under this name, and the process depends on it as
        // if it were linked with it.
        let opens = || unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = undisturbed::open(&[], opens);
        if !handle.is_null() {
            return Ok(Self(handle));
        }
        // SAFETY: dlerror returns null or a string of this thread, which is copied before
        // the next call.
        let why = unsafe {
            let why = libc::dlerror();
            if why.is_null() { None } else { Some(CStr::from_ptr(why).to_string_lossy().into_owned()) }
        };
        Err(why.unwrap_or_else(|| "it cannot be opened".to_owned()))
    }

    /// The address of a symbol.
    pub(super) fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the name ends with a zero byte, and the handle is that of an open library
        // or RTLD_DEFAULT.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }

    /// The function of that name.
    ///
    /// # Safety
    /// `F` is the type of an `extern "C"` function pointer, and describes the function that the
    /// library has under this name.
    pub(super) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: a function pointer has the size of an address, and the caller knows its type.
        self.symbol(name).map(|symbol| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&symbol) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_and_one_that_is_there() {
        let why = Library::open(c"libno-such-library.so.7").unwrap_err();
        assert!(why.contains("libno-such-library.so.7"), "{why}");
        let math = Library::open(c"libm.so.6").expect("every system has it");
        // SAFETY: fabs is a function of this type.
        let fabs = unsafe { math.function::<extern "C" fn(f64) -> f64>(c"fabs") }.expect("a function");
        assert_eq!(fabs(-2.5), 2.5);
        assert!(math.symbol(c"no_such_function_of_mathematics").is_none());
        assert!(PROCESS.symbol(c"malloc").is_some() && PROCESS.symbol(c"MPI_Initialized").is_none());
    }
}

//! Where the program is when it calls the library, for a profiler: all calls come from the same
//! few places of this module.
//!
//! Without a profiler a call costs a load. The place is the line of the innermost frame outside of
//! this package.

use pyo3::ffi;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The functions of the profiler (prof/src/places.rs).
struct Profiler {
    /// The number of a place.
    place: unsafe extern "C" fn(file: *const c_char, line: c_int, function: *const c_char) -> usize,
    /// Sets the place of this thread's calls.
    enter: unsafe extern "C" fn(place: usize) -> usize,
    /// What is called in place of a function, so that it has the place that is set.
    placed: unsafe extern "C" fn(name: *const c_char, found: *mut c_void) -> *mut c_void,
}

/// The profiler that is loaded beside the library, if there is one.
fn profiler() -> Option<&'static Profiler> {
    static PROFILER: OnceLock<Option<Profiler>> = OnceLock::new();
    let find = |name: &CStr| {
        // SAFETY: the name is a C string.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!at.is_null()).then_some(at)
    };
    let found = || {
        let (place, enter) = (find(c"lapiprof_place")?, find(c"lapiprof_enter")?);
        let placed = find(c"lapiprof_placed")?;
        // SAFETY: the profiler's functions of these names have these arguments.
        unsafe {
            Some(Profiler {
                place: mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char, c_int, *const c_char) -> usize,
                >(place),
                enter: mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> usize>(enter),
                placed: mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void,
                >(placed),
            })
        }
    };
    PROFILER.get_or_init(found).as_ref()
}

/// What to call for the function of the library of this name that was found.
pub fn placed(name: &CStr, found: *mut c_void) -> *mut c_void {
    // SAFETY: a C string, and a function of this name.
    profiler().map_or(found, |profiler| unsafe { (profiler.placed)(name.as_ptr(), found) })
}

/// While it lives, calls of the library in this thread come from the program's place.
pub struct Here(Option<(&'static Profiler, usize)>);

impl Here {
    /// Where the program is now.
    #[inline]
    pub fn of(py: Python<'_>) -> Self {
        Self(profiler().map(|profiler| {
            let place = place(py, profiler).unwrap_or(0);
            // SAFETY: a number that the profiler has given, or none.
            (profiler, unsafe { (profiler.enter)(place) })
        }))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if let Some((profiler, before)) = self.0 {
            // SAFETY: what was set before.
            unsafe { (profiler.enter)(before) };
        }
    }
}

/// The numbers of places, by code and line; 0: of this package. The code is kept, so that no other
/// has its address.
type Known = HashMap<(usize, c_int), (Py<PyAny>, usize)>;
/// Programs that make code while they run would make more and more of them.
const MOST: usize = 10_000;

/// Held for a look or an entry only, with Python's lock: code of Python never runs meanwhile, and a
/// fork of Python does not find it taken.
fn known() -> MutexGuard<'static, Option<Known>> {
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the place of the innermost frame outside of this package.
fn place(py: Python<'_>, profiler: &Profiler) -> Option<usize> {
    // SAFETY: Python's lock is held. A borrowed reference; null where no code of Python runs in
    // this thread.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let mut frame: Bound<'_, PyAny> = frame?;
    loop {
        // SAFETY: a frame, which has code: a new reference.
        let (code, line) = unsafe {
            let frame = frame.as_ptr().cast::<ffi::PyFrameObject>();
            let code = ffi::PyFrame_GetCode(frame);
            (Bound::<PyAny>::from_owned_ptr(py, code.cast()), ffi::PyFrame_GetLineNumber(frame))
        };
        let key = (code.as_ptr() as usize, line);
        let found = known().get_or_insert_default().get(&key).map(|(_, place)| *place);
        let place = match found {
            Some(place) => place,
            None => {
                let place = number(py, profiler, &code, line)?;
                let mut all = known();
                let all_known = all.get_or_insert_default();
                let many = if all_known.len() < MOST { Known::new() } else { mem::take(all_known) };
                let again = all_known.insert(key, (code.unbind(), place));
                drop(all);
                // To release code may run code of Python.
                drop((many, again));
                place
            }
        };
        if place != 0 {
            return Some(place);
        }
        frame = frame.getattr("f_back").ok().filter(|back| !back.is_none())?;
    }
}

/// The number of the place of a line; 0: of this package.
fn number(py: Python<'_>, profiler: &Profiler, code: &Bound<'_, PyAny>, line: c_int) -> Option<usize> {
    let text = |name: &str| code.getattr(name).ok()?.extract::<String>().ok();
    let file = text("co_filename")?;
    if is_of_package(py, &file)? {
        return Some(0);
    }
    let (file, function) = (CString::new(file).ok()?, CString::new(text("co_qualname")?).ok()?);
    // SAFETY: both texts live during the call.
    Some(unsafe { (profiler.place)(file.as_ptr(), line, function.as_ptr()) })
}

/// Whether a file of code is one of this package.
pub fn is_of_package(py: Python<'_>, file: &str) -> Option<bool> {
    let package: String = py.import("openlapi").ok()?.getattr("__file__").ok()?.extract().ok()?;
    Some(file.starts_with(package.strip_suffix("__init__.py").unwrap_or(&package)))
}

//! Opening another library without a change to the program: constructors take signals
//! (libinfinipath, which Debian's libfabric is linked with, takes six; UCX takes four), and some
//! obey environment variables only.
//!
//! [`open`] gives the library an environment of its own, so that those that obey leave the
//! signals alone, and then gives back every signal that was taken nevertheless.

use crate::base::loader::object_at;
use crate::base::sync::Mutex;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Variables by which libraries leave the program's signals alone: libinfinipath's,
/// and those of UCX.
const QUIET: [(&CStr, &CStr); 2] = [(c"IPATH_NO_BACKTRACE", c"1"), (c"UCX_ERROR_SIGNALS", c"")];

/// Calls `opens`, which opens and initialises another library, with these environment variables
/// beside the program's own. What the user has set stays. Afterwards environment and signals are
/// what they were. One thread at a time: the next one waits.
pub(crate) fn open<T>(variables: &[(CString, CString)], opens: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let objects = objects();
    let before: Vec<_> = SIGNALS.map(disposition).collect();
    let quiet = QUIET.iter().copied().chain(variables.iter().map(|(name, value)| (&**name, &**value)));
    let result = with_variables(quiet, opens);
    for (signal, before) in SIGNALS.zip(before) {
        let (Some(before), Some(now)) = (before, disposition(signal)) else { continue };
        // Another thread of the program may have changed a signal meanwhile: its handler lies in
        // what was there before, or it ignores the signal.
        if now.sa_sigaction != before.sa_sigaction && is_new(&objects, now.sa_sigaction) {
            // SAFETY: the structure is what the system has returned.
            unsafe { libc::sigaction(signal, &before, ptr::null_mut()) };
        }
    }
    result
}

const SIGNALS: std::ops::Range<c_int> = 1..65;

/// `None` for the signals that the C library uses itself.
fn disposition(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: the structure lives during the call, which fills it in.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &mut now) == 0).then_some(now)
    }
}

/// Where what is loaded now begins.
fn objects() -> BTreeSet<usize> {
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, and the set below.
        unsafe { (*found.cast::<BTreeSet<usize>>()).insert((*object).dlpi_addr as usize) };
        0
    }
    let mut found = BTreeSet::new();
    // SAFETY: it calls `visit` with the set, before it returns.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

/// Whether a handler lies in an object that is none of these. The default action and SIG_IGN
/// lie nowhere. A program with fixed addresses, which the loader enters with address 0, has
/// been there before.
fn is_new(objects: &BTreeSet<usize>, handler: usize) -> bool {
    object_at(handler).is_some_and(|object| !object.is_fixed() && !objects.contains(&object.base))
}

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// Calls `does` while the environment has these variables too, but for those that are set.
///
/// The environment is one array of pointers. Another array takes its place for a while, so that a
/// thread that looks for a variable meanwhile finds either of them whole; setenv would free the
/// array under it. What another thread changes meanwhile is kept.
fn with_variables<'a, T>(
    variables: impl Iterator<Item = (&'a CStr, &'a CStr)>,
    does: impl FnOnce() -> T,
) -> T {
    // SAFETY: the C library's variable, aligned as a pointer is.
    let environment = unsafe { AtomicPtr::from_ptr(&raw mut environ) };
    let old = environment.load(Ordering::Acquire);
    let added: Vec<(&CStr, *mut c_char)> = variables
        // SAFETY: a name that a zero ends.
        .filter(|(name, _)| unsafe { libc::getenv(name.as_ptr()) }.is_null())
        .filter_map(|(name, value)| {
            let text = CString::new([name.to_bytes(), b"=", value.to_bytes()].concat());
            Some((name, text.ok()?.into_raw()))
        })
        .collect();
    // SAFETY: an array that ends with a null pointer; a program may have set the variable to null.
    let theirs = unsafe { entries(old) };
    let ours = added.iter().map(|(_, text)| *text);
    let all: Vec<*mut c_char> = ours.clone().chain(theirs.iter().copied()).chain([ptr::null_mut()]).collect();
    let new = Box::leak(all.into_boxed_slice()).as_mut_ptr();
    KEPT.lock().push(new as usize);
    environment.store(new, Ordering::Release);
    let result = does();
    if environment.compare_exchange(new, old, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        // SAFETY: the array above, in which entries were replaced or removed, or none added: the
        // old one has room for what is left.
        let left = unsafe { entries(new) }.into_iter().filter(|text| !ours.clone().any(|own| own == *text));
        for (at, text) in left.take(theirs.len()).chain([ptr::null_mut()]).enumerate() {
            // What stays is not stored again: another thread may read it now.
            // SAFETY: no more entries are left than the old array has.
            if !old.is_null() && unsafe { *old.add(at) } != text {
                // SAFETY: an entry of the old array, as the one that was just compared.
                unsafe { *old.add(at) = text };
            }
        }
    } else {
        // setenv has made an array of its own from ours.
        for (name, text) in added {
            // SAFETY: a name that a zero ends; the value is behind it in the text.
            unsafe {
                if libc::getenv(name.as_ptr()) == text.add(name.count_bytes() + 1) {
                    libc::unsetenv(name.as_ptr());
                }
            }
        }
    }
    result
}

/// The texts of an environment.
///
/// # Safety
/// The array ends with a null pointer, or there is none.
unsafe fn entries(environment: *mut *mut c_char) -> Vec<*mut c_char> {
    if environment.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    (0..).map(|at| unsafe { *environment.add(at) }).take_while(|text| !text.is_null()).collect()
}

/// The arrays that were the environment for a while. They are never freed: a library may have kept
/// the value of a variable, and another thread may just read the array. Named here, they are no
/// lost memory to those who look for such.
static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());

#[cfg(test)]
#[path = "undisturbed_tests.rs"]
mod tests;

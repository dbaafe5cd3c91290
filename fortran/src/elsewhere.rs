//! Common blocks of `lapif.h` besides those that the library was given.
//!
//! The dynamic linker gives the library one variable for each name. Shared objects that a program
//! opens for themselves alone (RTLD_LOCAL, as Python opens its modules) each have their own.

use libc::{RTLD_LAZY, RTLD_NOLOAD, c_int, c_void, dl_phdr_info, size_t};
use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where LAPI_ADDR_NULL is besides; null as long as that is nowhere. A list that others may read is
/// never changed or freed.
static NULLS: AtomicPtr<Vec<usize>> = AtomicPtr::new(ptr::null_mut());

/// Whether LAPI_ADDR_NULL of some other object is there.
#[inline]
pub fn is_null(address: usize) -> bool {
    // SAFETY: null, or a list that is never freed.
    let nulls = unsafe { NULLS.load(Ordering::Acquire).as_ref() };
    nulls.is_some_and(|nulls| nulls.contains(&address))
}

/// Notes LAPI_ADDR_NULL of every object that is loaded now, by these names, and calls `byte` for
/// each LAPI_BYTE. Objects in which LAPI_ADDR_NULL was found stay loaded: no variable of the
/// program's ever has that address.
pub fn find(nulls: &[&CStr], known: &[usize], bytes: &[&CStr], byte: impl Fn(*mut c_void)) {
    let mut found = Vec::new();
    for name in objects() {
        // SAFETY: C strings, and a handle that was just opened.
        unsafe {
            let object = libc::dlopen(name.as_ptr(), RTLD_LAZY | RTLD_NOLOAD);
            if object.is_null() {
                continue;
            }
            let addresses = |names: &[&CStr]| {
                let all = names.iter().map(|name| libc::dlsym(object, name.as_ptr()));
                all.filter(|address| !address.is_null()).collect::<Vec<_>>()
            };
            addresses(bytes).into_iter().for_each(&byte);
            let count = found.len();
            for null in addresses(nulls).into_iter().map(|null| null.addr()) {
                if !known.contains(&null) && !is_null(null) && !found.contains(&null) {
                    found.push(null);
                }
            }
            if found.len() == count {
                libc::dlclose(object);
            }
        }
    }
    add(&found);
}

/// Adds to the list. Only this takes a lock: a constructor that calls LAPI_INIT has the loader's
/// already, and [`find`] waits for that one.
fn add(found: &[usize]) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let new: Vec<usize> = found.iter().copied().filter(|null| !is_null(*null)).collect();
    if !new.is_empty() {
        // SAFETY: null, or a list that is never freed.
        let before = unsafe { NULLS.load(Ordering::Acquire).as_ref() };
        let all = before.into_iter().flatten().copied().chain(new).collect();
        NULLS.store(Box::into_raw(Box::new(all)), Ordering::Release);
    }
}

/// The names of the objects that are loaded; the program's own, which is empty, is none.
fn objects() -> Vec<CString> {
    unsafe extern "C" fn note(info: *mut dl_phdr_info, _: size_t, names: *mut c_void) -> c_int {
        // SAFETY: the system's structure, whose name is null or a C string, and the list below.
        unsafe {
            if !(*info).dlpi_name.is_null() && *(*info).dlpi_name != 0 {
                (*names.cast::<Vec<CString>>()).push(CStr::from_ptr((*info).dlpi_name).to_owned());
            }
        }
        0
    }
    let mut names = Vec::<CString>::new();
    // SAFETY: `note` has the function's type, and gets the list.
    unsafe { libc::dl_iterate_phdr(Some(note), ptr::from_mut(&mut names).cast()) };
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    fn find_nothing() {
        find(&[], &[], &[], |_| {});
    }

    unsafe extern "C" fn find_beside_another(_: *mut dl_phdr_info, _: size_t, _: *mut c_void) -> c_int {
        spawn(find_nothing);
        // The other thread waits for the loader meanwhile.
        sleep(Duration::from_millis(300));
        find_nothing();
        1
    }

    /// As a constructor is that calls LAPI_INIT.
    #[test]
    fn a_thread_that_has_the_loader_waits_for_no_other_one() {
        let (ends, end) = channel::<()>();
        spawn(move || {
            // SAFETY: the function's type; it uses nothing.
            unsafe { libc::dl_iterate_phdr(Some(find_beside_another), ptr::null_mut()) };
            drop(ends);
        });
        if end.recv_timeout(Duration::from_secs(300)) != Err(RecvTimeoutError::Disconnected) {
            // A panic would wait for the loader, too.
            std::process::abort();
        }
    }
}

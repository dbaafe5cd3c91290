//! Places of calls in languages whose code has no addresses of its own: an interpreter says where
//! its program is.
//!
//! A place has a number, which stands for the address behind a call: where the place itself is in
//! memory, and so no code. The interpreter calls the twin of a function (`wrap::placed`): the same
//! body, with a beginning that takes the number that [`lapiprof_enter`] has set. So a program in C
//! executes no instruction more. The calls of Fortran go to the twins too, from the place of their
//! program's call (`wrap::fortran`), which is an address of code.

use crate::site;
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A line of a program.
#[derive(Debug)]
pub struct SourceLine {
    next: *const SourceLine,
    /// The function.
    pub function: String,
    /// The file, as the interpreter names it.
    pub file: String,
    /// The line, from 1.
    pub line: c_int,
}

/// All places. They are added without a lock, which a child of fork might find taken, and are
/// never freed.
static ALL: AtomicPtr<SourceLine> = AtomicPtr::new(null_mut());

/// The number of a line of a file, in a function. For interpreters, which keep the number.
///
/// # Safety
///
/// Both are texts that end in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapiprof_place(file: *const c_char, line: c_int, function: *const c_char) -> usize {
    // SAFETY: the caller's promise.
    let (file, function) = unsafe { (CStr::from_ptr(file), CStr::from_ptr(function)) };
    let (file, function) = (file.to_string_lossy(), function.to_string_lossy());
    let mut first = ALL.load(Ordering::Acquire);
    let mut place = first.cast_const();
    // SAFETY: null, or a place, which is never freed.
    while let Some(known) = unsafe { place.as_ref() } {
        if known.line == line && known.file == file && known.function == function {
            return place as usize;
        }
        place = known.next;
    }
    let new =
        SourceLine { next: ptr::null(), function: function.into_owned(), file: file.into_owned(), line };
    let new = Box::into_raw(Box::new(new));
    loop {
        // SAFETY: no other thread knows it yet. Of two threads that add the same place at once,
        // each has one: both have the same name.
        unsafe { (*new).next = first };
        match ALL.compare_exchange_weak(first, new, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return new as usize,
            Err(other) => first = other,
        }
    }
}

/// Sets the place from which the calls of this thread come that go to twins; 0: from nowhere.
/// Returns what was set before.
#[unsafe(no_mangle)]
pub extern "C" fn lapiprof_enter(place: usize) -> usize {
    let before = site::place();
    site::set_place(place);
    before
}

/// The place with this number; `None` for an address of code.
pub fn named(number: usize) -> Option<&'static SourceLine> {
    let mut place = ALL.load(Ordering::Acquire).cast_const();
    // SAFETY: null, or a place, which is never freed.
    while let Some(known) = unsafe { place.as_ref() } {
        if place as usize == number {
            return Some(known);
        }
        place = known.next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{lapiprof_enter, lapiprof_place, named};

    #[test]
    fn a_place_has_one_number() {
        // SAFETY: texts of C.
        let number =
            |line| unsafe { lapiprof_place(c"/home/me/halo.py".as_ptr(), line, c"exchange".as_ptr()) };
        let (one, other) = (number(7), number(8));
        assert!(one != other && number(7) == one && number(8) == other);
        let place = named(other).expect("a number of a place");
        assert_eq!((&*place.function, &*place.file, place.line), ("exchange", "/home/me/halo.py", 8));
        assert!(named(0x5555_5555_4000).is_none());
        assert_eq!((lapiprof_enter(one), lapiprof_enter(0)), (0, one));
    }
}

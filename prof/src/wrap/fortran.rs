//! The calls by their names for Fortran, which note where the program calls.
//!
//! LAPI's layer for Fortran makes the call in C, and that one is profiled; but it comes from inside
//! of LAPI's library. So each of the four names is here, too: it sets the place of the thread's
//! calls to its caller and continues with LAPI's function of the same name, which calls the twin of
//! the function in C ([`crate::places`]).

use crate::real::Real;
use crate::site;
use libc::{c_int, c_void, dl_phdr_info, size_t};
use std::slice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Exports the names of a table of calls.
macro_rules! names {
    ($($(#[$doc:meta])* $c:ident $lower:ident $upper:ident
        ($($argument:ident: $type:ty as $kind:ident),* $(,)?);)*) => { $(
        names! { @each $c (concat!("lapi_", stringify!($lower))) ($($argument)*) }
        names! { @each $c (concat!("lapi_", stringify!($lower), "_")) ($($argument)*) }
        names! { @each $c (concat!("LAPI_", stringify!($upper))) ($($argument)*) }
        names! { @each $c (concat!("LAPI_", stringify!($upper), "_")) ($($argument)*) }
    )* };
    // The compiler passes the length of the text behind the other arguments.
    (@each LAPI_Msg_string ($name:expr) ($($argument:ident)*)) => {
        names! { @one ($name) ($($argument)* ierror length) }
    };
    (@each $c:ident ($name:expr) ($($argument:ident)*)) => {
        names! { @one ($name) ($($argument)* ierror) }
    };
    // Each argument is an address, but for that length, which is as wide.
    (@one ($name:expr) ($($argument:ident)*)) => {
        const _: () = {
            type Same = unsafe extern "C" fn($(names!(@address $argument)),*);

            unsafe extern "C" fn body($($argument: *mut c_void),*) {
                const NAME: &str = concat!($name, "\0");
                static REAL: Real = Real::after(match std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                });
                let caller = site::site();
                // SAFETY: LAPI's function of this name, with the program's own arguments.
                from(caller, || unsafe {
                    std::mem::transmute::<*mut c_void, Same>(REAL.address())($($argument),*)
                });
            }

            #[unsafe(export_name = $name)]
            #[unsafe(naked)]
            unsafe extern "C" fn entry($($argument: *mut c_void),*) {
                crate::note_caller!($name, body)
            }
        };
    };
    (@address $argument:ident) => { *mut c_void };
}

openlapi::for_each_call!(names);

/// Exports the variables of `lapif.h`, as LAPI's library does. A program that is linked with the
/// profiler may take everything from here, so that the linker drops the library, and only shows its
/// own variables to libraries where it has seen one that has them, too.
macro_rules! variables {
    ($($name:literal)*) => { $(
        const _: () = {
            #[unsafe(export_name = $name)]
            static VARIABLE: AtomicU64 = AtomicU64::new(0);
        };
    )* };
}

variables! { "lapif_null_" "lapif_null" "LAPIF_NULL" "LAPIF_NULL_" }
variables! { "lapif_byte_" "lapif_byte" "LAPIF_BYTE" "LAPIF_BYTE_" }

/// Makes a call, whose place is its caller. Where one of the names goes on to another, the caller
/// is LAPI's library, or, by a jump, this one, and the place stays.
fn from(caller: usize, call: impl FnOnce()) {
    static INIT: Real = Real::new(c"PLAPI_Init");
    static LAPI: Object = Object::unknown();
    static OWN: Object = Object::unknown();
    let goes_on =
        LAPI.has(caller, || INIT.address() as usize) || OWN.has(caller, || object_of as *const () as usize);
    let outer = site::place();
    site::set_place(if goes_on { outer } else { caller });
    call();
    site::set_place(outer);
}

/// Where an object is in memory: its first byte, and how many there are; 0 until that is known.
struct Object {
    begin: AtomicUsize,
    length: AtomicUsize,
}

impl Object {
    const fn unknown() -> Self {
        Self { begin: AtomicUsize::new(0), length: AtomicUsize::new(0) }
    }

    /// Whether this address lies in the object that has the code. Several threads that look at once
    /// find the same.
    fn has(&self, address: usize, code: impl FnOnce() -> usize) -> bool {
        let mut length = self.length.load(Ordering::Acquire);
        if length == 0 {
            let begin;
            (begin, length) = object_of(code());
            self.begin.store(begin, Ordering::Relaxed);
            self.length.store(length, Ordering::Release);
        }
        address.wrapping_sub(self.begin.load(Ordering::Relaxed)) < length
    }
}

/// Where the object with this code begins, and how long it is.
fn object_of(code: usize) -> (usize, usize) {
    struct Search {
        code: usize,
        found: (usize, usize),
    }

    unsafe extern "C" fn look(object: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, with its headers, during this call; the
        // search is the one below.
        let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
        // SAFETY: the loader gives the headers with their number.
        let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
            let begin = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            (begin, begin + header.p_memsz as usize)
        });
        let whole = loaded.reduce(|one, next| (one.0.min(next.0), one.1.max(next.1)));
        match whole {
            Some((begin, end)) if (begin..end).contains(&search.code) => {
                search.found = (begin, end - begin);
                1
            }
            _ => 0,
        }
    }

    // Of code that no object has, itself: the search is not made again.
    let mut search = Search { code, found: (code, 1) };
    // SAFETY: the function gets what it is declared for, and the search outlives the walk.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

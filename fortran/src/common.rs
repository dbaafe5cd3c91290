//! The variables of `lapif.h`: each stands alone in a named common block.
//!
//! A common block is one piece of memory for all who name it. A program that includes `lapif.h`
//! brings it along; the dynamic linker then gives the library the address of that one, and does not
//! use the ones here.

use crate::elsewhere;
use libc::c_void;
use openlapi::abi::{BYTE_DGSP, PredefinedDgsp};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// LAPI_ADDR_NULL, by the names that compilers give to COMMON /LAPIF_NULL/.
#[unsafe(export_name = "lapif_null_")]
static NULL: AtomicU64 = AtomicU64::new(0);
#[unsafe(export_name = "lapif_null")]
static NULL_PLAIN: AtomicU64 = AtomicU64::new(0);
#[unsafe(export_name = "LAPIF_NULL")]
static NULL_HIGH: AtomicU64 = AtomicU64::new(0);
#[unsafe(export_name = "LAPIF_NULL_")]
static NULL_CAPITAL: AtomicU64 = AtomicU64::new(0);

/// LAPI_BYTE, by the names that compilers give to COMMON /LAPIF_BYTE/.
#[unsafe(export_name = "lapif_byte_")]
static BYTE: AtomicPtr<PredefinedDgsp> = AtomicPtr::new(ptr::null_mut());
#[unsafe(export_name = "lapif_byte")]
static BYTE_PLAIN: AtomicPtr<PredefinedDgsp> = AtomicPtr::new(ptr::null_mut());
#[unsafe(export_name = "LAPIF_BYTE")]
static BYTE_HIGH: AtomicPtr<PredefinedDgsp> = AtomicPtr::new(ptr::null_mut());
#[unsafe(export_name = "LAPIF_BYTE_")]
static BYTE_CAPITAL: AtomicPtr<PredefinedDgsp> = AtomicPtr::new(ptr::null_mut());

fn nulls() -> [usize; 4] {
    [&NULL, &NULL_PLAIN, &NULL_HIGH, &NULL_CAPITAL].map(|null| ptr::from_ref(null).addr())
}

/// The argument itself, or null when it is LAPI_ADDR_NULL.
pub fn or_null<T>(argument: *mut T) -> *mut T {
    let address = argument.addr();
    let is_null = nulls().contains(&address) || elsewhere::is_null(address);
    if is_null { ptr::null_mut() } else { argument }
}

/// Gives LAPI_BYTE its value, wherever the program keeps it: a common block has none to begin with.
/// And learns where LAPI_ADDR_NULL is.
pub fn set_up() {
    let set = |byte: *mut c_void| {
        // SAFETY: one of the variables above, or the same one of an object that includes `lapif.h`.
        unsafe { AtomicPtr::from_ptr(byte.cast()) }
            .store(ptr::from_ref(&BYTE_DGSP).cast_mut(), Ordering::Relaxed);
    };
    for byte in [&BYTE, &BYTE_PLAIN, &BYTE_HIGH, &BYTE_CAPITAL] {
        set(byte.as_ptr().cast());
    }
    let names = [c"lapif_null_", c"lapif_null", c"LAPIF_NULL", c"LAPIF_NULL_"];
    elsewhere::find(&names, &nulls(), &[c"lapif_byte_", c"lapif_byte", c"LAPIF_BYTE", c"LAPIF_BYTE_"], set);
}

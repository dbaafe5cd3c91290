//! Counters: values in the program's memory that the library adds to and the program reads.

use std::sync::atomic::{AtomicI32, Ordering};

/// The value of the counter at this address.
///
/// # Safety
/// `cntr` must be the address of a counter of the program.
#[inline]
unsafe fn value<'a>(cntr: usize) -> &'a AtomicI32 {
    // SAFETY: a counter starts with its value, 4-byte aligned; the program reads it while we change
    // it, so it is only ever touched as an atomic.
    unsafe { AtomicI32::from_ptr(cntr as *mut i32) }
}

/// Adds one to the counter at `cntr`; 0 is no counter. Everything written before is visible to a
/// thread that sees the new value.
///
/// # Safety
/// `cntr` must be 0 or the address of a counter of the program.
#[inline]
pub unsafe fn bump(cntr: usize) {
    if cntr != 0 {
        // SAFETY: the caller's promise.
        unsafe { value(cntr) }.fetch_add(1, Ordering::Release);
    }
}

/// Reads the counter.
///
/// # Safety
/// `cntr` must be the address of a counter of the program.
#[inline]
pub unsafe fn get(cntr: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { value(cntr) }.load(Ordering::Acquire)
}

/// Sets the counter.
///
/// # Safety
/// `cntr` must be the address of a counter of the program.
#[inline]
pub unsafe fn set(cntr: usize, to: i32) {
    // SAFETY: the caller's promise.
    unsafe { value(cntr) }.store(to, Ordering::Release);
}

/// Subtracts `amount` from the counter if the counter has reached it; returns the rest.
///
/// # Safety
/// `cntr` must be the address of a counter of the program.
#[inline]
pub unsafe fn take(cntr: usize, amount: i32) -> Option<i32> {
    // SAFETY: the caller's promise.
    let value = unsafe { value(cntr) };
    // Another thread may set the counter meanwhile: what it sets is not lowered unread.
    let rest = |now: i32| (now >= amount).then(|| now.wrapping_sub(amount));
    value
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, rest)
        .ok()
        .map(|before| before.wrapping_sub(amount))
}

//! Where a call may take long, for a profiler that counts most calls without reading the clock.
//!
//! The library exports [`HOOK`] as `lapi_long_call_hook`. Without a profiler it is null, and costs
//! a load at places that most calls do not come to.

use super::clock::ticks;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Called, in the thread that makes the call, with the ticks at which the long part of it began. It
/// may be called several times in a call, and inside of handlers; it must not call LAPI.
pub type Hook = extern "C" fn(ticks: u64);

/// A [`Hook`], or null. Set at most once, by the profiler.
pub static HOOK: AtomicPtr<Hook> = AtomicPtr::new(null_mut());

/// What follows in this call may take long.
#[inline]
pub fn begins() {
    if !HOOK.load(Ordering::Relaxed).is_null() {
        since(ticks());
    }
}

/// This call takes long, and has done so since then.
#[cold]
pub fn since(ticks: u64) {
    let hook = HOOK.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: what is not null points to a function of this type that is never unloaded.
        unsafe { (*hook)(ticks) };
    }
}

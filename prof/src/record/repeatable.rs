//! The place whose next put may be a repeated one ([`super::repeated`]), and where the instructions
//! of LAPI_Put look.

use super::buffer::{Buffer, Site};
use crate::site;
use libc::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library's LAPI_Put that ends with the profiler's hook; null: the library has none.
pub static PUT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Where the instructions of LAPI_Put look: in a [`Site`], but for the last one.
#[cfg(target_arch = "x86_64")]
pub mod offsets {
    use crate::record::buffer::{Buffer, Site};
    use crate::record::sampling::Rhythm;
    use std::mem::offset_of;

    /// The address behind the call.
    pub const PLACE: usize = offset_of!(Site, address);
    /// The target of the last timed put.
    pub const PEER: usize = offset_of!(Site, rhythm) + Rhythm::PEER;
    /// The length of the last timed put.
    pub const BYTES: usize = offset_of!(Site, rhythm) + Rhythm::BYTES;
    /// How many calls follow that are not timed.
    pub const LEFT: usize = offset_of!(Site, rhythm) + Rhythm::LEFT;
    /// In a [`Buffer`]: since when the call is long that this thread is in.
    pub const LONG_SINCE: usize = offset_of!(Buffer, long_since);
}

/// A put was like the last timed one of its place, and `alone`: not in a handler inside of another
/// call. The next one may be repeated.
#[inline(always)]
pub fn allow(site: &'static Site, alone: bool) {
    let entry = ptr::from_ref(site).cast();
    if alone && site::repeated() != entry && !PUT.load(Ordering::Relaxed).is_null() {
        site::set_repeated(entry);
    }
}

/// The place of the put that this thread is in; only at the end of a repeated one. None when a put
/// of it was timed meanwhile.
pub fn allowed() -> Option<&'static Site> {
    // SAFETY: null, or what `allow` was given.
    unsafe { site::repeated().cast::<Site>().as_ref() }
}

/// A put of the place is about to be counted that is timed: those before it are counted first.
#[inline]
pub fn end_of_batch(buffer: &Buffer, site: &Site) {
    if site::repeated() == ptr::from_ref(site).cast() {
        site::set_repeated(ptr::null());
        if let Some(traffic) = site.rhythm.last() {
            buffer.ended.set(site, traffic);
        }
    }
}

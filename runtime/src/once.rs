//! What a process makes when it is first needed.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is made when it is first needed, and never freed. Not a `OnceLock`: a child that is
/// forked in the middle of it would wait for ever.
pub struct Once<T>(AtomicPtr<T>);

impl<T: Send + Sync> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> Once<T> {
    /// Without a value.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value, if it was made.
    pub fn made(&self) -> Option<&T> {
        // SAFETY: null, or made from a box by `get`, and never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value. Of threads that make it at the same time, all get the same one.
    pub fn get(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.made() {
            return value;
        }
        let new = Box::into_raw(Box::new(make()));
        match self.0.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: made from a box right above, and never freed from now on.
            Ok(_) => unsafe { &*new },
            Err(theirs) => {
                // SAFETY: made from a box right above, and not shared.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread has made it from a box, and it is never freed.
                unsafe { &*theirs }
            }
        }
    }

    /// In the child of a fork: the parent's value, which may be in any state, stays where it is and
    /// is not this process's any more.
    pub fn forget(&self) {
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

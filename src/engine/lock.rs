//! The context's lock. It knows which thread holds it, so that a call made by that thread (from a handler, or because
//! the program has taken the lock for itself) goes on without taking it again.

use crate::base::lock::RawLock;
use lock_api::RawMutex as _;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A lock with an owner.
pub struct OwnedLock {
    raw: RawLock,
    /// The owner's thread id, 0 for none. Only ever compared with the reader's own id: a thread sees its own writes,
    /// so no order between threads is needed.
    owner: AtomicUsize,
}

impl OwnedLock {
    /// A free lock.
    pub const fn new() -> Self {
        Self { raw: RawLock::INIT, owner: AtomicUsize::new(0) }
    }

    /// Takes the lock, waiting for it. `false` when this thread holds it already: then nothing has changed.
    #[inline]
    pub fn enter(&self) -> bool {
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) == me {
            return false;
        }
        self.raw.lock();
        self.owner.store(me, Ordering::Relaxed);
        true
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn leave(&self) {
        self.owner.store(0, Ordering::Relaxed);
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.unlock() }
    }

    /// Lets another thread have the lock for a moment, if one waits for it; costs one load otherwise.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn yield_to_others(&self) {
        let me = self.owner.load(Ordering::Relaxed);
        self.owner.store(0, Ordering::Relaxed);
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.bump() }
        self.owner.store(me, Ordering::Relaxed);
    }

    /// Whether the calling thread holds the lock.
    #[inline]
    pub fn mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }
}

impl Default for OwnedLock {
    fn default() -> Self {
        Self::new()
    }
}

/// A number of the calling thread that no other living thread has; never 0.
#[inline]
pub fn this_thread() -> usize {
    // SAFETY: pthread_self has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

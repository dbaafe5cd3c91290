//! The word by which a sender learns that the receiver sleeps and must be woken.
//!
//! The pattern is Dekker's, with the asymmetric barrier of [`super::asymmetric_barrier`]. The sleeper raises the word and
//! then looks for work. A sender gives it work (a packet, or room that it waits for) and then reads the word. Each side
//! has a full barrier between its write and its read, so at least one of them sees what the other has written: either the
//! sleeper stays awake, or the sender wakes it.
//!
//! Orderings: between the two sides only the barriers count, so the common read is Relaxed. The word carries no data: the
//! ring publishes the work. When several senders find the word raised, the exchange lets exactly one of them wake the
//! sleeper.

use super::asymmetric_barrier::{Heavy, Light};
use super::sync::{AtomicU32, Ordering};

/// The word of one sleeper. Zeroed memory means that the owner is awake.
#[repr(transparent)]
pub struct Doorbell {
    /// Not 0 while the owner sleeps. The thread that clears it must wake the owner.
    asleep: AtomicU32,
}

impl Doorbell {
    /// Called after the owner was given work: whether the caller must wake it. No other caller gets `true` for this sleep.
    #[inline]
    pub fn needs_wake(&self, light: Light) -> bool {
        light.fence();
        self.asleep.load(Ordering::Relaxed) != 0 && self.take()
    }

    /// Clears the word, unless another sender has cleared it since; then it is not written.
    fn take(&self) -> bool {
        self.asleep.compare_exchange(1, 0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The owner is about to sleep. Returns whether it may: `false` when `busy` finds work. After `true`, every sender that
    /// gives the owner work wakes it, until [`Self::cancel`].
    pub fn prepare_sleep(&self, heavy: Heavy, busy: impl FnOnce() -> bool) -> bool {
        self.asleep.store(1, Ordering::SeqCst);
        heavy.fence();
        let busy = busy();
        if busy {
            self.cancel();
        }
        !busy
    }

    /// Whether the owner sleeps, or is about to: a hint.
    pub fn asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// The owner is awake again. A sender may have woken it just before.
    pub fn cancel(&self) {
        self.asleep.store(0, Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
impl Doorbell {
    /// The word of an owner that is awake.
    pub(super) fn new() -> Self {
        Self { asleep: AtomicU32::new(0) }
    }
}

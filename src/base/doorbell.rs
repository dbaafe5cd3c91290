//! Who wakes whom: the word by which a sender finds out that the other side sleeps.
//!
//! The pattern is Dekker's, with the asymmetric barrier of [`super::fence`]. The sleeper raises the word and then looks
//! whether there is anything to do; whoever gives it something to do (a packet, or room that it waited for) does so and then
//! looks at the word. With a barrier in between on both sides, one of the two sees what the other has written: either the
//! sleeper stays awake, or it is woken.
//!
//! Orderings: between the two sides only the barriers count, so the common look is Relaxed. The word carries no data: what
//! there is to do is published by the ring. Of several who find it raised, the exchange lets one ring.

use super::fence::{self, Light};
use super::sync::{AtomicU32, Ordering};

/// The word of one sleeper. Zeroed memory is one that is awake.
#[repr(transparent)]
pub struct Doorbell {
    /// Not 0 when the owner sleeps and must be woken: who clears it wakes.
    asleep: AtomicU32,
}

impl Doorbell {
    /// For who has just given the owner something to do: whether this call must wake it. Nobody else does then.
    #[inline]
    pub fn must_ring(&self, light: Light) -> bool {
        light.fence();
        self.asleep.load(Ordering::Relaxed) != 0 && self.take()
    }

    /// Takes the word down, if nobody else has since; then it is not written.
    fn take(&self) -> bool {
        self.asleep.compare_exchange(1, 0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The owner is about to sleep, unless it is `busy`: whether it may. From then on who gives it something to do rings.
    pub fn lie_down(&self, busy: impl FnOnce() -> bool) -> bool {
        self.asleep.store(1, Ordering::SeqCst);
        fence::heavy();
        let busy = busy();
        if busy {
            self.get_up();
        }
        !busy
    }

    /// Whether the owner sleeps, or is about to: a hint.
    pub fn asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// The owner is awake. It may have been rung for just before.
    pub fn get_up(&self) {
        self.asleep.store(0, Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
impl Doorbell {
    /// Of one that is awake.
    pub(super) fn new() -> Self {
        Self { asleep: AtomicU32::new(0) }
    }
}

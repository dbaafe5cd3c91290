//! The word by which a sender learns that the receiver sleeps and must be woken, or that it does
//! not poll every ring.
//!
//! The pattern is Dekker's, with the asymmetric barrier of [`super::asymmetric_barrier`]. The
//! sleeper raises the word and then looks for work. A sender gives it work (a packet, or room that
//! it waits for) and then reads the word. Each side has a full barrier between its write and its
//! read, so at least one of them sees what the other has written: either the sleeper stays awake,
//! or the sender wakes it.
//!
//! A receiver that does not poll every ring says so in the same word, so that a sender reads one
//! word in the common case, whatever the receiver does.
//!
//! Orderings: between the two sides only the barriers count, so the common read is Relaxed. The
//! word carries no data: the ring publishes the work. When several senders find the owner asleep,
//! the exchange lets exactly one of them wake it.

use super::asymmetric_barrier::{Heavy, Light};
use super::sync::{AtomicU32, Ordering};

/// The owner sleeps, or is about to. The thread that clears this must wake it.
const ASLEEP: u32 = 1;
/// The owner does not poll every ring. Only the owner changes this.
const SELECTIVE: u32 = 2;

/// The word of one receiver. Zeroed memory means that the owner is awake and polls every ring.
#[repr(transparent)]
pub struct Doorbell {
    word: AtomicU32,
}

impl Doorbell {
    /// Called after the owner was given a packet: whether the caller has to do more, which is to
    /// announce the packet ([`Self::selective`]) and then to wake the owner ([`Self::needs_wake`]).
    #[inline]
    pub fn needs_more(&self, light: Light) -> bool {
        light.fence();
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Called after the owner was given work: whether the caller must wake it. No other caller gets
    /// `true` for this sleep.
    #[inline]
    pub fn needs_wake(&self, light: Light) -> bool {
        self.needs_more(light) && self.take()
    }

    /// Clears the mark of the sleeper, unless another sender has cleared it since; then the word
    /// is not written.
    fn take(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & ASLEEP != 0 {
            match self.word.compare_exchange(word, word & !ASLEEP, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// The owner is about to sleep. Returns whether it may: `false` when `busy` finds work. After
    /// `true`, every sender that gives the owner work wakes it, until [`Self::cancel`].
    pub fn prepare_sleep(&self, heavy: Heavy, busy: impl FnOnce() -> bool) -> bool {
        self.word.fetch_or(ASLEEP, Ordering::SeqCst);
        heavy.fence();
        let busy = busy();
        if busy {
            self.cancel();
        }
        !busy
    }

    /// Whether the owner sleeps, or is about to: a hint.
    pub fn asleep(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ASLEEP != 0
    }

    /// The owner is awake again. A sender may have woken it just before.
    pub fn cancel(&self) {
        self.word.fetch_and(!ASLEEP, Ordering::SeqCst);
    }

    /// Whether the owner does not poll every ring.
    pub fn selective(&self) -> bool {
        self.word.load(Ordering::Relaxed) & SELECTIVE != 0
    }

    /// The owner does not poll every ring from now on, or polls all of them again. A barrier must
    /// follow before it stops polling the first one.
    pub fn set_selective(&self, selective: bool) {
        if selective {
            self.word.fetch_or(SELECTIVE, Ordering::SeqCst);
        } else {
            self.word.fetch_and(!SELECTIVE, Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, loom))]
impl Doorbell {
    /// The word of an owner that is awake.
    pub(super) fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }
}

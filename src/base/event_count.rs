//! An event count: threads of one process sleep until something changes that no lock guards.
//!
//! A sleeper counts itself and then checks what it waits for; a thread that changes that checks
//! afterwards whether a sleeper is counted. Both have a full barrier in between (Dekker's pattern,
//! as in [`super::doorbell`]), so at least one sees what the other has done. The word's value is
//! the number of notifications: a sleeper that has missed one does not fall asleep.

use super::sync::{AtomicU32, Futex, Ordering, fence};
use std::time::Duration;

/// For [`EventCount::notify`]: as many threads as there are.
pub const ALL: u32 = i32::MAX as u32;

/// Where threads sleep, and the number of threads that do.
#[derive(Debug)]
pub struct EventCount {
    /// The number of notifications while a thread was counted. Raised with Release and read with
    /// Acquire: a sleeper that reads the number of a notification must also see the change before
    /// it, or it would sleep on with the new number.
    word: Futex,
    /// The number of threads that sleep, here or elsewhere, or are about to. Relaxed: the barriers
    /// order it, and it carries no data.
    sleepers: AtomicU32,
}

impl EventCount {
    /// No thread sleeps.
    pub fn new() -> Self {
        Self { word: Futex::new(0), sleepers: AtomicU32::new(0) }
    }

    /// Counts this thread as a sleeper, until [`Self::finish`]. It looks once more at what it waits
    /// for before it sleeps, by [`Self::sleep`] with the value or elsewhere.
    pub fn prepare(&self) -> u32 {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.word.load(Ordering::Acquire)
    }

    /// Sleeps unless there was a notification since [`Self::prepare`], but not for longer than
    /// `at_most`; may also return earlier.
    pub fn sleep(&self, ticket: u32, at_most: Option<Duration>) {
        self.word.sleep(ticket, at_most);
    }

    /// Ends what [`Self::prepare`] began, whether this thread has slept or not.
    pub fn finish(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// After a change: whether a thread sleeps, or is about to.
    #[inline]
    pub fn occupied(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// After a change: wakes up to `count` of the threads that sleep here.
    #[inline]
    pub fn notify(&self, count: u32) {
        if self.occupied() {
            self.word.fetch_add(1, Ordering::Release);
            self.word.wake(count);
        }
    }
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}

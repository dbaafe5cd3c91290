//! Where threads of one process sleep until another one has news.
//!
//! There are two kinds of news: those told under the lock of the context, whose holder knows who sleeps; and counters that
//! a call changes without any lock. For the second the pattern is Dekker's, as in [`super::doorbell`]: the sleeper counts
//! itself and then looks at its counter, the call changes the counter and then looks whether anybody is counted. Both have
//! a full barrier in between, so one of the two sees what the other has done.

use super::sync::{AtomicU32, Condvar, Mutex, Ordering, fence};
use std::time::Duration;

/// Where threads sleep, and the number of those that do.
pub struct WaitingRoom {
    news: Mutex<u64>,
    changed: Condvar,
    /// Threads that sleep, here or elsewhere: read without the lock, by calls that do not take it. The barriers beside
    /// each access order it; it carries no data.
    asleep: AtomicU32,
}

impl WaitingRoom {
    /// An empty one.
    pub fn new() -> Self {
        Self { news: Mutex::new(0), changed: Condvar::new(), asleep: AtomicU32::new(0) }
    }

    /// Whether a thread sleeps, or is about to. The sleeper calls [`Self::lie_down`] and then looks at the counter; who
    /// asks here has changed the counter before.
    #[inline]
    pub fn occupied(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// This thread is about to sleep, here or on a descriptor.
    pub fn lie_down(&self) {
        self.asleep.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The end of what [`Self::lie_down`] began.
    pub fn get_up(&self) {
        self.asleep.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of the last news.
    pub fn number(&self) -> u64 {
        *self.news.lock()
    }

    /// Sleeps until there is news after number `before`, but not for longer than `at_most`.
    pub fn sleep(&self, before: u64, at_most: Duration) {
        let mut news = self.news.lock();
        if *news == before {
            self.changed.wait_for(&mut news, at_most);
        }
    }

    /// Wakes all that sleep here.
    pub fn announce(&self) {
        *self.news.lock() += 1;
        self.changed.notify_all();
    }
}

impl Default for WaitingRoom {
    fn default() -> Self {
        Self::new()
    }
}

//! Where threads of one process sleep until another thread wakes them.
//!
//! There are two causes. Some changes are made under the context's lock, whose holder knows how
//! many threads are parked. Counters, though, may be changed by a call that takes no lock. For
//! those the pattern is Dekker's, as in [`super::doorbell`]: the sleeper counts itself and then
//! reads its counter; the call changes the counter and then reads the count. Both have a full
//! barrier in between, so at least one of them sees what the other has done.

use super::sync::{AtomicU32, Condvar, Mutex, Ordering, fence};
use std::time::Duration;

/// A place for threads to sleep, and the number of threads that do.
pub struct Parking {
    /// Counts the calls of [`Self::wake_all`].
    wakes: Mutex<u64>,
    changed: Condvar,
    /// Threads that sleep, here or on a descriptor. Calls that do not take the lock read it; the
    /// barriers beside each access order it, and it carries no data.
    asleep: AtomicU32,
}

impl Parking {
    /// A place where no thread sleeps.
    pub fn new() -> Self {
        Self { wakes: Mutex::new(0), changed: Condvar::new(), asleep: AtomicU32::new(0) }
    }

    /// Called after a counter was changed without the lock: whether a thread sleeps,
    /// or is about to.
    #[inline]
    pub fn occupied(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// This thread is about to sleep, here or on a descriptor. It must check its counter
    /// after this call.
    pub fn prepare_sleep(&self) {
        self.asleep.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends what [`Self::prepare_sleep`] began.
    pub fn cancel(&self) {
        self.asleep.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of the last wake-up, for [`Self::sleep`].
    pub fn last_wake(&self) -> u64 {
        *self.wakes.lock()
    }

    /// Sleeps until there is a wake-up after number `before`, but for at most `at_most`.
    pub fn sleep(&self, before: u64, at_most: Duration) {
        let mut wakes = self.wakes.lock();
        if *wakes == before {
            self.changed.wait_for(&mut wakes, at_most);
        }
    }

    /// Wakes all threads that sleep here.
    pub fn wake_all(&self) {
        *self.wakes.lock() += 1;
        self.changed.notify_all();
    }
}

impl Default for Parking {
    fn default() -> Self {
        Self::new()
    }
}

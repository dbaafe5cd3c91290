//! A word on which threads sleep: the kernel compares it and puts the thread to sleep in one
//! step (futex(2)).

use crate::base::clock::now;
#[cfg(test)]
use crate::base::simulation;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A number of 32 bits that threads of one process change, and on which they sleep.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

/// Why a sleep on a [`Futex`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// [`Futex::wake`] has chosen this thread.
    Woken,
    /// The time is over.
    TimedOut,
    /// The word had another value: the thread has not slept.
    Changed,
    /// A signal's handler has run.
    Signal,
}

impl Futex {
    /// A word with this value.
    pub const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// As of an atomic.
    #[inline]
    pub fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    /// As of an atomic.
    #[inline]
    pub fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    /// As of an atomic.
    #[inline]
    pub fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    /// As of an atomic.
    #[inline]
    pub fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }

    /// As of an atomic; `true` when it was exchanged. A failure orders nothing.
    #[inline]
    pub fn exchange(&self, from: u32, to: u32, order: Ordering) -> bool {
        self.0.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }

    /// Sleeps while the word has this value, until [`Self::wake`] chooses this thread, but not for
    /// longer than `at_most`.
    pub fn sleep(&self, value: u32, at_most: Option<Duration>) -> Wake {
        #[cfg(test)]
        if simulation::active() {
            // No other thread of the simulation runs until this one waits.
            if self.load(Ordering::Relaxed) != value {
                return Wake::Changed;
            }
            let woken = simulation::wait_on(std::ptr::from_ref(self).addr(), at_most);
            return if woken == Some(true) { Wake::Woken } else { Wake::TimedOut };
        }
        let limit = at_most.and_then(|time| time.try_into().ok());
        match futex::wait(&self.0, Flags::PRIVATE, value, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => Wake::Signal,
            Err(rustix::io::Errno::AGAIN) => Wake::Changed,
            Err(rustix::io::Errno::TIMEDOUT) => Wake::TimedOut,
            _ => Wake::Woken,
        }
    }

    /// Wakes at most `count` threads that sleep on the word, those that have slept longest first;
    /// whether there was one.
    pub fn wake(&self, count: u32) -> bool {
        #[cfg(test)]
        if let Some(woken) = simulation::wake(std::ptr::from_ref(self).addr(), count) {
            return woken;
        }
        futex::wake(&self.0, Flags::PRIVATE, count).is_ok_and(|woken| woken != 0)
    }
}

/// A moment at which a thread stops waiting.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline that is `time` from now.
    pub fn after(time: Duration) -> Self {
        Self(now() + time)
    }

    /// The time until then; `None` when it has come.
    pub fn left(&self) -> Option<Duration> {
        Some(self.0.saturating_duration_since(now())).filter(|left| !left.is_zero())
    }
}

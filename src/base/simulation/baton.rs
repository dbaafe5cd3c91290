//! The baton of a thread of a simulation: one thread has been passed its own at a time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

/// What lets one thread run.
#[derive(Default)]
pub(super) struct Baton {
    passed: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Baton {
    /// The thread that takes it.
    pub(super) fn belongs_to(&self, thread: Thread) {
        assert!(self.thread.set(thread).is_ok(), "set once");
    }

    /// Lets the thread run, now or when it takes the baton.
    pub(super) fn pass(&self) {
        self.passed.store(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Waits until the calling thread may run.
    pub(super) fn take(&self) {
        while !self.passed.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}

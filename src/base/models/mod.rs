//! Models of the lock-free parts, run by loom: every order of their threads, up to some number of
//! preemptions, and every value that the memory model lets a load see. `ci/loom.sh` runs them.
//!
//! A thread that sleeps in a model without a limit sleeps until another thread wakes it. So a
//! wake-up that is lost is a deadlock, which loom reports.

mod announcements;
mod biased_lock;
mod doorbell;
mod lock;
mod parking;
mod ring;
mod settling;
mod signals;
mod work_queue;

use super::sync::{Condvar, Mutex};
use std::time::Duration;

/// Checks a model. `preemptions`: how often a thread may be interrupted where it would
/// have continued.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A descriptor that can be made readable, and waited for.
struct Descriptor {
    readable: Mutex<bool>,
    changed: Condvar,
}

impl Descriptor {
    fn new() -> Self {
        Self { readable: Mutex::new(false), changed: Condvar::new() }
    }

    fn ring(&self) {
        *self.readable.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until it is readable, and empties it.
    fn sleep(&self) {
        let mut readable = self.readable.lock();
        while !*readable {
            self.changed.wait_for(&mut readable, Duration::MAX);
        }
        *readable = false;
    }
}

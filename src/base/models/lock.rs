//! The lock of a context: one thread at a time, and no wake-up is lost, also when a waiter gives up
//! or the lock is handed on.

use super::check;
use crate::base::lock::RawLock;
use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle};
use std::sync::Arc;
use std::time::Duration;

/// A number that only the lock's owner touches: loom reports a second thread that does.
struct Guarded {
    lock: RawLock,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched with the lock held only; that this is enough is what
// the models check.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: RawLock::new(), number: UnsafeCell::new(0) })
    }

    /// One more; with the lock held.
    fn step(&self) {
        // SAFETY: the caller holds the lock.
        self.number.with_mut(|number| unsafe { *number += 1 });
    }

    fn unlock(&self) {
        // SAFETY: each model unlocks what it has locked.
        unsafe { self.lock.unlock() }
    }

    fn locked_step(&self) {
        self.lock.lock();
        self.step();
        self.unlock();
    }

    /// Whether the lock came in time.
    fn step_within(&self) -> bool {
        let taken = self.lock.lock_within(Duration::from_secs(1));
        if taken {
            self.step();
            self.unlock();
        }
        taken
    }

    fn bump(&self) {
        // SAFETY: each model bumps only a lock that it holds.
        unsafe { self.lock.bump() }
    }

    /// The number at the end, when the lock must be free.
    fn finished(&self, number: u32) {
        assert!(self.lock.try_lock(), "it is free at the end");
        // SAFETY: the lock is held.
        assert_eq!(self.number.with(|number| unsafe { *number }), number);
    }
}

fn start<T: 'static>(guarded: &Arc<Guarded>, run: impl FnOnce(&Guarded) -> T + 'static) -> JoinHandle<T> {
    let guarded = guarded.clone();
    thread::spawn(move || run(&guarded))
}

#[test]
fn each_thread_gets_the_lock() {
    check(2, || {
        let guarded = Guarded::new();
        let others = [start(&guarded, Guarded::locked_step), start(&guarded, Guarded::locked_step)];
        guarded.locked_step();
        others.into_iter().for_each(|other| other.join().expect("it ends"));
        guarded.finished(3);
    });
}

/// A sleeper that gives up just after it was woken, while another thread has taken the lock without
/// any mark: the second sleeper must be woken nevertheless.
#[test]
fn a_waiter_that_gives_up_swallows_no_wake_up() {
    check(2, || {
        let guarded = Guarded::new();
        guarded.lock.lock();
        let hasty = start(&guarded, Guarded::step_within);
        let patient = start(&guarded, Guarded::locked_step);
        guarded.step();
        guarded.unlock();
        guarded.locked_step();
        let taken = hasty.join().expect("it ends");
        patient.join().expect("it ends");
        guarded.finished(3 + u32::from(taken));
    });
}

#[test]
fn a_lock_that_is_handed_on_reaches_every_waiter() {
    check(2, || {
        let guarded = Guarded::new();
        guarded.lock.lock();
        let others = [start(&guarded, Guarded::locked_step), start(&guarded, Guarded::locked_step)];
        guarded.step();
        guarded.bump();
        guarded.step();
        guarded.unlock();
        others.into_iter().for_each(|other| other.join().expect("it ends"));
        guarded.finished(4);
    });
}

#[test]
fn a_lock_that_is_handed_on_to_a_waiter_that_gives_up_is_not_lost() {
    check(2, || {
        let guarded = Guarded::new();
        guarded.lock.lock();
        let hasty = start(&guarded, Guarded::step_within);
        let patient = start(&guarded, Guarded::locked_step);
        guarded.bump();
        guarded.step();
        guarded.unlock();
        let taken = hasty.join().expect("it ends");
        patient.join().expect("it ends");
        guarded.finished(2 + u32::from(taken));
    });
}

//! The lock that one thread has the bias of: one thread at a time, and no wake-up is lost,
//! whichever thread ends the bias, and also when a waiter gives up.

use super::check;
use crate::base::biased_lock::BiasedLock;
use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle};
use std::sync::Arc;
use std::time::Duration;

/// A number that only the lock's owner touches: loom reports a second thread that does.
struct Guarded {
    lock: BiasedLock,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched with the lock held only; that this is enough is what
// the models check.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// The bias is that of the thread 1, which has been alone.
    fn biased() -> Arc<Self> {
        let guarded = Self { lock: BiasedLock::new(), number: UnsafeCell::new(0) };
        guarded.locked_step(1);
        guarded.locked_step(1);
        assert!(guarded.lock.is_biased(1));
        Arc::new(guarded)
    }

    /// One more; with the lock held.
    fn step(&self) {
        // SAFETY: the caller holds the lock.
        self.number.with_mut(|number| unsafe { *number += 1 });
    }

    fn unlock(&self, me: usize) {
        // SAFETY: each model unlocks what it has locked.
        unsafe { self.lock.unlock(me) }
    }

    fn locked_step(&self, me: usize) {
        self.lock.lock(me);
        self.step();
        self.unlock(me);
    }

    /// The number at the end, when the lock must be free.
    fn finished(&self, number: u32) {
        assert!(self.lock.try_lock(9), "it is free at the end");
        // SAFETY: the lock is held.
        assert_eq!(self.number.with(|number| unsafe { *number }), number);
    }
}

fn start<T: 'static>(guarded: &Arc<Guarded>, run: impl FnOnce(&Guarded) -> T + 'static) -> JoinHandle<T> {
    let guarded = guarded.clone();
    thread::spawn(move || run(&guarded))
}

#[test]
fn the_bias_ends_while_its_thread_goes_in_and_out() {
    check(3, || {
        let guarded = Guarded::biased();
        let other = start(&guarded, |guarded| guarded.locked_step(2));
        guarded.locked_step(1);
        guarded.locked_step(1);
        other.join().expect("it ends");
        guarded.finished(5);
    });
}

/// The thread that had the bias may still be about to enter by it when another one has been alone
/// for long enough to get it.
#[test]
fn the_bias_goes_to_another_thread() {
    check(3, || {
        let guarded = Guarded::biased();
        let other = start(&guarded, |guarded| (0..3).for_each(|_| guarded.locked_step(2)));
        guarded.locked_step(1);
        other.join().expect("it ends");
        guarded.finished(6);
    });
}

#[test]
fn two_threads_end_the_bias() {
    check(2, || {
        let guarded = Guarded::biased();
        let others = [2, 3].map(|me| start(&guarded, move |guarded| guarded.locked_step(me)));
        guarded.locked_step(1);
        others.into_iter().for_each(|other| other.join().expect("it ends"));
        guarded.finished(5);
    });
}

/// A waiter that gives up has ended the bias: the next thread must wait nevertheless.
#[test]
fn a_waiter_that_gives_up_leaves_the_thread_inside_alone() {
    check(2, || {
        let guarded = Guarded::biased();
        guarded.lock.lock(1);
        let hasty = start(&guarded, |guarded| {
            let taken = guarded.lock.lock_within(2, Duration::from_secs(1));
            if taken {
                guarded.step();
                guarded.unlock(2);
            }
            taken
        });
        let patient = start(&guarded, |guarded| guarded.locked_step(3));
        guarded.step();
        guarded.unlock(1);
        let taken = hasty.join().expect("it ends");
        patient.join().expect("it ends");
        guarded.finished(4 + u32::from(taken));
    });
}

#[test]
fn a_thread_that_only_tries_takes_no_lock_that_is_held() {
    check(3, || {
        let guarded = Guarded::biased();
        let other = start(&guarded, |guarded| {
            let taken = guarded.lock.try_lock(2);
            if taken {
                guarded.step();
                guarded.unlock(2);
            }
            taken
        });
        guarded.locked_step(1);
        guarded.locked_step(1);
        let taken = other.join().expect("it ends");
        guarded.finished(4 + u32::from(taken));
    });
}

#[test]
fn the_thread_inside_lets_another_one_have_a_turn() {
    check(2, || {
        let guarded = Guarded::biased();
        guarded.lock.lock(1);
        let other = start(&guarded, |guarded| guarded.locked_step(2));
        guarded.step();
        // SAFETY: taken above.
        unsafe { guarded.lock.bump() };
        guarded.step();
        guarded.unlock(1);
        other.join().expect("it ends");
        guarded.finished(5);
    });
}

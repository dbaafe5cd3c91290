//! Barriers of two tasks by numbers without packets, each of which sleeps as often as it may. The
//! steps are those of `transport::shm` (`signal`, `signalled`, `arm`, `disarm`) and of
//! `engine::progress::wait`, which looks for the number between `arm` and its sleep.

use super::ring::{HEAVY, LIGHT};
use super::{Descriptor, check};
use crate::base::doorbell::Doorbell;
use crate::base::signals::Signals;
use crate::base::sync::{AtomicU32, Ordering};
use loom::thread;
use std::sync::Arc;

/// What others see of a task.
struct Task {
    doorbell: Doorbell,
    descriptor: Descriptor,
    /// What the other one has given it.
    signals: Signals,
    /// How many barriers it has entered.
    entered: AtomicU32,
}

impl Task {
    fn new() -> Arc<Self> {
        let (doorbell, descriptor) = (Doorbell::new(), Descriptor::new());
        Arc::new(Self { doorbell, descriptor, signals: Signals::new(), entered: AtomicU32::new(0) })
    }

    fn give(&self, number: u32) {
        self.signals.give(number);
        if self.doorbell.needs_wake(LIGHT) {
            self.descriptor.ring();
        }
    }

    fn wait_for(&self, number: u32) {
        while !self.signals.given(number) {
            if !self.doorbell.prepare_sleep(HEAVY, || false) {
                continue;
            }
            if !self.signals.given(number) {
                self.descriptor.sleep();
            }
            self.doorbell.cancel();
        }
    }
}

/// Barriers, each with the next number from this one on.
fn meet(me: &Task, peer: &Task, from: u32, barriers: u32) {
    for at in 0..barriers {
        me.entered.store(at + 1, Ordering::Relaxed);
        peer.give(from.wrapping_add(at));
        me.wait_for(from.wrapping_add(at));
        let entered = peer.entered.load(Ordering::Relaxed);
        assert!(
            entered == at + 1 || entered == at + 2,
            "one is at {at}, the other one has entered {entered}"
        );
    }
}

fn two(preemptions: usize, from: u32, barriers: u32) {
    check(preemptions, move || {
        let (one, other) = (Task::new(), Task::new());
        let (me, peer) = (other.clone(), one.clone());
        let thread = thread::spawn(move || meet(&me, &peer, from, barriers));
        meet(&one, &other, from, barriers);
        thread.join().expect("the other one ends");
    });
}

#[test]
fn a_sleeping_task_is_woken() {
    two(3, 0, 1);
}

#[test]
fn no_number_is_overwritten_before_it_is_found() {
    two(2, u32::MAX, 3);
}

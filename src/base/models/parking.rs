//! Threads of one context that wait for a counter, and those that change it: with the lock, as the
//! dispatcher does, and without, as LAPI_Setcntr does. The steps are those of `engine::wait` and of
//! the lock's release in `engine::context`.

use super::check;
use crate::base::event_count::{ALL, EventCount};
use crate::base::sync::{AtomicU32, Mutex, Ordering};
use loom::thread;
use std::sync::Arc;

struct Context {
    /// What the lock guards: how many threads are parked.
    lock: Mutex<u32>,
    parking: EventCount,
    counter: AtomicU32,
}

impl Context {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: Mutex::new(0), parking: EventCount::new(), counter: AtomicU32::new(0) })
    }

    /// Waits until the counter has this value.
    fn wait(&self, value: u32) {
        let mut held = self.lock.lock();
        while self.counter.load(Ordering::Acquire) < value {
            let ticket = self.parking.prepare();
            if self.counter.load(Ordering::Acquire) < value {
                *held += 1;
                drop(held);
                self.parking.sleep(ticket, None);
                held = self.lock.lock();
                *held -= 1;
            }
            self.parking.finish();
        }
    }

    /// Wakes the parked threads, with the lock held.
    fn wake(&self, parked: u32) {
        if parked != 0 {
            self.parking.notify(ALL);
        }
    }

    /// Changes the counter without the lock.
    fn change(&self) {
        self.counter.fetch_add(1, Ordering::Release);
        if self.parking.occupied() {
            let held = self.lock.lock();
            self.wake(*held);
        }
    }

    /// Changes it with the lock held.
    fn change_locked(&self) {
        let held = self.lock.lock();
        self.counter.fetch_add(1, Ordering::Release);
        self.wake(*held);
    }
}

#[test]
fn a_change_without_the_lock_wakes() {
    check(3, || {
        let context = Context::new();
        let other = context.clone();
        let changer = thread::spawn(move || other.change());
        context.wait(1);
        changer.join().expect("it ends");
    });
}

#[test]
fn changes_of_both_kinds_wake() {
    check(3, || {
        let context = Context::new();
        let (one, other) = (context.clone(), context.clone());
        let changers = [thread::spawn(move || one.change()), thread::spawn(move || other.change_locked())];
        context.wait(2);
        changers.into_iter().for_each(|changer| changer.join().expect("it ends"));
    });
}

#[test]
fn all_that_sleep_are_woken() {
    check(2, || {
        let context = Context::new();
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let context = context.clone();
                thread::spawn(move || context.wait(1))
            })
            .collect();
        context.change();
        sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("it ends"));
    });
}

//! The word of `futex.rs` for loom: the kernel's queue of sleepers is a list behind a lock.
//!
//! The kernel compares the word and enters the sleeper with the queue's lock held, and takes
//! sleepers out with that lock held. So does this. A sleep with a limit may end at any moment: the
//! sleeper lets other threads run, and then either one has taken it out of the queue, or it leaves
//! the queue by itself. `futex.rs` describes each function.
#![allow(missing_docs)]

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

#[derive(Debug)]
pub struct Futex {
    word: AtomicU32,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    sleepers: VecDeque<u32>,
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    Woken,
    TimedOut,
    Changed,
    /// No model has signals.
    #[allow(dead_code)]
    Signal,
}

impl Futex {
    pub fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), queue: Mutex::new(Queue::default()), changed: Condvar::new() }
    }

    pub fn load(&self, order: Ordering) -> u32 {
        self.word.load(order)
    }

    pub fn store(&self, value: u32, order: Ordering) {
        self.word.store(value, order);
    }

    pub fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.word.swap(value, order)
    }

    pub fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.word.fetch_add(value, order)
    }

    pub fn exchange(&self, from: u32, to: u32, order: Ordering) -> bool {
        self.word.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }

    pub fn sleep(&self, value: u32, at_most: Option<Duration>) -> Wake {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if self.word.load(Ordering::Relaxed) != value {
            return Wake::Changed;
        }
        let me = queue.next;
        queue.next += 1;
        queue.sleepers.push_back(me);
        if at_most.is_some() {
            drop(queue);
            thread::yield_now();
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(at) = queue.sleepers.iter().position(|sleeper| *sleeper == me) else {
                return Wake::Woken;
            };
            queue.sleepers.remove(at);
            return Wake::TimedOut;
        }
        while queue.sleepers.contains(&me) {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        Wake::Woken
    }

    pub fn wake(&self, count: u32) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = queue.sleepers.len().min(count as usize);
        queue.sleepers.drain(..woken);
        drop(queue);
        self.changed.notify_all();
        woken != 0
    }
}

/// A deadline that has come after one sleep: a thread that was woken and one whose time is over
/// give up at the same place.
#[derive(Clone, Debug)]
pub struct Deadline(Cell<bool>);

impl Deadline {
    pub fn after(_: Duration) -> Self {
        Self(Cell::new(false))
    }

    pub fn left(&self) -> Option<Duration> {
        (!self.0.replace(true)).then_some(Duration::from_secs(1))
    }
}

//! A queue between threads: some push, others take and sleep while it is empty.
//!
//! It is a list behind a lock, which is held for one push or one take; so items are taken in the
//! order in which one thread, or threads with a lock of their own, have pushed them. Neither side
//! allocates while no more wait than the room that was reserved.
//!
//! Sleeping is an event count ([`EventCount`]): a push makes a system call only when a
//! thread sleeps.

use super::event_count::{ALL, EventCount};
use super::sync::Mutex;
use std::collections::VecDeque;

/// The queue.
#[derive(Debug)]
pub struct WorkQueue<T> {
    items: Mutex<VecDeque<T>>,
    taking: EventCount,
}

impl<T> WorkQueue<T> {
    /// An empty queue, with room for `room` items before it allocates.
    pub fn new(room: usize) -> Self {
        Self { items: Mutex::new(VecDeque::with_capacity(room)), taking: EventCount::new() }
    }

    /// Appends an item, and wakes a thread that sleeps in [`Self::take`]. Returns how many there
    /// are now.
    pub fn push(&self, item: T) -> usize {
        let mut items = self.items.lock();
        items.push_back(item);
        let count = items.len();
        drop(items);
        self.taking.notify(1);
        count
    }

    /// Takes the oldest item, sleeping while there is none; `None` once `over` holds. A thread that
    /// makes `over` hold calls [`Self::wake_all`] afterwards.
    pub fn take(&self, over: impl Fn() -> bool) -> Option<T> {
        loop {
            if over() {
                return None;
            }
            if let Some(item) = self.pop() {
                return Some(item);
            }
            let ticket = self.taking.prepare();
            if !over() && self.is_empty() {
                self.taking.sleep(ticket, None);
            }
            self.taking.finish();
        }
    }

    /// Takes the oldest item, if there is one.
    pub fn pop(&self) -> Option<T> {
        self.items.lock().pop_front()
    }

    /// Wakes all threads that sleep in [`Self::take`].
    pub fn wake_all(&self) {
        self.taking.notify(ALL);
    }

    /// The number of items, which may have changed when this returns.
    pub fn len(&self) -> usize {
        self.items.lock().len()
    }

    /// Whether there is none, which may have changed when this returns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::WorkQueue;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn the_order_is_kept_when_the_room_is_used_up() {
        let queue = WorkQueue::new(4);
        let mut next = 0;
        for round in 0..200_u64 {
            (0..7).for_each(|at| _ = queue.push(7 * round + at));
            assert_eq!(queue.len() as u64, 7 * (round + 1) - next);
            for _ in 0..if round % 3 == 0 { 9 } else { 6 } {
                if let Some(item) = queue.pop() {
                    assert_eq!(item, next);
                    next += 1;
                }
            }
        }
        while let Some(item) = queue.pop() {
            assert_eq!(item, next);
            next += 1;
        }
        assert_eq!((next, queue.len(), queue.is_empty()), (1400, 0, true));
    }

    /// One thread pushes and three take: each item is taken once, and each thread takes in order.
    #[test]
    fn every_item_is_taken_once_and_in_order() {
        const ITEMS: u64 = 60_000;
        let (queue, over) = (WorkQueue::new(8), AtomicBool::new(false));
        let taken = thread::scope(|scope| {
            let takers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut taken = Vec::new();
                        while let Some(item) = queue.take(|| over.load(Ordering::Acquire) && queue.is_empty())
                        {
                            taken.push(item);
                        }
                        taken
                    })
                })
                .collect();
            for item in 0..ITEMS {
                queue.push(item);
                if item % 64 == 0 {
                    thread::yield_now();
                }
            }
            over.store(true, Ordering::Release);
            queue.wake_all();
            takers.into_iter().map(|taker| taker.join().expect("it ends")).collect::<Vec<_>>()
        });
        assert!(taken.iter().all(|taken| taken.is_sorted()));
        let mut all: Vec<u64> = taken.into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..ITEMS).collect::<Vec<_>>());
    }
}

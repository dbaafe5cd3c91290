//! A queue between threads: some push, others take and sleep while it is empty.
//!
//! The queue is crossbeam's array queue (Vyukov's bounded queue), so neither side takes a lock or
//! allocates. What finds no room in it goes to a list behind a lock, and everything pushed later
//! goes there too until the list is empty; so items are taken in the order in which one thread, or
//! threads with a lock of their own, have pushed them.
//!
//! Sleeping is an event count ([`EventCount`]): a push makes a system call only when a
//! thread sleeps.

use super::event_count::{ALL, EventCount};
use super::sync::{ArrayQueue, AtomicU32, Mutex, Ordering};
use std::collections::VecDeque;

/// The queue.
#[derive(Debug)]
pub struct WorkQueue<T> {
    items: ArrayQueue<T>,
    /// What found no room in `items`: newer than anything there.
    spilled: Mutex<VecDeque<T>>,
    /// How many are in `spilled`. Changed with its lock held, so Relaxed is enough: a thread that
    /// pushes sees its own pushes, and one that takes looks again with the lock held, or is woken
    /// by the push that it has missed.
    spilled_count: AtomicU32,
    taking: EventCount,
}

impl<T> WorkQueue<T> {
    /// An empty queue, with room for `room` items before it allocates.
    pub fn new(room: usize) -> Self {
        Self {
            items: ArrayQueue::new(room),
            spilled: Mutex::new(VecDeque::new()),
            spilled_count: AtomicU32::new(0),
            taking: EventCount::new(),
        }
    }

    /// Appends an item, and wakes a thread that sleeps in [`Self::take`].
    pub fn push(&self, item: T) {
        let refused = if self.spilled_count.load(Ordering::Relaxed) == 0 {
            self.items.push(item).err()
        } else {
            Some(item)
        };
        if let Some(item) = refused {
            self.spill(item);
        }
        self.taking.notify(1);
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
        self.items.pop().or_else(|| self.pop_spilled())
    }

    /// Wakes all threads that sleep in [`Self::take`].
    pub fn wake_all(&self) {
        self.taking.notify(ALL);
    }

    /// The number of items, which may have changed when this returns.
    pub fn len(&self) -> usize {
        self.items.len() + self.spilled_count.load(Ordering::Relaxed) as usize
    }

    /// Whether there is none, which may have changed when this returns.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.spilled_count.load(Ordering::Relaxed) == 0
    }

    #[cold]
    fn spill(&self, item: T) {
        let mut spilled = self.spilled.lock();
        spilled.push_back(item);
        self.spilled_count.store(spilled.len() as u32, Ordering::Relaxed);
    }

    fn pop_spilled(&self) -> Option<T> {
        if self.spilled_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut spilled = self.spilled.lock();
        // Whatever was pushed before the list was made is in the queue, and was there before its
        // count was raised.
        if let Some(item) = self.items.pop() {
            return Some(item);
        }
        let item = spilled.pop_front();
        self.spilled_count.store(spilled.len() as u32, Ordering::Relaxed);
        if spilled.is_empty() {
            *spilled = VecDeque::new();
        }
        item
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
            (0..7).for_each(|at| queue.push(7 * round + at));
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

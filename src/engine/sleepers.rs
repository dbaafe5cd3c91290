//! Who sleeps in a context, where, and after how long.

use crate::base::lock::{Condvar, Mutex};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// How long a thread polls before it sleeps, in polls.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Polls in a tight loop.
    pub spin: u32,
    /// Polls after which the processor is given away.
    pub yields: u32,
    /// How many threads of this task may poll at once: with more of them they take the processors from each other, and
    /// from those who make what they wait for. Then all have little patience.
    pub pollers: u32,
}

/// Polls in a tight loop where there are more threads than processors.
const LITTLE: u32 = 40;

impl Patience {
    /// Of a task in a job of `tasks` on so many processors. `spin` if the program's environment gives it.
    pub fn new(tasks: u32, processors: u32, spin: Option<u32>) -> Self {
        let crowded = tasks > processors;
        Self {
            spin: spin.unwrap_or(if crowded { LITTLE } else { 20_000 }),
            yields: if crowded { 60 } else { 100 },
            pollers: if spin.is_some() { u32::MAX } else { (processors / tasks.max(1)).max(1) },
        }
    }

    /// How often a thread polls in a tight loop when so many wait.
    #[inline]
    pub fn spins(&self, waiting: u32) -> u32 {
        if waiting <= self.pollers { self.spin } else { self.spin.min(LITTLE) }
    }
}

/// Who waits in a context. Guarded by the lock.
#[derive(Default)]
pub struct Sleepers {
    /// Threads in [`super::wait::wait_until`].
    pub waiting: u32,
    /// Threads in LAPI_Msgpoll.
    pub polling: u32,
    /// One of them sleeps on the transport's descriptor.
    pub on_descriptor: bool,
    /// How many sleep in the waiting room.
    pub in_room: u32,
    /// The notifier has armed the transport.
    pub notifier_armed: bool,
}

/// Where threads sleep that are not the one on the descriptor.
pub(super) struct WaitingRoom {
    news: Mutex<u64>,
    changed: Condvar,
    /// Threads that sleep, wherever: read without the lock, by calls that do not take it.
    asleep: AtomicU32,
}

impl WaitingRoom {
    pub(super) fn new() -> Self {
        Self { news: Mutex::new(0), changed: Condvar::new(), asleep: AtomicU32::new(0) }
    }

    /// Whether a thread sleeps, or is about to. The sleeper calls [`Self::lie_down`] and then looks at the counter; who
    /// asks here has changed the counter before.
    #[inline]
    pub(super) fn occupied(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::SeqCst) != 0
    }

    /// This thread is about to sleep, here or on the descriptor.
    pub(super) fn lie_down(&self) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
    }

    /// The end of what [`Self::lie_down`] began.
    pub(super) fn get_up(&self) {
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// The number of the last news.
    pub(super) fn number(&self) -> u64 {
        *self.news.lock()
    }

    /// Sleeps until there is news after number `before`, but not for longer than `at_most`.
    pub(super) fn sleep(&self, before: u64, at_most: Duration) {
        let mut news = self.news.lock();
        if *news == before {
            self.changed.wait_for(&mut news, at_most);
        }
    }

    /// Wakes all that sleep here.
    pub(super) fn announce(&self) {
        *self.news.lock() += 1;
        self.changed.notify_all();
    }
}

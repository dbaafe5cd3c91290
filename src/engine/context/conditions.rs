//! Conditions of the program that go with the context's lock (LAPI_GET_THREAD_FUNC).
//!
//! A condition is known by its address alone, and nothing is ever kept in its memory: one that
//! was zeroed, set up by PTHREAD_COND_INITIALIZER or made for a structure of another size
//! works as well. The waiting threads are in a list, which has as many entries as there are
//! threads that wait.

use crate::base::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A thread that waits for a time reads the clock at least this often: the clock may be
/// set meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// The threads of the program that wait for conditions.
#[derive(Default)]
pub struct Conditions {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    /// In the order in which they came. A thread is woken when its entry is gone.
    waiting: Vec<Waiting>,
    /// How many have ever waited.
    tickets: u64,
    /// The handle has been ended, or is being ended.
    over: bool,
}

struct Waiting {
    condition: usize,
    ticket: u64,
    wake: Arc<Condvar>,
}

/// A thread's entry in the list.
pub struct Ticket {
    number: u64,
    wake: Arc<Condvar>,
}

impl Conditions {
    /// This thread is about to wait for the condition at this address. It still holds the context's
    /// lock, so that what is signalled from now on reaches it.
    pub fn join(&self, condition: usize) -> Ticket {
        let wake = Arc::new(Condvar::new());
        let mut list = self.list.lock();
        list.tickets += 1;
        let number = list.tickets;
        list.waiting.push(Waiting { condition, ticket: number, wake: wake.clone() });
        Ticket { number, wake }
    }

    /// Waits until the entry is gone, or until a time of the system's clock. `false` when the time
    /// has passed. The context's lock must not be held.
    pub fn wait(&self, ticket: &Ticket, until: Option<SystemTime>) -> bool {
        let mut list = self.list.lock();
        while let Some(at) = list.waiting.iter().position(|other| other.ticket == ticket.number) {
            let Some(until) = until else {
                ticket.wake.wait(&mut list);
                continue;
            };
            match until.duration_since(SystemTime::now()) {
                Ok(left) if !left.is_zero() => {
                    ticket.wake.wait_for(&mut list, left.min(LOOK));
                }
                _ => {
                    list.waiting.remove(at);
                    return false;
                }
            }
        }
        true
    }

    /// Wakes the thread that has waited longest for this condition, if there is any.
    pub fn signal(&self, condition: usize) {
        let mut list = self.list.lock();
        if let Some(at) = list.waiting.iter().position(|waiting| waiting.condition == condition) {
            list.waiting.remove(at).wake.notify_one();
        }
    }

    /// Whether a thread waits for this condition.
    pub fn awaited(&self, condition: usize) -> bool {
        self.list.lock().waiting.iter().any(|waiting| waiting.condition == condition)
    }

    /// The context is opened.
    pub fn begin(&self) {
        self.list.lock().over = false;
    }

    /// The context ends: wakes all waiting threads.
    pub fn end(&self) {
        let mut list = self.list.lock();
        list.over = true;
        for waiting in list.waiting.drain(..) {
            waiting.wake.notify_one();
        }
    }

    /// Whether [`Self::end`] came last.
    pub fn over(&self) -> bool {
        self.list.lock().over
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;

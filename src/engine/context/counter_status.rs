//! Counters of which the program wants to know which task has raised them
//! (LAPI_Setcntr_wstatus), and threads that wait for a counter without polling
//! (LAPI_Nopoll_wait): what a purge has to report. And completions after which a send completion
//! handler is called (LAPI_RDMA_XFER).

use crate::abi::{LAPI_MSG_INITIAL, LAPI_MSG_INVALID, LAPI_MSG_PURGED, LAPI_MSG_PURGED_RCVD, LAPI_MSG_RECVD};
use crate::proto::outbox::SendDone;
use crate::transport::Task;
use std::collections::HashMap;
use std::ffi::c_int;

/// What the program has given with one counter.
struct Watch {
    /// A copy of dest_list.
    tasks: Vec<Task>,
    /// The address of dest_status, as long as `tasks`.
    statuses: usize,
}

/// A thread in LAPI_Nopoll_wait.
struct Waiter {
    cntr: usize,
    /// A purge concerns it.
    purged: bool,
}

/// A completion after which a send completion handler is called. An operation has its odd number
/// in place of the address of a counter, which is a multiple of 4.
#[derive(Clone, Copy, Debug)]
pub struct Handled {
    /// The counter that is raised before, or 0.
    pub cntr: usize,
    /// The peer of the operation.
    pub peer: Task,
    /// The address of the handler.
    pub handler: usize,
    /// The handler's parameter.
    pub info: usize,
}

impl Handled {
    /// What calls the handler.
    pub fn done(&self) -> SendDone {
        SendDone { handler: self.handler, info: self.info, ..SendDone::nothing(self.peer) }
    }
}

/// The watched counters of a context, and the threads that wait for counters without polling.
/// Counters are known by their addresses.
#[derive(Default)]
pub struct Watched {
    counters: HashMap<usize, Watch>,
    handled: HashMap<usize, Handled>,
    /// Counters and completions that are watched, in all: one number for those who look often.
    count: usize,
    /// The number of the completion that came last.
    last: usize,
    waiters: Vec<Waiter>,
}

impl Watched {
    /// Whether no counter and no completion is watched.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a counter is watched.
    pub fn has_counters(&self) -> bool {
        !self.counters.is_empty()
    }

    /// Begins to watch a completion. Returns the number that an operation has in place of the
    /// address of its counter.
    pub fn handle(&mut self, handled: Handled) -> usize {
        loop {
            self.last = self.last.wrapping_add(2) | 1;
            if !self.handled.contains_key(&self.last) {
                break;
            }
        }
        self.handled.insert(self.last, handled);
        self.recount();
        self.last
    }

    /// Ends that. `None`: this is the address of a counter, or 0.
    pub fn take_handled(&mut self, cntr: usize) -> Option<Handled> {
        if cntr & 1 == 0 {
            return None;
        }
        let handled = self.handled.remove(&cntr);
        self.recount();
        handled
    }

    /// Ends the completions that `peer` has to report.
    pub fn abandon(&mut self, peer: Task) -> Vec<Handled> {
        let ended = self.handled.extract_if(|_, handled| handled.peer == peer).map(|(_, handled)| handled);
        let ended = ended.collect();
        self.recount();
        ended
    }

    /// The address of the counter that an operation raises.
    pub fn address(&self, cntr: usize) -> usize {
        self.handled.get(&cntr).map_or(cntr, |handled| handled.cntr)
    }

    fn recount(&mut self) {
        self.count = self.counters.len() + self.handled.len();
    }

    /// Begins to watch a counter, with all statuses as at the beginning; `valid` returns whether a
    /// task can still raise it.
    ///
    /// # Safety
    /// `statuses` must be writable for one number for each task, until the counter is forgotten.
    pub unsafe fn watch(
        &mut self,
        cntr: usize,
        tasks: Vec<Task>,
        statuses: usize,
        valid: impl Fn(Task) -> bool,
    ) {
        let mut watch = Watch { tasks, statuses };
        watch.each(|task, _| if valid(task) { LAPI_MSG_INITIAL } else { LAPI_MSG_INVALID });
        self.counters.insert(cntr, watch);
        self.recount();
    }

    /// Ends that.
    pub fn forget(&mut self, cntr: usize) {
        self.counters.remove(&cntr);
        self.recount();
    }

    /// A counter was raised for something that came from `task`, or was done there.
    #[cold]
    pub fn raised(&mut self, cntr: usize, task: Task) {
        let Some(watch) = self.counters.get_mut(&cntr) else { return };
        let mut first = true;
        watch.each(|listed, status| {
            if listed == task && status == LAPI_MSG_INITIAL && std::mem::take(&mut first) {
                LAPI_MSG_RECVD
            } else {
                status
            }
        });
    }

    /// `task` was purged: records that in the statuses, and marks the waiters whose counter it may
    /// have had to raise.
    pub fn purged(&mut self, task: Task) {
        for watch in self.counters.values_mut() {
            watch.each(|listed, status| match status {
                LAPI_MSG_INITIAL if listed == task => LAPI_MSG_PURGED,
                LAPI_MSG_RECVD if listed == task => LAPI_MSG_PURGED_RCVD,
                status => status,
            });
        }
        for waiter in &mut self.waiters {
            // Without a list it is unknown which task was to raise the counter.
            waiter.purged |= self.counters.get(&waiter.cntr).is_none_or(|watch| watch.tasks.contains(&task));
        }
    }

    /// Whether every task of the counter's list has raised it, or was purged.
    pub fn is_settled(&mut self, cntr: usize) -> bool {
        self.counters.get_mut(&cntr).is_some_and(|watch| {
            let mut settled = true;
            watch.each(|_, status| {
                settled &= status != LAPI_MSG_INITIAL;
                status
            });
            settled
        })
    }

    /// Whether nothing can raise the counter any more, because tasks of its list were purged and
    /// none is left that has not raised it. While none was purged, those that have may do so again.
    pub fn is_hopeless(&mut self, cntr: usize) -> bool {
        self.is_settled(cntr)
            && self.counters.get_mut(&cntr).is_some_and(|watch| {
                let mut received = true;
                watch.each(|_, status| {
                    received &= status == LAPI_MSG_RECVD;
                    status
                });
                !received
            })
    }

    /// A thread begins to wait for the counter. `false` when another one does.
    pub fn wait(&mut self, cntr: usize) -> bool {
        let free = self.waiters.iter().all(|waiter| waiter.cntr != cntr);
        if free {
            self.waiters.push(Waiter { cntr, purged: false });
        }
        free
    }

    /// Whether a purge concerns the thread that waits for the counter.
    pub fn is_purged(&self, cntr: usize) -> bool {
        self.waiters.iter().any(|waiter| waiter.cntr == cntr && waiter.purged)
    }

    /// The thread waits for the counter no more.
    pub fn wait_no_more(&mut self, cntr: usize) {
        self.waiters.retain(|waiter| waiter.cntr != cntr);
    }
}

impl Watch {
    /// Writes for each task what `next` makes of its status.
    fn each(&mut self, mut next: impl FnMut(Task, c_int) -> c_int) {
        let statuses = std::ptr::with_exposed_provenance_mut::<c_int>(self.statuses);
        for (at, &task) in self.tasks.iter().enumerate() {
            // SAFETY: by the contract of `watch` there is one status for each task, as long as the
            // counter is watched.
            unsafe {
                let status = statuses.add(at);
                status.write(next(task, status.read()));
            }
        }
    }
}

#[cfg(test)]
#[path = "counter_status_tests.rs"]
mod tests;

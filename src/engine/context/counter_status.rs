//! Counters of which the program wants to know which task has raised them
//! (LAPI_Setcntr_wstatus), and threads that wait for a counter without polling
//! (LAPI_Nopoll_wait): what a purge has to report.

use crate::abi::{LAPI_MSG_INITIAL, LAPI_MSG_INVALID, LAPI_MSG_PURGED, LAPI_MSG_PURGED_RCVD, LAPI_MSG_RECVD};
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

/// The watched counters of a context, and the threads that wait for counters without polling.
/// Counters are known by their addresses.
#[derive(Default)]
pub struct Watched {
    counters: HashMap<usize, Watch>,
    waiters: Vec<Waiter>,
}

impl Watched {
    /// Whether no counter is watched.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
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
    }

    /// Ends that.
    pub fn forget(&mut self, cntr: usize) {
        self.counters.remove(&cntr);
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
mod tests {
    use super::*;

    const CNTR: usize = 0x1000;

    fn watch(watched: &mut Watched, tasks: &[Task], statuses: &mut [c_int]) {
        assert_eq!(tasks.len(), statuses.len());
        // SAFETY: the statuses outlive the use of `watched` in these tests, which reads them only
        // between its calls.
        unsafe {
            watched.watch(CNTR, tasks.to_vec(), statuses.as_mut_ptr().expose_provenance(), |task| task < 3)
        }
    }

    #[test]
    fn statuses_record_the_tasks_that_have_reported_and_those_that_were_purged() {
        let (mut watched, mut statuses) = (Watched::default(), [77; 5]);
        let at = statuses.as_mut_ptr();
        watch(&mut watched, &[0, 1, 2, 3, 1], &mut statuses);
        // SAFETY: the array lives, and nothing writes to it meanwhile.
        let read = || unsafe { at.cast::<[c_int; 5]>().read() };
        assert_eq!(read(), [0, 0, 0, 4, 0]);
        watched.raised(CNTR, 1);
        watched.raised(CNTR + 4, 0);
        assert_eq!(read(), [0, 1, 0, 4, 0]);
        watched.purged(1);
        assert_eq!(read(), [0, 3, 0, 4, 2]);
        watched.raised(CNTR, 1);
        assert!(!watched.is_settled(CNTR));
        watched.purged(0);
        watched.raised(CNTR, 2);
        assert_eq!(read(), [2, 3, 1, 4, 2]);
        assert!(watched.is_settled(CNTR));
        watched.forget(CNTR);
        watched.purged(2);
        assert_eq!(read(), [2, 3, 1, 4, 2]);
    }

    #[test]
    fn a_purge_wakes_the_threads_that_it_concerns() {
        let (mut watched, mut statuses) = (Watched::default(), [0; 2]);
        watch(&mut watched, &[0, 1], &mut statuses);
        assert!(watched.wait(CNTR) && !watched.wait(CNTR) && watched.wait(CNTR + 8));
        watched.purged(2);
        assert!(!watched.is_purged(CNTR) && watched.is_purged(CNTR + 8));
        watched.purged(1);
        assert!(watched.is_purged(CNTR));
        watched.wait_no_more(CNTR);
        assert!(!watched.is_purged(CNTR) && watched.wait(CNTR));
    }
}

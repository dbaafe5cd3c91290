//! What carries messages between processes: the job's session, or sessions by hand.

use crate::hand::Hand;
use crate::job::{self, Job, NoName};
use crate::protocol::Output;
use std::time::{Duration, Instant};

/// The carrier of this process, of which there is one.
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Carrier {
    /// A launcher has started the processes.
    Job(Job),
    /// The user has.
    Hand(Hand),
}

/// The target is gone.
pub struct Gone;

impl Carrier {
    /// Whether something can still arrive; not after the session has ended by a failure.
    pub fn is_there(&self) -> bool {
        match self {
            Self::Job(job) => job.is_there(),
            Self::Hand(_) => true,
        }
    }

    /// This process's number, from 0.
    pub fn task(&self) -> u32 {
        match self {
            Self::Job(job) => job.task(),
            Self::Hand(hand) => hand.task(),
        }
    }

    /// The name of a task's host. `is_lost`: whether the task is known to be gone.
    ///
    /// # Errors
    /// The task is gone, or the deadline has passed.
    pub fn host_name(
        &self,
        task: u32,
        deadline: Instant,
        is_lost: impl Fn() -> bool,
    ) -> Result<String, NoName> {
        match self {
            Self::Job(job) => job.host_name(task, Some(deadline), is_lost),
            Self::Hand(hand) => hand.host_name(task).ok_or(NoName::Gone),
        }
    }

    /// Which process in a task's place a message is for: others may come after it.
    #[inline]
    pub fn life(&self, task: u32) -> u64 {
        match self {
            Self::Job(_) => 0,
            Self::Hand(hand) => hand.life(task),
        }
    }

    /// Gives a message to the network, for the process that [`Self::life`] has named. `watched`:
    /// the target's death is to be noticed though no reply is awaited, or [`Self::finish`] waits
    /// for it.
    ///
    /// # Errors
    /// The target is gone, or the session has ended by a failure.
    #[inline]
    pub fn post(&self, output: &Output, life: u64, watched: bool) -> Result<(), Gone> {
        match self {
            Self::Job(job) => job.post(output, watched).map_err(|_| Gone),
            Self::Hand(hand) => {
                hand.post(output, life);
                Ok(())
            }
        }
    }

    /// One round of progress, where no thread makes it.
    #[inline]
    pub fn poll(&self) {
        if let Self::Job(job) = self {
            job.poll();
        }
    }

    /// Waits until the condition holds, or the deadline has passed. `spins`: it polls first.
    pub fn wait(&self, deadline: Option<Instant>, spins: bool, condition: impl FnMut() -> bool) {
        match self {
            Self::Job(job) if spins => job.wait(deadline, condition),
            Self::Job(job) => job.sleep(deadline, condition),
            Self::Hand(hand) => hand.wait(deadline, condition),
        }
    }

    /// Whether the core carries messages, whose handlers run beneath its lock.
    pub fn has_core(&self) -> bool {
        matches!(self, Self::Job(_))
    }

    /// The process exits. `false`: its thread was interrupted in a call of the core, and makes no
    /// other one, or others have kept the core all that time.
    pub fn begin_exit(&self, at_most: Duration) -> bool {
        match self {
            Self::Job(job) => job.may_call(at_most),
            Self::Hand(hand) => {
                hand.begin_exit();
                true
            }
        }
    }

    /// When the process exits: waits until the condition holds and what was posted has left this
    /// process, of a job what was watched has arrived; until the deadline at most.
    pub fn finish(&self, deadline: Instant, mut condition: impl FnMut() -> bool) {
        match self {
            Self::Job(job) => job.wait(Some(deadline), || condition() && job.has_arrived()),
            Self::Hand(hand) => hand.finish(deadline, condition),
        }
    }

    /// Threads that wait look again.
    pub fn wake(&self) {
        match self {
            Self::Job(job) => job.wake(),
            Self::Hand(hand) => hand.wake(),
        }
    }

    /// Leaves.
    pub fn close(&self) {
        match self {
            Self::Job(job) => job.close(),
            Self::Hand(hand) => hand.close(),
        }
    }

    /// In a forked child, which is no process of the job or of the map.
    pub fn forget_in_child(&self) {
        match self {
            Self::Job(_) => job::forget_in_child(),
            Self::Hand(hand) => hand.forget_in_child(),
        }
    }

    /// Whether another process may take the place of one that is gone.
    pub fn may_return(&self) -> bool {
        matches!(self, Self::Hand(_))
    }
}

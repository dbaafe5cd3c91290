//! How long a thread that waits polls, and when it sleeps.

use crate::base::clock::ticks;
use crate::base::long_calls;
use std::time::{Duration, Instant};

/// How long a thread polls before it sleeps, in polls.
#[derive(Clone, Copy, Debug)]
pub struct WaitPolicy {
    /// Polls in a tight loop.
    pub spin: u32,
    /// They end after this time, however few they were: a poll of a network may take long.
    pub spin_time: Duration,
    /// Polls after each of which the thread yields the processor.
    pub yields: u32,
    /// How many threads of this task may poll at once: with more of them they take the processors
    /// from each other, and from the threads that make what they wait for. Then all of them poll
    /// for a short time only.
    pub pollers: u32,
    /// Tasks for each processor, rounded up.
    pub crowd: u32,
}

/// How often a thread looks before it counts as one that waits: a few microseconds, for which peers
/// take a task that has polled as one that polls.
pub const LOOKS: u32 = 64;
/// Polls in a tight loop where more threads of a task wait than there are processors for them.
const LITTLE: u32 = 40;
/// Polls where there are more tasks than processors: what a thread waits for rarely arrives before
/// the thread yields.
const CROWDED: u32 = 2;
/// How long a thread polls in a tight loop: as long as its polls take where all peers share memory.
pub const SPIN_TIME: Duration = Duration::from_millis(1);
/// How often a thread yields before it sleeps, where there are more tasks than processors.
const YIELDS: u32 = 60;
/// In the largest crowd it still yields this often.
const FEWEST_YIELDS: u32 = 4;
/// A crowd of this many tasks for each processor is large: there a yield takes as long as a sleep,
/// because all others run in between, and what every task does from time to time is a load of its
/// own. Above it both become rarer.
const LARGE: u32 = 16;

impl WaitPolicy {
    /// Sleeps at once.
    pub const NONE: Self = Self { spin: 0, spin_time: Duration::MAX, yields: 0, pollers: 1, crowd: 1 };

    /// Of a task in a job of `tasks` on this number of processors. `spin` if the program's
    /// environment gives it; without, a tight loop ends after `spin_time`.
    pub fn new(tasks: u32, processors: u32, spin: Option<u32>, spin_time: Duration) -> Self {
        let crowded = tasks > processors;
        let crowd = tasks.div_ceil(processors.max(1)).max(1);
        Self {
            spin: spin.unwrap_or(if crowded { CROWDED } else { 20_000 }),
            spin_time: if spin.is_some() { Duration::MAX } else { spin_time },
            yields: if crowded { (YIELDS / rarer(crowd)).max(FEWEST_YIELDS) } else { 100 },
            pollers: if spin.is_some() { u32::MAX } else { (processors / tasks.max(1)).max(1) },
            crowd,
        }
    }

    /// There are more tasks than processors: a thread that polls by itself yields when it
    /// finds nothing.
    #[inline]
    pub fn crowded(&self) -> bool {
        self.crowd > 1
    }

    /// Whether a thread that begins to wait does nothing but look, [`LOOKS`] times: where there is
    /// a processor for each task.
    #[inline]
    pub fn looks_first(&self) -> bool {
        self.spin >= LOOKS
    }

    /// A period after which every task of the job does something: longer in a large crowd, up to
    /// this number of times.
    pub fn period(&self, period: Duration, at_most: u32) -> Duration {
        period * rarer(self.crowd).min(at_most)
    }

    /// How often a thread polls in a tight loop when this number of threads wait.
    #[inline]
    pub fn spins(&self, waiting: u32) -> u32 {
        if waiting <= self.pollers { self.spin } else { self.spin.min(LITTLE) }
    }
}

/// How many times rarer in a crowd of this size.
fn rarer(crowd: u32) -> u32 {
    (crowd / LARGE).max(1)
}

/// What a thread does after a poll that has found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Polls again.
    Poll,
    /// Yields the processor first.
    Yield,
    /// Sleeps.
    Sleep,
}

/// A thread that polls checks the time once in this many polls.
const POLLS_BETWEEN_TIMES: u32 = 16;
/// A call that has polled this often is long: a microsecond or two.
const LONG: u32 = 4 * POLLS_BETWEEN_TIMES;
/// A thread that has polled this often for the reply of a peer that does not look wakes that peer,
const KICK_AFTER: u32 = 2000;
/// or for this long.
const KICK_TIME: Duration = Duration::from_micros(100);
/// A thread that was woken polls this often before it sleeps again.
const POLLS_AWAKE: u32 = 8;

/// The polls of a waiting thread that have found nothing since something moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdlePolls {
    count: u32,
    /// The time at the first check.
    since: Option<Instant>,
    /// The time for polling in a tight loop is over.
    overtime: bool,
    kicked: bool,
    /// The ticks at the first check.
    ticks: u64,
}

impl IdlePolls {
    /// Counts one more, of a context in which `waiting` threads wait. Returns what the thread does
    /// next, and whether it is time to wake peers that do not poll, once.
    #[inline]
    pub fn add(&mut self, policy: &WaitPolicy, waiting: u32, now: impl Fn() -> Instant) -> (Next, bool) {
        self.count = self.count.saturating_add(1);
        let spin = policy.spins(waiting);
        let mut kick = self.count == KICK_AFTER;
        if self.count.is_multiple_of(POLLS_BETWEEN_TIMES) && self.count <= spin && !self.overtime {
            let now = now();
            let time = now - *self.since.get_or_insert(now);
            match self.count {
                POLLS_BETWEEN_TIMES => self.ticks = ticks(),
                LONG => long_calls::since(self.ticks),
                _ => {}
            }
            kick |= time >= KICK_TIME;
            self.overtime = time >= policy.spin_time;
        }
        kick &= !self.kicked;
        self.kicked |= kick;
        let next = match () {
            () if self.overtime => {
                // The yields follow.
                (self.count, self.overtime) = (spin, false);
                Next::Poll
            }
            () if self.count <= spin => Next::Poll,
            () if self.count <= spin.saturating_add(policy.yields) => Next::Yield,
            () => Next::Sleep,
        };
        (next, kick)
    }

    /// The thread was woken, and is to poll for as long as at first. It has woken its
    /// peers already.
    pub fn begin_again(&mut self) {
        *self = Self { kicked: true, ..Self::default() };
    }

    /// The thread was woken: it polls a few times before it sleeps again; not at all when nothing
    /// had happened (`idle`).
    pub fn woken(&mut self, policy: &WaitPolicy, waiting: u32, idle: bool) {
        let again = if idle { 0 } else { POLLS_AWAKE };
        self.count = policy.spins(waiting).saturating_add(policy.yields.saturating_sub(again));
    }
}

#[cfg(test)]
#[path = "wait_policy_tests.rs"]
mod tests;

//! The rounds of a collective operation: which tasks send to which, and how many values.
//!
//! The tasks form groups. The first task of a group is its leader, and the root of a tree of radix
//! [`RADIX`] over the group:
//!
//! 1. *gather*, in one round for each level of the tree: a task sends the values of its subtree
//!    to its parent;
//! 2. *exchange*, in as many rounds as needed: the leaders run Bruck's all-gather of radix
//!    [`EXCHANGE_RADIX`] among themselves. In the round of reach `r` each leader sends to the
//!    leaders `r`, `2r` and `3r` groups below it and receives from those as far above it, so that
//!    it knows four times as many groups afterwards;
//! 3. *release*, in one round for each level: a task sends everything to its children.
//!
//! On one host a group is [`RADIX`] consecutive tasks, a tree of one level, so that a task that is
//! no leader sends one packet and receives one. Where there are more tasks than processors it needs
//! the processor once for each operation, while Bruck's algorithm among all tasks may need it once
//! for each round. In a job of at most [`SMALL`] tasks each task is a group of its own, so that one
//! round of exchange is all: the task that comes last has the packets of all others already, and
//! continues at once.
//!
//! In a job of several hosts a group is the tasks of one host, so that only leaders exchange
//! packets with other hosts. Hosts have different numbers of tasks; all trees have as many levels
//! as the largest host needs, so that the rounds of all tasks have the same numbers. A task without
//! part in a round skips it.
//!
//! The rounds count tasks by their *positions*: by host and then by task, so that each group and
//! each subtree is a range. On one host the position of a task is its number.
//!
//! The groups depend only on the number of tasks and on their hosts, so that all tasks
//! agree on them.

mod layout;

use super::placement::Placement;
use crate::wire::frame::Task;
use layout::{Groups, Layout};
use std::sync::Arc;

/// Of the tree of a group, and the tasks of a group on one host. A task handles one packet less
/// than this, one after the other, in each round of gather and release in which it is a parent.
const RADIX: u32 = 16;
/// Of the exchange among leaders.
const EXCHANGE_RADIX: u32 = 4;
/// In a job of at most this number of tasks on one host each task is a group of its own.
const SMALL: u32 = EXCHANGE_RADIX;
/// A task receives from at most this number of tasks in one round.
pub const SENDERS: usize = RADIX as usize - 1;

const _: () = assert!(EXCHANGE_RADIX >= 2 && RADIX >= EXCHANGE_RADIX && RADIX <= 32);

/// The rounds as one task sees them. They follow from divisions, and each packet asks for them: a
/// task has a table of its own.
#[derive(Clone, Debug)]
pub struct Rounds {
    layout: Layout,
    steps: Box<[Step]>,
}

/// What one task does in a round.
#[derive(Clone, Debug, Default)]
struct Step {
    senders: Box<[Task]>,
    /// Of each sender: where its values begin, and how many they are.
    values: Box<[(u32, u32)]>,
    receivers: Box<[Task]>,
    /// How many values each receiver gets.
    sent: Box<[u32]>,
    /// One bit for each sender.
    all: u32,
    replaces: bool,
}

impl Rounds {
    /// Of task `me` of `tasks`; with their hosts if these are several.
    pub fn new(me: Task, tasks: u32, hosts: Option<Arc<Placement>>) -> Self {
        let layout = Layout::new(me, tasks, hosts);
        let steps = (0..layout.count()).map(|round| Step::of(&layout, round)).collect();
        Self { layout, steps }
    }

    /// How many rounds an operation has.
    #[inline]
    pub fn count(&self) -> u16 {
        self.steps.len() as u16
    }

    fn step(&self, round: u16) -> Option<&Step> {
        self.steps.get(usize::from(round))
    }

    /// The tasks whose packets this task needs in a round: none, or up to [`SENDERS`].
    #[inline]
    pub fn senders(&self, round: u16) -> &[Task] {
        self.step(round).map_or(&[], |step| &step.senders)
    }

    /// The tasks that need a packet of this task in a round.
    #[inline]
    pub fn receivers(&self, round: u16) -> &[Task] {
        self.step(round).map_or(&[], |step| &step.receivers)
    }

    /// Which of the senders of a round a task is.
    #[inline]
    pub fn place(&self, round: u16, sender: Task) -> Option<usize> {
        self.senders(round).iter().position(|task| *task == sender)
    }

    /// One bit for each sender of a round.
    #[inline]
    pub fn all(&self, round: u16) -> u32 {
        self.step(round).map_or(0, |step| step.all)
    }

    /// Where the values of a sender begin among those that a round brings, and how many they are.
    #[inline]
    pub fn values(&self, round: u16, at: usize) -> (usize, usize) {
        let values = self.step(round).and_then(|step| step.values.get(at));
        values.map_or((0, 0), |&(from, count)| (from as usize, count as usize))
    }

    /// How many values this task's packet to the receiver number `at` has.
    #[inline]
    pub fn sent(&self, round: u16, at: usize) -> usize {
        self.step(round).and_then(|step| step.sent.get(at)).map_or(0, |&count| count as usize)
    }

    /// Whether the values that a round brings replace those that this task has; otherwise
    /// they follow them.
    pub fn replaces(&self, round: u16) -> bool {
        self.step(round).is_some_and(|step| step.replaces)
    }

    /// The values of all tasks, by task. As collected they start with those of this task's group.
    pub fn by_task(&self, mut values: Vec<u64>) -> Vec<u64> {
        if values.is_empty() {
            return values;
        }
        values.rotate_right(self.layout.leader as usize);
        match &self.layout.groups {
            Groups::Even(_) => values,
            Groups::Hosts(placement) => placement.by_task(&values),
        }
    }
}

impl Step {
    fn of(layout: &Layout, round: u16) -> Self {
        let senders: Box<[Task]> = layout.senders(round).collect();
        let receivers: Box<[Task]> = layout.receivers(round).collect();
        let values = |at| {
            let (from, count) = layout.values(round, at);
            (from as u32, count as u32)
        };
        Self {
            values: (0..senders.len()).map(values).collect(),
            sent: (0..receivers.len()).map(|at| layout.sent(round, at) as u32).collect(),
            all: (1 << senders.len()) - 1,
            replaces: layout.replaces(round),
            senders,
            receivers,
        }
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;

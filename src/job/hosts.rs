//! Which tasks of a job share a host, and which of them use shared memory.

use crate::proto::placement::Placement;
use crate::wire::frame::Task;
use std::sync::Arc;

/// The tasks of a job by hosts. The hosts are numbered in the order of their first tasks, so that
/// all tasks of a job have the same numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    me: Task,
    tasks: u32,
    /// The host of each task; `None`: all are on one.
    of: Option<Arc<[u32]>>,
    /// The hosts as collective operations need them; `None`: all tasks are on one.
    placement: Option<Arc<Placement>>,
    /// Tasks of one host use shared memory, and not the network.
    shared: bool,
}

impl Hosts {
    /// All tasks on one host.
    pub fn one(me: Task, tasks: u32) -> Self {
        Self { me, tasks, of: None, placement: None, shared: true }
    }

    /// From what identifies the host of each task.
    pub fn new<K: std::hash::Hash + Eq>(me: Task, identities: impl IntoIterator<Item = K>) -> Self {
        let of: Arc<[u32]> = numbered(identities).into();
        let (tasks, several) = (of.len() as u32, of.iter().any(|host| *host != 0));
        let placement = several.then(|| Arc::new(Placement::new(&of)));
        Self { me, tasks, of: several.then_some(of), placement, shared: true }
    }

    /// The hosts as task `me` of the same job sees them.
    #[cfg(test)]
    pub fn seen_by(&self, me: Task) -> Self {
        Self { me, ..self.clone() }
    }

    /// These hosts with the network used within them too (LAPI_USE_SHM=no).
    pub fn without_shared_memory(self) -> Self {
        Self { shared: false, ..self }
    }

    /// Whether this task and that one use shared memory.
    #[inline]
    pub fn shares_memory(&self, task: Task) -> bool {
        self.shared && self.is_here(task)
    }

    /// The tasks with which this one uses shared memory, in ascending order, itself included.
    pub fn sharing(&self) -> Vec<Task> {
        if self.shared { self.here() } else { vec![self.me] }
    }

    /// The tasks sorted by hosts, if these are several.
    pub fn placement(&self) -> Option<Arc<Placement>> {
        self.placement.clone()
    }

    /// How many hosts there are.
    pub fn count(&self) -> u32 {
        self.placement.as_ref().map_or(1, |placement| placement.hosts())
    }

    /// How many tasks the host has that has most.
    pub fn largest(&self) -> u32 {
        self.placement.as_ref().map_or(self.tasks, |placement| placement.largest())
    }

    /// The number of a task's host.
    pub fn of(&self, task: Task) -> u32 {
        self.of.as_ref().map_or(0, |of| of[task as usize])
    }

    /// Whether a task is on this task's host.
    #[inline]
    pub fn is_here(&self, task: Task) -> bool {
        self.of.as_ref().is_none_or(|of| of[task as usize] == of[self.me as usize])
    }

    /// The tasks of this host in ascending order, this one included.
    pub fn here(&self) -> Vec<Task> {
        (0..self.tasks).filter(|&task| self.is_here(task)).collect()
    }
}

/// A number for each of the keys: equal ones have the same, and new ones the next, from 0 on.
pub(in crate::job) fn numbered<K: std::hash::Hash + Eq>(keys: impl IntoIterator<Item = K>) -> Vec<u32> {
    let mut numbers = std::collections::HashMap::new();
    let number = |key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    };
    keys.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbered_by_their_first_tasks() {
        let hosts = Hosts::new(3, ["b", "a", "b", "a", "c"]);
        assert_eq!((0..5).map(|task| hosts.of(task)).collect::<Vec<_>>(), [0, 1, 0, 1, 2]);
        assert_eq!((hosts.count(), hosts.here(), hosts.largest()), (3, vec![1, 3], 2));
        assert_eq!(hosts.placement().map(|placement| placement.hosts()), Some(3));
        let other = hosts.seen_by(4);
        assert_eq!((other.here(), other == Hosts::new(4, ["b", "a", "b", "a", "c"])), (vec![4], true));
        assert!(hosts.is_here(1) && !hosts.is_here(4));
    }

    #[test]
    fn one_host_has_all_tasks() {
        let hosts = Hosts::new(1, ["a", "a", "a"]);
        assert_eq!(hosts, Hosts::one(1, 3));
        assert_eq!((hosts.count(), hosts.here(), hosts.largest()), (1, vec![0, 1, 2], 3));
        assert_eq!(hosts.placement(), None);
    }
}

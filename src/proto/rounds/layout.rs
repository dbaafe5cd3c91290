//! The groups of a collective operation and their trees: the numbers from which the rounds follow.

use super::{EXCHANGE_RADIX, RADIX, SENDERS, SMALL};
use crate::proto::placement::Placement;
use crate::wire::frame::Task;
use std::sync::Arc;

/// The place of a task among the groups.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The position of this task.
    me: u32,
    tasks: u32,
    pub(super) groups: Groups,
    /// The group of this task, the position of its leader, and how many tasks it has.
    group: u32,
    pub(super) leader: u32,
    size: u32,
    /// Rounds of gather, and as many of release.
    pub(super) levels: u16,
    /// Rounds of exchange.
    pub(super) exchanges: u16,
}

/// How the positions form groups.
#[derive(Clone, Debug)]
pub(super) enum Groups {
    /// Of this number of tasks each; the last one may have fewer. Positions are tasks.
    Even(u32),
    /// By hosts.
    Hosts(Arc<Placement>),
}

/// What a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundKind {
    /// The subtrees of the senders have this number of tasks, or fewer at the end of the group.
    Gather(u64),
    /// With leaders multiples of this number of groups away.
    Exchange(u32),
    /// The subtrees of the receivers have this number of tasks, or fewer at the end of the group.
    Release(u64),
}

impl Layout {
    /// Of task `me` of `tasks`; with their hosts if these are several.
    pub(super) fn new(me: Task, tasks: u32, hosts: Option<Arc<Placement>>) -> Self {
        let (groups, count, largest) = match hosts {
            None => {
                let size = if tasks <= SMALL { 1 } else { RADIX };
                (Groups::Even(size), tasks.div_ceil(size), size)
            }
            Some(placement) => {
                let (count, largest) = (placement.hosts(), placement.largest());
                (Groups::Hosts(placement), count, largest)
            }
        };
        let (group, position) = groups.find(me);
        let leader = groups.start(group, tasks);
        let size = groups.start(group + 1, tasks) - leader;
        let levels = rounds_of(RADIX, largest);
        let exchanges = rounds_of(EXCHANGE_RADIX, count);
        Self { me: position, tasks, groups, group, leader, size, levels, exchanges }
    }

    /// How many rounds an operation has.
    pub(super) fn count(&self) -> u16 {
        2 * self.levels + self.exchanges
    }

    fn kind(&self, round: u16) -> Option<RoundKind> {
        let width = |level: u16| u64::from(RADIX).pow(level.into());
        let exchanged = self.levels + self.exchanges;
        Some(match round {
            _ if round < self.levels => RoundKind::Gather(width(round)),
            _ if round < exchanged => {
                RoundKind::Exchange(u64::from(EXCHANGE_RADIX).pow((round - self.levels).into()) as u32)
            }
            _ if round < self.count() => RoundKind::Release(width(self.count() - 1 - round)),
            _ => return None,
        })
    }

    fn leads(&self) -> bool {
        self.me == self.leader
    }

    /// How many tasks the group has from this one on.
    fn rest(&self) -> u32 {
        self.leader + self.size - self.me
    }

    /// Whether this task is a parent of subtrees of this width, if it has any.
    fn is_parent(&self, width: u64) -> bool {
        u64::from(self.me - self.leader) % (width * u64::from(RADIX)) == 0
    }

    /// The position of the child number `at` among those with subtrees of this width.
    fn child(&self, width: u64, at: usize) -> Option<u32> {
        let away = width * (at as u64 + 1);
        let is = at < SENDERS && away < u64::from(self.rest()) && self.is_parent(width);
        is.then_some(self.me.wrapping_add(away as u32))
    }

    /// The position of the parent to which this task brings a subtree of this width.
    fn parent(&self, width: u64) -> Option<u32> {
        let away = u64::from(self.me - self.leader) % (width * u64::from(RADIX));
        (away != 0 && away.is_multiple_of(width)).then_some(self.me.wrapping_sub(away as u32))
    }

    /// The distance in groups of the leader that comes after `at` others in the exchange
    /// of this reach.
    fn distance(&self, reach: u32, at: usize) -> Option<u32> {
        let far = u64::from(reach) * (at as u64 + 1);
        let is = self.leads() && at < EXCHANGE_RADIX as usize - 1 && far < u64::from(self.group_count());
        is.then_some(far as u32)
    }

    fn group_count(&self) -> u32 {
        self.groups.count(self.tasks)
    }

    /// The group this number of groups above this one.
    fn above(&self, groups: u32) -> u32 {
        ((u64::from(self.group) + u64::from(groups)) % u64::from(self.group_count())) as u32
    }

    /// The position of the leader of a group.
    fn leader_of(&self, group: u32) -> u32 {
        self.groups.start(group, self.tasks)
    }

    /// The position number `at` of those whose packets this task needs in a round: none, or up
    /// to [`SENDERS`].
    fn sender(&self, round: u16, at: usize) -> Option<u32> {
        match self.kind(round)? {
            RoundKind::Gather(width) => self.child(width, at),
            RoundKind::Exchange(reach) => Some(self.leader_of(self.above(self.distance(reach, at)?))),
            RoundKind::Release(width) if at == 0 => self.parent(width),
            RoundKind::Release(_) => None,
        }
    }

    /// The position number `at` of those that need a packet of this task in a round.
    fn receiver(&self, round: u16, at: usize) -> Option<u32> {
        match self.kind(round)? {
            RoundKind::Gather(width) if at == 0 => self.parent(width),
            RoundKind::Gather(_) => None,
            RoundKind::Exchange(reach) => {
                Some(self.leader_of(self.above(self.group_count() - self.distance(reach, at)?)))
            }
            RoundKind::Release(width) => self.child(width, at),
        }
    }

    /// The tasks whose packets this task needs in a round.
    pub(super) fn senders(&self, round: u16) -> impl Iterator<Item = Task> + '_ {
        (0..).map_while(move |at| Some(self.groups.task(self.sender(round, at)?)))
    }

    /// The tasks that need a packet of this task in a round.
    pub(super) fn receivers(&self, round: u16) -> impl Iterator<Item = Task> + '_ {
        (0..).map_while(move |at| Some(self.groups.task(self.receiver(round, at)?)))
    }

    /// Where the values of a sender begin among those that a round brings, and how many they are.
    pub(super) fn values(&self, round: u16, at: usize) -> (usize, usize) {
        match self.kind(round) {
            Some(RoundKind::Gather(width)) => {
                let from = width * at as u64;
                let rest = u64::from(self.rest()).saturating_sub(from + width);
                (from as usize, width.min(rest) as usize)
            }
            Some(RoundKind::Exchange(reach)) => {
                let far = reach * (at as u32 + 1);
                let count = self.tasks_of(self.above(far), reach.min(self.group_count() - far));
                (self.tasks_of(self.above(reach), far - reach), count)
            }
            Some(RoundKind::Release(_)) => (0, self.tasks as usize),
            None => (0, 0),
        }
    }

    /// How many values this task's packet to the receiver number `at` has.
    pub(super) fn sent(&self, round: u16, at: usize) -> usize {
        match self.kind(round) {
            Some(RoundKind::Gather(width)) => width.min(self.rest().into()) as usize,
            Some(RoundKind::Exchange(reach)) => {
                let far = reach * (at as u32 + 1);
                self.tasks_of(self.group, reach.min(self.group_count() - far))
            }
            Some(RoundKind::Release(_)) => self.tasks as usize,
            None => 0,
        }
    }

    /// Whether the values that a round brings replace those that this task has; otherwise
    /// they follow them.
    pub(super) fn replaces(&self, round: u16) -> bool {
        matches!(self.kind(round), Some(RoundKind::Release(width)) if self.parent(width).is_some())
    }

    /// How many tasks this number of groups has, from group `first` upwards; group 0
    /// follows the last one.
    fn tasks_of(&self, first: u32, groups: u32) -> usize {
        let (end, count) = (u64::from(first) + u64::from(groups), u64::from(self.group_count()));
        let (from, around) = (self.leader_of(first), end.saturating_sub(count) as u32);
        let to = self.leader_of(end.min(count) as u32);
        (to - from + self.leader_of(around)) as usize
    }
}

impl Groups {
    fn count(&self, tasks: u32) -> u32 {
        match self {
            Self::Even(size) => tasks.div_ceil(*size),
            Self::Hosts(placement) => placement.hosts(),
        }
    }

    /// The position of the first task of a group; of the group after the last one: the
    /// number of tasks.
    fn start(&self, group: u32, tasks: u32) -> u32 {
        match self {
            Self::Even(size) => group.saturating_mul(*size).min(tasks),
            Self::Hosts(placement) => placement.start(group),
        }
    }

    /// The group and the position of a task of the job.
    fn find(&self, task: Task) -> (u32, u32) {
        match self {
            Self::Even(size) => (task / size, task),
            Self::Hosts(placement) => placement.find(task).expect("every task has a host"),
        }
    }

    fn task(&self, position: u32) -> Task {
        match self {
            Self::Even(_) => position,
            Self::Hosts(placement) => placement.task(position),
        }
    }
}

/// How many rounds of this radix it takes to reach all of `count`.
fn rounds_of(radix: u32, count: u32) -> u16 {
    (0..).take_while(|&round| u64::from(radix).pow(round) < u64::from(count)).count() as u16
}

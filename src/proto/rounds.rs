//! The rounds of a collective operation: which tasks send to which, and how many values.
//!
//! The tasks form groups. The first task of a group is its leader, and the root of a tree of radix [`RADIX`] over the group:
//!
//! 1. *gather*, in one round for each level of the tree: a task sends the values of its subtree to its parent;
//! 2. *exchange*, in as many rounds as needed: the leaders run Bruck's all-gather of radix [`EXCHANGE_RADIX`] among themselves.
//!    In the round of reach `r` each leader sends to the leaders `r`, `2r` and `3r` groups below it and receives from those as
//!    far above it, so that it knows four times as many groups afterwards;
//! 3. *release*, in one round for each level: a task sends everything to its children.
//!
//! On one host a group is [`RADIX`] consecutive tasks, a tree of one level, so that a task that is no leader sends one packet and
//! receives one. Where there are more tasks than processors it needs the processor once for each operation, while Bruck's
//! algorithm among all tasks may need it once for each round. In a job of at most [`SMALL`] tasks each task is a group of its own,
//! so that one round of exchange is all: the task that comes last has the packets of all others already, and continues at once.
//!
//! In a job of several hosts a group is the tasks of one host, so that only leaders exchange packets with other hosts. Hosts have
//! different numbers of tasks; all trees have as many levels as the largest host needs, so that the rounds of all tasks have the
//! same numbers. A task without part in a round skips it.
//!
//! The rounds count tasks by their *positions*: by host and then by task, so that each group and each subtree is a range. On one
//! host the position of a task is its number.
//!
//! The groups depend only on the number of tasks and on their hosts, so that all tasks agree on them.

use super::placement::Placement;
use crate::wire::frame::Task;
use std::sync::Arc;

/// Of the tree of a group, and the tasks of a group on one host. A task handles one packet less than this, one after the other,
/// in each round of gather and release in which it is a parent.
const RADIX: u32 = 16;
/// Of the exchange among leaders.
const EXCHANGE_RADIX: u32 = 4;
/// In a job of at most this number of tasks on one host each task is a group of its own.
const SMALL: u32 = EXCHANGE_RADIX;
/// A task receives from at most this number of tasks in one round.
pub const SENDERS: usize = RADIX as usize - 1;

const _: () = assert!(EXCHANGE_RADIX >= 2 && RADIX >= EXCHANGE_RADIX && RADIX <= 32);

/// The rounds as one task sees them.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The position of this task.
    me: u32,
    tasks: u32,
    groups: Groups,
    /// The group of this task, the position of its leader, and how many tasks it has.
    group: u32,
    leader: u32,
    size: u32,
    /// Rounds of gather, and as many of release.
    levels: u16,
    /// Rounds of exchange.
    exchanges: u16,
}

/// How the positions form groups.
#[derive(Clone, Debug)]
enum Groups {
    /// Of this number of tasks each; the last one may have fewer. Positions are tasks.
    Even(u32),
    /// By hosts.
    Hosts(Arc<Placement>),
}

/// What a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The subtrees of the senders have this number of tasks, or fewer at the end of the group.
    Gather(u64),
    /// With leaders multiples of this number of groups away.
    Exchange(u32),
    /// The subtrees of the receivers have this number of tasks, or fewer at the end of the group.
    Release(u64),
}

impl Rounds {
    /// Of task `me` of `tasks`; with their hosts if these are several.
    pub fn new(me: Task, tasks: u32, hosts: Option<Arc<Placement>>) -> Self {
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
    pub fn count(&self) -> u16 {
        2 * self.levels + self.exchanges
    }

    fn kind(&self, round: u16) -> Option<Kind> {
        let width = |level: u16| u64::from(RADIX).pow(level.into());
        let exchanged = self.levels + self.exchanges;
        Some(match round {
            _ if round < self.levels => Kind::Gather(width(round)),
            _ if round < exchanged => {
                Kind::Exchange(u64::from(EXCHANGE_RADIX).pow((round - self.levels).into()) as u32)
            }
            _ if round < self.count() => Kind::Release(width(self.count() - 1 - round)),
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
        (away != 0 && away % width == 0).then_some(self.me.wrapping_sub(away as u32))
    }

    /// The distance in groups of the leader that comes after `at` others in the exchange of this reach.
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

    /// The position number `at` of those whose packets this task needs in a round: none, or up to [`SENDERS`].
    #[inline]
    fn sender(&self, round: u16, at: usize) -> Option<u32> {
        match self.kind(round)? {
            Kind::Gather(width) => self.child(width, at),
            Kind::Exchange(reach) => Some(self.leader_of(self.above(self.distance(reach, at)?))),
            Kind::Release(width) if at == 0 => self.parent(width),
            Kind::Release(_) => None,
        }
    }

    /// The position number `at` of those that need a packet of this task in a round.
    #[inline]
    fn receiver(&self, round: u16, at: usize) -> Option<u32> {
        match self.kind(round)? {
            Kind::Gather(width) if at == 0 => self.parent(width),
            Kind::Gather(_) => None,
            Kind::Exchange(reach) => {
                Some(self.leader_of(self.above(self.group_count() - self.distance(reach, at)?)))
            }
            Kind::Release(width) => self.child(width, at),
        }
    }

    /// The tasks whose packets this task needs in a round.
    pub fn senders(&self, round: u16) -> impl Iterator<Item = Task> + '_ {
        (0..).map_while(move |at| Some(self.groups.task(self.sender(round, at)?)))
    }

    /// The tasks that need a packet of this task in a round.
    pub fn receivers(&self, round: u16) -> impl Iterator<Item = Task> + '_ {
        (0..).map_while(move |at| Some(self.groups.task(self.receiver(round, at)?)))
    }

    /// Which of the senders of a round a task is.
    #[inline]
    pub fn place(&self, round: u16, sender: Task) -> Option<usize> {
        match self.kind(round)? {
            // Parents receive most packets in these rounds: a comparison with each child would be long.
            Kind::Gather(width) => {
                let position = self.groups.find_in(self.group, sender)?;
                let at = (u64::from(position.checked_sub(self.me)?) / width).checked_sub(1)? as usize;
                (self.child(width, at) == Some(position)).then_some(at)
            }
            _ => self.senders(round).position(|task| task == sender),
        }
    }

    /// One bit for each sender of a round.
    #[inline]
    pub fn all(&self, round: u16) -> u32 {
        let count = match self.kind(round) {
            Some(Kind::Gather(width)) if self.is_parent(width) => {
                ((u64::from(self.rest()) - 1) / width).min(SENDERS as u64) as u32
            }
            _ => self.senders(round).count() as u32,
        };
        (1 << count) - 1
    }

    /// Where the values of a sender begin among those that a round brings, and how many they are.
    pub fn values(&self, round: u16, at: usize) -> (usize, usize) {
        match self.kind(round) {
            Some(Kind::Gather(width)) => {
                let from = width * at as u64;
                let rest = u64::from(self.rest()).saturating_sub(from + width);
                (from as usize, width.min(rest) as usize)
            }
            Some(Kind::Exchange(reach)) => {
                let far = reach * (at as u32 + 1);
                let count = self.tasks_of(self.above(far), reach.min(self.group_count() - far));
                (self.tasks_of(self.above(reach), far - reach), count)
            }
            Some(Kind::Release(_)) => (0, self.tasks as usize),
            None => (0, 0),
        }
    }

    /// How many values this task's packet to the receiver number `at` has.
    pub fn sent(&self, round: u16, at: usize) -> usize {
        match self.kind(round) {
            Some(Kind::Gather(width)) => width.min(self.rest().into()) as usize,
            Some(Kind::Exchange(reach)) => {
                let far = reach * (at as u32 + 1);
                self.tasks_of(self.group, reach.min(self.group_count() - far))
            }
            Some(Kind::Release(_)) => self.tasks as usize,
            None => 0,
        }
    }

    /// Whether the values that a round brings replace those that this task has; otherwise they follow them.
    pub fn replaces(&self, round: u16) -> bool {
        matches!(self.kind(round), Some(Kind::Release(width)) if self.parent(width).is_some())
    }

    /// The values of all tasks, by task. As collected they start with those of this task's group.
    pub fn by_task(&self, mut values: Vec<u64>) -> Vec<u64> {
        if values.is_empty() {
            return values;
        }
        values.rotate_right(self.leader as usize);
        match &self.groups {
            Groups::Even(_) => values,
            Groups::Hosts(placement) => placement.by_task(&values),
        }
    }

    /// How many tasks this number of groups has, from group `first` upwards; group 0 follows the last one.
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

    /// The position of the first task of a group; of the group after the last one: the number of tasks.
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

    /// The position of a task, if it is in this group.
    fn find_in(&self, group: u32, task: Task) -> Option<u32> {
        match self {
            Self::Even(size) => (task / size == group).then_some(task),
            Self::Hosts(placement) => placement.find_on(group, task),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    /// Jobs on one host, and jobs with tasks on hosts at random and in order; with the host of each task.
    fn jobs() -> Vec<(Vec<u32>, Option<Arc<Placement>>)> {
        let one = (1..=70).chain([255, 256, 257, 1000, 1024]).map(|tasks| (vec![0; tasks], None));
        let mut rng = Rng::stream(1, 14);
        let mut several: Vec<Vec<u32>> = vec![
            (0..300).map(|task| task / 280).collect(),
            (0..1024).map(|task| task / 64).collect(),
            (0..70).collect(),
        ];
        for _ in 0..60 {
            let (tasks, hosts) = (2 + rng.below(140), 2 + rng.below(39));
            // Some hosts have most tasks.
            let host = |rng: &mut Rng| rng.below(hosts).min(rng.below(hosts)) as u32;
            several.push((0..tasks).map(|_| host(&mut rng)).collect());
        }
        let several = several.into_iter().map(|hosts| {
            let placement = Arc::new(Placement::new(&hosts));
            (hosts, Some(placement))
        });
        one.chain(several).collect()
    }

    fn rounds(hosts: &[u32], placement: &Option<Arc<Placement>>) -> Vec<Rounds> {
        let tasks = hosts.len() as u32;
        (0..tasks).map(|me| Rounds::new(me, tasks, placement.clone())).collect()
    }

    /// Every packet that a task needs is sent, with as many values as are expected, and no other.
    #[test]
    fn senders_and_receivers_agree() {
        for (hosts, placement) in jobs() {
            let all = rounds(&hosts, &placement);
            for round in 0..all[0].count() {
                let needed: usize = all.iter().map(|rounds| rounds.senders(round).count()).sum();
                let mut sent = 0;
                for (me, rounds) in (0..).zip(&all) {
                    assert_eq!(rounds.count(), all[0].count());
                    assert_eq!(rounds.all(round).count_ones() as usize, rounds.senders(round).count());
                    for (at, receiver) in rounds.receivers(round).enumerate() {
                        let other = &all[receiver as usize];
                        let place = other.place(round, me).expect("the receiver needs it");
                        assert_eq!(other.senders(round).nth(place), Some(me));
                        assert_eq!(
                            rounds.sent(round, at),
                            other.values(round, place).1,
                            "{rounds:?}, {round}"
                        );
                        assert_ne!(receiver, me);
                        sent += 1;
                    }
                    let places = (0..hosts.len() as u32).filter_map(|other| rounds.place(round, other));
                    assert_eq!(places.count(), rounds.senders(round).count(), "{rounds:?}, {round}");
                }
                assert_eq!(sent, needed, "round {round} of {} tasks", hosts.len());
            }
        }
    }

    /// What the senders of a round bring lies side by side, and in the end every task has a value of each task.
    #[test]
    fn the_values_of_all_tasks_are_complete() {
        for (hosts, placement) in jobs() {
            for rounds in rounds(&hosts, &placement) {
                let mut known = 1;
                for round in 0..rounds.count() {
                    let mut brought = 0;
                    for at in 0..rounds.senders(round).count() {
                        let (from, count) = rounds.values(round, at);
                        assert_eq!(from, brought, "{rounds:?}, round {round}");
                        brought += count;
                    }
                    known = if rounds.replaces(round) { brought } else { known + brought };
                }
                assert_eq!(known, hosts.len(), "{rounds:?}");
            }
        }
    }

    /// One task of each host sends to other hosts and receives from them, and no task sends many packets.
    #[test]
    fn one_task_of_each_host_knows_tasks_of_other_hosts() {
        for (hosts, placement) in jobs() {
            let mut crossing = std::collections::BTreeMap::new();
            for (me, rounds) in (0..).zip(rounds(&hosts, &placement)) {
                let host = hosts[me as usize];
                let mut sent = 0;
                for round in 0..rounds.count() {
                    sent += rounds.receivers(round).count();
                    let mut others = rounds.receivers(round).chain(rounds.senders(round));
                    if others.any(|other| hosts[other as usize] != host) {
                        assert_eq!(*crossing.entry(host).or_insert(me), me, "host {host} of {hosts:?}");
                    }
                }
                let bound = SENDERS as u32 * u32::from(rounds.levels) + 3 * u32::from(rounds.exchanges);
                assert!(sent as u32 <= bound.max(1), "task {me} of {hosts:?} sends {sent} packets");
                assert!(rounds.count() as u32 <= 2 + 2 * (hosts.len() as u32).ilog2() + 2);
            }
            let several = hosts.iter().any(|host| *host != hosts[0]);
            let count = hosts.iter().collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!(crossing.len(), if several { count } else { 0 });
        }
    }

    #[test]
    fn a_member_sends_one_packet_and_a_leader_a_few() {
        let packets = |me, tasks, hosts| -> usize {
            let rounds = Rounds::new(me, tasks, hosts);
            (0..rounds.count()).map(|round| rounds.receivers(round).count()).sum()
        };
        assert_eq!((packets(0, 2, None), packets(1, 2, None)), (1, 1));
        assert_eq!((packets(0, 4, None), packets(3, 4, None)), (3, 3));
        assert_eq!((packets(0, 16, None), packets(9, 16, None)), (15, 1));
        assert_eq!(
            (packets(0, 1024, None), packets(1008, 1024, None), packets(1023, 1024, None)),
            (15 + 9, 15 + 9, 1)
        );
        // 16 hosts with 64 tasks each: the leader of a host has 15 children on the first level of the tree and 3 on the second.
        let hosts: Vec<u32> = (0..1024).map(|task| task % 16).collect();
        let placement = Some(Arc::new(Placement::new(&hosts)));
        let packets = |me| packets(me, 1024, placement.clone());
        assert_eq!((packets(3), packets(3 + 16 * 16), packets(3 + 17 * 16)), (15 + 3 + 6, 1 + 15, 1));
    }
}

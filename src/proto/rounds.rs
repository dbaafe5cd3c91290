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
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    /// Jobs on one host, and jobs with tasks on hosts at random and in order; with the
    /// host of each task.
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
                let needed: usize = all.iter().map(|rounds| rounds.senders(round).len()).sum();
                let mut sent = 0;
                for (me, rounds) in (0..).zip(&all) {
                    assert_eq!(rounds.count(), all[0].count());
                    assert_eq!(rounds.all(round).count_ones() as usize, rounds.senders(round).len());
                    for (at, &receiver) in rounds.receivers(round).iter().enumerate() {
                        let other = &all[receiver as usize];
                        let place = other.place(round, me).expect("the receiver needs it");
                        assert_eq!(other.senders(round)[place], me);
                        assert_eq!(
                            rounds.sent(round, at),
                            other.values(round, place).1,
                            "{rounds:?}, {round}"
                        );
                        assert_ne!(receiver, me);
                        sent += 1;
                    }
                    let places = (0..hosts.len() as u32).filter_map(|other| rounds.place(round, other));
                    assert_eq!(places.count(), rounds.senders(round).len(), "{rounds:?}, {round}");
                }
                assert_eq!(sent, needed, "round {round} of {} tasks", hosts.len());
            }
        }
    }

    /// A signal need not say the round, because a task sends to another one in one round at most.
    #[test]
    fn a_task_sends_to_each_other_one_at_most_once() {
        for (hosts, placement) in jobs() {
            for rounds in rounds(&hosts, &placement) {
                let receivers = (0..rounds.count()).flat_map(|round| rounds.receivers(round));
                let mut receivers: Vec<_> = receivers.copied().collect();
                let sent = receivers.len();
                receivers.sort_unstable();
                receivers.dedup();
                assert_eq!(receivers.len(), sent, "{rounds:?}");
            }
        }
    }

    /// What the senders of a round bring lies side by side, and in the end every task has a
    /// value of each task.
    #[test]
    fn the_values_of_all_tasks_are_complete() {
        for (hosts, placement) in jobs() {
            for rounds in rounds(&hosts, &placement) {
                let mut known = 1;
                for round in 0..rounds.count() {
                    let mut brought = 0;
                    for at in 0..rounds.senders(round).len() {
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

    /// One task of each host sends to other hosts and receives from them, and no task
    /// sends many packets.
    #[test]
    fn one_task_of_each_host_knows_tasks_of_other_hosts() {
        for (hosts, placement) in jobs() {
            let mut crossing = std::collections::BTreeMap::new();
            for (me, rounds) in (0..).zip(rounds(&hosts, &placement)) {
                let host = hosts[me as usize];
                let mut sent = 0;
                for round in 0..rounds.count() {
                    sent += rounds.receivers(round).len();
                    let mut others = rounds.receivers(round).iter().chain(rounds.senders(round));
                    if others.any(|&other| hosts[other as usize] != host) {
                        assert_eq!(*crossing.entry(host).or_insert(me), me, "host {host} of {hosts:?}");
                    }
                }
                let bound =
                    SENDERS as u32 * u32::from(rounds.layout.levels) + 3 * u32::from(rounds.layout.exchanges);
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
            (0..rounds.count()).map(|round| rounds.receivers(round).len()).sum()
        };
        assert_eq!((packets(0, 2, None), packets(1, 2, None)), (1, 1));
        assert_eq!((packets(0, 4, None), packets(3, 4, None)), (3, 3));
        assert_eq!((packets(0, 16, None), packets(9, 16, None)), (15, 1));
        assert_eq!(
            (packets(0, 1024, None), packets(1008, 1024, None), packets(1023, 1024, None)),
            (15 + 9, 15 + 9, 1)
        );
        // 16 hosts with 64 tasks each: the leader of a host has 15 children on the first level of
        // the tree and 3 on the second.
        let hosts: Vec<u32> = (0..1024).map(|task| task % 16).collect();
        let placement = Some(Arc::new(Placement::new(&hosts)));
        let packets = |me| packets(me, 1024, placement.clone());
        assert_eq!((packets(3), packets(3 + 16 * 16), packets(3 + 17 * 16)), (15 + 3 + 6, 1 + 15, 1));
    }
}

//! The rounds of a collective operation: which tasks send to which, and how many values.
//!
//! The tasks form groups of [`GROUP`] consecutive tasks. The first task of a group is its leader:
//!
//! 1. *gather*: the other members of a group send to their leader;
//! 2. *exchange*, in as many rounds as needed: the leaders run Bruck's all-gather of radix [`RADIX`] among themselves. In the
//!    round of reach `r` each leader sends to the leaders `r`, `2r` and `3r` groups below it and receives from those as far
//!    above it, so that it knows four times as many groups afterwards;
//! 3. *release*: the leaders send everything to the members of their groups.
//!
//! So a task that is no leader sends one packet and receives one. Where there are more tasks than processors it needs the
//! processor once for each operation, while Bruck's algorithm among all tasks may need it once for each round.
//!
//! In a job of at most [`SMALL`] tasks each task is a group of its own, so that one round of exchange is all: the task that
//! comes last has the packets of all others already, and continues at once.
//!
//! The groups depend only on the number of tasks, so that all tasks agree on them.

use crate::wire::frame::Task;

/// Tasks of a group. The leader handles as many packets, one after the other, at the beginning and at the end.
const GROUP: u32 = 16;
/// Of the exchange among leaders.
const RADIX: u32 = 4;
/// In a job of at most this number of tasks each task is a group of its own.
const SMALL: u32 = RADIX;
/// A task receives from at most this number of tasks in one round.
pub const SENDERS: usize = GROUP as usize - 1;

/// The rounds as one task sees them.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    me: Task,
    tasks: u32,
    /// Tasks of a group; the last group may have fewer.
    size: u32,
    groups: u32,
    /// The leader of this task's group.
    leader: Task,
    count: u16,
}

/// What a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gather,
    /// With leaders multiples of this number of groups away.
    Exchange(u32),
    Release,
}

impl Rounds {
    /// Of task `me` of `tasks`.
    pub fn new(me: Task, tasks: u32) -> Self {
        let size = if tasks <= SMALL { 1 } else { GROUP };
        let groups = tasks.div_ceil(size);
        let exchanges = (0..).take_while(|&round| reach(round) < u64::from(groups)).count() as u16;
        let around = if size == 1 { 0 } else { 2 };
        Self { me, tasks, size, groups, leader: me - me % size, count: exchanges + around }
    }

    /// How many rounds an operation has.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The task whose values come first in what this task knows.
    pub fn first(&self) -> Task {
        self.leader
    }

    fn kind(&self, round: u16) -> Option<Kind> {
        if round >= self.count {
            return None;
        }
        Some(match round {
            _ if self.size == 1 => Kind::Exchange(reach(round) as u32),
            0 => Kind::Gather,
            _ if round + 1 == self.count => Kind::Release,
            _ => Kind::Exchange(reach(round - 1) as u32),
        })
    }

    fn leads(&self) -> bool {
        self.me == self.leader
    }

    /// The task that this one leads and that comes after `at` others.
    fn member(&self, at: usize) -> Option<Task> {
        let member = self.me + 1 + at as u32;
        (self.leads() && at < SENDERS && member < self.tasks.min(self.me + self.size)).then_some(member)
    }

    /// The distance in groups of the leader that comes after `at` others in the exchange of this reach.
    fn distance(&self, reach: u32, at: usize) -> Option<u32> {
        let far = u64::from(reach) * (at as u64 + 1);
        (self.leads() && at < RADIX as usize - 1 && far < u64::from(self.groups)).then_some(far as u32)
    }

    /// The leader this number of groups above this one.
    fn above(&self, groups: u32) -> Task {
        (self.me / self.size + groups) % self.groups * self.size
    }

    /// The task number `at` of those whose packets this task needs in a round: none, or up to [`SENDERS`].
    #[inline]
    fn sender(&self, round: u16, at: usize) -> Option<Task> {
        match self.kind(round)? {
            Kind::Gather => self.member(at),
            Kind::Exchange(reach) => Some(self.above(self.distance(reach, at)?)),
            Kind::Release => (!self.leads() && at == 0).then_some(self.leader),
        }
    }

    /// The task number `at` of those that need a packet of this task in a round.
    #[inline]
    fn receiver(&self, round: u16, at: usize) -> Option<Task> {
        match self.kind(round)? {
            Kind::Gather => (!self.leads() && at == 0).then_some(self.leader),
            Kind::Exchange(reach) => Some(self.above(self.groups - self.distance(reach, at)?)),
            Kind::Release => self.member(at),
        }
    }

    /// The tasks whose packets this task needs in a round.
    pub fn senders(&self, round: u16) -> impl Iterator<Item = Task> + use<> {
        let rounds = *self;
        (0..).map_while(move |at| rounds.sender(round, at))
    }

    /// The tasks that need a packet of this task in a round.
    pub fn receivers(&self, round: u16) -> impl Iterator<Item = Task> + use<> {
        let rounds = *self;
        (0..).map_while(move |at| rounds.receiver(round, at))
    }

    /// Which of the senders of a round a task is.
    #[inline]
    pub fn place(&self, round: u16, sender: Task) -> Option<usize> {
        match self.kind(round)? {
            // Leaders receive most packets in this round: a search would be long.
            Kind::Gather => {
                let at = sender.checked_sub(self.me + 1)? as usize;
                (self.member(at) == Some(sender)).then_some(at)
            }
            _ => self.senders(round).position(|task| task == sender),
        }
    }

    /// One bit for each sender of a round.
    #[inline]
    pub fn all(&self, round: u16) -> u32 {
        let count = match self.kind(round) {
            Some(Kind::Gather) if self.leads() => self.size.min(self.tasks - self.me) - 1,
            _ => self.senders(round).count() as u32,
        };
        (1 << count) - 1
    }

    /// Where the values of a sender begin among those that a round brings, and how many they are.
    pub fn values(&self, round: u16, at: usize) -> (usize, usize) {
        match self.kind(round) {
            Some(Kind::Gather) => (at, 1),
            Some(Kind::Exchange(reach)) => {
                let far = reach * (at as u32 + 1);
                let count = self.tasks_of(self.above(far), reach.min(self.groups - far));
                (self.tasks_of(self.above(reach), far - reach), count)
            }
            Some(Kind::Release) => (0, self.tasks as usize),
            None => (0, 0),
        }
    }

    /// How many values this task's packet to the receiver number `at` has.
    pub fn sent(&self, round: u16, at: usize) -> usize {
        match self.kind(round) {
            Some(Kind::Gather) => 1,
            Some(Kind::Exchange(reach)) => {
                let far = reach * (at as u32 + 1);
                self.tasks_of(self.me, reach.min(self.groups - far))
            }
            Some(Kind::Release) => self.tasks as usize,
            None => 0,
        }
    }

    /// Whether the values that a round brings replace those that this task has; otherwise they follow them.
    pub fn replaces(&self, round: u16) -> bool {
        self.kind(round) == Some(Kind::Release) && !self.leads()
    }

    /// How many tasks this number of groups has, from that of leader `first` upwards.
    fn tasks_of(&self, first: Task, groups: u32) -> usize {
        let (size, last) = (u64::from(self.size), u64::from(self.groups) * u64::from(self.size));
        let count = u64::from(groups) * size;
        // The last group may be shorter than the others.
        let short = if u64::from(first) + count >= last { last - u64::from(self.tasks) } else { 0 };
        count.saturating_sub(short) as usize
    }
}

/// How many groups a leader knows before this round of the exchange.
fn reach(round: u16) -> u64 {
    u64::from(RADIX).pow(round.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every packet that a task needs is sent, with as many values as are expected, and no other.
    #[test]
    fn senders_and_receivers_agree() {
        for tasks in (1..=70).chain([255, 256, 257, 1000, 1024]) {
            let all: Vec<Rounds> = (0..tasks).map(|me| Rounds::new(me, tasks)).collect();
            for round in 0..all[0].count() {
                let needed: usize = all.iter().map(|rounds| rounds.senders(round).count()).sum();
                let mut sent = 0;
                for rounds in &all {
                    assert_eq!(rounds.all(round).count_ones() as usize, rounds.senders(round).count());
                    for (at, receiver) in rounds.receivers(round).enumerate() {
                        let other = &all[receiver as usize];
                        let place = other.place(round, rounds.me).expect("the receiver needs it");
                        assert_eq!(
                            rounds.sent(round, at),
                            other.values(round, place).1,
                            "{rounds:?}, {round}"
                        );
                        assert_ne!(receiver, rounds.me);
                        sent += 1;
                    }
                }
                assert_eq!(sent, needed, "round {round} of {tasks} tasks");
            }
        }
    }

    /// What the senders of a round bring lies side by side, and in the end every task has a value of each task.
    #[test]
    fn the_values_of_all_tasks_are_complete() {
        for tasks in (1..=70).chain([255, 256, 257, 1000, 1024]) {
            for me in 0..tasks {
                let rounds = Rounds::new(me, tasks);
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
                assert_eq!(known, tasks as usize, "{rounds:?}");
            }
        }
    }

    #[test]
    fn a_member_sends_one_packet_and_a_leader_a_few() {
        let packets = |me, tasks| -> usize {
            let rounds = Rounds::new(me, tasks);
            (0..rounds.count()).map(|round| rounds.receivers(round).count()).sum()
        };
        assert_eq!((packets(0, 2), packets(1, 2)), (1, 1));
        assert_eq!((packets(0, 4), packets(3, 4)), (3, 3));
        assert_eq!((packets(0, 16), packets(9, 16)), (15, 1));
        assert_eq!((packets(0, 1024), packets(1008, 1024), packets(1023, 1024)), (15 + 9, 15 + 9, 1));
    }
}

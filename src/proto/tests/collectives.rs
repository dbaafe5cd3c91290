//! Barriers and exchanges of jobs of all sizes, while packets and signals overtake each other and
//! tasks run ahead.

use super::network::Network;
use super::{placement, random_hosts, seeds};
use crate::base::rng::Rng;
use crate::memory::bytes::Piece;
use crate::proto::collective::{Collectives, Failure, Part};
use crate::proto::content::Content;
use crate::proto::outbox::{Continuation, Outbox, SendDone, Sent, Streaming};
use crate::proto::tests::network;
use crate::wire::frame::Task;
use crate::wire::packet::Head;
use std::collections::BTreeMap;

/// What happens in a round: every third time a barrier.
fn value(round: usize, task: u64) -> Option<u64> {
    (round % 3 != 2).then(|| (round as u64) << 32 | (task * 3 + 1))
}

/// A job whose tasks go through a number of rounds, each as fast as it can. Few outboxes are shared
/// by many tasks where nothing is ever parked.
struct Job {
    tasks: u32,
    rounds: usize,
    network: Network,
    outboxes: Vec<Outbox>,
    members: Vec<Collectives>,
    /// In which round each task is.
    at: Vec<usize>,
    entered: usize,
    /// The host of each task, and the task of each host that has sent to another host or
    /// received from one.
    hosts: Vec<u32>,
    crossing: BTreeMap<u32, Task>,
    /// How many packets each task has sent, those that carry the same values further not counted.
    sent: Vec<usize>,
}

impl Job {
    fn new(hosts: Vec<u32>, rounds: usize, max_body: usize, network: Network, outboxes: usize) -> Self {
        let (tasks, placement) = (hosts.len() as u32, placement(&hosts));
        Self {
            tasks,
            rounds,
            network,
            outboxes: (0..outboxes).map(|_| Outbox::new(tasks, max_body)).collect(),
            members: (0..tasks).map(|me| Collectives::new(me, tasks, placement.clone())).collect(),
            at: vec![0; tasks as usize],
            entered: 0,
            hosts,
            crossing: BTreeMap::new(),
            sent: vec![0; tasks as usize],
        }
    }

    fn outbox(&self, task: Task) -> usize {
        task as usize % self.outboxes.len()
    }

    fn enter(&mut self, task: Task) {
        let outbox = self.outbox(task);
        let member = &mut self.members[task as usize];
        self.entered += 1;
        let value = value(self.at[task as usize], task.into());
        member.enter(value, &mut self.outboxes[outbox], &mut self.network.link(task));
        self.advance(task);
    }

    fn advance(&mut self, task: Task) {
        let outbox = self.outbox(task);
        let member = &mut self.members[task as usize];
        let Some(outcome) = member.advance(&mut self.outboxes[outbox], &mut self.network.link(task)) else {
            return;
        };
        let values = outcome.expect("all tasks live");
        let round = self.at[task as usize];
        // No task leaves the barrier before all tasks have entered it.
        assert!(
            self.entered > round * self.tasks as usize + self.tasks as usize - 1,
            "task {task}, round {round}"
        );
        let right = (0..u64::from(self.tasks)).map(|task| value(round, task));
        assert!(
            values.iter().copied().map(Some).eq(right.filter(Option::is_some)),
            "task {task}, round {round}"
        );
        assert!(!member.busy() && member.awaited().next().is_none());
        self.at[task as usize] += 1;
    }

    fn deliver_one(&mut self) {
        if let Some(task) = self.network.signal_arrives() {
            return self.advance(task);
        }
        let Some(packet) = self.network.arrival() else { return };
        let Head::Collective { round, sequence, offset, other } = packet.head else {
            panic!("unexpected packet {:?}", packet.head);
        };
        self.sent[packet.src as usize] += usize::from(offset == 0);
        if self.hosts[packet.src as usize] != self.hosts[packet.dst as usize] {
            for task in [packet.src, packet.dst] {
                let host = self.hosts[task as usize];
                assert_eq!(*self.crossing.entry(host).or_insert(task), task, "two tasks of host {host}");
            }
        }
        let body = packet.body();
        let part = Part { sequence, round, offset, other };
        // SAFETY: the body is in the packet.
        assert!(unsafe { self.members[packet.dst as usize].arrive(packet.src, &part, body.ptr, body.len) });
        self.advance(packet.dst);
    }

    fn run(&mut self, rng: &mut Rng) {
        let mut idle: Vec<Task> = (0..self.tasks).collect();
        let mut steps = 0u64;
        while self.at.iter().any(|&round| round < self.rounds) {
            // Tasks come when they like; some are early by rounds.
            if !idle.is_empty() && (rng.chance(0.2) || self.network.flying() == 0) {
                let task = idle.swap_remove(rng.below(idle.len() as u64) as usize);
                self.enter(task);
            }
            (0..4).for_each(|_| self.deliver_one());
            if self.outboxes.len() == self.members.len() {
                let task = rng.below(self.tasks.into()) as Task;
                network::pump(&mut self.outboxes[task as usize], self.network.link(task), &mut Vec::new());
            }
            steps += 1;
            if steps.is_multiple_of(16) || self.network.flying() == 0 {
                let free = |task: &Task| {
                    !self.members[*task as usize].busy() && self.at[*task as usize] < self.rounds
                };
                idle = (0..self.tasks).filter(free).collect();
            }
            assert!(steps < 10_000_000, "it never comes to an end: {:?}", self.at);
        }
        // 15 children on each level of a tree of radix 16, and 3 leaders in each round of radix 4.
        let log = |radix: u32| (0..).find(|&rounds| radix.pow(rounds) >= self.tasks).unwrap_or(0) as usize;
        let bound = (15 * log(16) + 3 * log(4)) * self.rounds;
        assert!(self.sent.iter().all(|&sent| sent <= bound), "{:?}, at most {bound}", self.sent);
    }
}

fn small(seed: u64, tasks: u32, rounds: usize) {
    small_on(seed, vec![0; tasks as usize], rounds);
}

fn small_on(seed: u64, hosts: Vec<u32>, rounds: usize) {
    let tasks = hosts.len();
    let mut rng = Rng::stream(seed, tasks as u64);
    let network = Network::new(seed, 1 + rng.below(6) as usize, 0.1, rng.chance(0.2));
    let network = network.with_signals([0.0, 0.5, 1.0][rng.below(3) as usize]);
    let max_body = [64, 1024][rng.below(2) as usize];
    Job::new(hosts, rounds, max_body, network, tasks).run(&mut rng);
}

#[test]
fn jobs_of_one_to_thirty_three_tasks() {
    seeds(2, |seed| (1..=33).for_each(|tasks| small(seed, tasks, 6)));
}

#[test]
fn many_rounds_in_a_row() {
    seeds(2, |seed| [2, 5, 8].into_iter().for_each(|tasks| small(seed, tasks, 300)));
}

#[test]
fn a_hundred_tasks() {
    seeds(2, |seed| small(seed, 100, 4));
}

#[test]
fn jobs_on_one_to_forty_hosts() {
    seeds(24, |seed| {
        let mut rng = Rng::stream(seed, 40);
        let tasks = 2 + rng.below([8, 40, 150][seed as usize % 3]) as u32;
        small_on(seed, random_hosts(&mut rng, tasks), 5);
    });
}

/// The trees of a host with more than 256 tasks have three levels, those of the others
/// as many rounds.
#[test]
fn a_host_with_three_hundred_tasks_beside_small_ones() {
    let hosts = (0..306).map(|task| if task % 51 == 7 { 1 + task / 153 } else { 0 }).collect();
    large(hosts, 0..2);
}

/// Every task enters once, and all packets overtake each other.
fn large(hosts: Vec<u32>, rounds: std::ops::Range<usize>) {
    let tasks = hosts.len() as u32;
    let mut job = Job::new(hosts, rounds.end, 8192, Network::new(1, usize::MAX, 0.0, false), 1);
    job.at.fill(rounds.start);
    job.entered = rounds.start * tasks as usize;
    for round in rounds {
        (0..tasks).for_each(|task| job.enter(task));
        while job.network.flying() > 0 {
            job.deliver_one();
        }
        assert!(job.at.iter().all(|&at| at == round + 1));
    }
}

#[test]
fn a_thousand_tasks_exchange() {
    large(vec![0; 1000], 0..1);
    large((0..1000).map(|task| task / 64).collect(), 0..1);
}

/// The largest job there may be takes some seconds without optimisation: with `SOAK`.
#[test]
fn thousands_of_tasks_meet() {
    let tasks = if std::env::var_os("SOAK").is_some() { 16_384 } else { 4096 };
    large(vec![0; tasks], 2..3);
}

/// One operation in which each task takes part in a barrier or in an exchange, as `exchange` has
/// it: what it brings to each.
fn mixed(
    job: &mut [Collectives],
    network: &mut Network,
    exchange: &[bool],
    max_body: usize,
) -> Vec<Result<Vec<u64>, Failure>> {
    let tasks = job.len() as u32;
    let mut outboxes: Vec<Outbox> = (0..tasks).map(|_| Outbox::new(tasks, max_body)).collect();
    let mut outcomes: Vec<Option<_>> = (0..tasks).map(|_| None).collect();
    for task in 0..tasks {
        let (at, mut link) = (task as usize, network.link(task));
        job[at].enter(exchange[at].then_some(u64::from(task) + 1), &mut outboxes[at], &mut link);
        outcomes[at] = job[at].advance(&mut outboxes[at], &mut link);
    }
    let mut steps = 0;
    while outcomes.iter().any(Option::is_none) {
        if let Some(task) = network.signal_arrives() {
            let at = task as usize;
            let outcome = job[at].advance(&mut outboxes[at], &mut network.link(task));
            outcomes[at] = outcomes[at].take().or(outcome);
        } else if let Some(packet) = network.arrival() {
            let Head::Collective { round, sequence, offset, other } = packet.head else {
                panic!("an unexpected {:?}", packet.head);
            };
            let (at, body) = (packet.dst as usize, packet.body());
            // SAFETY: the body is in the packet.
            assert!(unsafe {
                job[at].arrive(packet.src, &Part { sequence, round, offset, other }, body.ptr, body.len)
            });
            let outcome = job[at].advance(&mut outboxes[at], &mut network.link(packet.dst));
            outcomes[at] = outcomes[at].take().or(outcome);
        }
        for task in 0..tasks {
            network::pump(&mut outboxes[task as usize], network.link(task), &mut Vec::new());
        }
        steps += 1;
        assert!(steps < 1_000_000, "it never ends");
    }
    outcomes.into_iter().flatten().collect()
}

#[test]
fn a_barrier_that_meets_an_exchange_fails_in_every_task() {
    seeds(4, |seed| {
        for tasks in 2..=17 {
            let mut rng = Rng::stream(seed, 1000 + u64::from(tasks));
            let mut network = Network::new(seed, 1 + rng.below(6) as usize, 0.1, rng.chance(0.2))
                .with_signals([0.0, 0.5, 1.0][rng.below(3) as usize]);
            let hosts = if seed % 2 == 0 { random_hosts(&mut rng, tasks) } else { vec![0; tasks as usize] };
            let placement = placement(&hosts);
            let mut job: Vec<_> =
                (0..tasks).map(|me| Collectives::new(me, tasks, placement.clone())).collect();
            for operation in 0..12 {
                let share = [0.0, 0.5, 1.0, 0.1][operation % 4];
                let exchange: Vec<bool> = (0..tasks).map(|_| rng.chance(share)).collect();
                let alike = exchange.iter().all(|kind| *kind == exchange[0]);
                let outcomes = mixed(&mut job, &mut network, &exchange, [64, 1024][operation % 2]);
                for (task, outcome) in outcomes.into_iter().enumerate() {
                    match outcome {
                        Ok(values) => {
                            let count = if exchange[0] { u64::from(tasks) } else { 0 };
                            assert!(
                                alike && values.into_iter().eq(1..=count),
                                "operation {operation}, task {task}"
                            );
                        }
                        Err(failure) => {
                            assert!(failure.is_mismatch() && !alike, "operation {operation}, task {task}");
                            assert_ne!(exchange[failure.task as usize], exchange[task]);
                        }
                    }
                }
            }
        }
    });
}

/// A task that leaves a barrier sees to its packets, which others await, and to nothing else: room
/// for a long message may come only when its target calls LAPI again.
#[test]
fn a_long_message_does_not_hold_a_barrier_up() {
    let (mut full, mut roomy) = (Network::new(1, 4, 1.0, true), Network::new(2, 4, 0.0, true));
    let (mut outbox, mut member) = (Outbox::new(3, 64), Collectives::new(0, 3, None));
    let (data, finished) = (Content::Piece(Piece::of(&[7; 4096])), &mut Vec::new());
    let how = Streaming { copied: false, atom: 0 };
    // SAFETY: the data lives as long as the program.
    let sent = unsafe {
        let next = Continuation::Message(1);
        outbox.send_stream(1, None, next, &data, how, SendDone::nothing(1))
    };
    assert!(sent == Sent::Queued && outbox.streams(1) == 1 && !member.is_held_up(&outbox));
    member.enter(None, &mut outbox, &mut full.link(0));
    assert!(member.is_held_up(&outbox), "its packet has found no room");
    network::pump(&mut outbox, roomy.link(0), finished);
    assert!(outbox.waits(1) && outbox.streams(1) == 1, "there was room for a part of the long message");
    assert!(!member.is_held_up(&outbox), "its packet is out");
}

/// Signals are all that a barrier needs, and a task that is one operation ahead is not taken for
/// one that has made another call.
#[test]
fn a_signal_of_the_next_operation_is_none_of_this_one() {
    let mut network = Network::new(1, 4, 0.0, true).with_signals(1.0);
    let mut outboxes = [Outbox::new(2, 64), Outbox::new(2, 64)];
    let mut job = [Collectives::new(0, 2, None), Collectives::new(1, 2, None)];
    let mut enter = |job: &mut [Collectives; 2], network: &mut Network, task: Task, value| {
        let (at, mut link) = (task as usize, network.link(task));
        job[at].enter(value, &mut outboxes[at], &mut link);
        let outcome = job[at].advance(&mut outboxes[at], &mut link);
        while network.signal_arrives().is_some() {}
        outcome
    };
    for _ in 0..5 {
        assert_eq!(enter(&mut job, &mut network, 0, None), None);
        assert!(job[0].awaits(1));
        assert_eq!(enter(&mut job, &mut network, 1, None), Some(Ok(Vec::new())));
        // Task 1 is in the next operation already.
        assert_eq!(enter(&mut job, &mut network, 1, None), None);
        assert!(job[0].look(&mut network.link(0)) && !job[0].awaits(1) && !job[0].look(&mut network.link(0)));
        let mut outbox = Outbox::new(2, 64);
        assert_eq!(job[0].advance(&mut outbox, &mut network.link(0)), Some(Ok(Vec::new())));
        assert_eq!(enter(&mut job, &mut network, 0, None), Some(Ok(Vec::new())));
        assert_eq!(job[1].advance(&mut outbox, &mut network.link(1)), Some(Ok(Vec::new())));
        // An exchange that meets the signal of a barrier is another call.
        assert_eq!(enter(&mut job, &mut network, 0, None), None);
        let other = |task| Some(Err(Failure { task, code: crate::abi::LAPI_ERR_UNKNOWN }));
        assert_eq!(enter(&mut job, &mut network, 1, Some(9)), other(0));
        let packet = network.arrival().expect("the values of task 1");
        let Head::Collective { round, sequence, offset, other: named } = packet.head else { panic!() };
        let (body, part) = (packet.body(), Part { sequence, round, offset, other: named });
        // SAFETY: the body is in the packet.
        assert!(unsafe { job[0].arrive(1, &part, body.ptr, body.len) });
        assert_eq!(job[0].advance(&mut outbox, &mut network.link(0)), other(1));
        assert_eq!(network.flying(), 0);
    }
}

/// Whatever a packet says, it asks for no memory that it has not the right to, and what is
/// right still counts.
#[test]
fn malformed_packets_change_nothing() {
    let body = [9u64; 16];
    let arrive = |member: &mut Collectives, src, round, offset, len: usize| {
        // SAFETY: the body has 128 bytes, and is not read beyond the length.
        unsafe {
            member.arrive(src, &Part { sequence: 0, round, offset, other: 0 }, body.as_ptr().cast(), len)
        }
    };
    // Task 0 of 40 leads tasks 1 to 15, and exchanges with the leaders 16 and 32, the second of
    // which leads 7 others.
    let mut member = Collectives::new(0, 40, None);
    for round in [2, 3, 31, 63, 64, 65, 1000, u16::MAX] {
        assert!(!arrive(&mut member, 1, round, 0, 8), "round {round} of 40 tasks");
    }
    for (offset, len) in [(8, 8), (0, 16), (u32::MAX, 8), (u32::MAX - 7, 8), (1 << 31, 8), (3, 8), (0, 7)] {
        assert!(!arrive(&mut member, 1, 0, offset, len), "{len} bytes at {offset}");
    }
    for src in [0, 16, 17, 39, 40, u32::MAX] {
        assert!(!arrive(&mut member, src, 0, 0, 8), "task {src} has no part in the first round of task 0");
    }
    for src in [0, 1, 15, 17, 33] {
        assert!(!arrive(&mut member, src, 1, 0, 8), "task {src} has no part in the second round of task 0");
    }
    assert!(arrive(&mut member, 1, 0, 0, 8));
    assert!(arrive(&mut member, 15, 0, 0, 8));
    assert!(arrive(&mut member, 16, 1, 14 * 8, 16));
    assert!(!arrive(&mut member, 16, 1, 15 * 8, 16), "a group has 16 values");
    assert!(arrive(&mut member, 32, 1, 7 * 8, 8));
    assert!(!arrive(&mut member, 32, 1, 8 * 8, 8), "the last group has 8 values");
    // A member needs one packet of its leader, in the last round.
    let mut member = Collectives::new(39, 40, None);
    assert!(arrive(&mut member, 32, 2, 39 * 8, 8));
    assert!(!arrive(&mut member, 32, 2, 40 * 8, 8) && !arrive(&mut member, 0, 2, 0, 8));
    assert!(!arrive(&mut member, 32, 0, 0, 8) && !arrive(&mut member, 32, 1, 0, 8));
}

/// Packets that do not belong to a round, where the positions of tasks differ from their numbers.
#[test]
fn packets_of_tasks_without_part_in_a_round_change_nothing() {
    // Even tasks are on one host, odd ones on the other, which are led by tasks 0 and 1.
    let hosts: Vec<u32> = (0..40).map(|task| task % 2).collect();
    let takes = |me, src, round, len: usize| {
        let body = [9u64; 41];
        let mut member = Collectives::new(me, 40, placement(&hosts));
        let part = Part { sequence: 0, round, offset: 0, other: 0 };
        // SAFETY: the body is not read beyond the length, which is at most its own.
        unsafe { member.arrive(src, &part, body.as_ptr().cast(), 8 * len) }
    };
    // Gather: 16 and then 4 values of the 20 of a host; exchange; release in the other order.
    let parts = [(1, 3, 0, 1), (1, 31, 0, 1), (33, 39, 0, 1), (1, 33, 1, 4), (1, 0, 2, 20)];
    let parts = parts.into_iter().chain([(33, 1, 3, 40), (31, 1, 4, 40), (39, 33, 4, 40)]);
    for (me, src, round, values) in parts {
        assert!(
            takes(me, src, round, values),
            "task {src} has {values} values for task {me} in round {round}"
        );
        assert!(!takes(me, src, round, values + 1), "one more than it has");
        for other in (0..6).filter(|&other| other != round) {
            assert!(!takes(me, src, other, 1), "task {src} has no part in round {other} of task {me}");
        }
        for other in (0..=40).filter(|&other| other % 2 == me % 2 && other != src) {
            let child =
                me == 1 && round == 0 && (3..33).contains(&other) || me == 33 && round == 0 && other > 33;
            assert_eq!(takes(me, other, round, 1), child, "task {other}, round {round} of task {me}");
        }
    }
}

//! Barriers and exchanges of jobs in which tasks die: each remaining task completes each of them,
//! in step with the others. And barriers after a task has rejoined.

use super::network::Network;
use super::{placement, random_hosts, seeds};
use crate::base::rng::Rng;
use crate::proto::collective::{Collectives, Failure, Part};
use crate::proto::outbox::Outbox;
use crate::proto::tests::network;
use crate::wire::frame::Task;
use crate::wire::packet::Head;

const CODES: [i32; 2] = [434, 413];

/// Every third operation is a barrier.
fn value(operation: usize, task: Task) -> Option<u64> {
    (operation % 3 != 2).then(|| (operation as u64) << 32 | u64::from(task * 5 + 1))
}

struct Member {
    collectives: Collectives,
    outbox: Outbox,
    /// The outcome of each operation so far.
    outcomes: Vec<Result<(), Failure>>,
    alive: bool,
}

struct Job {
    tasks: u32,
    network: Network,
    members: Vec<Member>,
    code: i32,
    /// All operations are barriers.
    barriers: bool,
}

impl Job {
    fn new(tasks: u32, network: Network, max_body: usize, code: i32) -> Self {
        Self::on(&vec![0; tasks as usize], network, max_body, code)
    }

    /// With the host of each task.
    fn on(hosts: &[u32], network: Network, max_body: usize, code: i32) -> Self {
        let (tasks, placement) = (hosts.len() as u32, placement(hosts));
        let member = |me| Member {
            collectives: Collectives::new(me, tasks, placement.clone()),
            outbox: Outbox::new(tasks, max_body),
            outcomes: Vec::new(),
            alive: true,
        };
        Self { tasks, network, members: (0..tasks).map(member).collect(), code, barriers: false }
    }

    fn enter(&mut self, task: Task) {
        let Member { collectives, outbox, outcomes, .. } = &mut self.members[task as usize];
        collectives.enter(value(outcomes.len(), task), outbox, &mut self.network.link(task));
        self.advance(task);
    }

    fn advance(&mut self, task: Task) {
        let Member { collectives, outbox, outcomes, .. } = &mut self.members[task as usize];
        let Some(outcome) = collectives.advance(outbox, &mut self.network.link(task)) else { return };
        assert!(!collectives.busy() && collectives.awaited().next().is_none());
        if let Ok(values) = &outcome
            && !self.barriers
        {
            let right = (0..self.tasks).filter_map(|task| value(outcomes.len(), task));
            assert!(values.iter().copied().eq(right), "task {task}, operation {}", outcomes.len());
        }
        outcomes.push(outcome.map(drop));
    }

    /// Delivers a packet, unless its target is dead.
    fn deliver_one(&mut self) {
        if let Some(task) = self.network.signal_arrives() {
            if self.members[task as usize].alive {
                self.advance(task);
            }
            return;
        }
        let Some(packet) = self.network.arrival() else { return };
        let member = &mut self.members[packet.dst as usize];
        if !member.alive {
            return;
        }
        match packet.head {
            Head::Collective { round, sequence, offset, other } => {
                let body = packet.body();
                let part = Part { sequence, round, offset, other };
                // SAFETY: the body is in the packet.
                assert!(unsafe { member.collectives.arrive(packet.src, &part, body.ptr, body.len) });
            }
            Head::CollectiveFailed { sequence, task, code } => {
                member.collectives.peer_failed(packet.src, sequence, Failure { task, code: code as i32 });
            }
            other => panic!("unexpected packet {other:?}"),
        }
        self.advance(packet.dst);
    }

    /// `task` finds out about the task that it awaits, if that is dead and nothing of
    /// it is under way.
    fn look_around(&mut self, task: Task) {
        let awaited: Vec<Task> = self.members[task as usize].collectives.awaited().collect();
        for awaited in awaited {
            if self.members[awaited as usize].alive || self.network.flies(awaited, task) {
                continue;
            }
            let Member { collectives, outbox, .. } = &mut self.members[task as usize];
            collectives.lose(awaited, self.code);
            outbox.abandon(awaited, self.code, &mut Vec::new());
            self.advance(task);
        }
    }

    fn kill(&mut self, task: Task) {
        self.members[task as usize].alive = false;
    }

    fn run(&mut self, operations: usize, mut deaths: Vec<(u64, Task)>, rng: &mut Rng) {
        deaths.sort_unstable();
        let mut steps = 0u64;
        while self.members.iter().any(|member| member.alive && member.outcomes.len() < operations) {
            while deaths.first().is_some_and(|(step, _)| *step <= steps) {
                self.kill(deaths.remove(0).1);
            }
            let task = rng.below(self.tasks.into()) as Task;
            let member = &mut self.members[task as usize];
            if member.alive {
                network::pump(&mut member.outbox, self.network.link(task), &mut Vec::new());
                if !member.collectives.busy() && member.outcomes.len() < operations && rng.chance(0.3) {
                    self.enter(task);
                } else if rng.chance(0.3) {
                    self.look_around(task);
                }
            }
            (0..rng.below(4)).for_each(|_| self.deliver_one());
            steps += 1;
            let standing =
                |member: &Member| (member.outcomes.len(), member.collectives.awaited().collect::<Vec<_>>());
            assert!(
                steps < 1_000_000,
                "it never comes to an end: {:?}",
                self.members.iter().map(standing).collect::<Vec<_>>()
            );
        }
    }

    /// What has failed for a task keeps failing, and names a dead task.
    fn check(&self, dead: &[Task]) {
        for (task, member) in self.members.iter().enumerate().filter(|(_, member)| member.alive) {
            let first = member.outcomes.iter().position(Result::is_err).unwrap_or(usize::MAX);
            for (operation, outcome) in member.outcomes.iter().enumerate() {
                match outcome {
                    Ok(()) => assert!(operation < first, "task {task}: {:?}", member.outcomes),
                    Err(Failure { task, code }) => {
                        assert!(dead.contains(task), "task {task} lives");
                        assert_eq!(*code, self.code);
                    }
                }
            }
        }
    }
}

fn survive(seed: u64, hosts: &[u32]) {
    let tasks = hosts.len() as u32;
    let mut rng = Rng::stream(seed, tasks.into());
    let network = Network::new(seed, 1 + rng.below(6) as usize, 0.1, rng.chance(0.3));
    let network = network.with_signals([0.0, 0.5, 1.0][rng.below(3) as usize]);
    let max_body = [64, 1024][rng.below(2) as usize];
    let mut job = Job::on(hosts, network, max_body, CODES[rng.below(2) as usize]);
    let mut dead: Vec<Task> =
        (0..1 + rng.below(2).min(u64::from(tasks) - 1)).map(|_| rng.below(tasks.into()) as Task).collect();
    dead.sort_unstable();
    dead.dedup();
    let moments = u64::from(tasks) * 30;
    let deaths = dead.iter().map(|&task| (rng.below(moments), task)).collect();
    job.run(6, deaths, &mut rng);
    job.check(&dead);
}

#[test]
fn the_remaining_tasks_end_in_step() {
    let sizes = [2, 3, 4, 5, 8, 16, 17, 21, 70];
    seeds(40, |seed| sizes.into_iter().for_each(|tasks| survive(seed, &vec![0; tasks])));
}

#[test]
fn the_remaining_tasks_of_several_hosts_end_in_step() {
    seeds(40, |seed| {
        let mut rng = Rng::stream(seed, 41);
        for most in [4, 16, 40, 100] {
            let tasks = 2 + rng.below(most) as u32;
            survive(seed, &random_hosts(&mut rng, tasks));
        }
    });
}

/// A task that never comes: every other one learns of it in the very first operation, and in
/// all later ones.
#[test]
fn no_task_completes_what_a_dead_task_has_not_entered() {
    seeds(4, |seed| {
        for tasks in 2..=17 {
            let mut rng = Rng::stream(seed, tasks.into());
            let missing = rng.below(tasks.into()) as Task;
            // Of every second seed on several hosts.
            let hosts = if seed % 2 == 0 { random_hosts(&mut rng, tasks) } else { vec![0; tasks as usize] };
            let mut job = Job::on(&hosts, Network::new(seed, 4, 0.1, false).with_signals(0.5), 64, CODES[0]);
            job.run(3, vec![(0, missing)], &mut rng);
            job.check(&[missing]);
            for member in job.members.iter().filter(|member| member.alive) {
                assert!(member.outcomes.iter().all(Result::is_err), "{:?}", member.outcomes);
            }
        }
    });
}

/// A task that has seen an operation fail need not enter another one for the others to
/// get out of it.
#[test]
fn no_task_waits_for_a_task_that_has_given_up() {
    seeds(10, |seed| {
        for tasks in 3..=17 {
            let mut rng = Rng::stream(seed, tasks.into());
            let missing = rng.below(tasks.into()) as Task;
            let hosts = if seed % 2 == 0 { random_hosts(&mut rng, tasks) } else { vec![0; tasks as usize] };
            let mut job = Job::on(&hosts, Network::new(seed, 4, 0.1, false).with_signals(0.5), 64, CODES[0]);
            job.kill(missing);
            // One after the other enters, alone, as often as it likes, and the first
            // ones never again.
            let mut order: Vec<Task> = (0..tasks).filter(|&task| task != missing).collect();
            (0..order.len()).for_each(|at| order.swap(at, rng.below(tasks as u64 - 1) as usize));
            let mut waiting = Vec::new();
            for task in order {
                job.enter(task);
                waiting.push(task);
                for _ in 0..40 * tasks {
                    job.deliver_one();
                    for &task in &waiting {
                        let member = &mut job.members[task as usize];
                        network::pump(&mut member.outbox, job.network.link(task), &mut Vec::new());
                        job.look_around(task);
                    }
                }
                let failed = |job: &Job, task: Task| !job.members[task as usize].outcomes.is_empty();
                if failed(&job, task) {
                    job.enter(task);
                    assert!(!job.members[task as usize].collectives.busy(), "the next one fails at once");
                }
            }
            for member in job.members.iter().filter(|member| member.alive) {
                assert!(!member.outcomes.is_empty() && member.outcomes.iter().all(Result::is_err));
            }
        }
    });
}

/// What a task sent before it died counts: of two, the other one completes what it has entered.
#[test]
fn the_last_packets_of_a_dead_task_count() {
    // By a packet of values; then a barrier, by a packet and by a signal.
    for (before, signal) in [(0, 0.0), (2, 0.0), (2, 1.0)] {
        let mut rng = Rng::new(1);
        let network = Network::new(1, 4, 0.0, true).with_signals(signal);
        let mut job = Job::new(2, network, 64, CODES[0]);
        job.run(before, Vec::new(), &mut rng);
        job.enter(1);
        job.kill(1);
        job.run(before + 2, Vec::new(), &mut rng);
        let missing = Failure { task: 1, code: CODES[0] };
        assert_eq!(job.members[0].outcomes[before..], [Ok(()), Err(missing)], "{before}, {signal}");
    }
}

/// The failure of a task in a later operation says nothing of this one, for which its packet may
/// still be under way.
#[test]
fn a_task_that_fails_later_may_still_complete_this_operation() {
    let mut network = Network::new(1, 4, 0.0, true);
    let mut outbox = Outbox::new(2, 64);
    let mut member = Collectives::new(0, 2, None);
    let missing = Failure { task: 1, code: CODES[1] };
    member.enter(None, &mut outbox, &mut network.link(0));
    member.peer_failed(1, 1, missing);
    assert_eq!(member.advance(&mut outbox, &mut network.link(0)), None);
    // SAFETY: nothing is read of a body of no bytes.
    let part = Part { sequence: 0, round: 0, offset: 0, other: 0 };
    // SAFETY: nothing is read of a body of no bytes.
    assert!(unsafe { member.arrive(1, &part, std::ptr::null(), 0) });
    assert_eq!(member.advance(&mut outbox, &mut network.link(0)), Some(Ok(Vec::new())));
    member.enter(None, &mut outbox, &mut network.link(0));
    assert_eq!(member.advance(&mut outbox, &mut network.link(0)), Some(Err(missing)));
    // When it dies, what it owed to this one does not come any more either.
    let mut member = Collectives::new(0, 2, None);
    member.enter(None, &mut outbox, &mut network.link(0));
    member.peer_failed(1, 1, missing);
    member.lose(1, CODES[0]);
    assert_eq!(member.advance(&mut outbox, &mut network.link(0)), Some(Err(missing)));
}

/// A task dies, and another process takes its place. The others have failed in more or fewer
/// operations; each lets it rejoin when it likes, and goes on with barriers. All of them meet
/// again, in step.
fn rejoin(seed: u64, tasks: u32) {
    let mut rng = Rng::stream(seed, tasks.into());
    let network = Network::new(seed, 1 + rng.below(6) as usize, 0.1, rng.chance(0.3));
    let network = network.with_signals([0.0, 0.5, 1.0][rng.below(3) as usize]);
    let mut job = Job::new(tasks, network, 64, CODES[0]);
    let back = rng.below(tasks.into()) as Task;
    let until = 1 + rng.below(5) as usize;
    job.run(until, vec![(rng.below(u64::from(tasks) * 30), back)], &mut rng);
    let fails = |member: &Member| !member.alive || member.outcomes.last().is_some_and(Result::is_err);
    while !job.members.iter().all(fails) {
        job.run(
            job.members.iter().map(|member| member.outcomes.len()).max().unwrap_or(0) + 1,
            vec![(0, back)],
            &mut rng,
        );
    }
    (0..tasks).filter(|&task| task != back).for_each(|task| job.network.part(back, task));
    job.barriers = true;
    let me = &mut job.members[back as usize];
    *me = Member {
        collectives: Collectives::new(back, tasks, None),
        outbox: Outbox::new(tasks, 64),
        outcomes: Vec::new(),
        alive: true,
    };
    job.members.iter_mut().for_each(|member| member.outcomes.clear());
    // The position of each task when it lets the other one rejoin, as they arrive there; and what
    // that one reports to each.
    let (mut joined, mut positions, mut reports) = (vec![false; tasks as usize], Vec::new(), Vec::new());
    joined[back as usize] = true;
    let (mut highest, mut steps) = (0, 0);
    let goal = job.members.iter().map(|member| member.collectives.position()).max().unwrap_or(0) + 6;
    let done = |member: &Member| member.collectives.position() >= goal && !member.collectives.busy();
    while !job.members.iter().all(done) {
        let task = rng.below(tasks.into()) as Task;
        let member = &mut job.members[task as usize];
        network::pump(&mut member.outbox, job.network.link(task), &mut Vec::new());
        if !joined[task as usize] {
            if rng.chance(0.1) {
                joined[task as usize] = true;
                job.network.join(back, task);
                member.outbox.renew(back);
                member.collectives.allow_rejoin(back);
                positions.push((task, member.collectives.position()));
            }
        } else if !member.collectives.busy() && member.collectives.position() < goal && rng.chance(0.3) {
            member.collectives.enter(None, &mut member.outbox, &mut job.network.link(task));
            job.advance(task);
        }
        if !positions.is_empty() && rng.chance(0.2) {
            let (task, position) = positions.swap_remove(rng.below(positions.len() as u64) as usize);
            if position > highest {
                highest = position;
                reports.extend((0..tasks).map(|task| (task, position)));
            } else {
                reports.push((task, highest));
            }
        }
        let at = rng.below(reports.len().max(1) as u64) as usize;
        if let Some(&(task, position)) = reports.get(at).filter(|(task, _)| joined[*task as usize]) {
            reports.swap_remove(at);
            let Member { collectives, outbox, .. } = &mut job.members[task as usize];
            collectives.catch_up(position, outbox, &mut job.network.link(task));
            job.advance(task);
        }
        (0..rng.below(4)).for_each(|_| job.deliver_one());
        steps += 1;
        let standing = |member: &Member| {
            (member.collectives.entered(), member.collectives.awaited().collect::<Vec<_>>())
        };
        assert!(
            steps < 200_000,
            "they never meet: {:?}",
            job.members.iter().map(standing).collect::<Vec<_>>()
        );
    }
    for member in &job.members {
        assert!(
            member.outcomes.len() >= 6 && member.outcomes.iter().all(Result::is_ok),
            "{:?}",
            member.outcomes
        );
    }
}

#[test]
fn all_meet_again_after_a_task_has_rejoined() {
    seeds(40, |seed| [2, 3, 4, 5, 8, 16, 17, 21].into_iter().for_each(|tasks| rejoin(seed, tasks)));
}

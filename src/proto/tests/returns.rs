//! Barriers and exchanges of jobs in which tasks die and are started anew: whoever lives lets them come back, and after
//! that operations succeed for all.

use super::network::Network;
use super::seeds;
use crate::base::rng::Rng;
use crate::proto::collective::{Collectives, Failure};
use crate::proto::outbox::Outbox;
use crate::wire::frame::{SendError, Task};
use crate::wire::packet::Head;
use std::collections::{BTreeMap, BTreeSet};

const CODE: i32 = 434;
const MAX_BODY: usize = 64;

struct Member {
    collectives: Collectives,
    outbox: Outbox,
    /// How often the task has died.
    life: u64,
    alive: bool,
    /// How often each other task had died when this one let it come back.
    forgiven: Vec<u64>,
    /// Who let this task come back, or whom it lets come back, and what it told at that moment.
    awaited: BTreeMap<Task, u32>,
    /// The operations that have succeeded, and how many have not.
    succeeded: BTreeSet<u32>,
    failures: usize,
    entered: BTreeSet<u32>,
}

impl Member {
    fn new(me: Task, tasks: u32, life: u64, lives: Vec<u64>) -> Self {
        Self {
            collectives: Collectives::new(me, tasks),
            outbox: Outbox::new(tasks, MAX_BODY),
            life,
            alive: true,
            forgiven: lives,
            awaited: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            failures: 0,
            entered: BTreeSet::new(),
        }
    }

    /// The number of the operation that is under way, or comes next.
    fn at(&self) -> u32 {
        self.collectives.position() - u32::from(self.collectives.busy())
    }
}

struct Job {
    tasks: u32,
    exchange: bool,
    /// From this operation on only those who live now take part.
    settled: u32,
    network: Network,
    members: Vec<Member>,
}

impl Job {
    fn new(seed: u64, tasks: u32, rng: &mut Rng) -> Self {
        let network = Network::new(seed, 1 + rng.below(6) as usize, 0.1, rng.chance(0.5));
        let member = |me| Member::new(me, tasks, 0, vec![0; tasks as usize]);
        Self {
            tasks,
            exchange: rng.chance(0.7),
            settled: u32::MAX,
            network,
            members: (0..tasks).map(member).collect(),
        }
    }

    fn value(&self, task: Task) -> u64 {
        self.members[task as usize].life << 32 | u64::from(task * 5 + 1)
    }

    fn enter(&mut self, task: Task) {
        let value = self.exchange.then(|| self.value(task));
        let Member { collectives, outbox, entered, .. } = &mut self.members[task as usize];
        entered.insert(collectives.position());
        collectives.enter(value, outbox, &mut self.network.link(task));
        self.advance(task);
    }

    fn advance(&mut self, task: Task) {
        let member = &mut self.members[task as usize];
        let at = member.at();
        let link = &mut self.network.link(task);
        let Some(outcome) = member.collectives.advance(&mut member.outbox, link) else { return };
        assert!(!member.collectives.busy());
        let Ok(values) = outcome else {
            member.failures += 1;
            return;
        };
        member.succeeded.insert(at);
        // Whoever died since may have been there before: then that is what counts.
        for (peer, other) in self.members.iter().enumerate() {
            assert!(
                other.life > 0 && at < self.settled || other.entered.contains(&at),
                "task {task} did not wait for {peer} in {at}"
            );
        }
        if self.exchange {
            assert_eq!(values.len(), self.tasks as usize);
            for (peer, value) in values.iter().enumerate() {
                let Member { life, .. } = self.members[peer];
                assert!(
                    *value as u32 == peer as u32 * 5 + 1
                        && value >> 32 <= life
                        && (at < self.settled || value >> 32 == life),
                    "{values:?}"
                );
            }
        }
    }

    fn deliver_one(&mut self) {
        let Some(packet) = self.network.arrival() else { return };
        let Member { collectives, alive, .. } = &mut self.members[packet.dst as usize];
        if !*alive {
            return;
        }
        match packet.head {
            Head::Collective { round, sequence, offset } => {
                let body = packet.body();
                // SAFETY: the body is in the packet.
                unsafe { collectives.arrive(sequence, round, offset, body.ptr, body.len) };
            }
            Head::CollectiveFailed { sequence, until, task, code } => {
                let failure = Failure { task, code: code as i32 };
                collectives.peer_failed(packet.src, (sequence, until), failure);
            }
            other => panic!("nobody sends {other:?}"),
        }
        self.advance(packet.dst);
    }

    /// `task` finds out about the task that it awaits, if that has died and nothing of it is under way.
    fn look_around(&mut self, task: Task) {
        let Some(awaited) = self.members[task as usize].collectives.awaited() else { return };
        if self.forgives(task, awaited) || self.network.flies(awaited, task) {
            return;
        }
        let Member { collectives, outbox, .. } = &mut self.members[task as usize];
        collectives.lose(awaited, CODE);
        outbox.abandon(awaited, CODE, &mut Vec::new());
        self.advance(task);
    }

    /// Whether `task` is connected with `peer`, or waits for it.
    fn forgives(&self, task: Task, peer: Task) -> bool {
        self.members[task as usize].forgiven[peer as usize] == self.members[peer as usize].life
    }

    fn kill(&mut self, task: Task) {
        let member = &mut self.members[task as usize];
        if !member.alive {
            return;
        }
        member.alive = false;
        member.life += 1;
        for peer in (0..self.tasks).filter(|&peer| peer != task) {
            // What it has sent still arrives, unless it was only awaited.
            self.members[peer as usize].awaited.remove(&task);
            self.network.mend(peer, task);
        }
    }

    /// Starts a dead task anew.
    fn restart(&mut self, task: Task) {
        let lives: Vec<u64> = self.members.iter().map(|member| member.life).collect();
        let mut member = Member::new(task, self.tasks, lives[task as usize], lives);
        member.collectives.come_back();
        for peer in (0..self.tasks).filter(|&peer| peer != task) {
            self.network.cut(task, peer, SendError::NoRoom);
            if !self.forgives(peer, task) {
                self.network.cut(peer, task, SendError::PeerGone);
            }
            member.awaited.insert(peer, 0);
        }
        self.members[task as usize] = member;
    }

    /// `task` lets `peer` come back.
    fn forgive(&mut self, task: Task, peer: Task) {
        let life = self.members[peer as usize].life;
        self.network.cut(task, peer, SendError::NoRoom);
        self.network.cut(peer, task, SendError::NoRoom);
        let Member { collectives, outbox, forgiven, awaited, .. } = &mut self.members[task as usize];
        forgiven[peer as usize] = life;
        awaited.insert(peer, collectives.position());
        outbox.abandon(peer, CODE, &mut Vec::new());
        outbox.renew(peer);
        collectives.forgive(peer, outbox, &mut self.network.link(task));
        self.advance(task);
    }

    /// Connects two tasks of which each lets the other come back.
    fn reunite(&mut self, task: Task, peer: Task) -> bool {
        let both = |job: &Self, a: Task, b: Task| {
            job.members[a as usize].alive
                && job.members[a as usize].awaited.contains_key(&b)
                && job.forgives(a, b)
        };
        if task == peer || !both(self, task, peer) || !both(self, peer, task) {
            return false;
        }
        let mut greeting = |a: Task, b: Task| self.members[a as usize].awaited.remove(&b).unwrap_or_default();
        let greetings = [greeting(peer, task), greeting(task, peer)];
        for ((one, other), greeting) in [(task, peer), (peer, task)].into_iter().zip(greetings) {
            self.network.mend(one, other);
            let Member { collectives, outbox, entered, .. } = &mut self.members[one as usize];
            collectives.catch_up(greeting, outbox, &mut self.network.link(one));
            if collectives.busy() {
                entered.insert(collectives.position() - 1);
            }
            self.advance(one);
        }
        true
    }

    /// One step of everything that happens by itself.
    fn step(&mut self, rng: &mut Rng) {
        let [task, peer] = [(); 2].map(|()| rng.below(self.tasks.into()) as Task);
        let member = &mut self.members[task as usize];
        if member.alive {
            member.outbox.pump(&mut self.network.link(task), &mut Vec::new());
            self.look_around(task);
            self.reunite(task, peer);
        }
        (0..rng.below(4)).for_each(|_| self.deliver_one());
    }

    fn standing(&self) -> String {
        let standing = |(me, member): (usize, &Member)| {
            let Member { alive, life, awaited, .. } = member;
            let collectives = &member.collectives;
            format!(
                "{me}: alive {alive}, life {life}, at {}, awaits {:?}, away {awaited:?}",
                member.at(),
                collectives.awaited()
            )
        };
        self.members.iter().enumerate().map(standing).collect::<Vec<_>>().join("\n")
    }

    fn survivors(&self) -> Vec<Task> {
        (0..self.tasks).filter(|&task| self.members[task as usize].alive).collect()
    }
}

/// Every survivor calls as often as all others, then each lets the dead come back, and then enters what follows.
fn in_step(seed: u64, tasks: u32) {
    let mut rng = Rng::stream(seed, tasks.into());
    let mut job = Job::new(seed, tasks, &mut rng);
    let mut until = 0;
    for _ in 0..1 + rng.below(3) {
        let dead: BTreeSet<Task> = (0..1 + rng.below(2).min(u64::from(tasks) - 2))
            .map(|_| rng.below(tasks.into()) as Task)
            .collect();
        let mut deaths: Vec<_> = dead.iter().map(|&task| (rng.below(u64::from(tasks) * 20), task)).collect();
        until += 1 + rng.below(4) as u32;
        let mut steps = 0;
        while !deaths.is_empty()
            || job.survivors().iter().any(|&task| job.members[task as usize].at() < until)
        {
            deaths.retain(|&(step, task)| {
                step > steps || {
                    job.kill(task);
                    false
                }
            });
            let task = rng.below(tasks.into()) as Task;
            let member = &job.members[task as usize];
            if member.alive
                && !member.collectives.busy()
                && member.at() < until + u32::from(dead.contains(&task))
                && rng.chance(0.3)
            {
                job.enter(task);
            }
            job.step(&mut rng);
            steps += 1;
            assert!(steps < 300_000, "an operation does not end\n{}", job.standing());
        }
        let survivors = job.survivors();
        let before: usize = survivors.iter().map(|&task| job.members[task as usize].failures).sum();
        let goal = until + 4;
        // The dead may have been there before.
        job.settled = until;
        let mut back: BTreeSet<Task> = BTreeSet::new();
        steps = 0;
        while job.members.iter().any(|member| !member.alive || member.at() < goal) {
            let task = rng.below(tasks.into()) as Task;
            let missing = dead.iter().find(|&&peer| !job.forgives(task, peer) && peer != task).copied();
            let member = &job.members[task as usize];
            match missing {
                _ if !member.alive => {
                    if rng.chance(0.1) {
                        job.restart(task);
                    }
                }
                Some(peer) if rng.chance(0.1) => job.forgive(task, peer),
                Some(_) => {}
                None => {
                    if member.awaited.len() < survivors.len() && member.at() >= until {
                        back.insert(task);
                    }
                    let ready = survivors.contains(&task) || back.contains(&task);
                    if ready && !member.collectives.busy() && member.at() < goal && rng.chance(0.3) {
                        job.enter(task);
                    }
                }
            }
            job.step(&mut rng);
            steps += 1;
            assert!(steps < 300_000, "not all come back\n{}", job.standing());
        }
        until = goal;
        job.settled = u32::MAX;
        let members = job.members.iter();
        let after: usize = members
            .clone()
            .enumerate()
            .filter(|(task, _)| survivors.contains(&(*task as Task)))
            .map(|(_, member)| member.failures)
            .sum();
        assert_eq!(
            after,
            before,
            "an operation has failed after all had let the dead come back: {until}..{goal}\n{}",
            job.standing()
        );
        for (me, member) in (0..).zip(members) {
            let failed: Vec<_> = (goal - 4..goal).filter(|at| !member.succeeded.contains(at)).collect();
            assert!(failed.is_empty(), "task {me} has failed in {failed:?} of {goal}\n{}", job.standing());
            assert!(member.failures == 0 || member.life == 0 || survivors.contains(&me));
        }
    }
}

#[test]
fn survivors_in_step_go_on_with_the_new_task_without_a_failure() {
    seeds(8, |seed| (2..=20).for_each(|tasks| in_step(seed, tasks)));
}

/// Every task lets the dead come back when an operation has failed, or when it hears of the death by another way, and
/// tries again: some are at one operation, some at another one, and they come into step by themselves.
fn again_and_again(seed: u64, tasks: u32) {
    let mut rng = Rng::stream(seed, tasks.into());
    let mut job = Job::new(seed, tasks, &mut rng);
    let mut deaths: Vec<(u64, Task)> = (0..1 + rng.below(4))
        .map(|_| (rng.below(u64::from(tasks) * 100), rng.below(tasks.into()) as Task))
        .collect();
    let (mut steps, mut goal) = (0u64, None);
    loop {
        deaths.retain(|&(step, task)| {
            let due = step <= steps && job.survivors().len() > 1;
            if due {
                job.kill(task);
            }
            !due
        });
        let task = rng.below(tasks.into()) as Task;
        let member = &job.members[task as usize];
        let missing = (0..tasks).find(|&peer| peer != task && !job.forgives(task, peer));
        match missing {
            _ if !member.alive && rng.chance(0.02) => job.restart(task),
            _ if !member.alive => {}
            // A call that waits is left alone, mostly: it fails by itself.
            Some(peer) if rng.chance(if member.collectives.busy() { 0.005 } else { 0.2 }) => {
                job.forgive(task, peer)
            }
            Some(_) if member.failures > 0 => {}
            // LAPI_Init returns when the first one has let it come back.
            _ if member.awaited.len() as u32 == tasks - 1 => {}
            _ if !member.collectives.busy() && rng.chance(0.3) => job.enter(task),
            _ => {}
        }
        job.step(&mut rng);
        steps += 1;
        let whole = deaths.is_empty()
            && job.members.iter().all(|member| member.alive && member.awaited.is_empty())
            && (0..tasks).all(|a| (0..tasks).all(|b| job.forgives(a, b)));
        if whole && goal.is_none() {
            // From the operation on that nobody has entered all must succeed.
            let last = job.members.iter().map(|member| member.collectives.position()).max().unwrap_or(0);
            goal = Some(last + 40);
        }
        if goal.is_some_and(|goal| job.members.iter().all(|member| member.at() >= goal)) {
            break;
        }
        assert!(steps < 400_000, "they do not come into step\n{}", job.standing());
    }
    let goal = goal.unwrap_or(0);
    for (task, member) in job.members.iter().enumerate() {
        let failed: Vec<_> = (goal - 10..goal).filter(|at| !member.succeeded.contains(at)).collect();
        assert!(failed.is_empty(), "task {task} has failed in {failed:?} of {goal}\n{}", job.standing());
    }
}

#[test]
fn tasks_that_try_again_come_into_step() {
    seeds(5, |seed| (2..=20).for_each(|tasks| again_and_again(seed, tasks)));
}

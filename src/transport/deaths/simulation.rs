//! Rings of tasks in one process, which die at any moment: all that live must learn all deaths.

use super::ring::{Action, Ring};
use crate::base::rng::Rng;
use crate::transport::Task;
use crate::wire::network::{Content, Notice};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

struct Simulation {
    rng: Rng,
    rings: Vec<Option<Ring>>,
    group_of: Vec<u32>,
    /// The messages of each pair, in order.
    links: BTreeMap<(Task, Task), VecDeque<Notice>>,
    /// The process of each task, or its last one.
    lives: Vec<u32>,
    reported: Vec<BTreeSet<(Task, u32)>>,
    /// Tasks that have ended LAPI.
    closed: BTreeSet<Task>,
    died: BTreeSet<(Task, u32)>,
    now: Duration,
    sent: u64,
    /// How many tasks were replaced.
    born: u32,
}

impl Simulation {
    fn new(seed: u64, tasks: u32, hosts: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut numbers: Vec<u32> = (0..tasks).map(|_| rng.below(hosts) as u32).collect();
        // Groups are numbered without gaps.
        let used: BTreeSet<u32> = numbers.iter().copied().collect();
        for number in &mut numbers {
            *number = used.iter().position(|other| other == number).expect("used") as u32;
        }
        let lives: Vec<u32> = (0..tasks).map(|task| task + 100).collect();
        let rings = (0..tasks).map(|me| Some(Ring::new(me, numbers.clone(), &lives))).collect();
        Self {
            rng,
            rings,
            group_of: numbers,
            links: BTreeMap::new(),
            lives,
            reported: vec![BTreeSet::new(); tasks as usize],
            closed: BTreeSet::new(),
            died: BTreeSet::new(),
            now: Duration::ZERO,
            sent: 0,
            born: 0,
        }
    }

    fn tasks(&self) -> u64 {
        self.rings.len() as u64
    }

    fn collect(&mut self, me: Task) {
        let Some(ring) = &mut self.rings[me as usize] else { return };
        while let Some(action) = ring.next_action() {
            match action {
                Action::Send(to, notice) => {
                    assert_ne!(to, me);
                    self.sent += 1;
                    self.links.entry((me, to)).or_default().push_back(notice);
                }
                Action::Report(task) => {
                    let process = (task, ring.life(task));
                    assert!(
                        self.died.contains(&process),
                        "task {me} reports task {task}, which has not died"
                    );
                    assert!(self.reported[me as usize].insert(process), "reported once");
                }
            }
        }
    }

    /// One message arrives, if there is one, and returns its receiver. To a task that is
    /// gone it gets lost.
    fn deliver(&mut self) -> Option<Task> {
        self.links.retain(|_, link| !link.is_empty());
        if self.links.is_empty() {
            return None;
        }
        let at = self.rng.below(self.links.len() as u64) as usize;
        let (&(from, to), link) = self.links.iter_mut().nth(at).expect("a link");
        let notice = link.pop_front().expect("not empty");
        if let Notice { content: Content::Died | Content::DiedConfirm, task, life } = notice
            && self.rings[to as usize].as_ref().is_some_and(|ring| ring.life(task) != life)
        {
            self.compare(from, to, task);
        }
        if let Some(ring) = &mut self.rings[to as usize] {
            ring.note(from, notice, self.now);
            self.collect(to);
        }
        Some(to)
    }

    /// A task looks at another one's card, as it does after a notice about a process that it does
    /// not know, and now and then.
    fn compare(&mut self, from: Task, me: Task, task: Task) {
        let Some(ring) = &mut self.rings[me as usize] else { return };
        let (known, present) = (ring.life(task), self.lives[task as usize]);
        if me != task && known != present {
            ring.note(from, Notice { content: Content::Died, task, life: known }, self.now);
            self.collect(me);
            self.see_successor(me, task);
        }
    }

    /// A task finds the card of the present process of another one.
    fn see_successor(&mut self, me: Task, task: Task) {
        let life = self.lives[task as usize];
        if let Some(ring) = &mut self.rings[me as usize] {
            ring.replaced(task, life, self.now);
            self.collect(me);
        }
    }

    /// Whether this is the process of a task that runs.
    fn runs(&self, task: Task, life: u32) -> bool {
        self.rings[task as usize].is_some() && self.lives[task as usize] == life
    }

    /// Another process takes the place of a task that has died.
    fn replace(&mut self, task: Task) {
        if self.rings[task as usize].is_some() {
            return;
        }
        self.born += 1;
        self.lives[task as usize] = 1000 + self.born;
        self.links.retain(|(_, to), _| *to != task);
        self.reported[task as usize].clear();
        self.rings[task as usize] = Some(Ring::new(task, self.group_of.clone(), &self.lives));
    }

    /// A task looks at the process that it watches, and at the time.
    fn look(&mut self, me: Task) {
        let now = self.now;
        let Some(ring) = &mut self.rings[me as usize] else { return };
        // The process of one that has ended LAPI may end at any time, or go on.
        let watched = ring.watched().map(|task| (task, ring.life(task)));
        let probed = ring.probed().map(|task| (task, ring.life(task)));
        let gone = watched.filter(|&(task, life)| !self.runs(task, life)).map(|(task, _)| task);
        let probed = probed.filter(|process| self.died.contains(process)).map(|(task, _)| task);
        let gone = gone.filter(|task| !self.closed.contains(task) || self.rng.chance(0.5));
        let Some(ring) = &mut self.rings[me as usize] else { return };
        if gone.is_some() {
            ring.ended(now);
        }
        ring.serve(now);
        if let Some(alone) = probed {
            ring.found_dead(alone, now);
        }
        let dead = ring.some_dead(2);
        self.collect(me);
        for task in dead {
            self.see_successor(me, task);
        }
        let other = self.rng.below(self.tasks()) as Task;
        self.compare(other, me, other);
    }

    /// A task dies; some of what it has just sent does not arrive.
    fn kill(&mut self, task: Task) {
        if self.rings[task as usize].take().is_none() {
            return;
        }
        self.died.insert((task, self.lives[task as usize]));
        let links: Vec<_> = self.links.iter_mut().filter(|((from, _), _)| *from == task).collect();
        for (_, link) in links {
            link.truncate(self.rng.below(link.len() as u64 + 1) as usize);
        }
    }

    /// A task ends LAPI: those that know it and live are informed, as its watcher is.
    fn close(&mut self, task: Task) {
        let Some(ring) = self.rings[task as usize].take() else { return };
        self.closed.insert(task);
        for other in [ring.watcher(), ring.watched()].into_iter().flatten() {
            if let Some(ring) = &mut self.rings[other as usize] {
                ring.closed(task, self.now);
                self.collect(other);
            }
        }
    }

    /// Until nothing happens any more.
    fn settle(&mut self) {
        for _ in 0..400 {
            while self.deliver().is_some() {}
            for me in 0..self.rings.len() {
                self.look(me as Task);
            }
            self.now += Duration::from_millis(100);
        }
    }

    fn check(&self, seed: u64) {
        for (me, ring) in self.rings.iter().enumerate().filter(|(_, ring)| ring.is_some()) {
            let known =
                |(task, life): &(Task, u32)| ring.as_ref().is_some_and(|ring| ring.life(*task) == *life);
            let missing: Vec<_> =
                self.died.difference(&self.reported[me]).filter(|process| known(process)).collect();
            let groups = &self.group_of;
            assert!(missing.is_empty(), "seed {seed}: task {me} of {groups:?} does not know of {missing:?}");
            assert!(ring.as_ref().is_some_and(|ring| ring.due().is_none() || self.died.len() > 1));
        }
    }
}

#[test]
fn every_living_task_learns_every_death() {
    for seed in 1..=3000 {
        let mut rng = Rng::stream(seed, 1);
        let tasks = 2 + rng.below(12) as u32;
        let mut all = Simulation::new(seed, tasks, 1 + rng.below(4));
        for _ in 0..rng.below(200) {
            match all.rng.below(8) {
                0 if all.died.len() as u64 + 1 < all.tasks() => {
                    let victim = all.rng.below(all.tasks()) as Task;
                    all.kill(victim);
                }
                1..4 => {
                    let me = all.rng.below(all.tasks()) as Task;
                    all.look(me);
                }
                4 => all.now += Duration::from_millis(all.rng.below(200)),
                _ => {
                    // Perhaps the receiver dies in the middle of what it does next.
                    let receiver = all.deliver().filter(|_| all.rng.chance(0.2));
                    receiver.into_iter().for_each(|task| all.kill(task));
                }
            }
        }
        all.settle();
        all.check(seed);
    }
}

/// A task may learn of a process only when that has died and was replaced, and of the next one in
/// the same way: tasks know different processes of one task, also tasks of one host.
#[test]
fn no_living_task_takes_a_process_that_was_replaced_for_living() {
    for seed in 1..=3000 {
        let mut rng = Rng::stream(seed, 2);
        let tasks = 2 + rng.below(8) as u32;
        let mut all = Simulation::new(seed, tasks, 1 + rng.below(3));
        for _ in 0..rng.below(300) {
            let task = all.rng.below(all.tasks()) as Task;
            match all.rng.below(16) {
                0 if all.rings.iter().flatten().count() > 1 => {
                    all.kill(task);
                    if all.rng.chance(0.5) {
                        all.replace(task);
                    }
                }
                1 => all.replace(task),
                2..8 => all.look(task),
                8 => all.now += Duration::from_millis(all.rng.below(200)),
                // The program has learned of the death in another way: it lets the task rejoin.
                9 => {
                    let me = all.rng.below(all.tasks()) as Task;
                    all.see_successor(me, task);
                }
                _ => drop(all.deliver()),
            }
        }
        for task in 0..tasks {
            all.replace(task);
        }
        all.settle();
        all.check(seed);
    }
}

#[test]
fn a_task_that_ends_lapi_is_not_reported() {
    for seed in 1..=2000 {
        let tasks = 2 + Rng::stream(seed, 1).below(10) as u32;
        let mut all = Simulation::new(seed, tasks, 3);
        for _ in 0..60 {
            let task = all.rng.below(all.tasks()) as Task;
            match all.rng.below(6) {
                0 => all.close(task),
                1..4 => all.look(task),
                _ => drop(all.deliver()),
            }
        }
        // `collect` fails for any report.
        all.settle();
        assert_eq!(all.sent, 0, "seed {seed}: there is nothing to be said");
    }
}

#[test]
fn one_death_costs_few_messages() {
    let hosts = 8;
    let groups: Vec<u32> = (0..64).map(|task| task / 8).collect();
    let mut all = Simulation::new(1, 64, 1);
    let lives: Vec<u32> = (0..64).collect();
    all.rings = (0..64).map(|me| Some(Ring::new(me, groups.clone(), &lives))).collect();
    (all.group_of, all.lives) = (groups, lives);
    all.kill(20);
    all.settle();
    all.check(1);
    // To its own host, and to one task of each other host, which confirms it and passes it on.
    let most = 6 + (hosts - 1) * (1 + 1 + 7);
    assert!(all.sent <= most, "{} messages", all.sent);
    // In the end nothing of it is kept but that it has died.
    assert!(all.rings.iter().flatten().all(|ring| ring.is_idle()));
}

/// All 64 tasks of a host die at once, in a job of 1,000 hosts: a search through all notices for
/// each would take minutes.
#[test]
fn the_deaths_of_a_host_of_a_large_job_are_made_known() {
    let groups: Vec<u32> = (0..64).map(|_| 0).chain([1, 1]).chain(2..1002).collect();
    let lives: Vec<u32> = (0..groups.len() as u32).collect();
    let mut ring = Ring::new(64, groups, &lives);
    let mut now = Duration::ZERO;
    (0..64).for_each(|task| ring.found_dead(task, now));
    let mut asked = Vec::new();
    while let Some(action) = ring.next_action() {
        if let Action::Send(to @ 66.., Notice { content: Content::DiedConfirm, task, life }) = action {
            asked.push((to, task, life));
        }
        assert!(ring.due().is_some());
    }
    assert_eq!(asked.len(), 64 * 1000);
    for (from, task, life) in asked {
        ring.note(from, Notice { content: Content::Confirmed, task, life }, now);
        assert!(ring.due().is_none() || ring.due() > Some(now));
    }
    assert_eq!(ring.due(), None);
    now += Duration::from_secs(60);
    ring.serve(now);
    assert!(ring.is_idle());
}

#[test]
fn a_replaced_task_is_not_taken_for_the_one_before() {
    let mut ring = Ring::new(0, vec![0, 0, 1], &[10, 11, 12]);
    let now = Duration::ZERO;
    let died = |task, life| Notice { content: Content::Died, task, life };
    ring.note(2, died(1, 99), now);
    assert_eq!((ring.next_action(), ring.watched()), (None, Some(1)), "another process");
    ring.ended(now);
    let actions: Vec<Action> = std::iter::from_fn(|| ring.next_action()).collect();
    let sent = Action::Send(2, Notice { content: Content::DiedConfirm, task: 1, life: 11 });
    assert_eq!(actions, [Action::Report(1), sent]);
    assert_eq!(ring.watched(), None);
    ring.replaced(1, 13, now);
    assert_eq!(ring.watched(), Some(1));
    ring.note(2, died(1, 11), now);
    assert_eq!((ring.next_action(), ring.watched()), (None, Some(1)), "a late notice");
    ring.note(2, died(1, 13), now);
    assert_eq!(ring.next_action(), Some(Action::Report(1)));
}

/// The other hosts must know of the death although another process has taken the place of the dead
/// one meanwhile.
#[test]
fn a_notice_is_sent_until_it_is_confirmed_also_when_the_task_was_replaced() {
    let mut ring = Ring::new(0, vec![0, 0, 1, 1], &[10, 11, 12, 13]);
    let sent = |ring: &mut Ring| {
        let actions: Vec<Action> = std::iter::from_fn(|| ring.next_action()).collect();
        let to = |action: &Action| match *action {
            Action::Send(to, Notice { content: Content::DiedConfirm, task: 1, life: 11 }) => Some(to),
            _ => None,
        };
        actions.iter().filter_map(to).collect::<Vec<Task>>()
    };
    ring.ended(Duration::ZERO);
    assert_eq!(sent(&mut ring), [2]);
    ring.replaced(1, 14, Duration::ZERO);
    let due = ring.due().expect("a notice that was not confirmed");
    ring.serve(due);
    assert_eq!(sent(&mut ring), [3]);
    ring.note(3, Notice { content: Content::Confirmed, task: 1, life: 11 }, due);
    assert_eq!(ring.due(), None);
    // What task 3 has confirmed it may not have passed on.
    ring.note(2, Notice { content: Content::Died, task: 3, life: 13 }, due);
    assert_eq!(sent(&mut ring), [2]);
    // Later it has.
    ring.note(2, Notice { content: Content::Confirmed, task: 1, life: 11 }, due);
    assert!(!ring.is_idle());
    let late = due + Duration::from_secs(60);
    ring.serve(late);
    assert!(ring.is_idle());
}

/// Each of them is asked about in turn.
#[test]
fn the_dead_are_named_some_at_a_time() {
    let mut ring = Ring::new(0, vec![0, 1, 1, 1, 1, 1], &[1; 6]);
    let died = |task| Notice { content: Content::Died, task, life: 1 };
    (1..5).for_each(|task| ring.note(5, died(task), Duration::ZERO));
    let mut named: Vec<Task> = (0..2).flat_map(|_| ring.some_dead(2)).collect();
    named.sort_unstable();
    assert_eq!(named, [1, 2, 3, 4]);
    ring.replaced(3, 2, Duration::ZERO);
    let mut named = ring.some_dead(9);
    named.sort_unstable();
    assert_eq!(named, [1, 2, 4]);
}

//! Which task watches which, and which notices of death are sent to whom. There are no processes,
//! messages or clocks here.
//!
//! The tasks of a *group* can see each other's processes. They form a ring in the order of their
//! numbers. Each task watches the next one that lives; so every death is found by the nearest
//! living task before it, whatever ends at the same time. The task that has found a death sends a
//! notice to every task of its own group, and to one task of each other group, which passes it on
//! to its group. Of the notices between groups the receipt is confirmed: without a confirmation the
//! next task of that group gets the notice, and when a task that has confirmed dies itself, perhaps
//! before it has passed the notice on, another one gets it.
//!
//! All tasks of a group may die at once. So the first living task of a group is probed over the
//! network by the first living task of the group before it, where the groups form a ring, too: its
//! connection ends with its process. The task that probes does for a group that is gone what a
//! watching task does.
//!
//! A task that ends LAPI in an orderly way sends its departure to the task that watches it. Its
//! process may end later, unnoticed.

use super::group_notices::{GroupNotice, GroupNotices, Key};
use crate::transport::Task;
use crate::wire::network::{Content, Notice};
use std::collections::VecDeque;
use std::time::Duration;

/// Without a confirmation for this long, another task gets the notice; the time doubles with each.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The longest time between two of these.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(5);
/// For so long a notice that was confirmed is kept: the task that has confirmed it passes it on at
/// once, unless it dies.
const KEPT: Duration = Duration::from_secs(10);
/// A group of which none confirms is silent as a whole.
const ATTEMPTS: u32 = 24;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum Action {
    Send(Task, Notice),
    /// The task has died: this is reported here.
    Report(Task),
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Lives,
    /// The process has ended LAPI.
    Closed,
    Died,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    state: State,
    /// Distinguishes the process from others with this task's number.
    life: u32,
    /// This task has sent notices of its death to its own group.
    passed: bool,
    /// And to other groups.
    spread: bool,
}

/// What one task knows.
pub(in crate::transport) struct Ring {
    me: Task,
    known: Vec<Known>,
    /// The tasks of each group in ascending order, and the group of each task.
    groups: Vec<Vec<Task>>,
    group_of: Vec<u32>,
    /// The task that is watched.
    watched: Option<Task>,
    /// When the watched task ends and nothing was received from it, it has died (and has not ended
    /// LAPI before this task watched it).
    counts_as_dead: bool,
    group_notices: GroupNotices,
    /// The tasks that have died, of which no other process has taken the place.
    dead: VecDeque<Task>,
    actions: VecDeque<Action>,
}

impl Ring {
    /// `group_of` numbers the groups from 0, and `lives` distinguishes the processes; each has an
    /// entry for every task.
    pub(in crate::transport) fn new(me: Task, group_of: Vec<u32>, lives: &[u32]) -> Self {
        let count = group_of.iter().max().map_or(0, |last| last + 1);
        let mut groups = vec![Vec::new(); count as usize];
        for (task, group) in (0..).zip(&group_of) {
            groups[*group as usize].push(task);
        }
        let known = lives
            .iter()
            .map(|&life| Known { state: State::Lives, life, passed: false, spread: false })
            .collect();
        let mut ring = Self {
            me,
            known,
            groups,
            group_of,
            watched: None,
            counts_as_dead: true,
            group_notices: GroupNotices::default(),
            dead: VecDeque::new(),
            actions: VecDeque::new(),
        };
        ring.watched = ring.next_living();
        ring
    }

    /// The next thing to do.
    pub(in crate::transport) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The task whose process this one watches.
    pub(in crate::transport) fn watched(&self) -> Option<Task> {
        self.watched
    }

    /// The nearest living task before this one: it watches this task, as far as is known.
    pub(in crate::transport) fn watcher(&self) -> Option<Task> {
        let group = self.own_group();
        let at = group.partition_point(|&task| task < self.me);
        group[..at].iter().rev().chain(group[at..].iter().rev()).copied().find(|&task| self.is_living(task))
    }

    /// Whether this task sees the other one's process.
    pub(in crate::transport) fn is_in_own_group(&self, task: Task) -> bool {
        self.group_of[task as usize] == self.group_of[self.me as usize]
    }

    pub(in crate::transport) fn life(&self, task: Task) -> u32 {
        self.known[task as usize].life
    }

    /// The task of another host that this one probes over the network: the first that lives on the
    /// next host. The first living task of the host before it does that.
    pub(in crate::transport) fn probed(&self) -> Option<Task> {
        let (_, next) = self.groups_after();
        next?.iter().copied().find(|&task| self.is_living(task))
    }

    /// Whether a group has not confirmed yet that it knows of the death of this task.
    pub(in crate::transport) fn spreads(&self, task: Task) -> bool {
        self.group_notices.about(task).any(|(_, group_notice)| !group_notice.confirmed)
    }

    /// A task has died: this task has found that otherwise than by watching its process.
    pub(in crate::transport) fn found_dead(&mut self, task: Task, now: Duration) {
        if self.is_living(task) {
            self.learn(task, now);
            // The tasks of its own group do the same, if one of them lives.
            self.pass_on(task);
            if !std::mem::replace(&mut self.known[task as usize].spread, true) {
                self.spread(task, now);
            }
            self.move_on(now);
        }
    }

    /// Some of the tasks that have died, of which no other process has taken the place: at most
    /// `most`, in turn.
    pub(in crate::transport) fn some_dead(&mut self, most: usize) -> Vec<Task> {
        let some = most.min(self.dead.len());
        self.dead.rotate_left(some);
        self.dead.iter().rev().take(some).copied().collect()
    }

    /// The process of the watched task has ended.
    pub(in crate::transport) fn ended(&mut self, now: Duration) {
        let Some(task) = self.watched else { return };
        if self.counts_as_dead {
            self.learn(task, now);
        } else {
            self.known[task as usize].state = State::Closed;
        }
        self.move_on(now);
    }

    /// A task has ended LAPI.
    pub(in crate::transport) fn closed(&mut self, task: Task, now: Duration) {
        if self.is_living(task) {
            self.known[task as usize].state = State::Closed;
            self.renew(task, now);
            self.move_on(now);
        }
    }

    /// A task was replaced: another process has its number.
    pub(in crate::transport) fn replaced(&mut self, task: Task, life: u32, now: Duration) {
        let known = &mut self.known[task as usize];
        if task != self.me && known.life != life {
            *known = Known { state: State::Lives, life, passed: false, spread: false };
            self.dead.retain(|dead| *dead != task);
            self.move_on(now);
        }
    }

    /// A notice has arrived.
    pub(in crate::transport) fn note(&mut self, from: Task, notice: Notice, now: Duration) {
        let Notice { content, task, life } = notice;
        match content {
            Content::Confirmed => {
                let key = (task, life, self.group_of[from as usize]);
                if let Some(group_notice) = self.group_notices.get(key).filter(|_| self.is_living(from)) {
                    self.group_notices
                        .set(key, GroupNotice { to: from, confirmed: true, due: now + KEPT, ..group_notice });
                }
            }
            Content::Died | Content::DiedConfirm => {
                let abroad = self.group_of[from as usize] != self.group_of[self.me as usize];
                if task != self.me && self.life(task) == life {
                    self.learn(task, now);
                    if abroad {
                        self.pass_on(task);
                    }
                    self.move_on(now);
                }
                if content == Content::DiedConfirm {
                    self.send(from, Notice { content: Content::Confirmed, task, life });
                }
            }
            Content::Watched if from == task && self.life(task) == life => {
                self.counts_as_dead |= self.watched == Some(task);
            }
            Content::Watches | Content::Watched | Content::Closed => {}
        }
    }

    /// Gives notices that were not confirmed to others, and forgets those that were
    /// confirmed long ago.
    pub(in crate::transport) fn serve(&mut self, now: Duration) {
        self.group_notices.forget_old(now);
        while let Some(key) = self.group_notices.late(now) {
            if !self.go(key, now) {
                self.group_notices.remove(key);
            }
        }
    }

    /// When [`Self::serve`] is to be called.
    pub(in crate::transport) fn due(&self) -> Option<Duration> {
        self.group_notices.due()
    }

    /// Whether no notice to another group is kept.
    #[cfg(test)]
    pub(in crate::transport) fn is_idle(&self) -> bool {
        self.group_notices.is_empty()
    }

    fn own_group(&self) -> &[Task] {
        &self.groups[self.group_of[self.me as usize] as usize]
    }

    /// Whether this is another task that lives, as far as is known, and has not ended LAPI.
    pub(in crate::transport) fn is_living(&self, task: Task) -> bool {
        task != self.me && self.known[task as usize].state == State::Lives
    }

    /// Whether the process of the task that is known here has died.
    pub(in crate::transport) fn has_died(&self, task: Task) -> bool {
        self.known[task as usize].state == State::Died
    }

    /// The other tasks of the group in the order of the ring.
    fn after_me(&self) -> impl Iterator<Item = Task> + '_ {
        let group = self.own_group();
        let at = group.partition_point(|&task| task <= self.me);
        group[at..].iter().chain(&group[..at]).copied().filter(|&task| task != self.me)
    }

    fn next_living(&self) -> Option<Task> {
        self.after_me().find(|&task| self.is_living(task))
    }

    fn send(&mut self, to: Task, notice: Notice) {
        self.actions.push_back(Action::Send(to, notice));
    }

    fn learn(&mut self, task: Task, now: Duration) {
        let known = &mut self.known[task as usize];
        if known.state == State::Lives {
            known.state = State::Died;
            self.dead.push_back(task);
            self.actions.push_back(Action::Report(task));
            self.renew(task, now);
        }
    }

    /// What `task` has confirmed it may not have passed on.
    fn renew(&mut self, task: Task, now: Duration) {
        for (key, group_notice) in self.group_notices.with(task) {
            self.group_notices.set(key, GroupNotice { confirmed: false, due: now, ..group_notice });
        }
        self.serve(now);
    }

    /// Sends notices to all of this task's group, once.
    fn pass_on(&mut self, dead: Task) {
        if !std::mem::replace(&mut self.known[dead as usize].passed, true) {
            let notice = Notice { content: Content::Died, task: dead, life: self.life(dead) };
            let others: Vec<Task> = self.after_me().filter(|&task| self.is_living(task)).collect();
            others.into_iter().for_each(|task| self.send(task, notice));
        }
    }

    /// Watches the nearest living task, and takes over the notices of the dead ones before it.
    fn move_on(&mut self, now: Duration) {
        let next = self.next_living();
        if self.watched != next {
            // Of a task after one that has ended LAPI it is unknown whether it has done so, too.
            let closed = |task: Task| self.known[task as usize].state == State::Closed;
            let after_closed = self.after_me().take_while(|&task| Some(task) != next).any(closed);
            self.counts_as_dead = !after_closed;
            self.watched = next;
        }
        let mut dead: Vec<Task> = self.after_me().take_while(|&task| Some(task) != next).collect();
        let (gone, _) = self.groups_after();
        dead.extend(gone.iter().flat_map(|&group| &self.groups[group as usize]));
        for task in dead {
            if self.has_died(task) && !std::mem::replace(&mut self.known[task as usize].spread, true) {
                self.pass_on(task);
                self.spread(task, now);
            }
        }
    }

    /// The groups after this task's of which no task lives, and the next one, of which one does;
    /// none unless this task is the first of its group that lives.
    fn groups_after(&self) -> (Vec<u32>, Option<&[Task]>) {
        let own = self.group_of[self.me as usize];
        let mut gone = Vec::new();
        if self.own_group().iter().take_while(|&&task| task != self.me).any(|&task| self.is_living(task)) {
            return (gone, None);
        }
        let count = self.groups.len() as u32;
        for group in (own + 1..count).chain(0..own) {
            let tasks = &self.groups[group as usize];
            if tasks.iter().any(|&task| self.is_living(task)) {
                return (gone, Some(tasks));
            }
            gone.push(group);
        }
        (gone, None)
    }

    /// Sends a notice to each other group.
    fn spread(&mut self, dead: Task, now: Duration) {
        let own = self.group_of[self.me as usize];
        let life = self.life(dead);
        // What is known of the processes before.
        let known: Vec<Key> = self
            .group_notices
            .about(dead)
            .filter(|(_, group_notice)| group_notice.confirmed)
            .map(|(key, _)| key)
            .collect();
        known.into_iter().for_each(|key| self.group_notices.remove(key));
        for group in (0..self.groups.len() as u32).filter(|&group| group != own) {
            let key = (dead, life, group);
            self.group_notices.set(key, GroupNotice { to: self.me, confirmed: false, attempts: 0, due: now });
            if !self.go(key, now) {
                self.group_notices.remove(key);
            }
        }
    }

    /// Sends the notice to the next task of the other group. `false`: there is none,
    /// or none replies.
    fn go(&mut self, key: Key, now: Duration) -> bool {
        let (dead, life, group) = key;
        let Some(GroupNotice { to, attempts, .. }) = self.group_notices.get(key) else { return false };
        let group = &self.groups[group as usize];
        // The tasks of this group begin with different ones of that group.
        let after = if attempts == 0 {
            self.me as usize % group.len()
        } else {
            group.partition_point(|&task| task <= to)
        };
        let next = group[after..].iter().chain(&group[..after]).copied().find(|&task| self.is_living(task));
        let Some(next) = next.filter(|_| attempts < ATTEMPTS) else { return false };
        let wait = (TIMEOUT * (1 << attempts.min(8))).min(LONGEST_TIMEOUT);
        let group_notice =
            GroupNotice { to: next, confirmed: false, attempts: attempts + 1, due: now + wait };
        self.group_notices.set(key, group_notice);
        self.send(next, Notice { content: Content::DiedConfirm, task: dead, life });
        true
    }
}

//! Who watches whose process, and to which tasks a death is reported: for a transport between
//! hosts. [`ring`] decides it, and [`Watch`] drives the ring: it looks at the process of the task
//! that is watched and at the cards of others, and says step by step what the transport is to do.
//! The transport carries the notices, and serves the watch as often as a thread waits, polls or
//! serves, which is several times in a second.

mod group_notices;
pub(in crate::transport) mod ring;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::base::clock;
use crate::base::process::{Handle, Process};
use crate::transport::Task;
use crate::transport::directory::Directory;
use crate::wire::network::{Content, Notice};
use ring::{Action, Ring};
use std::time::{Duration, Instant};

/// How long a death is not reported here when other hosts have not confirmed yet that they know of
/// it: the program may end at the report.
const REPORT_LATEST: Duration = Duration::from_millis(300);

/// The time between two looks at the watched process.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// How many deaths a look finds at most on the next host: each is a notice to every other host.
const FOUND: usize = 16;

/// With how many cards a look compares what is known of the processes of peers.
const COMPARED: usize = 4;

/// Among how many tasks a look searches for peers whose cards it compares: the time of a look does
/// not grow with the job.
const SEARCHED: Task = 64;

/// The process of the task that this one watches.
#[derive(Default)]
struct Watched(Option<(Task, Handle)>);

/// What a look at the watched process has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Runs,
    /// The process runs, and was not watched before.
    Begun,
    Ended,
}

impl Watched {
    /// Looks at the process of `task`, which was `process` when it was last heard of.
    fn look(&mut self, task: Task, process: Process) -> Look {
        match &mut self.0 {
            Some((watched, handle)) if *watched == task => {
                if handle.has_ended() {
                    self.0 = None;
                    return Look::Ended;
                }
                Look::Runs
            }
            _ => match Handle::open(process) {
                Some(handle) => {
                    self.0 = Some((task, handle));
                    Look::Begun
                }
                None => Look::Ended,
            },
        }
    }

    /// Another process is the task now.
    fn forget(&mut self, task: Task) {
        self.0.take_if(|(watched, _)| *watched == task);
    }
}

/// What the transport is to do next.
pub(in crate::transport) enum Step {
    /// Take what has arrived, perhaps the departure of the watched task, whose process has ended;
    /// then call [`Watch::taken`].
    Take,
    Send(Task, Notice),
    /// The task has died: refuse what is begun with it from now on.
    Report(Task),
    /// The task is this process now: pass it to [`Watch::replaced`].
    Replaced(Task, Process),
}

/// What a task has to watch another one and to report deaths, whatever carries its notices.
pub(in crate::transport) struct Watch {
    me: Task,
    ring: Ring,
    processes: Vec<Process>,
    elsewhere: Box<[bool]>,
    watched: Watched,
    /// Tasks that watch this one, or have.
    watchers: Vec<Task>,
    /// Deaths that are not reported here yet, and when they are at the latest.
    unreported: Vec<(Task, Instant)>,
    /// Processes that have taken the places of others, as their cards show.
    successors: Vec<(Task, Process)>,
    /// The watched task, and its life, when its process has ended and what it has sent was not
    /// taken yet.
    ended: Option<(Task, u32)>,
    /// What the ring knows has changed, and was not acted upon yet.
    changed: bool,
    start: Instant,
    next_look: Instant,
    /// The last look has found as many deaths as a look may: the next one is due at once.
    more: bool,
    /// The task from which on the next look searches for cards to compare.
    next_compared: Task,
}

impl Watch {
    /// `group_of` numbers, for each task, the group of tasks that see each other's processes;
    /// `processes` are those of all tasks. `elsewhere`, by task: packets to it go by another
    /// transport; empty where none does.
    pub(in crate::transport) fn new(
        me: Task,
        group_of: Vec<u32>,
        processes: Vec<Process>,
        elsewhere: Box<[bool]>,
    ) -> Self {
        let lives: Vec<u32> = processes.iter().map(|process| process.life()).collect();
        let start = clock::now();
        Self {
            me,
            ring: Ring::new(me, group_of, &lives),
            processes,
            elsewhere,
            watched: Watched::default(),
            watchers: Vec::new(),
            unreported: Vec::new(),
            successors: Vec::new(),
            ended: None,
            changed: true,
            start,
            next_look: start,
            more: false,
            next_compared: 0,
        }
    }

    /// What is known of the deaths.
    pub(in crate::transport) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The process of a task, as far as it is known.
    pub(in crate::transport) fn process(&self, task: Task) -> Process {
        self.processes[task as usize]
    }

    /// Whether packets to the task go by another transport.
    pub(in crate::transport) fn is_elsewhere(&self, task: Task) -> bool {
        self.elsewhere.get(task as usize).is_some_and(|elsewhere| *elsewhere)
    }

    /// Whether there may be a [`Self::step`] at once.
    #[inline]
    pub(in crate::transport) fn has_changed(&self) -> bool {
        self.changed
    }

    /// The next [`Self::look`] is due.
    pub(in crate::transport) fn look_now(&mut self) {
        self.next_look = clock::now();
    }

    /// Asks, but seldom, whether the probed task has died, as the launcher knows it, and then the
    /// one that is probed instead, up to [`FOUND`] of them. And whether other processes have taken
    /// the places of those that have died: tasks of one host reach each other otherwise. And of
    /// those that were `met`, a few at a time: when two processes follow each other quickly, or a
    /// whole host dies, no task may have seen the death. Returns whether it was time.
    pub(in crate::transport) fn look<A>(
        &mut self,
        directory: &mut dyn Directory<A>,
        met: impl Fn(Task) -> bool,
    ) -> bool {
        let now = clock::now();
        if now < self.next_look && !self.more {
            self.changed |= self.due().is_some_and(|due| due <= now);
            return false;
        }
        (self.next_look, self.changed) = (now + BETWEEN_LOOKS, true);
        // When a whole host dies, each of its tasks is the probed one in turn.
        let mut found = 0;
        while found < FOUND
            && let Some(task) = self.ring.probed().filter(|&task| directory.has_died(task))
        {
            self.found_dead(task);
            found += 1;
        }
        self.more = found == FOUND;
        let mut compared = self.ring.some_dead(COMPARED);
        compared.extend(self.next_met(met));
        for task in compared {
            if let Some(present) = self.successor(task, directory) {
                self.note_successor(task, task, present);
            }
        }
        true
    }

    /// The next [`COMPARED`] tasks that were met, in turn, among the next [`SEARCHED`].
    fn next_met(&mut self, met: impl Fn(Task) -> bool) -> Vec<Task> {
        let tasks = self.processes.len() as Task;
        let mut found = Vec::with_capacity(COMPARED);
        for _ in 0..SEARCHED.min(tasks) {
            if found.len() == COMPARED {
                break;
            }
            found.extend(Some(self.next_compared).filter(|&task| met(task)));
            self.next_compared = (self.next_compared + 1) % tasks;
        }
        found
    }

    /// Another process of the task than the one that is known, as the task's card shows it.
    fn successor<A>(&self, task: Task, directory: &mut dyn Directory<A>) -> Option<Process> {
        let known = self.ring.life(task);
        directory.process_of(task).filter(|present| present.life() != known && task != self.me)
    }

    /// The process that was known has died, and this one has taken its place; `from` has shown it.
    fn note_successor(&mut self, from: Task, task: Task, present: Process) {
        if !self.ring.has_died(task) {
            let died = Notice { content: Content::Died, task, life: self.ring.life(task) };
            self.ring.note(from, died, self.now());
        }
        self.successors.retain(|(other, _)| *other != task);
        self.successors.push((task, present));
        self.changed = true;
    }

    /// When `from` names another process of the task than the one that is known, either that was
    /// long ago, or this task has missed a death: the card shows it. Returns whether there are
    /// steps to do before anything else follows.
    pub(in crate::transport) fn names<A>(
        &mut self,
        from: Task,
        task: Task,
        life: u32,
        directory: &mut dyn Directory<A>,
    ) -> bool {
        let successor = if self.ring.life(task) == life { None } else { self.successor(task, directory) };
        if let Some(present) = successor {
            self.note_successor(from, task, present);
        }
        successor.is_some()
    }

    /// [`Self::names`], for a notice before it is noted.
    pub(in crate::transport) fn notice_names<A>(
        &mut self,
        from: Task,
        Notice { content, task, life }: Notice,
        directory: &mut dyn Directory<A>,
    ) -> bool {
        let names = match content {
            Content::Died | Content::DiedConfirm => true,
            Content::Watched | Content::Closed => from == task,
            Content::Confirmed | Content::Watches => false,
        };
        names && self.names(from, task, life, directory)
    }

    /// The next thing to do. Without `looks` the watched process is not looked at.
    pub(in crate::transport) fn step(&mut self, looks: bool) -> Option<Step> {
        if looks && self.ended.is_none() && std::mem::take(&mut self.changed) {
            match self.look_at_watched() {
                Some((_, Look::Runs)) | None => {}
                Some((task, Look::Begun)) => return Some(Step::Send(task, self.watches(task))),
                Some((task, Look::Ended)) => {
                    self.ended = Some((task, self.ring.life(task)));
                    return Some(Step::Take);
                }
            }
        }
        let now = clock::now();
        self.ring.serve(now - self.start);
        while let Some(action) = self.ring.next_action() {
            match action {
                Action::Send(to, notice) => return Some(Step::Send(to, notice)),
                // Another process of the task may have been accepted since: that one lives.
                Action::Report(task) if self.ring.has_died(task) => {
                    self.unreported.push((task, now + REPORT_LATEST));
                }
                Action::Report(_) => {}
            }
        }
        let (ring, successors) = (&self.ring, &self.successors);
        let replaced = |task| successors.iter().any(|(other, _)| *other == task);
        let is_due =
            |&(task, latest): &(Task, Instant)| now >= latest || !ring.spreads(task) || replaced(task);
        if let Some(at) = self.unreported.iter().position(is_due) {
            return Some(Step::Report(self.unreported.remove(at).0));
        }
        self.successors.pop().map(|(task, process)| Step::Replaced(task, process))
    }

    /// What the watched task had sent before its process ended was taken.
    pub(in crate::transport) fn taken(&mut self) {
        let Some((task, life)) = self.ended.take() else { return };
        if self.ring.watched() == Some(task) && self.ring.life(task) == life {
            self.ring.ended(self.now());
        }
        // The next one is looked at, too.
        self.changed = true;
    }

    fn look_at_watched(&mut self) -> Option<(Task, Look)> {
        let task = self.ring.watched()?;
        Some((task, self.watched.look(task, self.processes[task as usize])))
    }

    /// When notices or reports are due, or a look that follows another one at once.
    pub(in crate::transport) fn due(&self) -> Option<Instant> {
        let ring = self.ring.due().map(|due| self.start + due);
        let look = self.more.then_some(self.start);
        self.unreported.iter().map(|(_, latest)| *latest).chain(ring).chain(look).min()
    }

    /// Whether the task's process has this life as far as is known here, and no other one's death
    /// is to be reported: the program parts from the task at such a report.
    pub(in crate::transport) fn knows(&self, task: Task, life: u32) -> bool {
        self.ring.life(task) == life && self.unreported.iter().all(|(dead, _)| *dead != task)
    }

    /// A task has died: this task has found that otherwise than by watching its process.
    pub(in crate::transport) fn found_dead(&mut self, task: Task) {
        self.ring.found_dead(task, self.now());
        self.changed = true;
    }

    /// Another process has the peer's number: the one before has died, which may not be known here
    /// yet.
    pub(in crate::transport) fn has_successor(&mut self, task: Task, process: Process) {
        if self.ring.life(task) != process.life() {
            self.found_dead(task);
        }
    }

    /// The task has ended LAPI.
    pub(in crate::transport) fn closed(&mut self, task: Task) {
        self.ring.closed(task, self.now());
        self.changed = true;
    }

    /// The task is this process now; whether that is news. The death of the one before is not
    /// reported any more.
    pub(in crate::transport) fn replaced(&mut self, task: Task, process: Process) -> bool {
        let is_news = self.ring.life(task) != process.life();
        if is_news {
            self.processes[task as usize] = process;
            self.watched.forget(task);
            self.watchers.retain(|watcher| *watcher != task);
            self.unreported.retain(|(dead, _)| *dead != task);
            self.ring.replaced(task, process.life(), self.now());
            self.changed = true;
        }
        is_news
    }

    /// A notice has arrived; whether its sender watches this task, and wants to hear that this is
    /// known.
    pub(in crate::transport) fn note(&mut self, from: Task, notice: Notice) -> bool {
        self.ring.note(from, notice, self.now());
        self.changed = true;
        let own = self.watches(self.me);
        if notice == own && !self.watchers.contains(&from) {
            self.watchers.push(from);
        }
        notice == own
    }

    /// What this task says to the one that it begins to watch.
    pub(in crate::transport) fn watches(&self, task: Task) -> Notice {
        Notice { content: Content::Watches, task, life: self.ring.life(task) }
    }

    /// The tasks that watch this one, or that it watches: they must know when it ends LAPI.
    pub(in crate::transport) fn neighbours(&self) -> Vec<Task> {
        let ring = [self.ring.watcher(), self.ring.watched()];
        self.watchers.iter().copied().chain(ring.into_iter().flatten()).collect()
    }

    /// The ring's moments are times since the watch began.
    fn now(&self) -> Duration {
        clock::elapsed(self.start)
    }
}

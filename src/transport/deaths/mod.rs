//! Who watches whose process, and to which tasks a death is reported: for a transport between
//! hosts. [`ring`] decides it; the transport carries the notices, and looks at the process of the
//! task that is watched ([`Watch::look`]) when it is served, which a thread that waits, polls or
//! serves does several times in a second.

mod group_notices;
pub(in crate::transport) mod ring;
#[cfg(test)]
mod simulation;

use crate::base::process::{Handle, Process};
use crate::transport::Task;
use crate::wire::network::{Content, Notice};
use ring::{Action, Ring};
use std::time::Duration;

/// How long a death is not reported here when other hosts have not confirmed yet that they know of
/// it: the program may end at the report.
const REPORT_LATEST: Duration = Duration::from_millis(300);

/// The process of the task that this one watches.
#[derive(Default)]
struct Watched(Option<(Task, Handle)>);

/// What a look at the watched process has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum Look {
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

/// What a task has to watch another one and to report deaths, whatever carries its notices. Moments
/// are times since any beginning.
pub(in crate::transport) struct Watch {
    me: Task,
    pub(in crate::transport) ring: Ring,
    processes: Vec<Process>,
    watched: Watched,
    /// Tasks that watch this one, or have.
    watchers: Vec<Task>,
    /// Deaths that are not reported here yet, and when they are at the latest.
    unreported: Vec<(Task, Duration)>,
}

impl Watch {
    /// `group_of` numbers, for each task, the group of tasks that see each other's processes;
    /// `processes` are those of all tasks.
    pub(in crate::transport) fn new(me: Task, group_of: Vec<u32>, processes: Vec<Process>) -> Self {
        let lives: Vec<u32> = processes.iter().map(|process| process.life()).collect();
        let ring = Ring::new(me, group_of, &lives);
        let (watched, watchers, unreported) = (Watched::default(), Vec::new(), Vec::new());
        Self { me, ring, processes, watched, watchers, unreported }
    }

    /// The process of a task, as far as it is known.
    pub(in crate::transport) fn process(&self, task: Task) -> Process {
        self.processes[task as usize]
    }

    /// Looks at the process of the task that is to be watched, if there is one.
    pub(in crate::transport) fn look(&mut self) -> Option<(Task, Look)> {
        let task = self.ring.watched()?;
        Some((task, self.watched.look(task, self.processes[task as usize])))
    }

    /// The next notice that is to be sent, and to whom.
    pub(in crate::transport) fn next_notice(&mut self, now: Duration) -> Option<(Task, Notice)> {
        loop {
            match self.ring.next_action()? {
                Action::Send(to, notice) => return Some((to, notice)),
                // Another process of the task may have been accepted since: that one lives.
                Action::Report(task) if self.ring.has_died(task) => {
                    self.unreported.push((task, now + REPORT_LATEST));
                }
                Action::Report(_) => {}
            }
        }
    }

    /// The deaths that are to be reported now: those of which the other hosts know, or have had the
    /// time to learn.
    pub(in crate::transport) fn reports(&mut self, now: Duration) -> Vec<Task> {
        let ring = &self.ring;
        let waits = |&(task, latest): &(Task, Duration)| now < latest && ring.spreads(task);
        let (later, due): (Vec<_>, Vec<_>) = self.unreported.drain(..).partition(waits);
        self.unreported = later;
        due.into_iter().map(|(task, _)| task).collect()
    }

    /// The death of a task is not to be reported any more; whether it was.
    pub(in crate::transport) fn forget_report(&mut self, task: Task) -> bool {
        let before = self.unreported.len();
        self.unreported.retain(|(dead, _)| *dead != task);
        self.unreported.len() != before
    }

    /// When notices or reports are due.
    pub(in crate::transport) fn due(&self) -> Option<Duration> {
        self.unreported.iter().map(|(_, latest)| *latest).chain(self.ring.due()).min()
    }

    /// Whether the task's process has this life as far as is known here, and no other one's death
    /// is to be reported: the program parts from the task at such a report.
    pub(in crate::transport) fn knows(&self, task: Task, life: u32) -> bool {
        self.ring.life(task) == life && self.unreported.iter().all(|(dead, _)| *dead != task)
    }

    /// The task is this process now; whether that is news.
    pub(in crate::transport) fn replaced(&mut self, task: Task, process: Process, now: Duration) -> bool {
        let is_news = self.ring.life(task) != process.life();
        if is_news {
            self.processes[task as usize] = process;
            self.watched.forget(task);
            self.watchers.retain(|watcher| *watcher != task);
            self.ring.replaced(task, process.life(), now);
        }
        is_news
    }

    /// A notice has arrived; whether its sender watches this task, and wants to hear that this is
    /// known.
    pub(in crate::transport) fn note(&mut self, from: Task, notice: Notice, now: Duration) -> bool {
        self.ring.note(from, notice, now);
        let own = Notice { content: Content::Watches, task: self.me, life: self.ring.life(self.me) };
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
}

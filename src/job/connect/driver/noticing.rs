//! Tasks with which no connection exists: what the transport and the user must know of them.

use super::Driver;
use super::hindrance::Step;
use crate::base::limits;
use crate::error::Error;
use crate::transport::shm::connection::Absence;
use crate::transport::{PeerState, Task};
use crate::wire::hello::{Hello, NO_EPOCH};
use crate::wire::launcher::{Stage, WAITING_FOR_TASK};
use rustix::io::Errno;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// After how long a task that does not connect is named.
const NOTICE: Duration = Duration::from_secs(10);
/// After how long a hint is printed why it may not be found.
const HINT: Duration = Duration::from_secs(3);

impl Driver {
    /// Why this task is not connected with another one, and whether it may be later.
    pub(in crate::job::connect) fn absence(&self, task: Task) -> Absence {
        let absence = |state, why: &str| Absence { state, why: why.to_owned() };
        if let Some(why) = self.refused.get(&task) {
            return absence(PeerState::Dead, why);
        }
        let hindrance = self.hindrance.now();
        if self.site.has_established(task) || self.machine.is_reached(task) && hindrance.is_none() {
            // It listens: its silence counts like that of any other.
            return absence(PeerState::Up, "is being connected");
        }
        if let Some(end) = self.settings.ends.of(task) {
            let state = if end.stage == Stage::Left { PeerState::Closed } else { PeerState::Dead };
            return absence(state, &end.to_string());
        }
        let generation = self.machine.generation();
        if !self.machine.rejoins(task) && self.settings.openings.has_closed(task, generation) {
            return absence(PeerState::Closed, "has ended LAPI");
        }
        // It was there when the tasks exchanged their cards.
        if let Some(process) = self.settings.processes.get(task as usize).filter(|process| process.is_gone())
        {
            return absence(PeerState::Dead, &format!("(process {}) has ended", process.pid));
        }
        let waited = self.wanted.get(&task).map_or(Duration::ZERO, |since| self.now().saturating_sub(*since));
        if let Some((why, since)) = hindrance {
            let lasts = waited.min(self.now().saturating_sub(since)) >= self.settings.init_timeout;
            let state = if lasts { PeerState::Dead } else { PeerState::Up };
            return absence(state, &format!("cannot be connected: {why}"));
        }
        let opened = self.settings.openings.opened(task);
        let why = match opened {
            Some(opened) if opened >= generation => "has called LAPI_Init, but cannot be reached",
            _ => "has not called LAPI_Init",
        };
        // Where no launcher says what has become of it.
        let or = if opened.is_none() { ", or has died since" } else { "" };
        if waited < self.settings.init_timeout {
            return absence(PeerState::Connecting, &format!("{why}{or}"));
        }
        let seconds = self.settings.init_timeout.as_secs();
        absence(PeerState::Dead, &format!("{why} within {seconds} s (LAPI_INIT_TIMEOUT){or}"))
    }

    /// When [`Self::name_missing`] has something to print.
    pub(super) fn notice_due(&self) -> Option<Duration> {
        let missed = self.wanted.values().min();
        let hint = missed.filter(|_| !self.hinted && self.settings.hint.is_some()).map(|since| *since + HINT);
        let notice = missed.filter(|_| !self.noticed && self.settings.info_level >= 1);
        hint.into_iter().chain(notice.map(|since| *since + NOTICE)).min()
    }

    /// Names the tasks that do not connect.
    pub(super) fn name_missing(&mut self, now: Duration) {
        let missed_for = |time: Duration| {
            let missed = self.wanted.iter().filter(|(_, since)| now.saturating_sub(**since) >= time);
            missed.map(|(task, _)| *task).collect::<Vec<Task>>()
        };
        if !self.hinted && !missed_for(HINT).is_empty() {
            self.hinted = true;
            if let Some(hint) = &self.settings.hint {
                self.settings.log.line(format_args!("task {} is not found: {hint}", missed_for(HINT)[0]));
            }
        }
        let missed = missed_for(NOTICE);
        if !self.noticed && !missed.is_empty() {
            self.noticed = true;
            if self.settings.info_level >= 1 {
                let (first, rest) = (missed[0], missed.len() - 1);
                let others = if rest == 0 { String::new() } else { format!(" (and for {rest} more)") };
                // `poe` shows this line once for all tasks: they may wait for different ones, and
                // for different numbers.
                self.settings.log.line(format_args!(
                    "{WAITING_FOR_TASK}{first}, which {}{others}",
                    self.absence(first).why
                ));
            }
        }
    }

    /// What a step could not do for a connection: `None`, and the limit that was met is
    /// reported once.
    pub(super) fn unless_limited<T>(&mut self, step: Step, done: Result<T, impl Into<Limited>>) -> Option<T> {
        let error = match done {
            Ok(done) => {
                self.hindrance.passed(step);
                return Some(done);
            }
            Err(error) => error,
        };
        let now = self.now();
        if let Limited(Some(limit)) = error.into()
            && self.hindrance.meet(step, &limit, now)
        {
            self.settings.log.line(format_args!("attention: no connection can be made for now: {limit}"));
        }
        None
    }

    /// The refusal that other tasks get when no connection could be made for too long.
    pub(super) fn refusal(&self) -> Option<String> {
        let (why, since) = self.hindrance.now()?;
        let lasts = self.now().saturating_sub(since) >= self.settings.init_timeout;
        lasts.then(|| format!("task {} cannot make connections: {why}", self.settings.hello.task))
    }

    /// A task refuses to connect.
    pub(super) fn refuse(&mut self, task: Task, why: String) {
        if let Entry::Vacant(entry) = self.refused.entry(task) {
            self.settings.log.line(format_args!("{why}"));
            entry.insert(format!("refuses to connect: {why}"));
        }
    }

    /// Reports, once in the job, that addresses of one task are not valid in another: with a
    /// warning where the program itself lies elsewhere, and at level 2 where only libraries, heap
    /// and stacks do.
    pub(super) fn compare_maps(&mut self, hello: &Hello) {
        let own = &self.settings.hello;
        let first = own.task == 0 || hello.task == 0;
        if own.maps == hello.maps || !first || own.task >= 2 || hello.epoch != NO_EPOCH {
            return;
        }
        let (one, other) = (own.task, hello.task);
        if own.maps[0] != hello.maps[0] && self.settings.info_level >= 1 {
            self.settings.log.line(format_args!(
                "attention: the address maps of tasks {one} and {other} differ. A program that uses addresses of one task in \
                 another without LAPI_Address_init needs them to agree: start it by poe, and link it with -no-pie \
                 (mpcc_r does)."
            ));
        } else if self.settings.info_level >= 2 {
            self.settings.log.line(format_args!(
                "the program is at the same addresses in tasks {one} and {other}; libraries, heap and stacks are not: start it by poe \
                 if it uses such addresses of one task in another without LAPI_Address_init"
            ));
        }
        self.settings.hello.maps = hello.maps;
    }
}

/// The limit of the system that an error comes from, if it does.
pub(super) struct Limited(Option<String>);

impl From<std::io::Error> for Limited {
    fn from(error: std::io::Error) -> Self {
        let reason = Errno::from_io_error(&error).filter(|reason| *reason != Errno::AGAIN);
        Self(reason.and_then(limits::met))
    }
}

impl From<Error> for Limited {
    /// The setup of shared memory fails for want of something only.
    fn from(error: Error) -> Self {
        Self(Some(error.detail))
    }
}

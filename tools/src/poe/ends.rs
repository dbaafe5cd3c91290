//! What `poe` says about tasks that end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use openlapi::wire::launcher::{Ended, How, Stage};

use super::error::say;
use super::processes::signal_name;
use openlapi::base::ranges::tasks_named;

/// How long equal ends are collected before they are summarized.
const COLLECT: Duration = Duration::from_millis(300);
/// The number of tasks that end alike and get a line each.
const SINGLE: usize = 3;

/// The messages, as far as the level of information asks for them.
pub(super) struct Ends {
    level: u8,
    /// How many tasks have ended in each way, and those of them that were not reported yet.
    alike: BTreeMap<String, (usize, Vec<usize>)>,
    collect_until: Option<Instant>,
    /// What matters only if the job fails: tasks that left LAPI early, with status 0, and those
    /// that had ended before any task used LAPI.
    silent: Vec<Exit>,
}

/// A task that has exited.
pub(super) struct Exit {
    pub task: usize,
    /// The task with its program and process.
    pub name: String,
    pub program: String,
    pub status: u8,
    /// The state of its use of LAPI; `None` when no task of the job has used LAPI yet.
    pub stage: Option<Stage>,
}

impl Exit {
    /// The task, and how it has ended.
    pub(super) fn whole(&self) -> String {
        let how = How::Exit(self.status);
        let end = match self.stage {
            None | Some(Stage::Left) => self.end(),
            Some(stage) => Ended { stage, how }.to_string(),
        };
        format!("{} {end}", self.name)
    }

    /// To follow the name.
    fn end(&self) -> String {
        match self.stage {
            // An error is a reason to leave early.
            Some(Stage::Ready) if self.status != 0 => format!("exited with status {}", self.status),
            None | Some(Stage::Left) => format!("exited with status {}", self.status),
            Some(stage) => Ended { stage, how: How::Exit(self.status) }.to_string(),
        }
    }
}

/// The task with this name, and the signal that has ended it.
pub(super) fn killed(name: &str, signal: i32) -> String {
    format!("{name} was ended by signal {signal} ({})", signal_name(signal))
}

impl Ends {
    pub(super) fn new(level: u8) -> Self {
        Self { level, alike: BTreeMap::new(), collect_until: None, silent: Vec::new() }
    }

    /// A task has exited; `ending`: while the job is being ended.
    pub(super) fn exited(&mut self, exit: Exit, ending: bool) {
        if self.level >= 2 {
            say(&format!("{} {}", exit.name, exit.end()));
        } else if self.level == 1 && !ending {
            if exit.status != 0 {
                self.failed(exit.stage.is_some());
                self.add(&exit);
            } else if exit.stage != Some(Stage::Left) && exit.stage != Some(Stage::Failed) {
                self.silent.push(exit);
            }
        }
    }

    /// A signal has ended a task, by itself or because the job is being ended: the text says it.
    /// `used`: the job uses LAPI.
    pub(super) fn killed(&mut self, text: &str, by_itself: bool, used: bool) {
        if by_itself || self.level >= 2 {
            if by_itself && self.level == 1 {
                self.failed(used);
            }
            self.summarize();
            say(text);
        }
    }

    /// When [`Self::summarize`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.collect_until
    }

    /// Says what was collected.
    pub(super) fn summarize(&mut self) {
        self.collect_until = None;
        for (clause, (_, tasks)) in &mut self.alike {
            tasks.sort_unstable();
            let tasks = std::mem::take(tasks);
            if !tasks.is_empty() {
                say(&format!("{} {clause}", tasks_named(&tasks)));
            }
        }
    }

    /// The job has failed: what seemed harmless may be the cause, if the job uses LAPI (`used`).
    fn failed(&mut self, used: bool) {
        if !used {
            return;
        }
        for mut exit in std::mem::take(&mut self.silent) {
            // It ended before the first of the others called LAPI_Init.
            exit.stage.get_or_insert(Stage::Never);
            self.add(&exit);
        }
    }

    fn add(&mut self, exit: &Exit) {
        let end = exit.end();
        let (count, collected) = self.alike.entry(format!("({}) {end}", exit.program)).or_default();
        *count += 1;
        if *count <= SINGLE {
            say(&format!("{} {end}", exit.name));
        } else {
            collected.push(exit.task);
            self.collect_until.get_or_insert_with(|| Instant::now() + COLLECT);
        }
    }
}

//! How often a task has opened LAPI in its job. Tasks connect when their counts are equal: so the
//! tasks of a program that follows another one in the same job, or of a context that follows
//! another one, do not meet those that came before.
//!
//! A launcher counts for its tasks, in a file that they share (`LAPI_JOB_FD`,
//! [`crate::wire::board`]): a task may be a script that starts several programs. Without such a
//! file each task of a process counts for itself.

use crate::config::Env;
use crate::job::board::Board;
use crate::wire::board::{INSTANCES, TRIED, Word};
use crate::wire::frame::Task;
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The openings of one instance in a job.
#[derive(Clone, Debug)]
pub struct Openings {
    instance: u32,
    /// The launcher's file.
    board: Option<Board>,
    /// The job, for counts of this process.
    job: u32,
    counts: Arc<Counts>,
}

/// What a task of this process counts by itself, per instance: the job in the upper half, how often
/// the task has opened the instance in the lower.
#[derive(Debug, Default)]
pub(in crate::job) struct Counts([AtomicU64; INSTANCES as usize]);

impl Openings {
    /// Of an instance, as the environment has it; `counts` are the task's own.
    pub(in crate::job) fn from_env(
        env: &Env<'_>,
        counts: &Arc<Counts>,
        key: &str,
        tasks: u32,
        instance: u32,
    ) -> Self {
        let mut job = std::hash::DefaultHasher::new();
        job.write(key.as_bytes());
        let board = Board::from_env(env, key, tasks);
        Self { instance, board, job: (job.finish() as u32) | 1, counts: counts.clone() }
    }

    /// The opening that this task joins because it has taken the place of a process that had not
    /// closed it. It stays the next one to be joined until [`Self::has_rejoined`], so that an
    /// attempt that fails leaves it to the next one, and does not close it. Once an attempt has
    /// failed and all the other `tasks` have closed it, the next program opens one of its own.
    pub fn rejoin(&self, me: Task, tasks: u32) -> Option<u32> {
        let opening = self.left_open(me).filter(|opening| *opening != 0)?;
        let was_tried = self.read(Word::Rejoins(self.instance), me) != Some(opening);
        if was_tried && (0..tasks).all(|task| task == me || self.has_closed(task, opening)) {
            self.has_rejoined(me);
            return None;
        }
        Some(opening)
    }

    /// What the launcher, or the process before this one, has left to this one.
    fn left_open(&self, me: Task) -> Option<u32> {
        self.read(Word::Rejoins(self.instance), me).map(|marked| marked & !TRIED)
    }

    /// Notes that this task has joined the opening that [`Self::rejoin`] has returned.
    pub fn has_rejoined(&self, me: Task) {
        self.write(Word::Rejoins(self.instance), me, 0);
    }

    /// Notes that an attempt of this task to open the instance has failed, wherever: if it was to
    /// join an opening in the place of another process, that was tried.
    pub fn has_failed(&self, me: Task) {
        if let Some(opening) = self.left_open(me).filter(|opening| *opening != 0) {
            self.write(Word::Rejoins(self.instance), me, opening | TRIED);
        }
    }

    /// Counts one more, of this task, and returns which it is: the first is 1.
    pub fn open(&self, me: Task) -> u32 {
        if let Some(before) = self.opened(me) {
            self.write(Word::Opened(self.instance), me, before + 1);
            return before + 1;
        }
        let count = |counted: u64| if counted >> 32 == u64::from(self.job) { counted as u32 } else { 0 };
        let next = |counted: u64| u64::from(self.job) << 32 | u64::from(count(counted) + 1);
        let before =
            self.count().fetch_update(Ordering::AcqRel, Ordering::Acquire, |counted| Some(next(counted)));
        count(before.unwrap_or_default()) + 1
    }

    /// This process has taken the place of one that was in this opening, modulo 65,536: where the
    /// launcher does not count, the next one of this process follows that.
    pub fn adopt(&self, opening: u16) {
        let counted = u64::from(self.job) << 32 | u64::from(opening);
        self.count().store(counted, Ordering::Release);
    }

    /// The opening that was just counted has failed. If all `tasks` have published for it, its
    /// number is spent: what they have published stays, and would be taken for that of the next
    /// attempt. Otherwise the number is counted again, so that those that are still to come join
    /// the next attempt; they shall not find what this one has published. The last one to publish,
    /// if it does so between the look and the withdrawal, may have found all of the others by then:
    /// it joins an opening that this task has given up.
    pub fn fail(&self, me: Task, opening: u32, tasks: u32) {
        let has_published = |board: &Board, task| board.card(task, self.instance, opening).is_some();
        if let Some(board) = self.board {
            if (0..tasks).all(|task| has_published(&board, task)) {
                return self.close(me, opening);
            }
            board.withdraw(me, self.instance, opening);
        }
        self.take_back(me);
    }

    fn take_back(&self, me: Task) {
        if let Some(before) = self.opened(me) {
            return self.write(Word::Opened(self.instance), me, before.saturating_sub(1));
        }
        self.count().fetch_sub(1, Ordering::AcqRel);
    }

    /// Notes that this task has closed what was its opening with this number, unless another
    /// process is to join it.
    pub fn close(&self, me: Task, opening: u32) {
        if self.left_open(me) != Some(opening) {
            self.write(Word::Closed(self.instance), me, opening);
        }
    }

    /// Whether the launcher counts. It also reports the ends of tasks then, and may replace them.
    pub fn has_launcher(&self) -> bool {
        self.board.is_some()
    }

    /// How often a task has opened the instance; `None` where the launcher does not count.
    pub fn opened(&self, task: Task) -> Option<u32> {
        self.read(Word::Opened(self.instance), task)
    }

    /// Whether the task has closed its opening with this number, as far as is known. An opening is
    /// closed before the next begins, so a later one that is closed shows it too.
    pub fn has_closed(&self, task: Task, opening: u32) -> bool {
        self.read(Word::Closed(self.instance), task).is_some_and(|closed| closed >= opening)
    }

    fn count(&self) -> &AtomicU64 {
        let counts = &self.counts.0;
        &counts[self.instance as usize % counts.len()]
    }

    fn read(&self, word: Word, task: Task) -> Option<u32> {
        self.board?.read(word, task)
    }

    fn write(&self, word: Word, task: Task, value: u32) {
        if let Some(board) = self.board {
            board.write(word, task, value);
        }
    }
}

/// One opening of an instance, of this task.
#[derive(Clone, Debug)]
pub struct Opening {
    openings: Openings,
    me: Task,
    number: u32,
}

impl Opening {
    /// Task `me` has joined its job by opening `number`.
    pub(in crate::job) fn new(openings: Openings, me: Task, number: u32) -> Self {
        Self { openings, me, number }
    }

    /// Notes that this process has started all that it needs in it.
    pub fn has_begun(&self) {
        if self.openings.left_open(self.me) == Some(self.number) {
            self.openings.has_rejoined(self.me);
        }
    }

    /// Notes that this process has closed it, unless another one is to join it.
    pub fn close(&self) {
        self.openings.close(self.me, self.number);
    }

    /// The next process of the task that opens the instance joins this opening, where the launcher
    /// counts.
    pub fn leave_to_successor(&self) {
        self.openings.write(Word::Rejoins(self.openings.instance), self.me, self.number);
    }

    /// This process stays, and no other one takes its place.
    pub fn take_back(&self) {
        self.openings.has_rejoined(self.me);
    }
}

#[cfg(test)]
#[path = "openings_tests.rs"]
mod tests;

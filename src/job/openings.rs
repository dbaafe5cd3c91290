//! How often a task has opened LAPI in its job. Tasks connect when their counts are equal: so the
//! tasks of a program that follows another one in the same job, or of a context that follows
//! another one, do not meet those that came before.
//!
//! A launcher counts for its tasks, in a file that they share (`LAPI_JOB_FD`,
//! [`crate::wire::board`]): a task may be a script that starts several programs. Without such a
//! file each task of a process counts for itself.

use crate::config::Env;
use crate::job::board::Board;
use crate::wire::board::{INSTANCES, Word};
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
    /// closed it. Returned once.
    pub fn rejoin(&self, me: Task) -> Option<u32> {
        let opening = self.read(Word::Rejoins(self.instance), me).filter(|opening| *opening != 0)?;
        self.write(Word::Rejoins(self.instance), me, 0);
        Some(opening)
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

    /// The opening that was just counted has failed.
    pub fn take_back(&self, me: Task) {
        if let Some(before) = self.opened(me) {
            return self.write(Word::Opened(self.instance), me, before.saturating_sub(1));
        }
        self.count().fetch_sub(1, Ordering::AcqRel);
    }

    /// Notes that this task has closed what was its opening with this number.
    pub fn close(&self, me: Task, opening: u32) {
        self.write(Word::Closed(self.instance), me, opening);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::identity;
    use crate::wire::board;
    use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
    use std::os::fd::AsRawFd;

    #[test]
    fn the_launchers_file_counts_for_all_processes_of_a_task() {
        let file = memfd_create("job", MemfdFlags::CLOEXEC).expect("a memory file");
        ftruncate(&file, board::size(3)).expect("room");
        let inode = fstat(&file).expect("a file").st_ino;
        let value = format!("{}:{inode}@77", file.as_raw_fd());
        let env = |name: &str| (name == "LAPI_JOB_FD").then(|| value.clone());
        let of = |env: &Env<'_>, key: &str, tasks, instance| {
            Openings::from_env(env, &Arc::default(), key, tasks, instance)
        };
        let [one, other] = [0, 3].map(|instance| of(&env, "MP_PARTITION 77", 3, instance));
        assert_eq!((one.open(1), one.open(1), one.open(2), other.open(1)), (1, 2, 1, 1));
        // Another process of the task.
        let again = of(&env, "MP_PARTITION 77", 3, 0);
        assert_eq!((again.open(1), again.opened(0), again.opened(2)), (3, Some(0), Some(1)));
        again.take_back(1);
        assert_eq!(one.opened(1), Some(2));
        again.close(1, 2);
        assert!(one.has_closed(1, 2) && !one.has_closed(1, 3) && !other.has_closed(1, 2));
        assert!(one.has_closed(1, 1), "the opening before it was closed too");
        // As poe's tasks find it: by the key that follows from their environment.
        let of_poe = |name: &str| match name {
            "MP_CHILD" => Some("1".to_owned()),
            "MP_PROCS" => Some("3".to_owned()),
            "MP_PARTITION" => Some("77".to_owned()),
            name => env(name),
        };
        let identity = identity::Identity::from_env(&of_poe).expect("a task of a job");
        assert_eq!(of(&of_poe, &identity.key, 3, 0).opened(1), Some(2));
        // The launcher lets another process take the place of one that has died.
        assert_eq!(again.rejoin(1), None);
        again.write(Word::Rejoins(0), 1, 2);
        assert_eq!((other.rejoin(1), again.rejoin(1), again.rejoin(1)), (None, Some(2), None));
        for (key, tasks) in [("MP_PARTITION 78", 3), ("MP_PARTITION 77", 4), ("77", 3)] {
            assert_eq!(of(&env, key, tasks, 0).opened(0), None, "{key}, {tasks} tasks");
        }
    }

    #[test]
    fn without_a_launcher_each_task_counts_for_itself() {
        let counts = Arc::default();
        let of = |counts: &Arc<Counts>, key: &str| Openings::from_env(&|_| None, counts, key, 2, 15);
        let openings = of(&counts, "a job of this test");
        assert_eq!((openings.open(0), openings.open(0)), (1, 2));
        openings.take_back(0);
        assert_eq!((openings.open(0), openings.opened(0)), (2, None));
        openings.adopt(9);
        assert_eq!(openings.open(0), 10);
        // Its next session counts on, and another task of this process by itself.
        assert_eq!(of(&counts, "a job of this test").open(0), 11);
        let others = Arc::default();
        assert_eq!(of(&others, "a job of this test").open(1), 1);
        assert_eq!(of(&counts, "another one").open(0), 1);
    }
}

//! The tasks of a job that have ended, as the launcher reports them.
//!
//! One word for each task, written by one thread and read without a lock: a child of fork inherits
//! no lock that a thread of the parent held.

use crate::config::MAX_TASKS;
use crate::wire::launcher::Ended;
use bytemuck::allocation::zeroed_slice_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which tasks of a job have ended, and how.
#[derive(Debug)]
pub struct Ends {
    /// 0: the task runs, as far as is known.
    words: Box<[AtomicU32]>,
    /// All words from this one on are 0.
    bound: AtomicU32,
}

impl Ends {
    /// Of a job of any size. What was not stored takes no memory.
    pub fn of_any_job() -> Self {
        Self { words: zeroed_slice_box(MAX_TASKS as usize), bound: AtomicU32::new(0) }
    }

    /// Of a job whose launcher reports no ends.
    pub fn of_none() -> Self {
        Self { words: Box::default(), bound: AtomicU32::new(0) }
    }

    /// How `task` ended; `None` while it runs, and where the launcher does not report it.
    pub fn of(&self, task: u32) -> Option<Ended> {
        Ended::from_word(self.words.get(task as usize)?.load(Ordering::Relaxed))
    }

    /// Stores what the launcher has sent of these tasks: those that have ended, by number. A task
    /// that is not among them runs.
    pub fn store(&self, tasks: Range<u32>, all: &[(u32, Ended)]) {
        self.bound.fetch_max(all.last().map_or(0, |(task, _)| task + 1), Ordering::Relaxed);
        let mut ended = all.iter().peekable();
        let mut word = |task| {
            while ended.next_if(|(earlier, _)| *earlier < task).is_some() {}
            ended.next_if(|(number, _)| *number == task).map_or(0, |(_, ended)| ended.to_word())
        };
        self.change(tasks, &mut word);
    }

    /// In the child of a fork: it is not a task of that job.
    pub fn forget(&self) {
        self.change(0..u32::MAX, &mut |_| 0);
    }

    fn change(&self, tasks: Range<u32>, to: &mut dyn FnMut(u32) -> u32) {
        let end = tasks.end.min(self.bound.load(Ordering::Relaxed));
        for (task, word) in (tasks.start..end).zip(self.words.iter().skip(tasks.start as usize)) {
            let to = to(task);
            // Pages that hold nothing stay shared.
            if word.load(Ordering::Relaxed) != to {
                word.store(to, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::launcher::{How, Stage};

    #[test]
    fn a_part_of_the_list_says_nothing_of_the_others() {
        let ends = Ends::of_any_job();
        let end = Ended { stage: Stage::Ready, how: How::Signal(9) };
        let first = MAX_TASKS - 10;
        ends.store(first..first + 5, &[(first, end), (first + 4, end)]);
        ends.store(first + 5..u32::MAX, &[(first + 6, end)]);
        let ended = || (first..first + 10).filter(|task| ends.of(*task).is_some()).collect::<Vec<u32>>();
        assert_eq!(ended(), [first, first + 4, first + 6]);
        ends.store(first..first + 5, &[(first + 1, end)]);
        assert_eq!(ended(), [first + 1, first + 6]);
        ends.store(first..u32::MAX, &[]);
        assert!(ended().is_empty());
        let none = Ends::of_none();
        none.store(0..u32::MAX, &[(1, end)]);
        assert_eq!((none.of(1), ends.of(u32::MAX)), (None, None));
    }
}

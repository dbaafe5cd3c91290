//! The tasks of this job that have ended, as the launcher reports them.
//!
//! One word for each task, written by the reporter's thread alone and read without a lock: a child
//! of fork inherits no lock that a thread of the parent held.

use crate::wire::launcher::Ended;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// No launcher starts more tasks than this.
const MOST: usize = 1 << 14;

/// 0: the task runs, as far as is known.
static WORDS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// All words from this one on are 0.
static BOUND: AtomicU32 = AtomicU32::new(0);

/// How `task` ended; `None` while it runs, and where the launcher does not report it.
pub fn of(task: u32) -> Option<Ended> {
    Ended::from_word(WORDS.get(task as usize)?.load(Ordering::Relaxed))
}

/// Stores what the launcher has sent of these tasks: those that have ended, by number. A task that
/// is not among them runs.
pub fn store(tasks: Range<u32>, all: &[(u32, Ended)]) {
    BOUND.fetch_max(all.last().map_or(0, |(task, _)| task + 1), Ordering::Relaxed);
    let mut ended = all.iter().peekable();
    let mut word = |task| {
        while ended.next_if(|(earlier, _)| *earlier < task).is_some() {}
        ended.next_if(|(number, _)| *number == task).map_or(0, |(_, ended)| ended.to_word())
    };
    change(tasks, &mut word);
}

/// In the child of a fork: it is not a task of that job.
pub fn forget_in_child() {
    change(0..u32::MAX, &mut |_| 0);
}

fn change(tasks: Range<u32>, to: &mut dyn FnMut(u32) -> u32) {
    let end = tasks.end.min(BOUND.load(Ordering::Relaxed));
    for (task, word) in (tasks.start..end).zip(WORDS.iter().skip(tasks.start as usize)) {
        let to = to(task);
        // Pages that hold nothing stay shared.
        if word.load(Ordering::Relaxed) != to {
            word.store(to, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::launcher::{How, Stage};

    #[test]
    fn a_part_of_the_list_says_nothing_of_the_others() {
        let end = Ended { stage: Stage::Ready, how: How::Signal(9) };
        let first = MOST as u32 - 10;
        store(first..first + 5, &[(first, end), (first + 4, end)]);
        store(first + 5..u32::MAX, &[(first + 6, end)]);
        let ended = || (first..first + 10).filter(|task| of(*task).is_some()).collect::<Vec<u32>>();
        assert_eq!(ended(), [first, first + 4, first + 6]);
        store(first..first + 5, &[(first + 1, end)]);
        assert_eq!(ended(), [first + 1, first + 6]);
        store(first..u32::MAX, &[]);
        assert!(ended().is_empty());
    }
}

//! The tasks of this job that have ended, as the launcher reports them.
//!
//! One word for each task, written by the reporter's thread alone and read without a lock: a child of fork inherits no
//! lock that a thread of the parent held.

use crate::wire::launcher::Ended;
use std::sync::atomic::{AtomicU32, Ordering};

/// No launcher starts more tasks than this.
const MOST: usize = 1 << 14;

/// 0: the task runs, as far as is known.
static WORDS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// How `task` ended; `None` while it runs, and where the launcher does not report it.
pub fn of(task: u32) -> Option<Ended> {
    Ended::from_word(WORDS.get(task as usize)?.load(Ordering::Relaxed))
}

/// Stores what the launcher has sent: all tasks that have ended. A task that is not among them runs.
pub fn store(all: &[(u32, Ended)]) {
    let mut words = vec![0; MOST];
    for (task, ended) in all {
        if let Some(word) = words.get_mut(*task as usize) {
            *word = ended.to_word();
        }
    }
    change(&|task| words[task]);
}

/// In the child of a fork: it is not a task of that job.
pub fn forget_in_child() {
    change(&|_| 0);
}

fn change(to: &dyn Fn(usize) -> u32) {
    for (task, word) in WORDS.iter().enumerate() {
        // Pages that hold nothing stay shared.
        if word.load(Ordering::Relaxed) != to(task) {
            word.store(to(task), Ordering::Relaxed);
        }
    }
}

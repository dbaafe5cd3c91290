//! The content of the file that a launcher shares with the tasks of a job (`LAPI_JOB_FD`): a record for each task,
//! little-endian words of 32 bits. The launcher makes it full of zeros; each task writes its own record, and all read all
//! of them.

use super::frame::Task;

/// LAPI instances of a task.
pub const INSTANCES: u32 = 16;

/// Bytes of one task's record.
pub const RECORD: u64 = 128;

/// A word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// How often this instance was opened.
    Opened(u32),
    /// The last opening of this instance that was closed again, counted likewise.
    Closed(u32),
}

impl Word {
    /// The position of the word of this task, in bytes from the beginning.
    pub fn at(self, task: Task) -> u64 {
        let word = match self {
            Self::Opened(instance) => instance % INSTANCES,
            Self::Closed(instance) => INSTANCES + instance % INSTANCES,
        };
        u64::from(task) * RECORD + u64::from(word) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_overlap() {
        let words = (0..INSTANCES).flat_map(|at| [Word::Opened(at), Word::Closed(at)]);
        let mut places: Vec<u64> = words.flat_map(|word| (0..3).map(move |task| word.at(task))).collect();
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), count);
        assert!(places.iter().all(|at| at % 4 == 0 && *at < 3 * RECORD));
    }
}

//! The content of the file that a launcher shares with the tasks of a job (`LAPI_JOB_FD`): a record
//! for each task, little-endian words of 32 bits, and after all records a place for each task's
//! card ([`super::card`]) of each instance. The launcher makes it full of zeros; each task writes
//! what is its own, and all read everything. Places that no task writes take no memory.
//!
//! On several machines each task has a file of its own. The launcher copies what a task writes into
//! the files of all others; a socket beside the file, the *bell*, gets an empty message after each
//! change. LAPI_JOB_FD is NUMBER:INODE@PARTITION, or with a bell
//! NUMBER:INODE:NUMBER:INODE@PARTITION.

use super::frame::Task;

/// LAPI instances of a task.
pub const INSTANCES: u32 = 16;

/// Bytes of one task's record.
pub const RECORD: u64 = 256;

/// Bytes of the place of a card: the opening that it belongs to, its length, and the card.
pub const CARD: u64 = 8192;

/// Bytes before a card in its place.
pub const CARD_HEAD: u64 = 8;

/// Bytes of the file of a job of this many tasks.
pub fn size(tasks: u32) -> u64 {
    u64::from(tasks) * (RECORD + u64::from(INSTANCES) * TURNS * CARD)
}

/// Places that the openings of an instance use in turn. A task that has all cards of an opening has
/// read those of the one before: so two places are enough for a task that closes an opening and
/// begins the next while others still read.
const TURNS: u64 = 2;

/// The position of the card of this task, instance and opening, in bytes from the beginning.
pub fn card_at(tasks: u32, task: Task, instance: u32, opening: u32) -> u64 {
    let cards = u64::from(tasks) * RECORD;
    let place = u64::from(task) * u64::from(INSTANCES) + u64::from(instance % INSTANCES);
    cards + (place * TURNS + u64::from(opening) % TURNS) * CARD
}

/// The positions of all cards of this task.
pub fn cards_of(tasks: u32, task: Task) -> impl Iterator<Item = u64> {
    (0..INSTANCES)
        .flat_map(move |instance| (0..TURNS).map(move |turn| card_at(tasks, task, instance, turn as u32)))
}

/// The bit of [`Word::Rejoins`] that shows that an attempt to join the opening has failed.
pub const TRIED: u32 = 1 << 31;

/// A word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// How often this instance was opened.
    Opened(u32),
    /// The last opening of this instance that was closed again, counted likewise.
    Closed(u32),
    /// The opening of this instance that the process before this one had not closed when it died:
    /// its successor joins that one. 0: there is none. The launcher writes it, or a task that
    /// leaves for a checkpoint; the successor adds [`TRIED`].
    Rejoins(u32),
    /// 1: the process of this task has ended, and no other one has been started. Where the tasks
    /// are on several machines, the launcher writes it.
    Ended,
}

impl Word {
    /// The position of the word of this task, in bytes from the beginning.
    pub fn at(self, task: Task) -> u64 {
        let word = match self {
            Self::Opened(instance) => instance % INSTANCES,
            Self::Closed(instance) => INSTANCES + instance % INSTANCES,
            Self::Rejoins(instance) => 2 * INSTANCES + instance % INSTANCES,
            Self::Ended => 3 * INSTANCES,
        };
        u64::from(task) * RECORD + u64::from(word) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_overlap() {
        let words = (0..INSTANCES).flat_map(|at| [Word::Opened(at), Word::Closed(at), Word::Rejoins(at)]);
        let words = words.chain([Word::Ended]);
        let mut places: Vec<u64> = words.flat_map(|word| (0..3).map(move |task| word.at(task))).collect();
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), count);
        assert!(places.iter().all(|at| at % 4 == 0 && *at < 3 * RECORD));
    }

    #[test]
    fn cards_fill_the_rest_of_the_file() {
        let mut places: Vec<u64> = (0..3).flat_map(|task| cards_of(3, task)).collect();
        places.sort_unstable();
        assert_eq!(places[0], 3 * RECORD);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] == CARD));
        assert_eq!(places.last().copied(), Some(size(3) - CARD));
    }
}

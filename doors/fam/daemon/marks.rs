//! Marks at the beginning of a part's file: which ranges are being written. A range that is marked
//! when the daemon starts was not written as a whole: it is torn until its memory is given to
//! another item.
//!
//! The head of a file is [`HEAD`] bytes of numbers of 64 bits: eight that say what the file is,
//! then marks of four each: the item, offset in the part, length (0: the mark is free), and whether
//! it is [`TORN`]. All are stored in the order in which a daemon that is killed must leave them:
//! the kernel has what was stored.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// Bytes of the head.
pub const HEAD: usize = 1 << 16;
/// Numbers of 64 bits in the head.
const WORDS: usize = HEAD / 8;
/// Where marks begin, and the length of one.
const FIRST: usize = 8;
const MARK: usize = 4;
/// How many there are.
const MARKS: usize = (WORDS - FIRST) / MARK;
/// The first number of a head: "OpenFAM" and a version.
const MAGIC: u64 = u64::from_le_bytes(*b"OpenFAM1");

/// A range being written.
const WRITTEN: u64 = 0;
/// A range of which a daemon has found that it was not written as a whole.
const TORN: u64 = 1;

/// A range of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The item.
    pub item: u64,
    /// Where it begins in the part, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// The head of a mapped file.
pub struct Marks<'a> {
    words: &'a [AtomicU64],
    free: &'a Mutex<Vec<u16>>,
}

/// What a file says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The pool.
    pub pool: u128,
    /// The part.
    pub part: u64,
}

/// The marks of a head by its memory, which has [`HEAD`] bytes.
pub fn label(words: &[AtomicU64]) -> Option<Label> {
    let word = |at: usize| words.get(at).map(|word| word.load(Ordering::Acquire));
    (word(0)? == MAGIC).then_some(())?;
    let pool = u128::from(word(1)?) | u128::from(word(2)?) << 64;
    Some(Label { pool, part: word(3)? })
}

/// Writes what the file is; the first number last, so that a file without it was never whole.
pub fn set_label(words: &[AtomicU64], label: Label) {
    for (at, value) in [(1, label.pool as u64), (2, (label.pool >> 64) as u64), (3, label.part), (0, MAGIC)] {
        words[at].store(value, Ordering::Release);
    }
}

/// The marks of a head without marks, which are not used.
pub fn all_free() -> Mutex<Vec<u16>> {
    Mutex::new((0..MARKS as u16).rev().collect())
}

impl<'a> Marks<'a> {
    /// The marks of a head.
    pub fn new(words: &'a [AtomicU64], free: &'a Mutex<Vec<u16>>) -> Self {
        assert_eq!(words.len(), WORDS);
        Self { words, free }
    }

    fn word(&self, mark: u16, at: usize) -> &AtomicU64 {
        &self.words[FIRST + usize::from(mark) * MARK + at]
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u16>> {
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Marks a range before it is written. `None`: all marks are in use.
    pub fn set(&self, range: Range) -> Option<u16> {
        let mark = self.free().pop()?;
        self.word(mark, 0).store(range.item, Ordering::Relaxed);
        self.word(mark, 1).store(range.offset, Ordering::Relaxed);
        self.word(mark, 3).store(WRITTEN, Ordering::Relaxed);
        self.word(mark, 2).store(range.length, Ordering::Release);
        // What is written comes after that. For the compiler alone: the kernel stops a thread
        // that it kills between two instructions, and what stands before is stored then.
        compiler_fence(Ordering::SeqCst);
        Some(mark)
    }

    /// The range of a mark is written.
    pub fn clear(&self, mark: u16) {
        self.word(mark, 2).store(0, Ordering::Release);
        self.free().push(mark);
    }

    /// The range of a mark will not be written as a whole: the range.
    pub fn tear(&self, mark: u16) -> Option<Range> {
        self.word(mark, 3).store(TORN, Ordering::Release);
        self.range(mark).map(|(range, _)| range)
    }

    /// What a daemon that starts finds: all marked ranges become torn. Returns those that were not
    /// before, and those that were.
    pub fn recover(&self) -> (Vec<Range>, Vec<Range>) {
        let (mut new, mut old) = (Vec::new(), Vec::new());
        let mut free = self.free();
        free.clear();
        for mark in (0..MARKS as u16).rev() {
            match self.range(mark) {
                None => free.push(mark),
                Some((range, TORN)) => old.push(range),
                Some((range, _)) => {
                    self.word(mark, 3).store(TORN, Ordering::Release);
                    new.push(range);
                }
            }
        }
        (new, old)
    }

    /// Ranges that are torn; without a daemon those that were being written, too.
    pub fn torn(&self, has_daemon: bool) -> Vec<Range> {
        let marked = (0..MARKS as u16).filter_map(|mark| self.range(mark));
        marked.filter(|(_, state)| !has_daemon || *state == TORN).map(|(range, _)| range).collect()
    }

    /// The memory of a range has another content: what was torn in it is not any more.
    pub fn renew(&self, offset: u64, length: u64) {
        for mark in 0..MARKS as u16 {
            let Some((range, TORN)) = self.range(mark) else { continue };
            if range.offset < offset + length && offset < range.offset.saturating_add(range.length) {
                self.clear(mark);
            }
        }
    }

    fn range(&self, mark: u16) -> Option<(Range, u64)> {
        let word = |at| self.word(mark, at).load(Ordering::Acquire);
        let length = word(2);
        (length != 0).then(|| (Range { item: word(0), offset: word(1), length }, word(3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn what_was_marked_at_a_death_is_torn_until_its_memory_is_renewed() {
        let (words, free) = (head(), all_free());
        let marks = Marks::new(&words, &free);
        let range = |item| Range { item, offset: 4096 * item, length: 100 };
        let [one, two] = [1, 2].map(|item| marks.set(range(item)).expect("a free mark"));
        assert_ne!(one, two);
        marks.clear(two);
        assert_eq!(marks.torn(true), []);
        assert_eq!(marks.torn(false), [range(1)]);
        // Another daemon, with the same file.
        let free = all_free();
        let marks = Marks::new(&words, &free);
        assert_eq!(marks.recover(), (vec![range(1)], vec![]));
        assert_eq!(marks.recover(), (vec![], vec![range(1)]));
        assert_eq!(marks.torn(true), [range(1)]);
        let three = marks.set(range(3)).expect("a free mark");
        assert_ne!(three, one, "a mark of a torn range is not free");
        marks.renew(0, 4096);
        assert_eq!(marks.torn(true), [range(1)]);
        marks.renew(4096 + 99, 1);
        assert_eq!(marks.torn(true), []);
        marks.clear(three);
        assert_eq!(marks.recover(), (vec![], vec![]));
        for _ in 0..MARKS {
            assert!(marks.set(range(5)).is_some());
        }
        assert!(marks.set(range(5)).is_none());
    }

    #[test]
    fn a_head_without_its_first_number_is_none() {
        let words = head();
        assert_eq!(label(&words), None);
        let one = Label { pool: u128::MAX - 5, part: 77 };
        set_label(&words, one);
        assert_eq!(label(&words), Some(one));
    }
}

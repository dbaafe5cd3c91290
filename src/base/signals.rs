//! Numbers that one task gives another one without a packet, in memory that two processes share.
//!
//! Algorithm: two flags, of which one holds the last even number and the other one the last odd
//! number. A giver of ascending numbers, which is never more than one ahead of the one that asks
//! for them, overwrites none that will be asked for: a sense-reversing flag (Mellor-Crummey and
//! Scott, ACM TOCS 1991) that holds the number instead of one bit, so that what was never given is
//! never found. Both words are on one line, which the giver alone writes.
//!
//! Orderings: a number is stored with Release and loaded with Acquire, so that one who finds it
//! sees all that was written before it was given. One that may sleep is woken as for a packet (see
//! [`super::doorbell`]): the giver stores the number and then reads the doorbell; the other one
//! raises the doorbell and then looks for numbers.
//!
//! `models/signals.rs` checks this file with loom.

use super::line::Line;
use super::sync::{AtomicU64, Ordering};

/// A word with a number has this bit.
const GIVEN: u64 = 1 << 32;

/// The numbers from one task to another. Zeroed memory holds none.
#[repr(C)]
pub struct Signals {
    words: Line<[AtomicU64; 2]>,
}

impl Signals {
    /// Gives a number, in place of the last one that was even or odd as this one is.
    #[inline]
    pub fn give(&self, number: u32) {
        self.word(number).store(GIVEN | u64::from(number), Ordering::Release);
    }

    /// Whether this number was given, and no later one has its place.
    #[inline]
    pub fn given(&self, number: u32) -> bool {
        self.word(number).load(Ordering::Acquire) == GIVEN | u64::from(number)
    }

    /// A count that changes with each number that is given.
    pub fn count(&self) -> u64 {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        words.fold(0, u64::wrapping_add)
    }

    fn word(&self, number: u32) -> &AtomicU64 {
        &self.words[number as usize & 1]
    }
}

#[cfg(all(test, loom))]
impl Signals {
    /// Without any number.
    pub(super) fn new() -> Self {
        Self { words: Line::new(std::array::from_fn(|_| AtomicU64::new(0))) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_even_and_the_last_odd_number_are_found() {
        // SAFETY: it consists of atomics, which may be zero.
        let signals: Signals = unsafe { std::mem::zeroed() };
        let found = |numbers: [u32; 4]| numbers.map(|number| signals.given(number));
        assert_eq!(found([0, 1, u32::MAX, u32::MAX - 1]), [false; 4]);
        let before = signals.count();
        signals.give(0);
        assert_eq!(found([0, 1, 2, u32::MAX]), [true, false, false, false]);
        let once = signals.count();
        signals.give(1);
        assert!(before != once && once != signals.count());
        assert_eq!(found([0, 1, 2, 3]), [true, true, false, false]);
        signals.give(2);
        assert_eq!(found([0, 1, 2, 3]), [false, true, true, false]);
        // They wrap around.
        signals.give(u32::MAX);
        signals.give(0);
        assert_eq!(found([u32::MAX, 0, 1, 2]), [true, true, false, false]);
    }
}

//! The words of a thread on processors whose calls have no places: the second one is used alone.

use std::cell::Cell;

thread_local! {
    static RECORD: Cell<usize> = const { Cell::new(0) };
}

/// Reads the second word; 0 for the others.
#[inline(always)]
pub fn load<const AT: usize>() -> usize {
    if AT == 8 { RECORD.get() } else { 0 }
}

/// Writes the word at this place.
#[inline(always)]
pub fn store<const AT: usize>(value: usize) {
    if AT == 8 {
        RECORD.set(value);
    }
}

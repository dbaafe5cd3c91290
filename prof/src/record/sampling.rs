//! Which calls are counted without being timed: reading the clock twice costs more than counting.
//!
//! Only short transfers, of a place whose calls have all been short for a while. One in [`period`] is timed, and stands for those
//! since the last one that was. Counts and bytes are exact; the time of such a place is an estimate.

use super::Count;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A call of fewer ticks is short: about a microsecond.
const SHORT: u64 = 1 << 12;
/// After a call of more ticks each call of the place is timed again: about ten microseconds.
const LONG: u64 = 1 << 15;
/// After so many short calls, one in a period is timed.
const CALM: u64 = 64;

static PERIOD: AtomicU64 = AtomicU64::new(1);

/// Of so many calls one is timed.
pub fn set_period(period: u64) {
    PERIOD.store(period.max(1), Relaxed);
}

/// The state of a place.
#[derive(Debug)]
pub struct Rhythm {
    /// How many calls follow that are not timed.
    pub(super) left: Count,
    /// How many short calls have been timed since a long one, at most [`CALM`].
    calm: Count,
    /// How long the last short one took.
    short: Count,
    /// How many calls are in the timeline.
    pub(super) entered: Count,
    /// How many of their bytes.
    pub(super) entered_bytes: Count,
    /// What the last timed call has moved, and to or from which task.
    pub(super) peer: Count,
    pub(super) bytes: Count,
    /// How many calls after it have moved as much to or from the same task, and are counted here alone.
    pub(super) alike: Count,
}

/// Calls that a timed one stands for, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many.
    pub calls: u64,
    /// What they have moved.
    pub bytes: u64,
    /// What those are taken to have taken that were not timed.
    pub estimate: u64,
}

impl Rhythm {
    /// After a transfer has been timed and counted: what it stands for. `calls` and `bytes` are those of the place. `wanted`: each
    /// call is to be timed.
    pub(super) fn timed(&self, (calls, bytes): (u64, u64), ticks: u64, wanted: bool) -> Batch {
        let new = calls.wrapping_sub(self.entered.get());
        let moved = bytes.wrapping_sub(self.entered_bytes.get());
        self.entered.set(calls);
        self.entered_bytes.set(bytes);
        if ticks < SHORT {
            self.short.set(ticks);
            self.calm.set((self.calm.get() + 1).min(CALM));
        } else if ticks > LONG {
            self.calm.set(0);
        }
        let skips = self.calm.get() == CALM && !wanted;
        self.left.set(if skips { PERIOD.load(Relaxed) - 1 } else { 0 });
        // A long call is an exception, for which nothing speaks that the others took as long.
        let each = if ticks > LONG { self.short.get() } else { ticks };
        Batch { calls: new, bytes: moved, estimate: new.saturating_sub(1).saturating_mul(each) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, CALM, LONG, Rhythm, SHORT, set_period};

    #[test]
    fn a_place_is_timed_in_full_until_it_is_calm_and_after_a_long_call() {
        set_period(17);
        // SAFETY: it consists of atomics, for which zeroes are valid.
        let rhythm: Rhythm = unsafe { std::mem::zeroed() };
        for call in 1..=CALM {
            assert_eq!(rhythm.left.get(), 0);
            let batch = rhythm.timed((call, 8 * call), 500, false);
            assert_eq!(batch, Batch { calls: 1, bytes: 8, estimate: 0 });
        }
        assert_eq!(rhythm.left.get(), 16);
        // 16 were not timed; then one was.
        let batch = rhythm.timed((CALM + 17, 8 * (CALM + 17)), 600, false);
        assert_eq!(batch, Batch { calls: 17, bytes: 8 * 17, estimate: 16 * 600 });
        // One of middle length changes nothing.
        let batch = rhythm.timed((CALM + 34, 8 * (CALM + 34)), SHORT + 1, false);
        assert_eq!((batch.estimate, rhythm.left.get()), (16 * (SHORT + 1), 16));
        // A long one does not stand for the others.
        let batch = rhythm.timed((CALM + 51, 8 * (CALM + 51)), LONG + 1, false);
        assert_eq!((batch.estimate, rhythm.left.get()), (16 * 600, 0));
        // When events are kept, each is timed.
        for at in 0..2 * CALM {
            rhythm.timed((200 + at, 0), 1, true);
        }
        assert_eq!(rhythm.left.get(), 0);
    }
}

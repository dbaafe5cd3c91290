//! How many calls began in each stretch of time, for a fixed number of stretches.

use super::Count;
use crate::calls::Class;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of stretches.
pub const BINS: usize = 256;
/// The first length of a stretch is two to this many ticks: well below a millisecond.
const FIRST: u32 = 18;

/// Calls by time. When the time is used up, stretches become twice as long.
#[derive(Debug)]
pub struct Timeline {
    /// How many times stretches have become twice as long.
    doubled: AtomicU32,
    bins: [[Count; Class::COUNT]; BINS],
}

impl Timeline {
    /// Counts a call that began `ticks` after the beginning.
    #[inline]
    pub fn add(&self, ticks: u64, class: Class) {
        let mut bin = ticks >> self.shift();
        while bin >= BINS as u64 {
            self.fold();
            bin = ticks >> self.shift();
        }
        self.bins[bin as usize][class as usize].add(1);
    }

    /// The length of a stretch is two to this many ticks.
    pub fn shift(&self) -> u32 {
        FIRST + self.doubled.load(Ordering::Relaxed)
    }

    /// The counts in stretches of two to `shift` ticks, which are no shorter than its own.
    pub fn counts(&self, shift: u32) -> Vec<[u64; Class::COUNT]> {
        let more = shift.saturating_sub(self.shift());
        let mut counts = vec![[0; Class::COUNT]; BINS];
        for (at, bin) in self.bins.iter().enumerate() {
            for (class, count) in bin.iter().enumerate() {
                counts[at >> more][class] += count.get();
            }
        }
        counts
    }

    #[cold]
    fn fold(&self) {
        for at in 0..BINS {
            for class in 0..Class::COUNT {
                let count = self.bins[at][class].take();
                self.bins[at / 2][class].add(count);
            }
        }
        self.doubled.store(self.doubled.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{BINS, FIRST, Timeline};
    use crate::calls::Class;

    #[test]
    fn nothing_is_lost_when_time_goes_on() {
        // SAFETY: it consists of atomics, for which zeroes are valid.
        let timeline: Box<Timeline> = unsafe { Box::new(std::mem::zeroed()) };
        let step = 1 << (FIRST - 1);
        for at in 0..8 * BINS as u64 {
            timeline.add(at * step, Class::Put);
        }
        assert_eq!(timeline.shift(), FIRST + 2);
        let counts = timeline.counts(timeline.shift());
        assert!(counts.iter().all(|bin| bin[Class::Put as usize] == 8));
        let coarser = timeline.counts(timeline.shift() + 1);
        assert_eq!(coarser[0][0], 16);
        assert_eq!(coarser[BINS / 2..].iter().flatten().sum::<u64>(), 0);
    }
}

//! How many calls began in each stretch of time, for a fixed number of stretches.

use super::Count;
use crate::calls::Class;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of stretches.
pub const BINS: usize = 256;
/// The first length of a stretch is two to this many ticks: well below a millisecond.
const FIRST: u32 = 18;

/// Calls, and the bytes that they move, by time. When the time is used up, stretches become twice as long.
#[derive(Debug)]
pub struct Timeline {
    /// How many times stretches have become twice as long.
    doubled: AtomicU32,
    bins: [[Count; Class::COUNT]; BINS],
    bytes: [[Count; Class::MOVING]; BINS],
}

impl Timeline {
    /// Counts a call that began `ticks` after the beginning, and the bytes that it has moved.
    #[inline]
    pub fn add(&self, ticks: u64, class: Class, bytes: u64) {
        let mut bin = ticks >> self.shift();
        while bin >= BINS as u64 {
            self.fold();
            bin = ticks >> self.shift();
        }
        self.bins[bin as usize][class as usize].add(1);
        if (class as usize) < Class::MOVING {
            self.bytes[bin as usize][class as usize].add(bytes);
        }
    }

    /// The length of a stretch is two to this many ticks.
    pub fn shift(&self) -> u32 {
        FIRST + self.doubled.load(Ordering::Relaxed)
    }

    /// The counts in stretches of two to `shift` ticks, which are no shorter than its own.
    pub fn counts(&self, shift: u32) -> Vec<[u64; Class::COUNT]> {
        coarser(&self.bins, shift.saturating_sub(self.shift()))
    }

    /// The bytes in such stretches.
    pub fn bytes(&self, shift: u32) -> Vec<[u64; Class::MOVING]> {
        coarser(&self.bytes, shift.saturating_sub(self.shift()))
    }

    #[cold]
    fn fold(&self) {
        fold(&self.bins);
        fold(&self.bytes);
        self.doubled.store(self.doubled.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Numbers by stretch and class, with stretches two to `more` times as long.
fn coarser<const N: usize>(bins: &[[Count; N]; BINS], more: u32) -> Vec<[u64; N]> {
    let mut sums = vec![[0; N]; BINS];
    for (at, bin) in bins.iter().enumerate() {
        sums[at >> more].iter_mut().zip(bin).for_each(|(sum, count)| *sum += count.get());
    }
    sums
}

/// Puts the numbers of every two stretches into one, from the first on.
fn fold<const N: usize>(bins: &[[Count; N]; BINS]) {
    for (at, bin) in bins.iter().enumerate() {
        for (class, count) in bin.iter().enumerate() {
            bins[at / 2][class].add(count.take());
        }
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
            timeline.add(at * step, Class::Put, at);
            timeline.add(at * step, Class::Wait, 7);
        }
        assert_eq!(timeline.shift(), FIRST + 2);
        let counts = timeline.counts(timeline.shift());
        assert!(counts.iter().all(|bin| bin[Class::Put as usize] == 8));
        let (bytes, all) = (timeline.bytes(timeline.shift()), 8 * BINS as u64);
        assert_eq!(bytes.iter().flatten().sum::<u64>(), all * (all - 1) / 2);
        assert_eq!(bytes[0][Class::Put as usize], (0..8).sum::<u64>());
        let coarser = timeline.counts(timeline.shift() + 1);
        assert_eq!(coarser[0][0], 16);
        assert_eq!(coarser[BINS / 2..].iter().flatten().sum::<u64>(), 0);
    }
}

//! What happened in each stretch of time, for a fixed number of stretches: how many calls began,
//! how many bytes they moved, and how long the thread was in which calls and handlers.

use super::Count;
use super::sampling::Batch;
use crate::calls::Class;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of stretches; a power of two.
pub const BINS: usize = 256;
/// The first length of a stretch is two to this many ticks: well below a millisecond.
const FIRST: u32 = 18;

/// A thread's time. When the stretches are used up, they become twice as long.
#[derive(Debug)]
pub struct Timeline {
    /// How many times stretches have become twice as long.
    doubled: AtomicU32,
    bins: [Bin; BINS],
}

/// One stretch. The three are together, so that a call touches few cache lines.
#[derive(Debug)]
struct Bin {
    /// How many calls of each class began in it.
    calls: [Count; Class::COUNT],
    /// How many ticks of it the thread was in calls of each class, less what ran inside of them.
    ticks: [Count; Class::COUNT],
    /// How many bytes were moved by the calls that began in it.
    bytes: [Count; Class::MOVING],
}

/// A call or handler, with times in ticks after the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// How long other calls and handlers ran inside of it; these were entered before.
    pub inside: u64,
}

impl Timeline {
    /// Enters a call, and those that it stands for, which ended shortly before it.
    #[inline]
    pub fn add(&self, stay: Stay, class: Class, batch: Batch) {
        let mut shift = self.shift();
        while stay.end >> shift >= BINS as u64 {
            self.fold();
            shift += 1;
        }
        let (first, last) = (stay.begin >> shift, stay.end >> shift);
        // Not a place behind the last one, whatever the two times are.
        let bin = &self.bins[first as usize % BINS];
        bin.calls[class as usize].add(batch.calls);
        bin.ticks[class as usize].add(batch.alone);
        if (class as usize) < Class::MOVING {
            bin.bytes[class as usize].add(batch.bytes);
        }
        if first == last {
            bin.ticks[class as usize].add((stay.end - stay.begin).saturating_sub(stay.inside));
        } else {
            self.spread(stay.begin, stay.end, stay.inside, class);
        }
    }

    /// Enters the ticks of a call in each stretch that it has been in.
    #[cold]
    fn spread(&self, begin: u64, end: u64, mut inside: u64, class: Class) {
        let shift = self.shift();
        let (first, last) = (begin >> shift, end >> shift);
        for at in (first..=last).rev() {
            let bin = &self.bins[at as usize % BINS];
            let part = end.min((at + 1) << shift).saturating_sub(begin.max(at << shift));
            // All that this thread has entered after the stretch in which the call began ran
            // inside of the call.
            let entered = bin.ticks.iter().map(Count::get).fold(0, u64::wrapping_add);
            let within = if at == first { inside } else { inside.min(entered) };
            inside -= within;
            bin.ticks[class as usize].add(part.saturating_sub(within));
        }
    }

    /// The least length of stretches that reach until then.
    pub fn shift_until(end: u64) -> u32 {
        (FIRST..u64::BITS).find(|shift| end >> shift < BINS as u64).unwrap_or(FIRST)
    }

    /// The length of a stretch is two to this many ticks.
    #[inline]
    pub fn shift(&self) -> u32 {
        FIRST + self.doubled.load(Ordering::Relaxed)
    }

    /// The number of calls in stretches of two to `shift` ticks, which are no shorter than its own.
    pub fn calls(&self, shift: u32) -> Vec<[u64; Class::COUNT]> {
        self.coarser(shift, |bin| &bin.calls)
    }

    /// The ticks in such stretches.
    pub fn ticks(&self, shift: u32) -> Vec<[u64; Class::COUNT]> {
        self.coarser(shift, |bin| &bin.ticks)
    }

    /// The calls and ticks in such stretches, with the calls and handlers that the thread is in,
    /// the outermost first.
    pub fn with_open(&self, shift: u32, open: &[(Stay, Class)]) -> [Vec<[u64; Class::COUNT]>; 2] {
        let (mut calls, mut ticks) = (self.calls(shift), self.ticks(shift));
        for (at, (stay, class)) in open.iter().enumerate() {
            // The next one is inside of this one.
            let end = open.get(at + 1).map_or(stay.end, |(inner, _)| inner.begin);
            let (first, last) = (stay.begin >> shift, (end >> shift).min(BINS as u64 - 1));
            for at in first..=last {
                let bin = &mut ticks[at as usize];
                let part = end.min((at + 1) << shift).saturating_sub(stay.begin.max(at << shift));
                // All that has ended after the stretch in which this one began ran inside of it.
                let within = if at == first { stay.inside } else { bin.iter().sum() };
                bin[*class as usize] += part.saturating_sub(within);
            }
            if let Some(bin) = calls.get_mut(first as usize) {
                bin[*class as usize] += 1;
            }
        }
        [calls, ticks]
    }

    /// The bytes in such stretches.
    pub fn bytes(&self, shift: u32) -> Vec<[u64; Class::MOVING]> {
        self.coarser(shift, |bin| &bin.bytes)
    }

    fn coarser<const N: usize>(&self, shift: u32, what: fn(&Bin) -> &[Count; N]) -> Vec<[u64; N]> {
        let more = shift.saturating_sub(self.shift());
        let mut sums = vec![[0; N]; BINS];
        for (at, bin) in self.bins.iter().enumerate() {
            sums[at >> more].iter_mut().zip(what(bin)).for_each(|(sum, count)| *sum += count.get());
        }
        sums
    }

    /// Puts every two stretches into one, from the first on.
    #[cold]
    fn fold(&self) {
        for (at, bin) in self.bins.iter().enumerate() {
            for (sum, count) in self.bins[at / 2].counts().zip(bin.counts()) {
                sum.add(count.take());
            }
        }
        self.doubled.store(self.doubled.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Bin {
    fn counts(&self) -> impl Iterator<Item = &Count> {
        self.calls.iter().chain(&self.ticks).chain(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{BINS, Batch, FIRST, Stay, Timeline};
    use crate::calls::Class;

    const LENGTH: u64 = 1 << FIRST;

    fn moving(bytes: u64) -> Batch {
        Batch { calls: 1, bytes, estimate: 0, alone: 0 }
    }

    fn empty() -> Box<Timeline> {
        // SAFETY: it consists of atomics, for which zeroes are valid.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    #[test]
    fn nothing_is_lost_when_time_goes_on() {
        let timeline = empty();
        let step = LENGTH / 2;
        for at in 0..8 * BINS as u64 {
            let stay = Stay { begin: at * step, end: at * step + 5, inside: 2 };
            timeline.add(stay, Class::Put, moving(at));
            timeline.add(stay, Class::Wait, moving(7));
        }
        assert_eq!(timeline.shift(), FIRST + 2);
        let calls = timeline.calls(timeline.shift());
        assert!(calls.iter().all(|bin| bin[Class::Put as usize] == 8));
        assert!(timeline.ticks(timeline.shift()).iter().all(|bin| bin[Class::Put as usize] == 8 * 3));
        let (bytes, all) = (timeline.bytes(timeline.shift()), 8 * BINS as u64);
        assert_eq!(bytes.iter().flatten().sum::<u64>(), all * (all - 1) / 2);
        assert_eq!(bytes[0][Class::Put as usize], (0..8).sum::<u64>());
        let coarser = timeline.calls(timeline.shift() + 1);
        assert_eq!(coarser[0][0], 16);
        assert_eq!(coarser[BINS / 2..].iter().flatten().sum::<u64>(), 0);
    }

    #[test]
    fn what_is_open_counts_until_now() {
        let timeline = empty();
        timeline.add(Stay { begin: 10, end: 20, inside: 0 }, Class::Put, moving(0));
        let third = 2 * LENGTH;
        timeline.add(Stay { begin: third + 5, end: third + 1005, inside: 0 }, Class::Handler, moving(0));
        let now = 1000 * LENGTH;
        let open = [
            (Stay { begin: 50, end: now, inside: 0 }, Class::Wait),
            (Stay { begin: now - 100, end: now, inside: 0 }, Class::Handler),
        ];
        let shift = Timeline::shift_until(now);
        assert_eq!(shift, FIRST + 2);
        let [calls, ticks] = timeline.with_open(shift, &open);
        let sum = |bins: &[[u64; Class::COUNT]], class: Class| {
            bins.iter().map(|bin| bin[class as usize]).sum::<u64>()
        };
        assert_eq!((sum(&calls, Class::Wait), sum(&calls, Class::Handler)), (1, 2));
        assert_eq!(sum(&ticks, Class::Handler), 1100);
        assert_eq!(sum(&ticks, Class::Wait), now - 100 - 50);
        // What the thread has entered stays as it is.
        assert_eq!(sum(&timeline.ticks(FIRST), Class::Wait), 0);
    }

    #[test]
    fn the_ticks_of_a_long_call_are_in_every_stretch_of_it() {
        let timeline = empty();
        let of = |class: Class| -> Vec<u64> {
            timeline.ticks(FIRST).iter().take(5).map(|bin| bin[class as usize]).collect()
        };
        // A handler in the first stretch and one in the third run inside of a wait from the first
        // to the fourth.
        timeline.add(Stay { begin: 10, end: 20, inside: 0 }, Class::Put, moving(0));
        timeline.add(Stay { begin: 100, end: 130, inside: 0 }, Class::Handler, moving(0));
        let third = 2 * LENGTH;
        timeline.add(Stay { begin: third + 5, end: third + 1005, inside: 0 }, Class::Handler, moving(0));
        timeline.add(Stay { begin: 50, end: 3 * LENGTH + 7, inside: 1030 }, Class::Wait, moving(0));
        assert_eq!(of(Class::Handler), [30, 0, 1000, 0, 0]);
        assert_eq!(of(Class::Wait), [LENGTH - 50 - 30, LENGTH, LENGTH - 1000, 7, 0]);
        assert_eq!(of(Class::Put), [10, 0, 0, 0, 0]);
        // What is said to have run inside is more than there was.
        timeline.add(Stay { begin: 4 * LENGTH, end: 4 * LENGTH + 9, inside: 50 }, Class::Get, moving(0));
        assert_eq!(of(Class::Get), [0; 5]);
        // A call until long after makes stretches longer, and keeps the sum.
        let end = 1000 * BINS as u64 * LENGTH;
        timeline.add(Stay { begin: 5 * LENGTH, end, inside: 0 }, Class::Other, moving(0));
        let ticks = timeline.ticks(timeline.shift());
        assert_eq!(ticks.iter().map(|bin| bin[Class::Other as usize]).sum::<u64>(), end - 5 * LENGTH);
        assert_eq!(
            ticks.iter().map(|bin| bin[Class::Wait as usize]).sum::<u64>(),
            3 * LENGTH + 7 - 50 - 1030
        );
    }
}

//! How often the parties begin, and how long each trial may take: all together 15 s.
//!
//! All tasks must begin equally often. So this counts the time that the trials may take, which
//! follows from the cards that all have, and not what a clock says.

use super::trial::PATIENCE;
use std::time::Duration;

/// How often the parties begin, at most.
const MOST: u32 = 4;
/// The longest time of all trials.
pub(super) const ALL: Duration = Duration::from_secs(15);

/// The rounds of a job.
pub(super) struct Rounds {
    begun: u32,
    left: Duration,
}

impl Rounds {
    /// None has begun.
    pub(super) fn new() -> Self {
        Self { begun: 0, left: ALL }
    }

    /// Begins one in which no party needs longer than this; returns how long it may take.
    pub(super) fn begin(&mut self, needed: Duration) -> Duration {
        let longest = needed.clamp(PATIENCE, self.left.max(PATIENCE));
        self.begun += 1;
        self.left = self.left.saturating_sub(longest);
        longest
    }

    /// The number of the round that has begun last, from 1.
    pub(super) fn number(&self) -> u32 {
        self.begun
    }

    /// Whether there is no time for another one.
    pub(super) fn is_last(&self) -> bool {
        self.begun == MOST || self.left < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::super::tcp;
    use super::super::trial::REPEATED;
    use super::*;

    /// Runs rounds in simulated time, in which no pair ever answers; the cards may change from one
    /// round to the next. Returns how many there were.
    fn rounds_of(pairs: impl Fn(u32) -> usize) -> u32 {
        let (mut rounds, mut now) = (Rounds::new(), Duration::ZERO);
        loop {
            let pairs = pairs(rounds.number());
            let longest = rounds.begin(tcp::needed(pairs));
            let end = now + longest;
            // As many as there may be are under way; each that keeps another one waiting is
            // given up when a repetition has had no answer.
            let mut untried = pairs;
            while now < end {
                untried = untried.saturating_sub(tcp::at_a_time(pairs));
                now += if untried > 0 { REPEATED } else { end - now };
            }
            if rounds.number() == 1 {
                assert_eq!(untried, 0, "{untried} of {pairs} pairs are never tried");
            }
            assert!(now <= ALL, "{pairs} pairs: {now:?}");
            if rounds.is_last() {
                return rounds.number();
            }
        }
    }

    #[test]
    fn all_trials_together_end_in_time_however_many_pairs_are_silent() {
        for pairs in (0..3000).chain((3000..300_000).step_by(997)) {
            let number = rounds_of(|_| pairs);
            assert_eq!(number == MOST, pairs <= 200, "{pairs}: {number} rounds");
        }
        // An interface comes up on every host meanwhile.
        for pairs in (0..20_000).step_by(101) {
            rounds_of(|round| if round < 2 { pairs } else { 4 * pairs });
        }
    }
}

//! How long a datagram and its acknowledgement take: the estimate of RFC 6298.

use super::{MILLISECOND, Nanos};

/// Assumed before there is an estimate.
const INITIAL: Nanos = 20 * MILLISECOND;

/// The least that the timer allows for variation: threads are not woken more exactly than that.
pub const GRANULARITY: Nanos = MILLISECOND;

/// What fewer samples than this have in common may be a peer that has not looked.
const ENOUGH: u8 = 4;

/// No way is longer, between any two places on the ground with a satellite or two between them:
/// what takes longer is a peer that has not looked, or a queue.
const LONGEST_WAY: Nanos = 2_000 * MILLISECOND;

/// The estimate for one connection.
#[derive(Clone, Debug, Default)]
pub struct RoundTrip {
    known: bool,
    smoothed: Nanos,
    variation: Nanos,
    latest: Nanos,
    least: Nanos,
    /// Samples, as far as they matter.
    samples: u8,
}

impl RoundTrip {
    /// A datagram was acknowledged `sample` after it was sent, of which the receiver has
    /// waited for `delay`.
    pub fn note(&mut self, sample: Nanos, delay: Nanos) {
        let sample = sample.min(LONGEST_WAY);
        self.least = if self.known { self.least.min(sample) } else { sample };
        self.samples = self.samples.saturating_add(1);
        // No delay makes the way shorter than it has ever been.
        let sample = if sample >= self.least + delay { sample - delay } else { sample };
        self.latest = sample;
        if self.known {
            let off = self.smoothed.abs_diff(sample);
            self.variation = (3 * self.variation + off) / 4;
            self.smoothed = (7 * self.smoothed + sample) / 8;
        } else {
            (self.known, self.smoothed, self.variation) = (true, sample, sample / 2);
        }
    }

    /// The smoothed time.
    pub fn smoothed(&self) -> Nanos {
        if self.known { self.smoothed } else { INITIAL }
    }

    /// How long the way itself is, as far as it is known; 0 before. The program of a peer may look
    /// at its network after a long time only: a few samples say nothing.
    pub fn way(&self) -> Nanos {
        if self.samples < ENOUGH { 0 } else { self.least }
    }

    /// After this time without an acknowledgement something is sent again, besides what the
    /// receiver may wait.
    pub fn timeout(&self) -> Nanos {
        if self.known { self.smoothed + (4 * self.variation).max(GRANULARITY) } else { 3 * INITIAL }
    }

    /// A datagram is lost when a later one has arrived and this time has passed.
    pub fn reordering(&self) -> Nanos {
        (self.smoothed().max(self.latest) * 9 / 8).max(GRANULARITY / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_what_is_measured() {
        let mut estimate = RoundTrip::default();
        assert_eq!(estimate.timeout(), 60 * MILLISECOND);
        estimate.note(8 * MILLISECOND, 0);
        assert_eq!((estimate.smoothed(), estimate.timeout()), (8 * MILLISECOND, 24 * MILLISECOND));
        (0..200).for_each(|_| estimate.note(100_000, 0));
        assert!(estimate.smoothed() < 101_000 && estimate.timeout() < 1_200_000, "{estimate:?}");
        (0..200).for_each(|_| estimate.note(50 * MILLISECOND, 0));
        assert!(estimate.smoothed() > 49 * MILLISECOND, "{estimate:?}");
        assert_eq!(estimate.least, 100_000);
    }

    #[test]
    fn a_peer_that_looks_late_makes_no_long_way() {
        let mut estimate = RoundTrip::default();
        (0..3).for_each(|_| estimate.note(30_000 * MILLISECOND, 0));
        assert_eq!(estimate.way(), 0);
        estimate.note(30_000 * MILLISECOND, 0);
        assert_eq!(estimate.way(), LONGEST_WAY);
        assert!(estimate.timeout() <= 3 * LONGEST_WAY && estimate.reordering() <= 2 * LONGEST_WAY);
        estimate.note(MILLISECOND, 0);
        assert_eq!(estimate.way(), MILLISECOND);
    }

    #[test]
    fn the_receivers_delay_is_not_the_ways() {
        let mut estimate = RoundTrip::default();
        estimate.note(MILLISECOND, 0);
        (0..200).for_each(|_| estimate.note(3 * MILLISECOND, 2 * MILLISECOND));
        assert!(estimate.smoothed().abs_diff(MILLISECOND) < 1_000, "{estimate:?}");
        // A delay that cannot be true changes nothing.
        (0..200).for_each(|_| estimate.note(MILLISECOND, 900 * MILLISECOND));
        assert!(estimate.smoothed().abs_diff(MILLISECOND) < 1_000, "{estimate:?}");
    }
}

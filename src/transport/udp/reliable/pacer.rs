//! Spreads what is sent over the round trip: tokens that grow with time, one for each byte.

use super::{MILLISECOND, Nanos};

/// Datagrams that may always leave together.
const BURST: usize = 16;

/// The tokens of one connection.
#[derive(Clone, Debug)]
pub struct Pacer {
    datagram: usize,
    tokens: f64,
    /// Bytes in a nanosecond.
    rate: f64,
    last: Nanos,
}

impl Pacer {
    /// For datagrams of up to `datagram` bytes.
    pub fn new(datagram: usize) -> Self {
        Self { datagram, tokens: (BURST * datagram) as f64, rate: f64::INFINITY, last: 0 }
    }

    /// The rate follows from the congestion window and the round trip.
    pub fn set(&mut self, now: Nanos, window: usize, round_trip: Nanos, is_starting: bool) {
        self.refill(now);
        let gain = if is_starting { 2.0 } else { 1.25 };
        self.rate = gain * window as f64 / round_trip.max(1) as f64;
        self.tokens = self.tokens.min(self.burst());
    }

    /// The most tokens.
    fn burst(&self) -> f64 {
        ((BURST * self.datagram) as f64).max(self.rate * MILLISECOND as f64)
    }

    fn refill(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.last) as f64;
        self.last = self.last.max(now);
        let more = if passed == 0.0 { 0.0 } else { self.rate * passed };
        self.tokens = (self.tokens + more).min(self.burst());
    }

    /// Whether a datagram may leave now; otherwise when.
    #[inline]
    pub fn look(&mut self, now: Nanos) -> Result<(), Nanos> {
        // What leaves together does so at one moment.
        if now > self.last {
            self.refill(now);
        }
        if self.tokens >= 0.0 {
            return Ok(());
        }
        // Several datagrams at a time: a thread that sleeps for each of them wakes too often.
        let missing = (BURST / 4 * self.datagram) as f64 - self.tokens;
        Err(now + (missing / self.rate) as Nanos + 1)
    }

    /// A datagram has left.
    pub fn spend(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECOND;
    use super::*;

    #[test]
    fn the_rate_is_kept_after_a_burst() {
        let mut pacer = Pacer::new(1_000);
        let (mut now, mut sent) = (SECOND, 0);
        // A megabyte in a second, with 5/4.
        pacer.set(now, 100_000, 100 * MILLISECOND, false);
        while now < 3 * SECOND {
            match pacer.look(now) {
                Ok(()) => {
                    pacer.spend(1_000);
                    sent += 1_000;
                }
                Err(later) => {
                    assert!(later > now);
                    now = later;
                }
            }
        }
        assert!((2_480_000..2_540_000).contains(&sent), "{sent} bytes in two seconds");
    }

    #[test]
    fn a_connection_without_an_estimate_is_not_held_up_for_ever() {
        let mut pacer = Pacer::new(1_000);
        for _ in 0..1_000 {
            if pacer.look(1).is_err() {
                break;
            }
            pacer.spend(1_000);
        }
        assert!(pacer.look(SECOND).is_ok());
    }
}

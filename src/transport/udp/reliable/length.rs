//! How long datagrams may be on a path: links on the way may take less than those at its ends, and drop what is longer without a word
//! that can be believed. The search follows RFC 8899: a length is used when a probe of that length has had a reply.

use super::{MILLISECOND, Nanos, OVERHEAD, Parameters, SECOND};

/// Probes of one length without a reply, after which it counts as too long.
const TRIES: u8 = 4;

/// The search ends when no more than this many bytes are in doubt.
const EXACT: usize = 32;

/// The longest fragment over Ethernet, with IPv4: tried second, since most links are that.
const ETHERNET: usize = 1500 - OVERHEAD;

/// Longer fragments than every path takes that are lost one after the other: a link on the way may take less than before.
const SUSPICIOUS: u8 = 4;

/// After this time without success, or after a length has turned out to be too long, longer ones are tried again.
const RAISE: Nanos = 10 * SECOND;

/// The time between two rounds of probes to a peer of which nothing arrives.
const SILENT: Nanos = 100 * MILLISECOND;

/// The least time between two probes of a length.
const LEAST_WAIT: Nanos = 10 * MILLISECOND;

/// The search on one path. Lengths are those of fragments.
#[derive(Clone, Debug)]
pub struct Length {
    /// Every path takes it.
    base: usize,
    /// No longer one is wanted.
    most: usize,
    /// The longest that has had a reply.
    proven: usize,
    /// The shortest that has had none.
    failed: usize,
    /// The one that is probed.
    candidate: usize,
    tries: u8,
    at: Nanos,
    /// The numbers of the probes of the candidate.
    probes: [u64; TRIES as usize],
    /// There are packets that are longer than what is proven.
    wanted: bool,
    /// Something has arrived by the path since the candidate was chosen: a peer that is silent says nothing of lengths.
    heard: bool,
    /// Fragments that were lost since one as long as the shortest of them has arrived.
    lost: u8,
    shortest_lost: usize,
}

impl Length {
    pub fn new(parameters: &Parameters) -> Self {
        let Parameters { base, unit: most, .. } = *parameters;
        let (proven, failed) = (base.min(most), most + 1);
        Self {
            base: proven,
            most,
            proven,
            failed,
            candidate: most,
            tries: 0,
            at: 0,
            probes: [0; TRIES as usize],
            wanted: false,
            heard: false,
            lost: 0,
            shortest_lost: usize::MAX,
        }
    }

    /// The longest fragment that may be sent.
    #[inline]
    pub fn proven(&self) -> usize {
        self.proven
    }

    /// A packet is longer than what is proven.
    #[inline]
    pub fn want(&mut self) {
        self.wanted = true;
    }

    /// When the next probe is to be sent; `busy`: there is something to send. Otherwise only the longest length is tried.
    pub fn due(&self, busy: bool) -> Option<Nanos> {
        let begins = self.failed > self.most && self.tries < TRIES;
        (self.wanted && self.proven < self.most && (busy || begins)).then_some(self.at)
    }

    /// The length of the probe that is to be sent now, with this number; `None`: there is nothing to try for a while. A reply is awaited for
    /// `timeout`.
    pub fn probe(&mut self, now: Nanos, number: u64, timeout: Nanos) -> Option<usize> {
        if self.is_found() {
            (self.failed, self.candidate, self.tries) = (self.most + 1, self.most, 0);
        } else if self.tries == TRIES && !self.heard {
            self.tries = 0;
            self.at = now + SILENT;
            return None;
        } else if self.tries == TRIES {
            self.failed = self.candidate;
            if self.is_found() {
                self.at = now + RAISE;
                return None;
            }
            self.choose();
        }
        self.probes[usize::from(self.tries)] = number;
        self.tries += 1;
        self.at = now + timeout.max(LEAST_WAIT);
        Some(self.candidate)
    }

    /// A probe with this number has had a reply: whether it shows more than was known.
    pub fn replied(&mut self, now: Nanos, number: u64) -> bool {
        if !self.probes[..usize::from(self.tries)].contains(&number) {
            return false;
        }
        (self.proven, self.heard) = (self.candidate, true);
        if self.is_found() || self.proven == self.most {
            (self.at, self.tries) = (now + RAISE, 0);
        } else {
            self.choose();
            self.at = now;
        }
        true
    }

    /// A fragment of this length has arrived by the path.
    #[inline]
    pub fn note_arrival(&mut self, len: usize) {
        self.heard = true;
        // What is longer than proven has come in parts.
        if len >= self.shortest_lost && len <= self.proven {
            (self.lost, self.shortest_lost) = (0, usize::MAX);
        }
    }

    /// A fragment of this length was lost on the path.
    pub fn note_loss(&mut self, now: Nanos, len: usize) {
        if len <= self.base || len > self.proven {
            return;
        }
        self.lost += 1;
        self.shortest_lost = self.shortest_lost.min(len);
        if self.lost == SUSPICIOUS {
            (self.proven, self.lost, self.shortest_lost) = (self.base, 0, usize::MAX);
            (self.failed, self.candidate, self.tries, self.at) = (self.most + 1, self.most, 0, now);
            self.heard = false;
        }
    }

    /// Whether the longest length is known well enough.
    fn is_found(&self) -> bool {
        self.failed <= self.most && self.failed - self.proven <= EXACT
    }

    /// The next length that is tried.
    fn choose(&mut self) {
        let usual = self.failed == self.most && (self.proven + 1..self.failed).contains(&ETHERNET);
        let between = self.proven + (self.failed - self.proven).div_ceil(2);
        self.candidate = if usual { ETHERNET } else { between.min(self.most) };
        (self.tries, self.heard) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(base: usize, most: usize) -> Length {
        let parameters = Parameters {
            unit: most,
            base,
            window: 32,
            acknowledge_every: 1,
            acknowledge_after: MILLISECOND,
            longest_interval: MILLISECOND,
            paths: 1,
        };
        let mut length = Length::new(&parameters);
        length.want();
        length
    }

    /// Lets the search run until it rests, on a path that takes `limit`. Returns the probes that it has sent.
    fn run(length: &mut Length, limit: usize, now: &mut Nanos) -> u64 {
        let (mut number, end) = (*now, *now + RAISE / 2);
        let first = number;
        while let Some(at) = length.due(true).filter(|&at| at < end) {
            *now = at.max(*now) + 1;
            number += 1;
            length.note_arrival(length.base);
            if let Some(tried) = length.probe(*now, number, 20 * MILLISECOND) {
                assert!(tried > length.proven() && tried <= length.most);
                if tried <= limit {
                    assert!(length.replied(*now + MILLISECOND, number));
                }
            }
        }
        number - first
    }

    #[test]
    fn shorter_arrivals_do_not_hide_what_is_too_long() {
        let (mut length, mut now) = (search(1000, 9000), 0);
        run(&mut length, 9000, &mut now);
        assert_eq!(length.proven(), 9000);
        for _ in 0..3 {
            length.note_loss(now, 9000);
            length.note_arrival(1500);
        }
        length.note_loss(now, 9000);
        assert_eq!(length.proven(), 1000, "four were lost, and none has arrived");
        // As long ones arrive, what is lost is lost by chance.
        run(&mut length, 9000, &mut now);
        for _ in 0..20 {
            length.note_loss(now, 9000);
            length.note_arrival(9000);
        }
        assert_eq!(length.proven(), 9000);
        // What was cut before, and goes in parts, says nothing.
        (0..4).for_each(|_| length.note_loss(now, 9000));
        assert_eq!(length.proven(), 1000);
        (0..4).for_each(|_| length.note_loss(now, 9000));
        length.note_arrival(9000);
        assert_eq!(length.proven(), 1000);
    }

    #[test]
    fn the_longest_length_is_found() {
        for (base, most) in [(1128, 1400), (1128, 8900), (1128, 65_000), (440, 440), (16, 60)] {
            for limit in (base..=most + 1).step_by(7) {
                let (mut length, mut now) = (search(base, most), SECOND);
                let probes = run(&mut length, limit, &mut now);
                let limit = limit.min(most);
                assert!(
                    length.proven() <= limit && length.proven() + EXACT >= limit,
                    "{length:?} of {limit}"
                );
                assert!(probes < 60 && (limit < most || probes <= 1), "{probes} probes");
            }
        }
    }

    /// A peer whose program computes replies to nothing, which says nothing of the path.
    #[test]
    fn silence_is_no_limit() {
        let (mut length, mut now) = (search(1128, 8900), SECOND);
        for number in 1..=101 {
            now = length.due(true).expect("it goes on").max(now);
            assert!(length.probe(now, number, 20 * MILLISECOND).is_none_or(|tried| tried == 8900));
        }
        assert!(now > 2 * SECOND, "it is not asked all the time");
        // The program calls LAPI again.
        length.note_arrival(100);
        assert!(length.replied(now, 101) && length.proven() == 8900, "{length:?}");
    }

    #[test]
    fn a_link_that_takes_less_later_is_noticed_and_one_that_takes_more_again() {
        let (mut length, mut now) = (search(1128, 8900), SECOND);
        run(&mut length, 9_000, &mut now);
        assert_eq!((length.proven(), length.due(true)), (8900, None));
        for lost in 1..=SUSPICIOUS {
            length.note_arrival(1128);
            length.note_loss(now, 1128);
            assert_eq!(length.proven(), 8900, "{lost}");
            length.note_loss(now, 1129);
        }
        assert_eq!(length.proven(), 1128);
        run(&mut length, 1400, &mut now);
        assert_eq!(length.proven(), 1400);
        assert_eq!(length.due(false), None, "nothing is tried while there is nothing to send");
        now += RAISE;
        run(&mut length, 9_000, &mut now);
        assert_eq!(length.proven(), 8900);
    }
}

//! How long datagrams are: as long as the interfaces of both tasks take them, or shorter
//! where a link on the way takes less. Such a link drops what is longer without a word that
//! can be believed.
//!
//! There are three lengths: the longest, that of an Ethernet, and one that every path takes. The
//! last is used at first, and a longer one when a probe of that length has had a reply. When
//! datagrams of that length are lost, and none arrives, it begins again.

use super::{MILLISECOND, Nanos, OVERHEAD, Parameters, SECOND};

/// Probes of one length without a reply, after which it counts as too long.
const TRIES: usize = 4;

/// The longest fragment over Ethernet, with IPv4 or IPv6.
const ETHERNET: usize = 1500 - 20 - OVERHEAD;

/// Fragments that are lost one after the other: a link on the way may take less than before.
const SUSPICIOUS: u8 = 4;

/// Longer ones are tried again after this time.
const RAISE: Nanos = 10 * SECOND;

/// The time between two rounds of probes to a peer of which nothing arrives.
const SILENT: Nanos = 100 * MILLISECOND;

/// The least time between two probes of a length.
const LEAST_WAIT: Nanos = 10 * MILLISECOND;

/// The length of fragments that is used, and the one that is tried.
#[derive(Clone, Debug)]
pub struct Length {
    /// Every path takes it.
    base: usize,
    /// No longer one is wanted.
    most: usize,
    used: usize,
    /// The one that is probed; none is while it equals `used`.
    candidate: usize,
    tries: usize,
    at: Nanos,
    /// The numbers of the probes of the candidate.
    probes: [u64; TRIES],
    /// There are packets that are longer than what is used.
    wanted: bool,
    /// Something has arrived since the candidate was chosen: a peer that is silent says
    /// nothing of lengths.
    heard: bool,
    /// Fragments that were lost since one as long as the shortest of them has arrived.
    lost: u8,
    shortest_lost: usize,
}

impl Length {
    pub fn new(parameters: &Parameters) -> Self {
        let Parameters { base, unit: most, .. } = *parameters;
        let base = base.min(most);
        Self {
            base,
            most,
            used: base,
            candidate: most,
            tries: 0,
            at: 0,
            probes: [0; TRIES],
            wanted: false,
            heard: false,
            lost: 0,
            shortest_lost: usize::MAX,
        }
    }

    /// The longest fragment that may be sent.
    #[inline]
    pub fn used(&self) -> usize {
        self.used
    }

    /// A packet is longer than what is used.
    #[inline]
    pub fn want(&mut self) {
        self.wanted = true;
    }

    /// When the next probe is to be sent; `busy`: there is something to send. Otherwise only the
    /// longest length is tried.
    pub fn due(&self, busy: bool) -> Option<Nanos> {
        let begins = self.candidate == self.most && self.tries < TRIES;
        (self.wanted && self.used < self.most && (busy || begins)).then_some(self.at)
    }

    /// The length of the probe that is to be sent now, with this number; `None`: there is nothing
    /// to try for a while. A reply is awaited for `timeout`.
    pub fn probe(&mut self, now: Nanos, number: u64, timeout: Nanos) -> Option<usize> {
        if self.candidate == self.used {
            self.candidate = self.most;
        } else if self.tries == TRIES && !self.heard {
            (self.tries, self.at) = (0, now + SILENT);
            return None;
        } else if self.tries == TRIES {
            let shorter = if self.candidate > ETHERNET { ETHERNET } else { self.base };
            (self.candidate, self.tries, self.heard) = (shorter.max(self.used), 0, false);
            if self.candidate == self.used {
                self.at = now + RAISE;
                return None;
            }
        }
        self.probes[self.tries] = number;
        self.tries += 1;
        self.at = now + timeout.max(LEAST_WAIT);
        Some(self.candidate)
    }

    /// A probe with this number has had a reply: whether it shows more than was known.
    pub fn replied(&mut self, now: Nanos, number: u64) -> bool {
        let is_new = self.probes[..self.tries].contains(&number);
        if is_new {
            (self.used, self.tries, self.at) = (self.candidate, 0, now + RAISE);
        }
        is_new
    }

    /// A fragment of this length has arrived.
    #[inline]
    pub fn note_arrival(&mut self, len: usize) {
        self.heard = true;
        // What is longer than the used length has come in parts.
        if len >= self.shortest_lost && len <= self.used {
            (self.lost, self.shortest_lost) = (0, usize::MAX);
        }
    }

    /// A fragment of this length was lost.
    pub fn note_loss(&mut self, now: Nanos, len: usize) {
        if len <= self.base || len > self.used {
            return;
        }
        self.lost += 1;
        self.shortest_lost = self.shortest_lost.min(len);
        if self.lost == SUSPICIOUS {
            (self.lost, self.shortest_lost) = (0, usize::MAX);
            (self.used, self.candidate, self.tries, self.at) = (self.base, self.most, 0, now);
            self.heard = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(base: usize, most: usize) -> Length {
        let parameters = Parameters {
            unit: most,
            base,
            window: 32,
            acknowledge_every: 1,
            acknowledge_after: MILLISECOND,
            longest_interval: MILLISECOND,
        };
        let mut length = Length::new(&parameters);
        length.want();
        length
    }

    /// Lets probes leave until they rest, on a path that takes `limit`. Returns their lengths.
    fn run(length: &mut Length, limit: usize, now: &mut Nanos) -> Vec<usize> {
        let (mut probes, end) = (Vec::new(), *now + RAISE / 2);
        while let Some(at) = length.due(true).filter(|&at| at < end) {
            *now = at.max(*now) + 1;
            length.note_arrival(length.base);
            let number = *now;
            if let Some(tried) = length.probe(*now, number, 20 * MILLISECOND) {
                assert!(tried > length.used() && tried <= length.most);
                probes.push(tried);
                if tried <= limit {
                    assert!(length.replied(*now + MILLISECOND, number));
                }
            }
        }
        probes
    }

    #[test]
    fn the_longest_of_three_lengths_is_used() {
        for (base, most, limit, used, probes) in [
            (1128, 8900, 9000, 8900, vec![8900]),
            (1128, 8900, 1400, 1380, vec![8900, 8900, 8900, 8900, 1380]),
            (1128, 8900, 1200, 1128, [[8900; 4], [1380; 4]].concat()),
            (1128, 1400, 1400, 1400, vec![1400]),
            (1128, 1380, 1200, 1128, vec![1380; 4]),
            (1128, 1300, 1200, 1128, vec![1300; 4]),
            (440, 440, 440, 440, vec![]),
        ] {
            let (mut length, mut now) = (length(base, most), SECOND);
            assert_eq!((run(&mut length, limit, &mut now), length.used()), (probes, used), "{most}, {limit}");
        }
    }

    #[test]
    fn shorter_arrivals_do_not_hide_what_is_too_long() {
        let (mut length, mut now) = (length(1000, 9000), 0);
        run(&mut length, 9000, &mut now);
        assert_eq!(length.used(), 9000);
        for _ in 0..3 {
            length.note_loss(now, 9000);
            length.note_arrival(1500);
        }
        length.note_loss(now, 9000);
        assert_eq!(length.used(), 1000, "four were lost, and none has arrived");
        // As long ones arrive, what is lost is lost by chance.
        run(&mut length, 9000, &mut now);
        for _ in 0..20 {
            length.note_loss(now, 9000);
            length.note_arrival(9000);
        }
        assert_eq!(length.used(), 9000);
        // What was cut before, and goes in parts, says nothing.
        (0..4).for_each(|_| length.note_loss(now, 9000));
        assert_eq!(length.used(), 1000);
        (0..4).for_each(|_| length.note_loss(now, 9000));
        length.note_arrival(9000);
        assert_eq!(length.used(), 1000);
    }

    /// A peer whose program computes replies to nothing, which says nothing of the path.
    #[test]
    fn silence_is_no_limit() {
        let (mut length, mut now) = (length(1128, 8900), SECOND);
        for number in 1..=101 {
            now = length.due(true).expect("it goes on").max(now);
            assert!(length.probe(now, number, 20 * MILLISECOND).is_none_or(|tried| tried == 8900));
        }
        assert!(now > 2 * SECOND, "it is not asked all the time");
        // The program calls LAPI again.
        length.note_arrival(100);
        assert!(length.replied(now, 101) && length.used() == 8900, "{length:?}");
    }

    #[test]
    fn a_link_that_takes_less_later_is_noticed_and_one_that_takes_more_again() {
        let (mut length, mut now) = (length(1128, 8900), SECOND);
        run(&mut length, 9_000, &mut now);
        assert_eq!((length.used(), length.due(true)), (8900, None));
        for lost in 1..=SUSPICIOUS {
            length.note_arrival(1128);
            length.note_loss(now, 1128);
            assert_eq!(length.used(), 8900, "{lost}");
            length.note_loss(now, 1129);
        }
        assert_eq!(length.used(), 1128);
        run(&mut length, 1400, &mut now);
        assert_eq!(length.used(), 1380);
        assert_eq!(length.due(false), None, "nothing is tried while there is nothing to send");
        now += RAISE;
        run(&mut length, 9_000, &mut now);
        assert_eq!(length.used(), 8900);
    }
}

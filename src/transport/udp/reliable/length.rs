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
#[path = "length_tests.rs"]
mod tests;

//! What time demands of a sender, and when it has something to send if nothing arrives.

use super::super::round_trip::GRANULARITY;
use super::super::{Nanos, OVERHEAD};
use super::{Fate, Piece, Sender};

impl Sender {
    /// Does what time demands.
    pub(super) fn advance(&mut self, now: Nanos) {
        if self.path.loss.is_some_and(|loss| loss <= now) {
            self.find_lost(now);
        }
        // No timer is shorter.
        let shortest = self.longest.min(GRANULARITY);
        if now < self.path.since + shortest || self.timer().is_none_or(|end| end > now) {
            return;
        }
        self.ping = self.is_refused();
        self.path.ends += 1;
        self.path.since = now;
        if self.ping {
            return;
        }
        if self.path.ends == 2 {
            self.path.congestion.collapse(now);
            self.path.set_pace(now);
        }
        self.lose_oldest(now);
    }

    /// Whether [`Self::next`] has nothing now, unless a timer has ended; false also where a closer
    /// look is needed.
    #[inline]
    pub fn is_quiet(&self, now: Nanos) -> bool {
        self.unsent == self.end()
            && self.lost.is_empty()
            && !self.ping
            && self.path.probes == 0
            && self.path.loss.is_none()
            && self.probe_due().is_none_or(|due| due > now)
    }

    /// Whether the timer has ended, which [`Self::is_quiet`] does not look at.
    #[cfg(test)]
    pub fn timer_has_ended(&self, now: Nanos) -> bool {
        self.timer().is_some_and(|end| end <= now)
    }

    /// When [`Self::next`] has something next, if nothing arrives.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let mut lost = self.lost.iter().filter_map(|&number| self.piece(number));
        let lost = lost.find(|piece| piece.fate == Fate::Lost);
        let new = (self.unsent < self.limit.min(self.end())).then(|| self.piece(self.unsent)).flatten();
        let fits = |piece: &Piece| !self.path.is_full(usize::from(piece.len) + OVERHEAD);
        let ready = self.ping || self.path.probes != 0 || lost.or(new).is_some_and(fits);
        let send = ready.then(|| self.paced.unwrap_or(now));
        [self.path.loss, self.timer(), send, self.probe_due()].into_iter().flatten().min()
    }

    /// When the length of datagrams is to be probed next.
    #[inline]
    pub(super) fn probe_due(&self) -> Option<Nanos> {
        self.path.length.due(!self.pieces.is_empty())
    }

    /// The length of the probe that is to be sent now, if any.
    pub(super) fn probe(&mut self, now: Nanos, transmission: u64) -> Option<usize> {
        self.probe_due().filter(|at| *at <= now)?;
        self.path.length.probe(now, transmission, 2 * self.path.round_trip.timeout())
    }

    /// When the timer ends.
    pub(super) fn timer(&self) -> Option<Nanos> {
        let path = &self.path;
        let runs = path.in_flight != 0 || self.is_refused();
        let interval = (path.round_trip.timeout() + self.peer_delay) << path.ends.min(10);
        // A way that is longer than the bound is not interrupted all the time; a peer that seldom
        // looks does not count as such.
        let longest = self.longest.max(2 * path.round_trip.way());
        (runs && path.probes == 0 && !self.ping).then(|| path.since + interval.min(longest))
    }
}

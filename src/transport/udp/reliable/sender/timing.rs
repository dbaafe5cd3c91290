//! When a sender has something to send, if nothing arrives.

use super::super::{Nanos, OVERHEAD};
use super::{Fate, Piece, Sender};

impl Sender {
    /// Whether [`Self::next`] has nothing now, unless a timer has ended; false also where a closer look is needed.
    #[inline]
    pub fn is_quiet(&self, now: Nanos) -> bool {
        let [path] = &*self.paths else { return false };
        self.unsent == self.end()
            && self.lost.is_empty()
            && self.ping.is_none()
            && path.probes == 0
            && path.loss.is_none()
            && path.probe_due(!self.pieces.is_empty()).is_none_or(|due| due > now)
    }

    /// Whether the timer of a path has ended, which [`Self::is_quiet`] does not look at.
    #[cfg(test)]
    pub fn timer_has_ended(&self, now: Nanos) -> bool {
        (0..self.paths.len()).any(|at| self.timer(at).is_some_and(|end| end <= now))
    }

    /// When [`Self::next`] has something next, if nothing arrives.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let mut lost = self.lost.iter().filter_map(|&number| self.piece(number));
        let lost = lost.find(|piece| piece.fate == Fate::Lost);
        let new = (self.unsent < self.limit.min(self.end())).then(|| self.piece(self.unsent)).flatten();
        let fits = |piece: &Piece| self.fits(usize::from(piece.len) + OVERHEAD);
        let ready = self.ping.is_some()
            || self.paths.iter().any(|path| path.probes != 0)
            || lost.or(new).is_some_and(fits);
        let send = ready.then(|| self.paced.unwrap_or(now));
        let losses = self.paths.iter().filter_map(|path| path.loss);
        let timers = (0..self.paths.len()).filter_map(|at| self.timer(at));
        losses.chain(timers).chain(send).chain(self.probe_due()).min()
    }

    /// When the timer of a path ends.
    pub(super) fn timer(&self, at: usize) -> Option<Nanos> {
        let path = &self.paths[at];
        let runs = path.in_flight != 0 || (self.is_refused() && at == self.usual());
        let interval = (path.round_trip.timeout() + self.peer_delay) << path.ends.min(10);
        // A way that is longer than the bound is not interrupted all the time; a peer that seldom looks does not count as such.
        let longest = self.longest.max(2 * path.round_trip.way());
        (runs && path.probes == 0 && self.ping.is_none()).then(|| path.since + interval.min(longest))
    }
}

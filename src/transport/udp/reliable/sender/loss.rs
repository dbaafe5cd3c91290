//! What is lost: found by the transmissions that have arrived later, as in RFC 9002.

use super::super::{Nanos, OVERHEAD, Statistics};
use super::{Fate, PROBES, Path, Piece, Sender};

impl Sender {
    /// Forgets transmissions of fragments by a path that have arrived or were sent again, from the front.
    pub(super) fn prune(&mut self, at: usize) {
        while let Some(&(transmission, number)) = self.paths[at].order.front() {
            let current = |piece: &Piece| piece.fate == Fate::InFlight && piece.transmission == transmission;
            if self.piece(number).is_some_and(current) {
                break;
            }
            self.paths[at].order.pop_front();
        }
    }

    /// Finds what is lost on a path, in the order of transmission.
    pub(super) fn find_lost(&mut self, now: Nanos, at: usize, statistics: &mut Statistics) {
        self.paths[at].loss = None;
        let patience = self.paths[at].round_trip.reordering();
        self.prune(at);
        loop {
            let Path { order, highest, reordered, .. } = &self.paths[at];
            let Some(&(transmission, number)) = order.front().filter(|(sent, _)| sent < highest) else {
                break;
            };
            let in_order = transmission + reordered > *highest;
            let Some(sent) = self.piece(number).map(|piece| piece.sent) else { break };
            if in_order && sent + patience > now {
                self.paths[at].loss = Some(sent + patience);
                break;
            }
            self.lose(now, number);
            self.paths[at].congestion.note_loss(now, sent);
            statistics.found_lost += 1;
            self.prune(at);
        }
    }

    /// The timer of a path has ended: its oldest fragments are sent again, by another path if one works. At its second end all of them are,
    /// if so.
    pub(super) fn lose_oldest(&mut self, now: Nanos, at: usize) {
        let elsewhere = self.works_beside(at);
        let count = if elsewhere && self.paths[at].ends > 1 { usize::MAX } else { PROBES.into() };
        if !elsewhere {
            let by = self.usual();
            self.paths[by].probes = PROBES;
        }
        for _ in 0..count {
            self.prune(at);
            let Some(&(_, number)) = self.paths[at].order.front() else { break };
            self.lose(now, number);
        }
        self.prune(at);
    }

    /// A fragment counts as lost: it is sent again.
    fn lose(&mut self, now: Nanos, number: u64) {
        let Some(piece) = self.piece_mut(number) else { return };
        piece.fate = Fate::Lost;
        let (len, path) = (usize::from(piece.len), usize::from(piece.path));
        let path = &mut self.paths[path];
        path.in_flight -= len + OVERHEAD;
        path.length.note_loss(now, len);
        self.lost.push_back(number);
    }
}

//! What is lost: found by the transmissions that have arrived later, as in RFC 9002.

use super::super::{Nanos, OVERHEAD, Statistics};
use super::{Fate, Piece, Sender};

impl Sender {
    /// Forgets transmissions of fragments that have arrived or were sent again, from the front.
    pub(super) fn prune(&mut self) {
        while let Some(&(transmission, number)) = self.order.front() {
            let current = |piece: &Piece| piece.fate == Fate::InFlight && piece.transmission == transmission;
            if self.piece(number).is_some_and(current) {
                break;
            }
            self.order.pop_front();
        }
    }

    /// Finds what is lost, in the order of transmission.
    pub(super) fn find_lost(&mut self, now: Nanos, statistics: &mut Statistics) {
        self.loss = None;
        let patience = self.round_trip.reordering();
        self.prune();
        while let Some(&(transmission, number)) = self.order.front().filter(|(at, _)| *at < self.highest) {
            let Some(sent) = self.piece(number).map(|piece| piece.sent) else { break };
            if transmission + self.reordered > self.highest && sent + patience > now {
                self.loss = Some(sent + patience);
                break;
            }
            self.lose(number);
            self.congestion.note_loss(now, sent);
            statistics.found_lost += 1;
            self.prune();
        }
    }

    /// A fragment counts as lost: it is sent again.
    pub(super) fn lose(&mut self, number: u64) {
        let Some(piece) = self.piece_mut(number) else { return };
        piece.fate = Fate::Lost;
        let len = piece.len as usize + OVERHEAD;
        self.in_flight -= len;
        self.lost.push_back(number);
    }
}

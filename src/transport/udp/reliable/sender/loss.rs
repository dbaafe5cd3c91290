//! What is lost: found by the transmissions that have arrived later, as in RFC 9002.

use super::super::{Nanos, OVERHEAD};
use super::{Fate, PROBES, Path, Piece, Sender};

impl Sender {
    /// Forgets transmissions of fragments that have arrived or were sent again, from the front.
    pub(super) fn prune(&mut self) {
        while let Some(&(transmission, number)) = self.path.order.front() {
            let current = |piece: &Piece| piece.fate == Fate::InFlight && piece.transmission == transmission;
            if self.piece(number).is_some_and(current) {
                break;
            }
            self.path.order.pop_front();
        }
    }

    /// Finds what is lost, in the order of transmission.
    pub(super) fn find_lost(&mut self, now: Nanos) {
        self.path.loss = None;
        let patience = self.path.round_trip.reordering();
        self.prune();
        loop {
            let Path { order, highest, reordered, .. } = &self.path;
            let Some(&(transmission, number)) = order.front().filter(|(sent, _)| sent < highest) else {
                break;
            };
            let in_order = transmission + reordered > *highest;
            let Some(sent) = self.piece(number).map(|piece| piece.sent) else { break };
            if in_order && sent + patience > now {
                self.path.loss = Some(sent + patience);
                break;
            }
            self.lose(now, number);
            self.path.congestion.note_loss(now, sent);
            self.prune();
        }
    }

    /// The timer has ended: the oldest fragments are sent again.
    pub(super) fn lose_oldest(&mut self, now: Nanos) {
        self.path.probes = PROBES;
        for _ in 0..PROBES {
            self.prune();
            let Some(&(_, number)) = self.path.order.front() else { break };
            self.lose(now, number);
        }
        self.prune();
    }

    /// A fragment counts as lost: it is sent again.
    fn lose(&mut self, now: Nanos, number: u64) {
        let Some(piece) = self.piece_mut(number) else { return };
        piece.fate = Fate::Lost;
        let len = usize::from(piece.len);
        self.path.in_flight -= len + OVERHEAD;
        self.path.length.note_loss(now, len);
        self.lost.push_back(number);
    }
}

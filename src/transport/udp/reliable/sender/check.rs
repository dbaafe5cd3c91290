//! What holds of a sender at any time.

use super::super::OVERHEAD;
use super::{Fate, MOST_REORDERED, Sender};

impl Sender {
    /// Panics unless its numbers agree and its memory is within bounds.
    pub fn check(&self) {
        let bound = self.most + 2 * MOST_REORDERED as usize;
        assert!(self.lost.len() <= bound, "{} are lost", self.lost.len());
        let flying = self.pieces.iter().filter(|own| own.fate == Fate::InFlight);
        let bytes = flying.map(|piece| usize::from(piece.len) + OVERHEAD).sum::<usize>();
        assert_eq!(self.path.in_flight, bytes);
        assert!(self.path.order.len() <= bound, "{} are in flight", self.path.order.len());
        assert!(
            self.pieces.len() <= self.most.max(self.packets.front().map_or(0, |first| first.count.into()))
        );
        assert!(self.unsent >= self.first && self.unsent <= self.end() && self.unsent <= self.limit);
        for (at, piece) in self.pieces.iter().enumerate() {
            let waits = self.first + at as u64 >= self.unsent;
            assert_eq!(waits, piece.fate == Fate::Waiting);
            assert!(piece.fate != Fate::Lost || self.lost.contains(&(self.first + at as u64)));
        }
    }
}

//! Elements of a gather or scatter: where they are in an item, and which of them go to which
//! server.

use super::pending::Memory;
use crate::error::{FamError, Result};
use crate::wire::{RUN, Ticket};

/// The most runs of a message.
const MOST_RUNS: usize = 4096;
/// A message has no other run once it has this many bytes.
pub const FULL: u64 = 1 << 20;

/// Elements of one size.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// How many; at least 1.
    pub count: u64,
    /// Where they are.
    pub places: Places<'a>,
    /// Bytes of each; at least 1.
    pub size: u64,
}

/// Where elements are, in elements.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// At equal distances.
    Strided {
        /// The place of the first one.
        first: u64,
        /// From one to the next.
        stride: u64,
    },
    /// At these places.
    Listed(&'a [u64]),
}

/// Runs of a piece of an item that one message moves, and the local memory of each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The piece.
    pub piece: usize,
    /// Offset and length of each run, as the wire has them.
    pub runs: Vec<u8>,
    /// Bytes of all runs.
    pub bytes: u64,
    /// The local memory, in the order of the runs.
    pub local: Vec<Memory>,
    /// The end of the last run in the piece.
    end: u64,
}

impl Elements<'_> {
    /// Where element `index` begins in the item, in bytes; `None`: beyond all numbers.
    fn offset(&self, index: u64) -> Option<u64> {
        let place = match self.places {
            Places::Strided { first, stride } => index.checked_mul(stride)?.checked_add(first)?,
            Places::Listed(places) => *places.get(usize::try_from(index).ok()?)?,
        };
        place.checked_mul(self.size)
    }

    /// Bytes of all of them.
    ///
    /// # Errors
    /// [`FamError::OutOfRange`]: one is not within the item.
    pub fn check(&self, ticket: &Ticket) -> Result<u64> {
        let is_within = |index| self.offset(index).is_some_and(|offset| ticket.has(offset, self.size));
        let is_fine = match self.places {
            // The last one is the farthest.
            Places::Strided { .. } => is_within(self.count - 1),
            Places::Listed(_) => (0..self.count).all(is_within),
        };
        let bytes = self.count.checked_mul(self.size).filter(|_| is_fine);
        bytes.ok_or_else(|| FamError::OutOfRange.because("an element is not within the item"))
    }

    /// Gives messages' worth of runs, which together have all elements. The local memory has them
    /// one behind the other. They must be within the item.
    pub fn batches(
        &self,
        ticket: &Ticket,
        local: *mut u8,
        mut give: impl FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        let empty = |piece| Batch { piece, ..Batch::default() };
        let mut open: Vec<Batch> = (0..ticket.pieces.len()).map(empty).collect();
        let mut at = local;
        for offset in (0..self.count).filter_map(|index| self.offset(index)) {
            for segment in ticket.segments(offset, self.size) {
                let batch = &mut open[segment.piece];
                if batch.is_full() {
                    give(std::mem::replace(batch, empty(segment.piece)))?;
                }
                batch.push(segment.offset, Memory { at, length: segment.length as usize });
                at = at.wrapping_add(segment.length as usize);
            }
        }
        open.into_iter().filter(|batch| batch.bytes != 0).try_for_each(give)
    }
}

impl Batch {
    /// How many runs it has.
    pub fn count(&self) -> u64 {
        (self.runs.len() / RUN) as u64
    }

    fn is_full(&self) -> bool {
        self.runs.len() >= MOST_RUNS * RUN || self.bytes >= FULL
    }

    fn push(&mut self, offset: u64, memory: Memory) {
        let length = memory.length as u64;
        self.bytes += length;
        let joins = self.end == offset && !self.runs.is_empty();
        if joins {
            let place = self.runs.len() - 8;
            let (_, last) = self.runs.split_at_mut(place);
            let sum = last.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) + length;
            last.copy_from_slice(&sum.to_le_bytes());
        } else {
            self.runs.extend_from_slice(&offset.to_le_bytes());
            self.runs.extend_from_slice(&length.to_le_bytes());
        }
        self.end = offset + length;
        match self.local.last_mut() {
            Some(last) if last.at.wrapping_add(last.length) == memory.at => last.length += memory.length,
            _ => self.local.push(memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Piece, READ, runs};

    fn ticket(size: u64, block: u64, servers: usize) -> Ticket {
        let lengths = Ticket::lengths(size, block, servers);
        let pieces = lengths.into_iter().map(|length| Piece { server: 0, part: 0, offset: 0, length });
        Ticket { item: 1, user: 1, rights: READ, size, block, pieces: pieces.collect() }
    }

    /// Each byte of the elements is asked for once, at its server, and goes to its local place.
    fn covers(elements: &Elements<'_>, ticket: &Ticket) -> usize {
        let mut moved = vec![None; elements.check(ticket).expect("within") as usize];
        let base = std::ptr::without_provenance_mut(1 << 20);
        let mut messages = 0;
        let walk = elements.batches(ticket, base, |batch| {
            messages += 1;
            let remote = runs(&batch.runs, batch.count()).expect("runs");
            let remote = remote.flat_map(|(offset, length)| offset..offset + length);
            let local = batch.local.iter().flat_map(|one| one.at.addr()..one.at.addr() + one.length);
            let mut both = remote.zip(local).inspect(|_| ());
            assert_eq!(both.by_ref().count() as u64, batch.bytes);
            let remote = runs(&batch.runs, batch.count()).expect("runs");
            let remote = remote.flat_map(|(offset, length)| offset..offset + length);
            let local = batch.local.iter().flat_map(|one| one.at.addr()..one.at.addr() + one.length);
            for (offset, at) in remote.zip(local) {
                let before = moved[at - base.addr()].replace((batch.piece, offset));
                assert_eq!(before, None);
            }
            Ok(())
        });
        walk.expect("nothing fails");
        for (at, found) in moved.into_iter().enumerate() {
            let index = at as u64 / elements.size;
            let byte = elements.offset(index).expect("an offset") + at as u64 % elements.size;
            let segment = ticket.segments(byte, 1).next().expect("a byte");
            assert_eq!(found, Some((segment.piece, segment.offset)), "byte {at}");
        }
        messages
    }

    #[test]
    fn every_byte_moves_between_its_places() {
        let listed = [9, 0, 3, 4, 5, 3 + 8];
        for servers in [1, 2, 3] {
            let ticket = ticket(1 << 12, 64, servers);
            for size in [1, 7, 8, 100] {
                for (first, stride) in [(0, 1), (2, 3), (1, 0)] {
                    let places = Places::Strided { first, stride };
                    covers(&Elements { count: 9, places, size }, &ticket);
                }
                covers(&Elements { count: 6, places: Places::Listed(&listed), size }, &ticket);
            }
        }
    }

    #[test]
    fn many_runs_take_several_messages_and_neighbours_one_run() {
        let one = ticket(1 << 16, 1 << 16, 1);
        let spread = Elements { count: 10_000, places: Places::Strided { first: 0, stride: 2 }, size: 2 };
        assert_eq!(covers(&spread, &one), 3);
        let dense = Elements { count: 10_000, places: Places::Strided { first: 0, stride: 1 }, size: 2 };
        assert_eq!(covers(&dense, &one), 1);
    }

    #[test]
    fn what_is_not_within_the_item_is_refused() {
        let one = ticket(1000, 1000, 1);
        let strided =
            |first, stride, count, size| Elements { count, places: Places::Strided { first, stride }, size };
        assert_eq!(strided(0, 1, 125, 8).check(&one).expect("all of it"), 1000);
        let outside = [
            strided(1, 1, 125, 8),
            strided(0, u64::MAX, 2, 8),
            strided(u64::MAX, 1, 2, 8),
            strided(0, 0, u64::MAX, 8),
            Elements { count: 2, places: Places::Listed(&[0, 125]), size: 8 },
            Elements { count: 1, places: Places::Listed(&[u64::MAX]), size: 2 },
        ];
        for elements in outside {
            assert_eq!(elements.check(&one).expect_err("outside").error, FamError::OutOfRange);
        }
    }
}

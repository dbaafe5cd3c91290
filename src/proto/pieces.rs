//! Long messages whose data lies in many places, by bulk transfer: which *parts* of a message go by remote access, piece by piece,
//! and where the rest of it lies, which goes in packets.
//!
//! A part is contiguous at the task that registers it. At the other task it may lie in several places: each is one copy of
//! the access. Both tasks know the parts, so both know the rest.

use crate::base::bytes::Piece;
use crate::dgsp::{Layout, overlaps};
use crate::proto::content::{Content, Sink};
use crate::wire::key::Part;
use std::sync::Arc;

/// A message has at most this many parts: each is registered, and has a key.
pub const MOST: usize = 1024;

/// The places of a message are looked at one by one only where they are not much shorter than what counts as long: on average
/// at least one in this number of bytes of that.
const FINE: u64 = 16;

/// Bytes of a message from a number on, and how many.
pub type Range = (u64, u64);

/// Where the bytes of a message lie at one task.
#[derive(Clone, Debug)]
pub struct Span {
    layout: Arc<Layout>,
    /// The position of the message's first byte in the layout.
    skip: u64,
}

impl Span {
    /// The bytes of a layout.
    pub fn new(layout: Arc<Layout>) -> Self {
        Self { layout, skip: 0 }
    }

    /// `len` contiguous bytes.
    pub fn contiguous(at: usize, len: u64) -> Self {
        Self::new(Arc::new(Layout::contiguous(at as *mut u8, len)))
    }

    /// The places of a message of `total` bytes. `None` where memory alone does not say what becomes of its bytes: a function of
    /// the program takes them, or they have no places.
    pub fn of_sink(sink: &Sink, total: u64) -> Option<Self> {
        match sink {
            Sink::Nowhere => None,
            Sink::Buffer(at) => Some(Self::contiguous(*at, total)),
            Sink::Scattered(layout, skip) => {
                layout.function().is_none().then(|| Self { layout: layout.clone(), skip: *skip })
            }
        }
    }

    /// The data of a message.
    pub fn of_content(content: &Content) -> Self {
        match content {
            Content::Piece(piece) => Self::contiguous(piece.ptr as usize, piece.len as u64),
            Content::Scattered(layout) => Self::new(layout.clone()),
        }
    }

    /// Passes on the runs of these bytes, in order. Bytes that have no place are left out.
    pub fn runs(&self, (from, len): Range, each: impl FnMut(*mut u8, usize)) {
        self.layout.runs(self.skip.saturating_add(from), len, each);
    }

    /// The places of these bytes, one range after the other. It takes memory for the ranges, not for the places: another task may
    /// describe any number of places in a few words.
    pub fn select(&self, ranges: impl IntoIterator<Item = Range>) -> Layout {
        let ranges = ranges.into_iter().map(|(from, len)| (self.skip.saturating_add(from), len));
        Layout::selected(self.layout.clone(), ranges)
    }

    /// About as many bytes as lie in this number of places.
    pub fn bytes_in(&self, places: u64) -> u64 {
        (self.layout.len() / self.layout.run_count().max(1)).max(1).saturating_mul(places)
    }

    /// Whether accesses to these parts have long pieces here as well: on average at least `least` bytes.
    pub fn is_long_in(&self, parts: &[Part], least: u64) -> bool {
        if is_fine(&self.layout, least) {
            return false;
        }
        let (mut pieces, mut bytes) = (0u64, 0u64);
        for part in parts {
            self.runs((part.from, part.len), |_, len| {
                pieces += 1;
                bytes += len as u64;
            });
        }
        pieces.saturating_mul(least) <= bytes
    }
}

/// The parts of a message that this task registers: those that have at least `least` bytes in a row here and, where its places
/// there are known, at the other task. Each with its place here, in order. `None`: there are too many.
pub fn divide(here: &Layout, there: Option<&Layout>, least: u64) -> Option<Vec<(u64, Piece)>> {
    if is_fine(here, least) || there.is_some_and(|there| is_fine(there, least)) {
        return Some(Vec::new());
    }
    let mut parts: Vec<(u64, Piece)> = Vec::new();
    let mut from = 0;
    let mut each = |at: *mut u8, len: usize| {
        let (start, long) = (from, len as u64 >= least);
        from += len as u64;
        if !long {
            return;
        }
        // A boundary at the other task alone does not divide a part.
        if let Some((before, piece)) = parts.last_mut()
            && *before + piece.len as u64 == start
            && piece.ptr.wrapping_add(piece.len) == at.cast_const()
        {
            piece.len += len;
        } else if parts.len() <= MOST {
            parts.push((start, Piece { ptr: at, len }));
        }
    };
    match there {
        None => here.runs(0, here.len(), each),
        Some(there) => overlaps(here, there, 0, here.len(), |at, _, len| each(at, len)),
    }
    (parts.len() <= MOST).then_some(parts)
}

/// Whether a layout has far too short pieces.
fn is_fine(layout: &Layout, least: u64) -> bool {
    layout.run_count().saturating_mul(least) > layout.len().saturating_mul(FINE)
}

/// The bytes of a message of `total` bytes that are in none of these ranges, which are in order.
pub fn rest(ranges: impl IntoIterator<Item = Range>, total: u64) -> Vec<Range> {
    let (mut end, mut gaps) = (0, Vec::new());
    for (from, len) in ranges.into_iter().chain([(total, 0)]) {
        if from > end {
            gaps.push((end, from - end));
        }
        end = from + len;
    }
    gaps
}

/// The order in which packets carry the data of a get: first what goes in packets in any case, then the parts.
pub fn reordered(ranges: &[Range], total: u64) -> impl Iterator<Item = Range> {
    rest(ranges.iter().copied(), total).into_iter().chain(ranges.iter().copied())
}

/// The bytes that each part is about.
pub fn ranges(parts: &[Part]) -> Vec<Range> {
    parts.iter().map(|part| (part.from, part.len)).collect()
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;

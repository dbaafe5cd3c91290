//! Long messages whose data lies in many places, by bulk transfer: which *parts* of a message go by
//! remote access, piece by piece, and where the rest of it lies, which goes in packets.
//!
//! A part is contiguous at the task that registers it. At the other task it may lie in several
//! places: each is one copy of the access. Both tasks know the parts, so both know the rest. Parts
//! are registered in batches, of which each is withdrawn before the next one is registered.

use crate::dgsp::{Layout, overlaps};
use crate::memory::bytes::Piece;
use crate::proto::content::{Content, Sink};
use crate::wire::key::Part;
use std::sync::Arc;

/// At most this many parts of a message are registered at a time, each with its key. The others
/// follow in further batches.
pub const MOST: usize = 1024;

/// The places of a message are looked at in windows of about this many.
const WINDOW: u64 = 4096;

/// The places of a message are looked at one by one only where they are not much shorter than what
/// counts as long: on average at least one in this number of bytes of that.
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

    /// The places of a message of `total` bytes. `None` where memory alone does not say what
    /// becomes of its bytes: a function of the program takes them, or they have no places.
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

    /// The places of these bytes, one range after the other. It takes memory for the ranges, not
    /// for the places: another task may describe any number of places in a few words.
    pub fn select(&self, ranges: impl IntoIterator<Item = Range>) -> Layout {
        let ranges = ranges.into_iter().map(|(from, len)| (self.skip.saturating_add(from), len));
        Layout::selected(self.layout.clone(), ranges)
    }

    /// About as many bytes as lie in this number of places.
    pub fn bytes_in(&self, places: u64) -> u64 {
        bytes_in(&self.layout, places)
    }

    /// The layout, for a message that begins with its first byte.
    pub fn into_layout(self) -> Arc<Layout> {
        debug_assert_eq!(self.skip, 0, "its first byte is another one");
        self.layout
    }

    /// Whether accesses to these parts have long pieces here as well: on average at least
    /// `least` bytes.
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

/// Parts of a message that are registered together, and where the next ones lie.
#[derive(Debug, Default)]
pub struct Batch {
    /// The number of each part's first byte in the message, and its place at the task that
    /// registers it; in order.
    pub parts: Vec<(u64, Piece)>,
    /// The first byte of the part that follows, if there are more.
    pub next: Option<u64>,
}

impl Batch {
    /// Bytes of the parts.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, piece)| piece.len as u64).sum()
    }

    /// Where the parts stand in the message. Those that touch are one range.
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges = Vec::new();
        cover(&mut ranges, self.parts.iter().map(|(from, piece)| (*from, piece.len as u64)));
        ranges
    }
}

/// The parts of a message that this task registers: those that have at least `least` bytes in a row
/// here and, where its places there are known, at the other task. At most `most` of them, from the
/// byte `from` of the message on, which is the first one or [`Batch::next`] of the batch before. It
/// takes memory for these parts, not for all places.
pub fn divide(here: &Layout, there: Option<&Layout>, least: u64, from: u64, most: usize) -> Batch {
    if is_fine(here, least) || there.is_some_and(|there| is_fine(there, least)) {
        return Batch::default();
    }
    let window = bytes_in(here, WINDOW).min(there.map_or(u64::MAX, |there| bytes_in(there, WINDOW)));
    let mut divider = Divider { least, most, batch: Batch::default(), run: None };
    let mut at = from;
    while at < here.len() && divider.batch.next.is_none() {
        let len = window.min(here.len() - at);
        let mut number = at;
        let mut fragment = |ours: *mut u8, theirs: *mut u8, len: usize| {
            divider.take(Run { from: number, ours, theirs, len });
            number += len as u64;
        };
        match there {
            None => here.runs(at, len, |ours, len| fragment(ours, ours, len)),
            Some(there) => overlaps(here, there, at, len, fragment),
        }
        at += len;
    }
    divider.close();
    divider.batch
}

/// Bytes of a message that are contiguous at each task.
#[derive(Clone, Copy)]
struct Run {
    from: u64,
    ours: *mut u8,
    theirs: *mut u8,
    len: usize,
}

/// Makes parts of the runs of a message.
struct Divider {
    least: u64,
    most: usize,
    batch: Batch,
    /// The last run, which the next fragment may continue.
    run: Option<Run>,
}

impl Divider {
    fn take(&mut self, next: Run) {
        if let Some(run) = &mut self.run
            && run.ours.wrapping_add(run.len) == next.ours
            && run.theirs.wrapping_add(run.len) == next.theirs
        {
            run.len += next.len;
            return;
        }
        self.close();
        self.run = Some(next);
    }

    /// The run is over.
    fn close(&mut self) {
        let Some(Run { from, ours, len, .. }) = self.run.take() else { return };
        let Batch { parts, next } = &mut self.batch;
        if (len as u64) < self.least || next.is_some() {
            return;
        }
        // A boundary at the other task alone does not divide a part.
        if let Some((before, piece)) = parts.last_mut()
            && *before + piece.len as u64 == from
            && piece.ptr.wrapping_add(piece.len) == ours.cast_const()
        {
            piece.len += len;
        } else if parts.len() < self.most {
            parts.push((from, Piece { ptr: ours, len }));
        } else {
            *next = Some(from);
        }
    }
}

/// Adds ranges to those that are known, which lie before them. Ranges that touch become one.
pub fn cover(known: &mut Vec<Range>, ranges: impl IntoIterator<Item = Range>) {
    for (from, len) in ranges {
        match known.last_mut() {
            Some((before, all)) if *before + *all == from => *all += len,
            _ => known.push((from, len)),
        }
    }
}

/// About as many bytes of a layout as lie in this number of places.
fn bytes_in(layout: &Layout, places: u64) -> u64 {
    (layout.len() / layout.run_count().max(1)).max(1).saturating_mul(places)
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

/// The order in which packets carry the data of a get: first what goes in packets in any case,
/// then the parts.
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

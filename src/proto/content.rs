//! Where the data of a message lies: at its origin, and at its target.

use crate::dgsp::Layout;
use crate::memory::bytes::{self, Gather, Piece, Source};
use std::sync::Arc;

/// Where the data of a message is, at the task that sends it.
#[derive(Clone, Debug)]
pub enum Content {
    /// Contiguous.
    Piece(Piece),
    /// In many places.
    Scattered(Arc<Layout>),
}

impl Content {
    /// No data.
    pub const EMPTY: Self = Self::Piece(Piece::EMPTY);

    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Piece(piece) => piece.len,
            Self::Scattered(layout) => layout.len() as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a piece, on average; 0 for contiguous data.
    pub fn piece(&self) -> u32 {
        match self {
            Self::Piece(_) => 0,
            Self::Scattered(layout) => layout.mean_run(),
        }
    }

    /// Some of the bytes, as a packet takes them.
    #[inline]
    pub fn part(&self, from: usize, len: usize) -> Source<'_> {
        match self {
            Self::Piece(piece) => Source::Piece(piece.part(from, len)),
            Self::Scattered(layout) => Source::Gathered { by: &**layout, from: from as u64, len },
        }
    }

    /// All of the bytes.
    pub fn all(&self) -> Source<'_> {
        self.part(0, self.len())
    }

    /// The bytes, if they are contiguous.
    pub fn as_piece(&self) -> Option<Piece> {
        match self {
            Self::Piece(piece) => Some(*piece),
            Self::Scattered(_) => None,
        }
    }
}

impl From<Layout> for Content {
    /// A contiguous layout is a piece: the short way for all that follows.
    fn from(layout: Layout) -> Self {
        match layout.as_contiguous() {
            Some((ptr, len)) => Self::Piece(Piece { ptr, len: len as usize }),
            None => Self::Scattered(Arc::new(layout)),
        }
    }
}

impl Gather for Layout {
    unsafe fn gather(&self, from: u64, len: usize, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { Layout::gather(self, from, len, out) }
    }
}

/// Where the data of a message goes, at the task that receives it.
#[derive(Clone, Debug)]
pub enum Sink {
    /// Nowhere: the data is dropped.
    Nowhere,
    /// To this address and what follows.
    Buffer(usize),
    /// To many places: these, from this position on.
    Scattered(Arc<Layout>, u64),
}

impl Sink {
    /// Puts a part of the data where it belongs. Bytes that have no place are dropped.
    ///
    /// # Safety
    /// The places must be writable, the data readable.
    #[inline]
    pub unsafe fn take(&self, offset: u64, data: Piece) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Nowhere => {}
                Self::Buffer(at) => bytes::copy(data, (*at + offset as usize) as *mut u8),
                Self::Scattered(layout, skip) => layout.scatter(skip + offset, data.ptr, data.len),
            }
        }
    }

    /// The address of the program's data distribution function that takes the data, if one does.
    #[inline]
    pub fn function(&self) -> Option<usize> {
        match self {
            Self::Nowhere | Self::Buffer(_) => None,
            Self::Scattered(layout, _) => layout.function(),
        }
    }

    /// Whether the data goes nowhere.
    pub fn is_nowhere(&self) -> bool {
        matches!(self, Self::Nowhere)
    }

    /// The address, when all data goes to one place.
    pub fn as_buffer(&self) -> Option<usize> {
        match self {
            Self::Buffer(at) => Some(*at),
            _ => None,
        }
    }
}

impl From<Layout> for Sink {
    fn from(layout: Layout) -> Self {
        Self::Scattered(Arc::new(layout), 0)
    }
}

/// What a copy within one task takes at a time, in bytes.
const LOCAL: usize = 64 << 10;

/// Copies data within one task. `atom`: parts of the data are passed on in multiples of this number
/// of bytes (0: any).
///
/// # Safety
/// The data must be readable, its places writable.
#[inline]
pub unsafe fn copy(from: &Content, to: &Sink, atom: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (from, to) {
            (Content::Piece(piece), Sink::Buffer(at)) => bytes::copy(*piece, *at as *mut u8),
            _ => copy_in_steps(from, to, atom),
        }
    }
}

/// [`copy`] by way of a buffer.
///
/// # Safety
/// The conditions of [`copy`] hold.
unsafe fn copy_in_steps(from: &Content, to: &Sink, atom: usize) {
    if to.is_nowhere() {
        return;
    }
    let step = whole_atoms(LOCAL, atom);
    let mut buffer = vec![0u64; step.min(from.len()).div_ceil(8)];
    let mut at = 0;
    while at < from.len() {
        let len = step.min(from.len() - at);
        // SAFETY: the caller's promise; the buffer has room for a step.
        unsafe {
            from.part(at, len).copy_to(buffer.as_mut_ptr().cast());
            to.take(at as u64, Piece { ptr: buffer.as_ptr().cast(), len });
        }
        at += len;
    }
}

/// As many whole atoms as fit `room` bytes, in bytes.
pub fn whole_atoms(room: usize, atom: usize) -> usize {
    match atom {
        0 => room,
        _ => room / atom * atom,
    }
}

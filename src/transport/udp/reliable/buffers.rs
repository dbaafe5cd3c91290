//! Memory for packets, used again.

use crate::wire::datagram::MAP;

/// Buffers that are kept for later, of each of the two lengths, at most.
const KEPT: usize = 64;

/// Bytes of a buffer behind the longest packet that it takes: for each fragment of it one, since
/// they are equally long.
const BEHIND: usize = 64 * MAP;

/// A buffer of words, so that what is in it begins at a multiple of 8.
pub type Buffer = Box<[u64]>;

/// Buffers of two lengths: for packets that fit into a datagram, and for all others.
#[derive(Debug)]
pub struct Buffers {
    short: Kept,
    long: Kept,
}

#[derive(Debug)]
struct Kept {
    /// The longest packet, in words.
    words: usize,
    free: Vec<Buffer>,
}

impl Kept {
    fn new(bytes: usize) -> Self {
        Self { words: bytes.div_ceil(8), free: Vec::with_capacity(KEPT) }
    }

    /// What its buffers have, in words.
    fn room(&self) -> usize {
        self.words + BEHIND / 8
    }

    fn take(&mut self) -> Buffer {
        self.free.pop().unwrap_or_else(|| vec![0; self.room()].into_boxed_slice())
    }
}

impl Buffers {
    /// For packets of up to `longest` bytes, `unit` of them in a datagram.
    pub fn new(unit: usize, longest: usize) -> Self {
        Self { short: Kept::new(unit.min(longest)), long: Kept::new(longest) }
    }

    /// Bytes of the longest packet.
    pub fn longest(&self) -> usize {
        8 * self.long.words
    }

    /// A buffer for `len` bytes, with any content; `None` when that is more than the
    /// longest packet has.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Buffer> {
        let words = len.div_ceil(8);
        match words {
            _ if words <= self.short.words => Some(self.short.take()),
            _ if words <= self.long.words => Some(self.long.take()),
            _ => None,
        }
    }

    /// Gives one back.
    #[inline]
    pub fn give(&mut self, buffer: Buffer) {
        let kept = if buffer.len() == self.short.room() { &mut self.short } else { &mut self.long };
        if kept.free.len() < KEPT && buffer.len() == kept.room() {
            kept.free.push(buffer);
        }
    }
}

/// The first `len` bytes.
#[inline]
pub fn bytes(buffer: &Buffer, len: usize) -> &[u8] {
    &bytemuck::cast_slice(buffer)[..len]
}

/// All bytes.
#[inline]
pub fn bytes_mut(buffer: &mut Buffer) -> &mut [u8] {
    bytemuck::cast_slice_mut(buffer)
}

//! Memory for packets, used again.

use crate::wire::datagram::MAP;

/// Buffers that are kept for later, of each of the lengths, at most.
const KEPT: usize = 64;

/// Bytes of a buffer behind the longest packet that it takes: for each fragment of it one, since
/// they are equally long.
const BEHIND: usize = 64 * MAP;

/// A buffer of words, so that what is in it begins at a multiple of 8.
pub type Buffer = Box<[u64]>;

/// How many datagrams those packets need at most that the buffers of each length take, but the
/// longest buffers. A packet has room for the datagrams that it needs, so what all that wait
/// together take is bounded by the least that a buffer may be filled: with 5 of 16.
const DATAGRAMS: [usize; 3] = [1, 4, 16];

/// Buffers of four lengths: for packets that fit into a datagram, for those that need few, and for
/// the longest.
#[derive(Debug)]
pub struct Buffers {
    /// Shorter ones first.
    lengths: [Kept; DATAGRAMS.len() + 1],
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
        let [one, few, many] = DATAGRAMS.map(|count| Kept::new((count * unit).min(longest)));
        Self { lengths: [one, few, many, Kept::new(longest)] }
    }

    /// Bytes of the longest packet.
    pub fn longest(&self) -> usize {
        8 * self.lengths[DATAGRAMS.len()].words
    }

    /// A buffer for `len` bytes, with any content; `None` when that is more than the
    /// longest packet has.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Buffer> {
        let words = len.div_ceil(8);
        self.lengths.iter_mut().find(|kept| words <= kept.words).map(Kept::take)
    }

    /// Gives one back.
    #[inline]
    pub fn give(&mut self, buffer: Buffer) {
        let kept = self.lengths.iter_mut().find(|kept| buffer.len() == kept.room());
        if let Some(kept) = kept.filter(|kept| kept.free.len() < KEPT) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_for_packets_of_its_length() {
        for unit in [100, 1000] {
            let mut buffers = Buffers::new(unit, 1000);
            for len in [1, 100, 101, 400, 401, 1000] {
                let buffer = buffers.take(len).expect("a buffer");
                assert!(8 * buffer.len() >= len + BEHIND);
                let at = buffer.as_ptr();
                buffers.give(buffer);
                let again = buffers.take(len).expect("a buffer");
                assert_eq!(again.as_ptr(), at, "{len} bytes");
            }
            assert!(buffers.take(buffers.longest() + 1).is_none());
        }
    }
}

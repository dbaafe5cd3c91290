//! A packet while its producer writes it, in place.

use super::{
    BODY_SHIFT, Full, HEAD_SHIFT, INLINE, LINE, LONGEST_HEAD, PLACE_SHIFT, Producer, REPORT, SHORT_BODY,
    SLOT, in_slot, sequence,
};
use crate::base::line::prefetch_to_write;
use crate::memory::bytes::{self, Piece, Source, pad8};
use std::ptr::NonNull;

/// The words of a slot, its own word included.
const WORDS: usize = SLOT / 8;

/// How many packets after the next one that one comes whose slot the producer fetches after each
/// packet. The consumer has read the line of the slot, so that it comes back only when it is
/// written, and whatever the producer's processor stores after that waits for it: there is room for
/// what one or two calls of the program store. What is fetched much earlier, the consumer takes
/// back meanwhile.
const SLOTS_AHEAD: u64 = 3;

/// The lines of the longest body after which the producer fetches as many more, for the next one.
/// Those of a longer body come while it is copied.
const LINES_AHEAD: usize = 16;

/// The bytes of a body of these pieces.
#[inline(always)]
fn length(first: Piece, second: Source<'_>) -> usize {
    if second.is_empty() { first.len } else { pad8(first.len) + second.len() }
}

/// A packet whose head is written, word by word, into a free slot.
pub struct Filling<'a> {
    producer: &'a mut Producer,
    slot: NonNull<u8>,
    /// How many words its head has until now.
    words: usize,
}

/// A packet that is complete, and that the consumer does not see yet.
pub struct Filled<'a> {
    producer: &'a mut Producer,
    slot: NonNull<u8>,
    word: u64,
}

impl<'a> Filling<'a> {
    /// Into the next slot, which is free.
    #[inline(always)]
    pub(super) fn new(producer: &'a mut Producer) -> Self {
        let slot = producer.ring.slot(producer.head);
        Self { producer, slot, words: 0 }
    }

    /// The next word of the head.
    #[inline(always)]
    pub fn word(mut self, value: u64) -> Self {
        self.put(value);
        self.words += 1;
        self
    }

    /// The next word of the head, unless it is 0. It is written before it is known to count.
    #[inline(always)]
    pub fn optional(mut self, value: u64) -> Self {
        self.put(value);
        self.words += usize::from(value != 0);
        self
    }

    #[inline(always)]
    fn put(&mut self, value: u64) {
        debug_assert!(8 * self.words < LONGEST_HEAD, "a head has fewer words");
        // SAFETY: the place is inside of the slot, which is ours: it has been consumed.
        unsafe { self.slot.cast::<u64>().add((1 + self.words) % WORDS).write(value) }
    }

    /// A whole head, a multiple of 8 bytes.
    #[inline]
    pub(super) fn head(mut self, head: &[u8]) -> Self {
        assert!(head.len().is_multiple_of(8) && head.len() <= LONGEST_HEAD);
        // SAFETY: the head fits the slot behind its word, and the slot is ours.
        unsafe { bytes::copy_few(Piece::of(head), self.slot.as_ptr().add(8)) };
        self.words = head.len() / 8;
        self
    }

    /// Writes the whole packet: the head, as `head` writes it, and the body: `first`, then (at the
    /// next multiple of 8) `second`.
    ///
    /// A body that is not beside its head is written before the head. The consumer polls the slot's
    /// first line, so that it comes back to this processor for the first word of the head, and
    /// would come once more for the slot's own word after a body in between; and all that is stored
    /// later waits for that.
    ///
    /// # Errors
    /// [`Full`]: it has no room.
    ///
    /// # Safety
    /// The pieces must be readable.
    #[inline(always)]
    pub unsafe fn packet(
        self,
        head: impl FnOnce(Self) -> Self,
        first: Piece,
        second: Source<'_>,
    ) -> Result<Filled<'a>, Full> {
        if first.len + second.len() <= SHORT_BODY {
            // SAFETY: the caller's promise.
            return unsafe { head(self).body(first, second) };
        }
        let body = length(first, second);
        if body <= LINE {
            // SAFETY: the slot is ours, and its second line has room.
            unsafe { self.producer.write_few(in_slot(self.slot, 0, body).as_ptr(), first, second) };
            return Ok(head(self).end(INLINE, body));
        }
        let Self { producer, .. } = self;
        // SAFETY: the caller's promise.
        let (place, body) = unsafe { producer.place(first, second)? };
        Ok(head(Self::new(producer)).end(place, body))
    }

    /// Copies the body: `first`, then (at the next multiple of 8) `second`.
    ///
    /// # Errors
    /// [`Full`]: it has no room.
    ///
    /// # Safety
    /// The pieces must be readable.
    #[inline(always)]
    pub unsafe fn body(self, first: Piece, second: Source<'_>) -> Result<Filled<'a>, Full> {
        let body = length(first, second);
        if body <= LINE {
            let place = in_slot(self.slot, 8 * self.words, body);
            // SAFETY: the slot is ours, and has room for the body there.
            unsafe { self.producer.write_few(place.as_ptr(), first, second) };
            return Ok(self.end(INLINE, body));
        }
        let Self { producer, slot, words } = self;
        // SAFETY: the caller's promise.
        let (place, body) = unsafe { producer.place(first, second)? };
        Ok(Self { producer, slot, words }.end(place, body))
    }

    /// The head is written, and the body of `body` bytes lies in that place.
    #[inline(always)]
    fn end(self, place: u64, body: usize) -> Filled<'a> {
        let Self { producer, slot, words } = self;
        producer.ring.writes(slot.as_ptr().wrapping_add(8), 8 * words);
        let word = u64::from(sequence(producer.head))
            | (words as u64) << HEAD_SHIFT
            | (body as u64) << BODY_SHIFT
            | place << PLACE_SHIFT;
        Filled { producer, slot, word }
    }
}

impl Filled<'_> {
    /// The consumer may have it from now on.
    #[inline(always)]
    pub fn publish(self) {
        let Self { producer, slot, word } = self;
        let at = producer.head as usize & (producer.ring.geometry.slots - 1);
        producer.ends[at] = producer.data_head;
        producer.ring.word(slot).store(word, super::Ordering::Release);
        producer.head += 1;
        prefetch_to_write(producer.ring.slot(producer.head + SLOTS_AHEAD).as_ptr());
    }

    /// [`Self::publish`] of a packet that is to be reported. Returns what [`Producer::given_back`]
    /// then is, at least, once it is given back.
    #[inline(always)]
    pub fn publish_reported(mut self) -> u64 {
        self.word |= REPORT;
        let count = self.producer.head + 1;
        self.publish();
        count
    }
}

impl Producer {
    /// Writes a body that fits a slot.
    ///
    /// # Safety
    /// `to` must have room for both pieces and the padding between them, and the pieces
    /// must be readable.
    #[inline(always)]
    unsafe fn write_few(&self, to: *mut u8, first: Piece, second: Source<'_>) {
        let Source::Piece(second) = second else {
            // SAFETY: the caller's promise.
            return unsafe { self.write_many(to, first, second) };
        };
        self.ring.writes(to, pad8(first.len) + second.len);
        // SAFETY: the caller's promise.
        unsafe {
            bytes::copy_few(first, to);
            bytes::copy_few(second, to.wrapping_add(pad8(first.len)));
        }
    }

    /// Writes a body into the second area. Returns its place, as the slot's word has it, and its
    /// length.
    ///
    /// # Safety
    /// The pieces must be readable.
    #[cold]
    #[inline(never)]
    unsafe fn place(&mut self, first: Piece, second: Source<'_>) -> Result<(u64, usize), Full> {
        let body = length(first, second);
        let place = self.reserve(body)?;
        // SAFETY: `reserve` gave us `body` bytes there that the consumer has given back.
        unsafe { self.write_many(self.ring.data.as_ptr().add(place), first, second) };
        self.fetch_for_next(body.div_ceil(LINE));
        Ok(((place / LINE) as u64, body))
    }

    /// Fetches the lines of the next body, which will be as long as the last one, mostly.
    #[inline]
    fn fetch_for_next(&self, lines: usize) {
        if lines > LINES_AHEAD {
            return;
        }
        let size = self.ring.geometry.data;
        let at = self.data_head as usize % size;
        let left = (size - at) / LINE;
        for line in 0..lines.min(left) {
            // SAFETY: inside of the second area.
            prefetch_to_write(unsafe { self.ring.data.as_ptr().add(at + line * LINE) });
        }
    }

    /// Writes a body of any length.
    ///
    /// # Safety
    /// The conditions of [`Self::write_few`] hold.
    #[cold]
    unsafe fn write_many(&self, to: *mut u8, first: Piece, second: Source<'_>) {
        self.ring.writes(to, pad8(first.len) + second.len());
        // SAFETY: the caller's promise.
        unsafe {
            bytes::copy(first, to);
            second.copy_to(to.wrapping_add(pad8(first.len)));
        }
    }
}

//! A single-producer, single-consumer ring of packets in memory that two processes share.
//!
//! Algorithm: a FastForward-style ring (Giacomoni, Moseley, Vachharajani, PPoPP 2008): the flag
//! that says "this slot is full" is in the slot itself, beside the data, so that a small packet
//! costs the consumer exactly one cache line, or two that cross together, and neither side reads
//! the other's index on its common path. A body that the first line has no room for lies in the
//! slot's second line: it is written first, and the consumer can ask for both lines at once. A
//! slot's flag is its sequence number, which a slot never carries twice in 2^32 packets, so slots
//! need no clearing.
//!
//! A packet whose bytes do not fit its slot puts its body into a second, circular area of bytes.
//! Room in both returns through one word, `consumed`, that the consumer writes now and then (every
//! eighth of the ring, or at once when the producer is about to sleep and has asked for it), and
//! that the producer reads only when it has run out of room.
//!
//! Orderings: the producer fills slot and body, then stores the slot's word with Release; the
//! consumer loads it with Acquire before it reads anything else. The consumer is done with a
//! packet's bytes before it stores `consumed` with Release; the producer loads that with Acquire
//! before it writes over them. `wants_room` carries no data. It is Dekker's pattern once more (see
//! [`super::doorbell`]): the producer raises it and, before it sleeps, looks at `consumed`; the
//! consumer writes `consumed` and then reads `wants_room`, with a barrier in between on both sides.
//!
//! A packet may ask for a *report*: the consumer writes `consumed` as soon as it gives this packet
//! back, and the producer is to be woken if it sleeps. So the producer learns that what came of the
//! packet has been done, without a packet in the other direction.
//!
//! A consumer of many rings need not poll all of them: it marks a ring as unpolled, and the
//! producer announces its next packet in another place ([`super::announcements`]). That is Dekker's
//! pattern too: the consumer raises `unpolled` and then looks for a packet; the producer writes a
//! packet and then reads `unpolled`.
//!
//! `models/ring.rs` checks this file with loom.

use super::line::Line;
use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::memory::bytes::{Piece, Source};
pub use consumer::{Consumer, Packet, Room};
pub use filling::{Filled, Filling};
use std::ptr::NonNull;

/// The bytes of a slot, its word included: a pair of cache lines, which processors fetch together,
/// and of which a small packet uses the first one alone.
pub const SLOT: usize = 128;
/// A cache line, in bytes. A body that is not beside its head starts at a multiple of this.
const LINE: usize = 64;
/// The longest head, in bytes: the rest of the slot's first line.
const LONGEST_HEAD: usize = LINE - 8;
/// The longest body that lies beside its head, in bytes. A longer one would not fit the first line
/// even beside the shortest head that a packet with a body has, of two words.
pub const SHORT_BODY: usize = LONGEST_HEAD - 2 * 8;

// The slot's word: sequence (32 bits), length of the head in units of 8 bytes (3), length of
// the body (16), place of the body in units of a line (12), or INLINE when it is in the slot
// ([`in_slot`]), and whether the producer wants a report.
const HEAD_SHIFT: u32 = 32;
const BODY_SHIFT: u32 = 35;
const PLACE_SHIFT: u32 = 51;
const INLINE: u64 = (1 << 12) - 1;
const REPORT: u64 = 1 << 63;

/// The largest second area, in bytes: what the slot's word can address.
pub const MAX_DATA: usize = INLINE as usize * LINE;
/// The longest body, in bytes. It must also be no more than a quarter of the second area: the
/// consumer keeps less than an eighth of it to itself, and skipping to the beginning may cost
/// as much as the body, so that a producer never waits for room that an idle consumer has but
/// does not report.
pub const MAX_BODY: usize = (1 << 16) - 1;

/// How large a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of slots, a power of two.
    pub slots: usize,
    /// Bytes of the second area, a multiple of 64, at most [`MAX_DATA`].
    pub data: usize,
}

impl Geometry {
    /// The bytes that a ring takes in shared memory.
    pub const fn bytes(&self) -> usize {
        FIRST_SLOT + self.slots * SLOT + self.data
    }

    fn eighth_of_slots(&self) -> u64 {
        (self.slots / 8) as u64
    }
}

/// The words of a ring that both sides read. Zeroed memory is an empty ring.
#[repr(C)]
struct Shared {
    /// How many packets the consumer has given back. Written by the consumer alone.
    consumed: Line<AtomicU64>,
    /// Not 0 when the producer sleeps, or is about to, until there is room. Set by the producer,
    /// cleared by the consumer.
    wants_room: Line<AtomicU32>,
    /// Not 0 when the consumer does not poll this ring, until the producer announces a packet. Set
    /// by the consumer, cleared by both.
    unpolled: Line<AtomicU32>,
    /// Loom's words cannot lie in zeroed memory: those of the slots are here, and what
    /// watches the bytes.
    #[cfg(loom)]
    watched: model::Watched,
}

/// Where the first slot of a ring is, in bytes from its beginning.
pub const FIRST_SLOT: usize = size_of::<Shared>();

/// Where a ring lies.
#[derive(Clone, Copy)]
struct Layout {
    shared: NonNull<Shared>,
    slots: NonNull<u8>,
    data: NonNull<u8>,
    geometry: Geometry,
}

impl Layout {
    /// # Safety
    /// `at` must be aligned to 128 bytes and point to `geometry.bytes()` bytes that stay mapped,
    /// zero when the ring is first used.
    unsafe fn new(at: NonNull<u8>, geometry: Geometry) -> Self {
        assert!(
            geometry.slots.is_power_of_two()
                && geometry.data.is_multiple_of(LINE)
                && geometry.data <= MAX_DATA
        );
        // SAFETY: the three areas follow one another inside the caller's region.
        unsafe {
            let slots = at.add(FIRST_SLOT);
            Self { shared: at.cast(), slots, data: slots.add(geometry.slots * SLOT), geometry }
        }
    }

    #[inline]
    fn shared(&self) -> &Shared {
        // SAFETY: the region stays mapped (see `new`), and all fields are atomics.
        unsafe { self.shared.as_ref() }
    }

    #[inline]
    fn slot(&self, index: u64) -> NonNull<u8> {
        // SAFETY: the index is taken modulo the number of slots.
        unsafe { self.slots.add((index as usize & (self.geometry.slots - 1)) * SLOT) }
    }

    /// The word of a slot of this ring.
    #[cfg(not(loom))]
    #[inline]
    fn word(&self, slot: NonNull<u8>) -> &AtomicU64 {
        // SAFETY: every slot starts with its word, 64-byte aligned, and is only ever
        // accessed as an atomic.
        unsafe { slot.cast::<AtomicU64>().as_ref() }
    }

    #[cfg(loom)]
    fn word(&self, slot: NonNull<u8>) -> &AtomicU64 {
        self.shared().watched.word(self.offset(slot.as_ptr()))
    }

    /// The producer is about to write these bytes: loom checks that no other thread uses them.
    #[cfg(not(loom))]
    #[inline]
    fn writes(&self, _at: *const u8, _len: usize) {}

    #[cfg(loom)]
    fn writes(&self, at: *const u8, len: usize) {
        self.shared().watched.write(self.offset(at), len);
    }

    /// Where a byte of the ring lies, counted from the first slot.
    #[cfg(loom)]
    fn offset(&self, at: *const u8) -> usize {
        at.addr() - self.slots.as_ptr().addr()
    }
}

/// Where a body of that many bytes lies in its slot, of at most a line: after the head, or, if it
/// is longer than [`SHORT_BODY`], in the second line, whatever the length of the head.
#[inline(always)]
fn in_slot(slot: NonNull<u8>, head_len: usize, body_len: usize) -> NonNull<u8> {
    debug_assert!(head_len <= LONGEST_HEAD && body_len <= LINE);
    let at = if body_len <= SHORT_BODY { 8 + head_len } else { LINE };
    // SAFETY: with the body that is at most 8 + 56 + 40 bytes, or two lines: what a slot has.
    unsafe { slot.add(at) }
}

/// The sequence number that a slot carries when it holds the packet with this index.
#[inline]
fn sequence(index: u64) -> u32 {
    (index as u32).wrapping_add(1)
}

/// The side that writes packets.
pub struct Producer {
    ring: Layout,
    /// Index of the next packet.
    head: u64,
    /// What was last read from `consumed`.
    consumed: u64,
    /// Bytes of the second area handed out and given back, counted without end.
    data_head: u64,
    data_tail: u64,
    /// `data_head` after each packet that is still out, by slot.
    ends: Box<[u64]>,
}

// SAFETY: the producer owns its side of the ring; the memory is shared by design and accessed by
// atomics or under the protocol described above.
unsafe impl Send for Producer {}

/// No room for a packet now.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// The memory of the ring holds what no producer writes.
#[derive(Debug, PartialEq, Eq)]
pub struct Corrupt;

/// The moment at which a packet found no room.
#[derive(Clone, Copy, Debug)]
pub struct Shortage {
    /// How many packets the producer knew to have been given back.
    known: u64,
}

impl Producer {
    /// The producing end of the ring at `at`.
    ///
    /// # Safety
    /// `at` must be aligned to 128 bytes and point to `geometry.bytes()` zeroed bytes that stay
    /// mapped as long as this value lives, and no other producer may exist there.
    pub unsafe fn new(at: NonNull<u8>, geometry: Geometry) -> Self {
        // SAFETY: the caller's promise.
        let ring = unsafe { Layout::new(at, geometry) };
        Self { ring, head: 0, consumed: 0, data_head: 0, data_tail: 0, ends: vec![0; geometry.slots].into() }
    }

    /// Writes one packet: head, then `first`, then (at the next multiple of 8) `second`.
    ///
    /// # Safety
    /// The pieces must be readable.
    #[inline]
    pub unsafe fn push(&mut self, head: &[u8], first: Piece, second: Source<'_>) -> Result<(), Full> {
        // SAFETY: the caller's promise.
        unsafe { self.begin()?.packet(|filling| filling.head(head), first, second)? }.publish();
        Ok(())
    }

    /// Begins a packet, which is written in place: nothing has changed until it is published.
    #[inline(always)]
    pub fn begin(&mut self) -> Result<Filling<'_>, Full> {
        if self.head - self.consumed >= self.ring.geometry.slots as u64 && !self.room_again() {
            return Err(Full);
        }
        Ok(Filling::new(self))
    }

    /// After an attempt that found no room: what that attempt knew, for [`Self::room_since`]. Room
    /// that was made since then counts as new.
    pub fn shortage(&self) -> Shortage {
        Shortage { known: self.consumed }
    }

    /// The producer is about to sleep until there is room: the consumer will report room at once. A
    /// producer that polls does not ask, so that the consumer can report room for many packets
    /// together: it reports at the latest when an eighth of the ring has become free.
    pub fn ask_for_room(&self) {
        self.ring.shared().wants_room.store(1, Ordering::Relaxed);
    }

    /// Whether there is new room since then. A count that the other process cannot have is none.
    pub fn room_since(&self, then: Shortage) -> bool {
        self.has_back(then.known + 1)
    }

    /// How many packets the consumer has given back so far.
    pub fn given_back(&self) -> u64 {
        self.ring.shared().consumed.load(Ordering::Acquire)
    }

    /// Whether the consumer has given this many packets back. The other process may be broken: more
    /// than there were are none.
    pub fn has_back(&self, count: u64) -> bool {
        (count..=self.head).contains(&self.given_back())
    }

    /// How many packets the consumer has not given back, as far as it has reported, and the largest
    /// possible number.
    pub fn filled(&self) -> (u64, u64) {
        (self.head.saturating_sub(self.given_back()), self.ring.geometry.slots as u64)
    }

    /// After a packet was written and a barrier: whether the consumer does not poll this ring,
    /// so that the caller must announce the packet. `true` once, until the consumer stops
    /// polling again.
    pub fn must_announce(&self) -> bool {
        let unpolled = &self.ring.shared().unpolled;
        unpolled.load(Ordering::Relaxed) != 0 && unpolled.swap(0, Ordering::Relaxed) != 0
    }

    #[cold]
    fn room_again(&mut self) -> bool {
        let consumed = self.given_back();
        // The other process may be broken: an impossible count is ignored.
        if consumed <= self.consumed || consumed > self.head {
            return false;
        }
        self.consumed = consumed;
        self.data_tail = self.ends[(consumed - 1) as usize & (self.ring.geometry.slots - 1)];
        true
    }

    /// Room for `len` bytes in one piece in the second area: its place there.
    #[inline]
    fn reserve(&mut self, len: usize) -> Result<usize, Full> {
        debug_assert!(len <= MAX_BODY && len <= self.ring.geometry.data / 4);
        let size = self.ring.geometry.data as u64;
        let padded = (len.div_ceil(LINE) * LINE) as u64;
        loop {
            let at = self.data_head % size;
            // What does not fit before the end starts again at the beginning, and the
            // rest is skipped.
            let skip = if at + padded > size { size - at } else { 0 };
            if self.data_head + skip + padded - self.data_tail <= size {
                self.data_head += skip + padded;
                return Ok(((at + skip) % size) as usize);
            }
            if !self.room_again() {
                return Err(Full);
            }
        }
    }
}

mod consumer;
mod filling;
#[cfg(loom)]
mod model;

#[cfg(all(test, loom))]
pub(super) use model::Region;

#[cfg(all(test, not(loom)))]
mod tests;

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

use super::asymmetric_barrier::Light;
use super::line::{Line, prefetch};
use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::memory::bytes::{Piece, Source};
pub use filling::{Filled, Filling};
use std::cell::Cell;
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

/// A consumer that has looked more often than this since the last packet waits for one that is not
/// part of a stream.
const LOOKS_IN_VAIN: u32 = 4;
/// The lines of the longest body that a look fetches: the producer, which writes them one after the
/// other, would lose many more again and again.
const MOST_EXPECTED: usize = 4;

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

    /// Whether there is new room since then.
    pub fn room_since(&self, then: Shortage) -> bool {
        self.given_back() != then.known
    }

    /// How many packets the consumer has given back so far.
    pub fn given_back(&self) -> u64 {
        self.ring.shared().consumed.load(Ordering::Acquire)
    }

    /// Whether the consumer has given so many packets back. The other process may be broken: more
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

/// A packet in the ring, in place. It stays there until [`Consumer::release`].
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The packet's head, 8-byte aligned.
    pub head: NonNull<u8>,
    /// The head's length.
    pub head_len: usize,
    /// The packet's body, 8-byte aligned.
    pub body: NonNull<u8>,
    /// The body's length.
    pub body_len: usize,
    /// The producer wants to know as soon as it is given back.
    pub reported: bool,
}

/// Lines of a ring.
struct Lines {
    first: *const u8,
    count: usize,
}

impl Lines {
    const NONE: Self = Self { first: std::ptr::null(), count: 0 };

    #[inline(always)]
    fn fetch(&self) {
        for line in 0..self.count {
            prefetch(self.first.wrapping_add(line * LINE));
        }
    }
}

/// The side that reads packets.
pub struct Consumer {
    ring: Layout,
    /// Index of the next packet.
    tail: u64,
    /// The slot of the next packet.
    next: NonNull<u8>,
    /// The lines of its body, which a look fetches, so that they cross together with the slot's.
    expected: Lines,
    /// How many looks have found nothing since the last packet.
    looks: Cell<u32>,
    /// The packet before which it is written next, at the latest: an eighth of the slots.
    due: u64,
    /// Bytes of bodies given back since then.
    unpublished: usize,
    /// What is given back is not published any more.
    mute: bool,
}

// SAFETY: as for the producer.
unsafe impl Send for Consumer {}

/// What to report to the producer after a packet was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The producer has not asked for room, nor for a report.
    Unasked,
    /// The producer has asked, and there is what it wants now: wake it if it sleeps.
    Wanted,
}

impl Consumer {
    /// The consuming end of the ring at `at`.
    ///
    /// # Safety
    /// The conditions of [`Producer::new`] hold; no other consumer may exist there.
    pub unsafe fn new(at: NonNull<u8>, geometry: Geometry) -> Self {
        // SAFETY: the caller's promise.
        let ring = unsafe { Layout::new(at, geometry) };
        Self {
            ring,
            tail: 0,
            next: ring.slot(0),
            expected: Lines::NONE,
            looks: Cell::new(0),
            due: geometry.eighth_of_slots(),
            unpublished: 0,
            mute: false,
        }
    }

    /// Whether a packet is there.
    #[inline(always)]
    pub fn ready(&self) -> bool {
        // In the middle of a stream this would take away what the producer is writing.
        let looks = self.looks.get();
        if looks >= LOOKS_IN_VAIN {
            self.expected.fetch();
        } else {
            self.looks.set(looks + 1);
        }
        self.ring.word(self.next).load(Ordering::Acquire) as u32 == sequence(self.tail)
    }

    /// The consumer will not poll this ring: the producer announces its next packet. A barrier, and
    /// then [`Self::ready`], must follow: a packet that is there already may not be announced.
    pub fn stop_polling(&self) {
        self.ring.shared().unpolled.store(1, Ordering::Relaxed);
    }

    /// The consumer polls this ring again. The producer may have announced a packet just before.
    pub fn poll_again(&self) {
        self.ring.shared().unpolled.store(0, Ordering::Relaxed);
    }

    /// How many packets have been released.
    pub fn taken(&self) -> u64 {
        self.tail
    }

    /// The next packet, if there is one. The same packet again until it is released.
    ///
    /// # Errors
    /// [`Corrupt`]: the slot's word has a value that no producer writes. Nothing outside of the
    /// ring was read.
    #[inline]
    pub fn peek(&self) -> Result<Option<Packet>, Corrupt> {
        let slot = self.next;
        let word = self.ring.word(slot).load(Ordering::Acquire);
        if word as u32 != sequence(self.tail) {
            return Ok(None);
        }
        // Of a stream, the next packet crosses while this one is handled.
        prefetch(self.ring.slot(self.tail + 1).as_ptr());
        let head_len = (word >> HEAD_SHIFT & 7) as usize * 8;
        let body_len = (word >> BODY_SHIFT & 0xffff) as usize;
        let place = word >> PLACE_SHIFT & INLINE;
        let body = if place == INLINE {
            if body_len > LINE {
                return Err(Corrupt);
            }
            in_slot(slot, head_len, body_len)
        } else {
            let at = place as usize * LINE;
            if at + body_len > self.ring.geometry.data {
                return Err(Corrupt);
            }
            // SAFETY: inside of the second area, by the comparison: the number comes from another
            // process.
            unsafe { self.ring.data.add(at) }
        };
        // SAFETY: the slot is longer than its word.
        let head = unsafe { slot.add(8) };
        Ok(Some(Packet { head, head_len, body, body_len, reported: word & REPORT != 0 }))
    }

    /// The producer learns of no packet any more that it is given back, and finds no room.
    pub fn fall_silent(&mut self) {
        self.mute = true;
    }

    /// Gives the packet back that [`Self::peek`] showed, with these values. `light`: the barrier of
    /// the thread that makes the producer sleep.
    #[inline]
    pub fn release(&mut self, body_len: usize, reported: bool, light: Light) -> Room {
        let last = self.next;
        self.tail += 1;
        self.next = self.ring.slot(self.tail);
        self.looks.set(0);
        self.expected = if body_len <= SHORT_BODY { Lines::NONE } else { self.lines_after(last, body_len) };
        self.unpublished += body_len;
        if self.mute {
            return Room::Unasked;
        }
        let wanted = self.ring.shared().wants_room.load(Ordering::Relaxed) != 0;
        let many = self.tail >= self.due;
        if !wanted && !many && !reported && self.unpublished < self.ring.geometry.data / 8 {
            return Room::Unasked;
        }
        self.due = self.tail + self.ring.geometry.eighth_of_slots();
        self.unpublished = 0;
        if wanted {
            // Before the count: a producer that sees the count and still lacks room asks again, and
            // that request must not be wiped out.
            self.ring.shared().wants_room.store(0, Ordering::Relaxed);
        }
        self.ring.shared().consumed.store(self.tail, Ordering::Release);
        // The producer may have asked between the read above and the count, and sleep without
        // having seen the count. That the request then stays does no harm: it is served once more.
        light.fence();
        let wanted = wanted || reported || self.ring.shared().wants_room.load(Ordering::Relaxed) != 0;
        if wanted { Room::Wanted } else { Room::Unasked }
    }
}

impl Consumer {
    /// The lines of the next body, if it is as long as this one, of the packet that was in this
    /// slot, and none where it has many lines. The other process may be broken: they are some lines
    /// of the ring.
    #[inline]
    fn lines_after(&self, slot: NonNull<u8>, body_len: usize) -> Lines {
        let count = body_len.div_ceil(LINE);
        if count > MOST_EXPECTED {
            return Lines::NONE;
        }
        let place = self.ring.word(slot).load(Ordering::Relaxed) >> PLACE_SHIFT & INLINE;
        if place == INLINE {
            return Lines { first: self.next.as_ptr().wrapping_add(LINE), count: 1 };
        }
        let next = place as usize + count;
        let fits = (next + count) * LINE <= self.ring.geometry.data;
        Lines { first: self.ring.data.as_ptr().wrapping_add(if fits { next * LINE } else { 0 }), count }
    }
}

mod filling;
#[cfg(loom)]
mod model;

#[cfg(all(test, loom))]
pub(super) use model::Region;

#[cfg(all(test, not(loom)))]
mod tests;

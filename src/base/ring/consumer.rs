//! The side of a ring that reads packets.

use super::{
    BODY_SHIFT, Corrupt, Geometry, HEAD_SHIFT, INLINE, LINE, Layout, PLACE_SHIFT, REPORT, SHORT_BODY,
    in_slot, sequence,
};
use crate::base::asymmetric_barrier::Light;
use crate::base::line::prefetch;
use crate::base::sync::Ordering;
use std::ptr::NonNull;

/// The lines of the longest body that a look fetches: the producer, which writes them one after the
/// other, would lose many more again and again.
const MOST_EXPECTED: usize = 4;

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

/// The side that reads packets.
pub struct Consumer {
    pub(super) ring: Layout,
    /// Index of the next packet.
    pub(super) tail: u64,
    /// The slot of the next packet.
    pub(super) next: NonNull<u8>,
    /// The lines of its body, if that is as long as the last one that was not beside its head.
    expected: Lines,
    /// The packet before which the count of released ones is written next, at the latest: an eighth
    /// of the slots.
    pub(super) due: u64,
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
    /// The conditions of [`super::Producer::new`] hold; no other consumer may exist there.
    pub unsafe fn new(at: NonNull<u8>, geometry: Geometry) -> Self {
        // SAFETY: the caller's promise.
        let ring = unsafe { Layout::new(at, geometry) };
        Self {
            ring,
            tail: 0,
            next: ring.slot(0),
            expected: Lines { first: std::ptr::null(), count: 0 },
            due: geometry.eighth_of_slots(),
            unpublished: 0,
            mute: false,
        }
    }

    /// Whether a packet is there.
    #[inline(always)]
    pub fn ready(&self) -> bool {
        self.ring.word(self.next).load(Ordering::Acquire) as u32 == sequence(self.tail)
    }

    /// Fetches the lines of the next body, if it is as long as the last long one, so that they
    /// cross together with the slot's: to be called before a look at the slot. Only for a consumer
    /// that has looked in vain for a while: it takes away what a producer in the middle of a stream
    /// is writing.
    #[inline]
    pub fn fetch_body(&self) {
        let Lines { first, count } = self.expected;
        for line in 0..count {
            prefetch(first.wrapping_add(line * LINE));
        }
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
        if body_len > SHORT_BODY {
            self.expect_after(last, body_len);
        }
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

    /// Expects that the next body is as long as this one, of the packet that was in this slot,
    /// unless that has many lines. The other process may be broken: some lines of the ring are
    /// expected then.
    #[inline]
    fn expect_after(&mut self, slot: NonNull<u8>, body_len: usize) {
        let count = body_len.div_ceil(LINE);
        if count > MOST_EXPECTED {
            self.expected.count = 0;
            return;
        }
        let place = self.ring.word(slot).load(Ordering::Relaxed) >> PLACE_SHIFT & INLINE;
        self.expected = if place == INLINE {
            Lines { first: self.next.as_ptr().wrapping_add(LINE), count: 1 }
        } else {
            let next = place as usize + count;
            let fits = (next + count) * LINE <= self.ring.geometry.data;
            Lines { first: self.ring.data.as_ptr().wrapping_add(if fits { next * LINE } else { 0 }), count }
        };
    }
}

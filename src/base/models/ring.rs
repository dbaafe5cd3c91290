//! A producer and a consumer on a tiny ring.

use super::check;
use crate::base::asymmetric_barrier::{Heavy, Light};
use crate::base::ring::{Consumer, Full, Geometry, Producer, Region, Room};
use crate::memory::bytes::{Piece, Source};
use loom::thread;
use std::sync::Arc;

pub(super) const LIGHT: Light = Light::new(false);
pub(super) const HEAVY: Heavy = Heavy::new(false);

/// One end of a ring, and its memory.
pub(super) struct End<T> {
    pub(super) end: T,
    _region: Arc<Region>,
}

pub(super) fn ends(geometry: Geometry) -> (End<Producer>, End<Consumer>) {
    let region = Arc::new(Region::new(geometry));
    let (producer, consumer) = region.ends(geometry);
    (End { end: producer, _region: region.clone() }, End { end: consumer, _region: region })
}

/// What packet `number` carries, with a body of `len` bytes.
fn body(number: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (number as usize * 31 + i) as u8).collect()
}

impl End<Producer> {
    pub(super) fn push(&mut self, number: u64, len: usize) -> Result<(), Full> {
        let (head, body) = (number.to_le_bytes(), body(number, len));
        // SAFETY: both live during the call.
        unsafe { self.end.push(&head, Piece::of(&body), Source::EMPTY) }
    }

    /// A packet that is to be reported, for which there is room.
    pub(super) fn push_reported(&mut self, number: u64, len: usize) -> u64 {
        let (filling, body) = (self.end.begin().expect("room").word(number), body(number, len));
        // SAFETY: the body lives during the call.
        let filled = unsafe { filling.body(Piece::of(&body), Source::EMPTY) };
        filled.unwrap_or_else(|_| panic!("no room")).publish_reported()
    }
}

impl End<Consumer> {
    /// Takes the next packet, which must be this one. Returns whether one was there, and what must
    /// be reported to the producer.
    pub(super) fn take(&mut self, number: u64, len: usize) -> Option<Room> {
        let packet = self.end.peek().expect("a ring in order")?;
        let (head, found) = self.end.read(&packet);
        assert_eq!(head, number.to_le_bytes());
        assert_eq!(found, body(number, len));
        Some(self.end.release(packet.body_len, packet.reported, LIGHT))
    }
}

/// Passes packets from one thread to another, after `before` have been passed in one thread.
fn pass(preemptions: usize, geometry: Geometry, before: u64, packets: u64, len: fn(u64) -> usize) {
    check(preemptions, move || {
        let (mut producer, mut consumer) = ends(geometry);
        for number in 0..before {
            producer.push(number, len(number)).expect("room");
            consumer.take(number, len(number)).expect("it is there");
        }
        let writer = thread::spawn(move || {
            for number in before..before + packets {
                while producer.push(number, len(number)).is_err() {
                    thread::yield_now();
                }
            }
        });
        for number in before..before + packets {
            while consumer.take(number, len(number)).is_none() {
                thread::yield_now();
            }
        }
        writer.join().expect("the writer ends");
    });
}

#[test]
fn slots_are_used_again_only_when_they_are_free() {
    pass(3, Geometry { slots: 2, data: 256 }, 0, 4, |_| 16);
}

#[test]
fn four_slots() {
    pass(3, Geometry { slots: 4, data: 256 }, 2, 6, |_| 0);
}

#[test]
fn the_second_area_is_used_again_only_when_it_is_free() {
    // Four bodies fill it; the first of those in the model is at the end, the others wrap around.
    pass(3, Geometry { slots: 8, data: 512 }, 3, 6, |_| 128);
}

#[test]
fn the_rest_before_the_end_is_skipped() {
    // Bodies of two lines and of three in an area of twelve lines: the longer ones do not always
    // fit before the end.
    pass(3, Geometry { slots: 4, data: 768 }, 4, 4, |number| if number % 2 == 0 { 184 } else { 128 });
}

#[test]
fn long_and_short_packets_together() {
    pass(3, Geometry { slots: 2, data: 512 }, 1, 4, |number| if number % 2 == 0 { 128 } else { 8 });
}

use super::*;
use crate::base::asymmetric_barrier::Light;
use crate::base::rng::Rng;
use crate::memory::bytes::pad8;

/// Zeroed memory for a ring, aligned as shared memory is.
struct Memory {
    at: NonNull<u8>,
    layout: std::alloc::Layout,
}

impl Memory {
    fn of(geometry: Geometry) -> Self {
        let layout = std::alloc::Layout::from_size_align(geometry.bytes(), 4096).expect("a layout");
        // SAFETY: the size is not 0.
        let at = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).expect("memory");
        Self { at, layout }
    }

    fn ends(&self, geometry: Geometry) -> (Producer, Consumer) {
        // SAFETY: aligned, zeroed, long enough; each test makes one pair and drops it
        // before the memory.
        unsafe { (Producer::new(self.at, geometry), Consumer::new(self.at, geometry)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.at.as_ptr(), self.layout) }
    }
}

const LIGHT: Light = Light::new(false);
const SMALL: Geometry = Geometry { slots: 8, data: 2048 };

fn push(producer: &mut Producer, head: &[u8], first: &[u8], second: &[u8]) -> Result<(), Full> {
    // SAFETY: the slices live during the call.
    unsafe { producer.push(head, Piece::of(first), Piece::of(second).into()) }
}

/// The next packet, which must be there.
fn look(consumer: &Consumer) -> Packet {
    consumer.peek().expect("a ring in order").expect("it is there")
}

/// Takes the next packet out: its head and its body.
fn take(consumer: &mut Consumer) -> Option<(Vec<u8>, Vec<u8>)> {
    let packet = consumer.peek().expect("a ring in order")?;
    assert!(
        (packet.head.as_ptr() as usize).is_multiple_of(8)
            && (packet.body.as_ptr() as usize).is_multiple_of(8)
    );
    // SAFETY: the packet is valid until it is released.
    let (head, body) = unsafe {
        (
            std::slice::from_raw_parts(packet.head.as_ptr(), packet.head_len).to_vec(),
            std::slice::from_raw_parts(packet.body.as_ptr(), packet.body_len).to_vec(),
        )
    };
    consumer.release(packet.body_len, packet.reported, LIGHT);
    Some((head, body))
}

/// What must arrive of two pieces.
fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut body = first.to_vec();
    if !second.is_empty() {
        body.resize(pad8(first.len()), 0);
        body.extend(second);
    }
    body
}

/// Compares bodies without the padding, whose content is undefined.
fn assert_body(found: &[u8], first: &[u8], second: &[u8]) {
    assert_eq!(found.len(), joined(first, second).len());
    assert_eq!(&found[..first.len()], first);
    if !second.is_empty() {
        assert_eq!(&found[pad8(first.len())..], second);
    }
}

#[test]
fn every_size_arrives_whole() {
    let geometry = Geometry { slots: 8, data: 32 << 10 };
    let memory = Memory::of(geometry);
    let (mut producer, mut consumer) = memory.ends(geometry);
    let bytes: Vec<u8> = (0..4096u32).map(|i| (i * 7) as u8).collect();
    for head_len in (0..=48).step_by(8) {
        for first_len in [0, 1, 7, 8, 9, 40, 63, 64, 65, 104] {
            for second_len in [0, 1, 8, 40, 55, 64, 103, 104, 105, 112, 113, 1000, 3900] {
                let (head, first, second) =
                    (&bytes[..head_len], &bytes[3..3 + first_len], &bytes[5..5 + second_len]);
                push(&mut producer, head, first, second).expect("an empty ring has room");
                let (got_head, got_body) = take(&mut consumer).expect("it is there");
                assert_eq!(got_head, head);
                assert_body(&got_body, first, second);
            }
        }
    }
}

/// A packet takes one line if it can, two at most if its body has no more than a line, and a body
/// that has is in no slot.
#[test]
fn a_packet_takes_few_lines() {
    let geometry = Geometry { slots: 8, data: 2048 };
    let memory = Memory::of(geometry);
    let (mut producer, mut consumer) = memory.ends(geometry);
    let second_area = memory.at.addr().get() + FIRST_SLOT + geometry.slots * SLOT;
    for head_len in (0..=LONGEST_HEAD).step_by(8) {
        for body_len in 1..=2 * LINE {
            push(&mut producer, &vec![1; head_len], &vec![2; body_len], &[]).expect("room");
            let packet = look(&consumer);
            let behind = packet.body.as_ptr().addr().wrapping_sub(packet.head.as_ptr().addr());
            let is_beside = body_len <= SHORT_BODY;
            assert!(
                match (is_beside, body_len <= LINE) {
                    (true, _) => behind == head_len,
                    (false, true) => behind == LINE - 8,
                    (false, false) => packet.body.as_ptr().addr() >= second_area,
                },
                "a head of {head_len} bytes, a body of {body_len}: it lies {behind} bytes behind"
            );
            assert!(head_len > 16 || !is_beside || 8 + head_len + body_len <= LINE, "two lines");
            take(&mut consumer);
        }
    }
}

#[test]
fn a_full_ring_refuses_packets_and_loses_none() {
    let memory = Memory::of(SMALL);
    let (mut producer, mut consumer) = memory.ends(SMALL);
    for number in 0..8u64 {
        push(&mut producer, &number.to_le_bytes(), &[], &[]).expect("room for a slot");
    }
    assert_eq!(push(&mut producer, &[0; 8], &[], &[]), Err(Full));
    for number in 0..8u64 {
        assert_eq!(take(&mut consumer).expect("it is there").0, number.to_le_bytes());
    }
    assert!(take(&mut consumer).is_none());
    push(&mut producer, &[0; 8], &[], &[]).expect("room again");
}

#[test]
fn the_second_area_is_full_before_the_slots_and_comes_back() {
    let memory = Memory::of(SMALL);
    let (mut producer, mut consumer) = memory.ends(SMALL);
    let body = [5u8; 500];
    for _ in 0..4 {
        assert!(push(&mut producer, &[0; 8], &body, &[]).is_ok());
    }
    assert_eq!(push(&mut producer, &[0; 8], &body, &[]), Err(Full));
    // What fits its slot still goes.
    assert!(push(&mut producer, &[0; 8], &[1; 8], &[]).is_ok());
    producer.ask_for_room();
    let packet = look(&consumer);
    assert_eq!(consumer.release(packet.body_len, packet.reported, LIGHT), Room::Wanted);
    assert!(push(&mut producer, &[0; 8], &body, &[]).is_ok());
}

#[test]
fn room_is_reported_at_once_only_on_request() {
    let memory = Memory::of(Geometry { slots: 64, data: 1024 });
    let (mut producer, mut consumer) = memory.ends(Geometry { slots: 64, data: 1024 });
    push(&mut producer, &[0; 8], &[], &[]).expect("room");
    push(&mut producer, &[0; 8], &[], &[]).expect("room");
    look(&consumer);
    assert_eq!(consumer.release(0, false, LIGHT), Room::Unasked);
    assert_eq!(producer.given_back(), 0);
    producer.ask_for_room();
    look(&consumer);
    assert_eq!(consumer.release(0, false, LIGHT), Room::Wanted);
    assert_eq!(producer.given_back(), 2);
    // A packet that finds no room is no request: the producer polls.
    while push(&mut producer, &[0; 8], &[], &[]).is_ok() {}
    look(&consumer);
    assert_eq!(consumer.release(0, false, LIGHT), Room::Unasked);
    assert_eq!(producer.given_back(), 2);
}

#[test]
fn a_word_that_no_producer_writes_is_an_error() {
    let geometry = Geometry { slots: 8, data: 512 };
    let words = [
        // Bodies in the slot's second line, one of them longer than that.
        (1 << HEAD_SHIFT | 65 << BODY_SHIFT | INLINE << PLACE_SHIFT, Err(Corrupt)),
        (1 << HEAD_SHIFT | 64 << BODY_SHIFT | INLINE << PLACE_SHIFT, Ok(64)),
        // Bodies in the last line of the second area, and behind it.
        (1 << HEAD_SHIFT | 64 << BODY_SHIFT | 7 << PLACE_SHIFT, Ok(64)),
        (1 << HEAD_SHIFT | 65 << BODY_SHIFT | 7 << PLACE_SHIFT, Err(Corrupt)),
        (1 << HEAD_SHIFT | 8 << PLACE_SHIFT, Ok(0)),
        (1 << HEAD_SHIFT | 1 << BODY_SHIFT | 8 << PLACE_SHIFT, Err(Corrupt)),
    ];
    for (word, expected) in words {
        let memory = Memory::of(geometry);
        let (producer, consumer) = memory.ends(geometry);
        producer.ring.word(producer.ring.slot(0)).store(word | u64::from(sequence(0)), Ordering::Release);
        let found = consumer.peek().map(|packet| packet.expect("it is there").body_len);
        assert_eq!(found, expected, "{word:#x}");
    }
}

#[test]
fn an_impossible_count_is_ignored() {
    let memory = Memory::of(SMALL);
    let (mut producer, consumer) = memory.ends(SMALL);
    for _ in 0..8 {
        push(&mut producer, &[0; 8], &[], &[]).expect("room");
    }
    consumer.ring.shared().consumed.store(1000, Ordering::Release);
    assert_eq!(push(&mut producer, &[0; 8], &[], &[]), Err(Full));
    assert!(!producer.has_back(1), "nor has it given anything back");
    assert!(!producer.room_since(producer.shortage()), "nor made room");
}

/// One thread writes and one reads, packets of random sizes, from seeds.
#[test]
fn two_threads_see_every_packet_in_order() {
    for seed in 0..8 {
        let geometry = Geometry { slots: 16, data: 2048 };
        let memory = Memory::of(geometry);
        let (mut producer, mut consumer) = memory.ends(geometry);
        let packet = |number: u64, rng: &mut Rng| {
            let len = rng.below(512) as usize;
            let body: Vec<u8> = (0..len).map(|i| (number as usize * 31 + i) as u8).collect();
            body
        };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for number in 0..20_000u64 {
                    let body = packet(number, &mut rng);
                    while push(&mut producer, &number.to_le_bytes(), &body, &[]).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            let mut rng = Rng::new(seed);
            for number in 0..20_000u64 {
                let (head, body) = loop {
                    match take(&mut consumer) {
                        Some(packet) => break packet,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(head, number.to_le_bytes(), "seed {seed}");
                assert_eq!(body, packet(number, &mut rng), "seed {seed}, packet {number}");
            }
        });
    }
}

#[test]
fn sequence_numbers_wrap_around() {
    let memory = Memory::of(SMALL);
    let (mut producer, mut consumer) = memory.ends(SMALL);
    // As if 2^32 - 4 packets had passed.
    let passed = (1u64 << 32) - 4;
    (producer.head, producer.consumed, consumer.tail, consumer.due) = (passed, passed, passed, passed + 1);
    consumer.next = consumer.ring.slot(passed);
    for number in 0..16u64 {
        push(&mut producer, &number.to_le_bytes(), &[], &[]).expect("room");
        assert_eq!(take(&mut consumer).expect("it is there").0, number.to_le_bytes());
    }
}

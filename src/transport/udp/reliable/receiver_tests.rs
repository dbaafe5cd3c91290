use super::super::MILLISECOND;
use super::*;

const PARAMETERS: Parameters = Parameters {
    unit: 8,
    base: 8,
    window: 8,
    acknowledge_every: 5,
    acknowledge_after: MILLISECOND,
    longest_interval: MILLISECOND,
};

struct End {
    receiver: Receiver,
    buffers: Buffers,
    packets: Vec<Arrived>,
}

impl End {
    fn new() -> Self {
        let buffers = Buffers::new(8, 64);
        Self { receiver: Receiver::new(&PARAMETERS), buffers, packets: Vec::new() }
    }

    /// One fragment of 8 bytes of a packet.
    fn accept(&mut self, number: u64, index: u16, count: u16) -> Accepted {
        let packet_len = 8 * u32::from(count);
        let fragment = Fragment { number, index, count, head_len: 8, packet_len, urgent: false };
        let Self { receiver, buffers, packets } = self;
        receiver.accept(0, fragment, &[number as u8; 8], buffers, |packet| packets.push(packet))
    }

    /// Whether the sender must know of it at once.
    fn release(&mut self) -> bool {
        let packet = self.packets.pop().expect("a packet");
        self.receiver.release(packet.fragments)
    }
}

/// What a sender may not send has no effect, and takes no memory.
#[test]
fn so_many_fragments_are_acknowledged_together_as_was_said_last() {
    let mut end = End::new();
    for number in 0..4 {
        end.accept(number, 0, 1);
    }
    assert!(!end.receiver.at_once, "after four of five");
    end.receiver.acknowledge_every(3);
    assert!(end.receiver.at_once, "after four of three");
}

#[test]
fn what_is_beyond_the_room_is_refused() {
    let mut end = End::new();
    assert_eq!(end.accept(8, 0, 1), Accepted::Refused);
    assert_eq!(end.accept(u64::MAX >> 1, 0, 1), Accepted::Refused);
    for number in 0..8 {
        assert_eq!(end.accept(number, 0, 1), Accepted::Complete);
    }
    assert_eq!(end.accept(8, 0, 1), Accepted::Refused, "none was released");
    end.release();
    assert_eq!(end.accept(9, 0, 1), Accepted::Refused);
    assert_eq!(end.accept(8, 0, 1), Accepted::Complete);
    assert_eq!(end.receiver.kept(), 8);
}

/// Releases behind a gap make no room beyond what the map covers.
#[test]
fn room_ends_one_window_behind_what_is_missing() {
    let mut end = End::new();
    for number in 1..8 {
        assert_eq!(end.accept(number, 0, 1), Accepted::Complete);
        end.release();
    }
    assert_eq!(end.accept(8, 0, 1), Accepted::Refused);
    assert_eq!(end.accept(0, 0, 1), Accepted::Complete);
    assert_eq!(end.receiver.next(), 8);
    assert_eq!(end.accept(14, 0, 1), Accepted::Complete);
    assert_eq!(end.accept(15, 0, 1), Accepted::Refused, "the last packet was not released");
}

#[test]
fn fragments_of_one_packet_that_contradict_each_other_are_refused() {
    let mut end = End::new();
    assert_eq!(end.accept(0, 0, 3), Accepted::Kept);
    assert_eq!(end.accept(1, 1, 2), Accepted::Refused);
    assert_eq!(end.accept(2, 1, 2), Accepted::Kept, "another packet, which begins at 1");
    assert_eq!(end.accept(1, 1, 3), Accepted::Kept);
    assert_eq!(end.accept(0, 0, 9), Accepted::Duplicate);
    assert_eq!(end.accept(3, 0, 9), Accepted::Refused, "longer than the window, and than any packet");
    assert_eq!(end.receiver.incomplete(), 2);
    assert!(end.packets.is_empty());
}

#[test]
fn a_sender_without_room_is_told_at_once_of_room() {
    let mut end = End::new();
    for number in 0..7 {
        end.accept(number, 0, 1);
    }
    end.receiver.report(0, true);
    assert!(!end.release(), "it has room still");
    assert_eq!(end.receiver.due(), None);
    end.accept(7, 0, 1);
    end.receiver.report(0, true);
    end.accept(8, 0, 1);
    end.receiver.report(0, true);
    assert_eq!(end.receiver.due(), None);
    assert!(end.release(), "it has used up what it knew of");
    assert_eq!(end.receiver.due(), Some(0));
}

#[test]
fn acknowledgements_wait_unless_something_is_missing() {
    let mut end = End::new();
    end.accept(0, 0, 1);
    assert_eq!(end.receiver.due(), Some(MILLISECOND));
    end.receiver.flush();
    assert_eq!(end.receiver.due(), Some(0));
    assert_eq!(end.receiver.report(0, false).0, 1);
    assert_eq!(end.receiver.due(), None);
    for number in 1..5 {
        end.accept(number, 0, 1);
    }
    assert_eq!(end.receiver.due(), Some(MILLISECOND));
    end.accept(5, 0, 1);
    assert_eq!(end.receiver.due(), Some(0), "five");
    end.receiver.report(0, false);
    end.accept(7, 0, 1);
    assert_eq!(end.receiver.due(), Some(0), "one is missing");
    end.receiver.report(0, false);
    assert_eq!(end.receiver.due(), Some(0), "without its map this has not been said");
    assert_eq!(end.receiver.map().1, 8);
    assert_eq!(end.receiver.map().0[0], 1);
}

/// Whatever the packets' length, what waits to be taken needs memory in proportion to the window.
#[test]
fn packets_that_are_not_taken_have_buffers_in_proportion_to_their_fragments() {
    const UNIT: usize = 1400;
    let parameters = Parameters { unit: UNIT, base: UNIT, window: 512, ..PARAMETERS };
    for count in 1..=44_u16 {
        // One byte more than fits into one datagram less.
        let len = usize::from(count - 1) * UNIT + 1;
        let payload = vec![7; len.div_ceil(count.into())];
        let (mut receiver, mut buffers) = (Receiver::new(&parameters), Buffers::new(UNIT, 44 * UNIT));
        let (mut packets, mut number) = (Vec::new(), 0);
        'all: loop {
            for index in 0..count {
                let packet_len = len as u32;
                let fragment = Fragment { number, index, count, head_len: 8, packet_len, urgent: false };
                let take = |packet| packets.push(packet);
                if receiver.accept(0, fragment, &payload, &mut buffers, take) == Accepted::Refused {
                    break 'all;
                }
                number += 1;
            }
        }
        assert_eq!(number, 512, "{count} fragments");
        let taken: usize = packets.iter().map(|packet: &Arrived| 8 * packet.buffer.len()).sum();
        // 16 of 5, and what is behind each.
        let most = 512 * UNIT * 16 / 5 + packets.len() * 512;
        assert!(taken <= most, "{} packets of {len} bytes take {taken}, not {most}", packets.len());
    }
}

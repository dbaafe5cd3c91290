use super::*;
use crate::base::rng::Rng;

fn fragment(index: u16, count: u16, packet_len: u32) -> Fragment {
    Fragment { number: 1 << 40 | 9, index, count, head_len: 48, packet_len, urgent: true }
}

fn header(kind: DatagramKind) -> Header {
    Header { kind, acknowledged: 0x0102_0304_0506, echo: u64::MAX - 5, room: 0xfffe, delay: 0xa1b2 }
}

#[test]
fn headers_are_decoded_as_encoded() {
    for (kind, after) in [
        (DatagramKind::Data(fragment(0, 1, 100)), 100),
        (DatagramKind::Data(fragment(0, 2, 1001)), 501),
        (DatagramKind::Data(fragment(1, 2, 1001)), 501),
        (DatagramKind::Data(fragment(2, 3, 2001)), 667),
        (DatagramKind::Data(fragment(2, 3, 3000)), 1000),
        (DatagramKind::Data(Fragment { head_len: 0, urgent: false, ..fragment(0, 1, 0) }), 0),
        (DatagramKind::Acknowledgement(0), 0),
        (DatagramKind::Acknowledgement(8), 64),
        (DatagramKind::Ping, 0),
        (DatagramKind::Close(u64::MAX), 0),
        (DatagramKind::Closed, 0),
        (DatagramKind::Reply(1 << 60 | 3), 0),
    ] {
        let header = header(kind);
        let mut bytes = header.encode().to_vec();
        bytes.resize(HEADER + after, 7);
        assert_eq!(Header::decode(&bytes), Some((header, &bytes[HEADER..])));
        bytes.push(0);
        assert_eq!(Header::decode(&bytes), None, "longer than its header says: {kind:?}");
        bytes.truncate(HEADER - 1);
        assert_eq!(Header::decode(&bytes), None);
    }
    let probe = header(DatagramKind::Probe(1 << 50 | 7));
    for after in [0, 1, 1400] {
        let bytes = [&probe.encode()[..], &vec![9; after]].concat();
        assert_eq!(Header::decode(&bytes), Some((probe, &bytes[HEADER..])), "{after} bytes behind it");
    }
    let bytes = header(DatagramKind::Data(fragment(1, 2, 1001))).encode();
    assert_eq!(bytes[..16], [9, 0, 0, 0, 0, 1, 0, 0, 6, 5, 4, 3, 2, 1, 0, 0]);
    assert_eq!(bytes[24..], [0xe9, 3, 0, 0, 0xfe, 0xff, 0xb2, 0xa1, 1, 0, 2, 0, 1, 1, 6, 0]);
    assert_eq!(Header::decode(&[0; HEADER]), None, "no kind");
}

#[test]
fn what_no_task_sends_is_refused() {
    let refuses = |kind: DatagramKind, after: usize| {
        let mut bytes = header(kind).encode().to_vec();
        bytes.resize(HEADER + after, 0);
        assert_eq!(Header::decode(&bytes), None, "{kind:?} with {after} bytes");
    };
    refuses(DatagramKind::Data(fragment(0, 0, 100)), 100);
    refuses(DatagramKind::Data(fragment(1, 1, 100)), 100);
    refuses(DatagramKind::Data(fragment(2, 2, 1001)), 501);
    // A last fragment that is cut short, one that is filled up further than the others are
    // long, and longer ones.
    refuses(DatagramKind::Data(fragment(1, 2, 1001)), 500);
    refuses(DatagramKind::Data(fragment(1, 2, 1001)), 502);
    refuses(DatagramKind::Data(fragment(0, 2, 1001)), 1000);
    // Three fragments of two bytes have six: the third would have none of four, and the fourth
    // less than none of five.
    refuses(DatagramKind::Data(Fragment { head_len: 0, ..fragment(2, 3, 4) }), 2);
    refuses(DatagramKind::Data(Fragment { head_len: 0, ..fragment(3, 4, 5) }), 2);
    refuses(DatagramKind::Data(fragment(0, 2, 100)), 100);
    refuses(DatagramKind::Data(fragment(0, 3, 100)), 99);
    refuses(DatagramKind::Data(fragment(0, 2, 100)), 0);
    refuses(DatagramKind::Data(fragment(1, 2, 100)), 0);
    refuses(DatagramKind::Data(fragment(1, 2, 100)), 51);
    refuses(DatagramKind::Data(fragment(1, 2, 100)), 101);
    refuses(DatagramKind::Data(fragment(0, 1, 40)), 40);
    refuses(DatagramKind::Data(Fragment { head_len: 56, ..fragment(0, 1, 100) }), 100);
    refuses(DatagramKind::Data(Fragment { number: 0, ..fragment(1, 2, 1001) }), 501);
    refuses(DatagramKind::Data(Fragment { number: 1 << 63, ..fragment(0, 1, 100) }), 100);
    refuses(DatagramKind::Acknowledgement(9), 72);
    let mut bytes = Header { acknowledged: 1 << 63, ..header(DatagramKind::Ping) }.encode();
    assert_eq!(Header::decode(&bytes), None);
    bytes = header(DatagramKind::Data(Fragment { head_len: 0, ..fragment(0, 1, 0) })).encode();
    bytes[37] = 2;
    assert_eq!(Header::decode(&bytes), None, "no such flag");
    bytes[37] = 0;
    bytes[38] = 255;
    assert_eq!(Header::decode(&bytes), None, "a head beyond what a byte counts");
}

/// Any bytes are refused, or say something that is sound.
#[test]
fn any_bytes_are_harmless() {
    let mut accepted = 0;
    for seed in 0..200_000 {
        let mut rng = Rng::new(seed);
        let len = HEADER + if rng.chance(0.3) { 0 } else { rng.below(40) as usize };
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        // Close to something sound, so that some are accepted.
        let small = |rng: &mut Rng, bytes: &mut [u8]| {
            let field = 4.min(bytes.len());
            bytes[..field].fill(0);
            bytes[0] = rng.below(4) as u8 * if rng.chance(0.5) { 1 } else { 16 };
        };
        bytes[36] = rng.below(9) as u8;
        for at in [24, 32, 34, 37] {
            if rng.chance(0.8) {
                let end = if at == 24 || at == 37 { 3 } else { 2 };
                small(&mut rng, &mut bytes[at..at + end]);
            }
        }
        bytes[7] &= 0x7f;
        bytes[15] &= 0x7f;
        let Some((header, after)) = Header::decode(&bytes) else { continue };
        accepted += 1;
        if let DatagramKind::Data(fragment) = header.kind {
            let range = fragment.place(after.len()).expect("a place");
            assert!(range.start <= range.end && range.end <= fragment.packet_len as usize);
            assert!(range.len() <= after.len() && after.len() < range.len() + usize::from(fragment.count));
            assert!(fragment.index < fragment.count, "seed {seed}");
        }
        if !bytes[36..].is_empty() {
            let again = header.encode();
            assert_eq!(Header::decode(&[&again, after].concat()), Some((header, after)), "seed {seed}");
        }
    }
    assert!(accepted > 2_000, "{accepted} were accepted");
}

#[test]
fn the_fragments_of_a_packet_cover_it_once() {
    for longest in [1, 7, 8, 100] {
        for packet_len in 1..300_u32 {
            let count = packet_len.div_ceil(longest) as u16;
            let len = packet_len.div_ceil(count.into()) as usize;
            let mut next = 0;
            for index in 0..count {
                let fragment = Fragment { index, count, packet_len, ..fragment(0, 1, 0) };
                let range = fragment.place(len).expect("a place");
                assert_eq!(range.start, next);
                assert!(range.len() == len || index + 1 == count && !range.is_empty());
                next = range.end;
            }
            assert_eq!(next, packet_len as usize);
        }
    }
}

#[test]
fn a_hello_is_decoded_as_encoded() {
    let process = Process { pid: 1 << 30, started: 1 << 40 };
    let hello =
        Hello { mine: 1 << 127 | 5, yours: 7, epoch: u64::MAX - 1, process, longest: 8192, opening: 3 };
    let bytes = hello.encode();
    assert_eq!(Hello::decode(&bytes), Some(hello));
    assert_eq!(Hello::decode(&bytes[..HELLO - 1]), None);
    assert_eq!(Hello::decode(&[&bytes[..], &[0]].concat()), None);
    assert_eq!(Hello::decode(&Hello { mine: 0, ..hello }.encode()), None);
    assert_eq!(bytes[40..48], [0, 0, 0, 0x40, 0, 0x20, 3, 0]);
}

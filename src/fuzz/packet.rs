//! The heads of packets, and what requests for data carry in their bodies.

use super::{Reader, Seed, Target, seed};
use crate::dgsp::Layout;
use crate::dgsp::description::{describe_layout, layout_of};
use crate::memory::bytes::is_memory;
use crate::proto::pieces;
use crate::wire::coalesced;
use crate::wire::frame::HEAD_MAX;
use crate::wire::key::{Exposed, Key, Part};
use crate::wire::packet::{Head, samples};

/// The heads of packets.
pub const PACKET: Target = Target { name: "packet", feed: packet, seeds: heads };

/// Several packets in one.
pub const COALESCED: Target = Target { name: "coalesced", feed: coalesced, seeds: bundles };

/// The keys of registered memory, and the parts of a message.
pub const KEYS: Target = Target { name: "keys", feed: keys, seeds: parts };

/// The description of places.
pub const DESCRIPTION: Target = Target { name: "description", feed: description, seeds: descriptions };

fn packet(bytes: &[u8]) -> bool {
    let Some(head) = Head::decode(bytes) else {
        assert_eq!(Head::decode_frequent(bytes), None);
        return false;
    };
    let encoded = head.encode();
    let encoded = encoded.as_bytes();
    assert!(encoded.len() <= HEAD_MAX && encoded.len() <= bytes.len(), "{head:?}");
    assert_eq!(Head::decode(encoded), Some(head));
    // The dispatcher reads a head in one of two ways: those that the first one takes, the second
    // one takes as the same.
    let frequent = matches!(
        head,
        Head::Am { .. } | Head::Put { .. } | Head::Done { .. } | Head::Get { .. } | Head::Reply { .. }
    );
    assert_eq!(Head::decode_frequent(bytes), frequent.then_some(head));
    true
}

fn heads() -> Vec<Seed> {
    let name = |head: &Head| format!("{head:?}").split(' ').next().unwrap_or_default().to_owned();
    samples::heads(u64::MAX - 5).iter().map(|head| (name(head), head.encode().as_bytes().to_vec())).collect()
}

fn coalesced(bytes: &[u8]) -> bool {
    let words = Reader(bytes).longs();
    let (mut at, mut packets) = (0, 0);
    while let Some(place) = coalesced::place(&words, at) {
        assert!(place.head == at + 1 && place.head_len.is_multiple_of(8) && place.head_len <= HEAD_MAX);
        assert!(place.body == place.head + place.head_len / 8 && place.end <= words.len());
        assert!(place.body_len <= (place.end - place.body) * 8 && place.end > at);
        assert_eq!(place.end - at, coalesced::words(place.head_len, place.body_len));
        assert_eq!(words[at], coalesced::lengths(place.head_len, place.body_len));
        (at, packets) = (place.end, packets + 1);
    }
    packets != 0 && at == words.len()
}

fn bundles() -> Vec<Seed> {
    let bundle = |name: &str, lens: &[(usize, usize)]| {
        let mut words = Vec::new();
        for (head_len, body_len) in lens {
            let end = words.len() + coalesced::words(*head_len, *body_len);
            words.push(coalesced::lengths(*head_len, *body_len));
            words.resize(end, 0x0706_0504_0302_0100);
        }
        seed(name, words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect::<Vec<u8>>())
    };
    vec![
        bundle("one", &[(8, 0)]),
        bundle("some", &[(16, 8), (48, 1), (8, 0), (24, 17)]),
        bundle("many", &[(16, 8); 20]),
    ]
}

/// The input: the number of bytes of the message, then the words of its parts.
fn keys(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let total = reader.long();
    let words = reader.longs();
    let Some(parts) = Part::list(&words, total) else { return false };
    assert!(!parts.is_empty() && parts.len() * Part::WORDS == words.len());
    let mut again = Vec::new();
    parts.iter().for_each(|part| part.append_to(&mut again));
    assert_eq!(again, words);
    assert!(parts.iter().all(|part| part.len != 0 && part.exposed.addr.checked_add(part.len).is_some()));
    // The same in two requests, one after the other.
    let (first, second) = words.split_at(words.len() / Part::WORDS / 2 * Part::WORDS);
    let known = Part::list(first, total).unwrap_or_default();
    let end = known.last().map_or(0, |part| part.from + part.len);
    let following = Part::list_from(second, end, total).expect("the second half");
    assert_eq!([known, following].concat(), *parts);
    // Parts and rest are the message, each byte of it once.
    let ranges = pieces::ranges(&parts);
    let mut all: Vec<_> = pieces::reordered(&ranges, total).collect();
    all.sort_unstable();
    let end = all.iter().fold(0, |end, (from, len)| {
        assert_eq!(*from, end);
        from + len
    });
    assert_eq!(end, total);
    true
}

fn parts() -> Vec<Seed> {
    let part = |from: u64, len| {
        let key = Key { key: 7 + from, offset: from.wrapping_neg() };
        Part { from, len, exposed: Exposed { addr: 0x7f00_0000_0000 + from, key } }
    };
    let message = |total: u64, parts: &[Part]| {
        let mut words = vec![total];
        parts.iter().for_each(|part| part.append_to(&mut words));
        bytes_of(&words)
    };
    vec![
        seed("whole", message(1 << 20, &[part(0, 1 << 20)])),
        seed("apart", message(100_000, &[part(10, 20_000), part(20_010, 1), part(30_000, 70_000)])),
    ]
}

fn description(bytes: &[u8]) -> bool {
    let words = Reader(bytes).longs();
    let Some(layout) = layout_of(&words) else { return false };
    let len = layout.len();
    // The whole of it may be longer than a computation can last.
    const SOME: u64 = 4096;
    let starts = [0, len / 2, len.saturating_sub(SOME)];
    for from in starts {
        let wanted = SOME.min(len - from);
        let found = runs(&layout, from, wanted);
        assert_eq!(found.iter().map(|(_, len)| len).sum::<u64>(), wanted);
        assert!(found.iter().all(|(at, len)| *len != 0 && is_memory(*at, *len)), "{words:?}: {found:?}");
    }
    if layout.run_count() <= SOME {
        let again = layout_of(&describe_layout(&layout)).expect("our own description");
        assert_eq!((again.len(), runs(&again, 0, len)), (len, runs(&layout, 0, len)));
    }
    true
}

fn runs(layout: &Layout, from: u64, len: u64) -> Vec<(u64, u64)> {
    let mut runs = Vec::new();
    layout.runs(from, len, |at, len| runs.push((at.addr() as u64, len as u64)));
    runs
}

fn descriptions() -> Vec<Seed> {
    let at = std::ptr::without_provenance_mut::<u8>;
    let pieces = Layout::pieces([(at(0x1000), 8), (at(0x2000), 0), (at(0x3000), 5), (at(0x2500), 3000)]);
    vec![
        seed("pieces", bytes_of(&describe_layout(&pieces))),
        // As `describe` has it of a strided vector: base, block, stride and count.
        seed("strided", bytes_of(&[1, 0x1000, 8, 24, 1000])),
        seed("many_blocks", bytes_of(&[1, 0x10_0000, 8, 16, 1 << 40])),
    ]
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

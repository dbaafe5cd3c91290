use super::*;
use crate::wire::frame::HEAD_MAX;

/// Every kind, with all its optional words and with none.
fn samples() -> Vec<Head> {
    [0, u64::MAX - 5].into_iter().flat_map(samples::heads).collect()
}

#[test]
fn every_head_comes_back_as_it_was_sent_and_fits() {
    for head in samples() {
        let bytes = head.encode();
        assert!(bytes.as_bytes().len() <= HEAD_MAX, "{head:?}");
        assert_eq!(Head::decode(bytes.as_bytes()), Some(head));
    }
}

#[test]
fn the_frequent_heads_are_read_alike_in_both_ways() {
    for head in samples() {
        let frequent = matches!(
            head,
            Head::Am { .. } | Head::Put { .. } | Head::Done { .. } | Head::Get { .. } | Head::Reply { .. }
        );
        let read = Head::decode_frequent(head.encode().as_bytes());
        assert_eq!(read, frequent.then_some(head), "{head:?}");
    }
}

#[test]
fn a_head_cut_short_is_refused() {
    for head in samples() {
        let bytes = head.encode();
        for len in 0..bytes.as_bytes().len() {
            assert_eq!(Head::decode(&bytes.as_bytes()[..len]), None, "{head:?} cut to {len} bytes");
            assert_eq!(Head::decode_frequent(&bytes.as_bytes()[..len]), None, "{head:?} cut to {len} bytes");
        }
    }
}

#[test]
fn unknown_kinds_are_refused() {
    for kind in [0u8, 19, 200, 255] {
        let mut bytes = [0u8; HEAD_MAX];
        bytes[0] = kind;
        assert_eq!(Head::decode(&bytes), None);
    }
}

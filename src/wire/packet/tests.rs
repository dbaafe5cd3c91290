use super::*;
use crate::wire::frame::HEAD_MAX;

/// Every kind, with all its optional words and with none.
fn samples() -> Vec<Head> {
    let mut all = Vec::new();
    for on in [0, u64::MAX - 5] {
        all.extend([
            Head::Am {
                id: 7,
                uhdr_len: 1024,
                handler: 3,
                tgt_cntr: on,
                cookie: on,
                total: on,
                atoms: on != 0,
            },
            Head::Amv { id: 8, uhdr_len: 1024, handler: 3, shape: 9, tgt_cntr: on, cookie: on, total: on },
            Head::Vector {
                id: 9,
                op: VECTOR_GET,
                words: 200_001,
                data: 10,
                total: 5,
                tgt_cntr: on,
                cookie: on,
            },
            Head::Put { id: u32::MAX, addr: 0x7fff_0000_1234, tgt_cntr: on, cookie: 0, total: on },
            Head::Placed { id: 3, bytes: on, tgt_cntr: on, cookie: on },
            Head::PutRequest { id: 4, addr: 1, total: 2, cookie: 3, tgt_cntr: on },
            Head::Written { cookie: on },
            Head::Data { id: 1, offset: on },
            Head::Get { addr: 1, len: 2, cookie: 3, tgt_cntr: on },
            Head::Reply { cookie: 9, offset: on },
            Head::Rmw { op: RMW_WIDE | 3, var: 1, value: 2, swap: 3, cookie: 4 },
            Head::RmwReply { cookie: 1, value: on },
            Head::Done { cookie: 5 },
            Head::RequestToSend {
                id: 2,
                uhdr_len: 8,
                handler: 1,
                addr: 2,
                total: 3,
                cookie: 4,
                tgt_cntr: on,
            },
            Head::PartsToSend {
                id: 2,
                uhdr_len: 8,
                handler: 1,
                shape: (on != 0).then_some(2),
                total: 3,
                cookie: 4,
                tgt_cntr: on,
                atoms: on != 0,
            },
            Head::Fetched { cookie: 5, refused: on },
            Head::Fence { count: 77 },
            Head::FenceAck { count: 78 },
            Head::Collective { round: 13, sequence: 14, offset: on as u32, other: 15 },
            Head::CollectiveFailed { sequence: 14, task: 15, code: on as u32 },
            Head::CollectiveAt { sequence: 16 },
            Head::Ping,
            Head::Pong,
        ]);
    }
    all
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
fn a_head_cut_short_is_refused() {
    for head in samples() {
        let bytes = head.encode();
        for len in 0..bytes.as_bytes().len() {
            assert_eq!(Head::decode(&bytes.as_bytes()[..len]), None, "{head:?} cut to {len} bytes");
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

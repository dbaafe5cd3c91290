//! A head of each kind, for tests and for the fuzz targets.

use super::{Head, RMW_WIDE, VECTOR_GET};

/// Every kind; `on` stands in the words that may be left out, which are those that are 0.
pub fn heads(on: u64) -> Vec<Head> {
    vec![
        Head::Am { id: 7, uhdr_len: 1024, handler: 3, tgt_cntr: on, cookie: on, total: on, atoms: on != 0 },
        Head::Amv { id: 8, uhdr_len: 1024, handler: 3, shape: 9, tgt_cntr: on, cookie: on, total: on },
        Head::Vector { id: 9, op: VECTOR_GET, words: 200_001, data: 10, total: 5, tgt_cntr: on, cookie: on },
        Head::Put { id: u32::MAX, addr: 0x7fff_0000_1234, tgt_cntr: on, cookie: 0, total: on },
        Head::Placed { id: 3, bytes: on, tgt_cntr: on, cookie: on },
        Head::Accessed { id: 5, written: on },
        Head::Written { cookie: on },
        Head::Data { id: 1, offset: on },
        Head::Get { addr: 1, len: 2, cookie: 3, tgt_cntr: on },
        Head::Reply { cookie: 9, offset: on },
        Head::Rmw { op: RMW_WIDE | 3, var: 1, value: 2, swap: 3, cookie: 4 },
        Head::RmwReply { cookie: 1, value: on },
        Head::Done { cookie: 5 },
        Head::RequestToSend { id: 2, uhdr_len: 8, handler: 1, addr: 2, total: 3, cookie: 4, tgt_cntr: on },
        Head::PartsToSend {
            id: 2,
            uhdr_len: 8,
            handler: 1,
            shape: (on != 0).then_some(2),
            total: 3,
            cookie: 4,
            tgt_cntr: on,
            atoms: on != 0,
            more: on != 0,
        },
        Head::NextParts { cookie: on },
        Head::MoreParts { cookie: on, more: on != 0 },
        Head::Fetched { cookie: 5, refused: on },
        Head::Fence { count: 77 },
        Head::FenceAck { count: 78 },
        Head::Collective { round: 13, sequence: 14, offset: on as u32, other: 15 },
        Head::CollectiveFailed { sequence: 14, task: 15, code: on as u32 },
        Head::CollectiveAt { sequence: 16 },
        Head::Parting { count: 79, position: on as u32, step: 2 },
        Head::PartingReply { granted: on != 0 },
        Head::Ping,
        Head::Pong,
    ]
}

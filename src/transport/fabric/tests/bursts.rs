//! Buffers for arriving messages after many have arrived at once.

use super::is_there;
use super::network::{preferring, unserved};
use crate::base::clock::test_deadline;
use crate::transport::conformance::Calls;
use crate::transport::fabric::receive::FIRST;
use crate::transport::fabric::{FabricTransport, WINDOW};
use crate::transport::{Endpoint, Outgoing, Piece, SendOutcome, Task};
use std::collections::BTreeSet;
use std::time::Instant;

fn send(ends: &mut [FabricTransport], from: Task, len: usize) {
    let data = vec![from as u8; len];
    let packet = Outgoing {
        head: &[1; 24],
        first: Piece::EMPTY,
        second: Piece::of(&data).into(),
        copy_limit: usize::MAX,
    };
    let deadline = Instant::now() + test_deadline();
    loop {
        // SAFETY: the data lives until the packet was reported.
        match unsafe { ends[from as usize].try_send(1 - from, &packet) } {
            SendOutcome::Sent | SendOutcome::Held => return,
            SendOutcome::Taken(ticket) => {
                while ends[from as usize].completed() != Some(ticket) {
                    assert!(Instant::now() < deadline, "a packet is not sent");
                    ends.iter_mut().for_each(|end| end.serve());
                }
                return;
            }
            SendOutcome::NoRoom => ends.iter_mut().for_each(|end| end.serve()),
            SendOutcome::Gone => panic!("the peer has gone"),
        }
        assert!(Instant::now() < deadline, "there is no room");
    }
}

/// Takes one packet: where it was.
fn take(ends: &mut [FabricTransport], to: Task) -> usize {
    let deadline = Instant::now() + test_deadline();
    loop {
        if let Some(packet) = ends[to as usize].recv() {
            let at = packet.head.addr();
            ends[to as usize].release(packet);
            return at;
        }
        assert!(Instant::now() < deadline, "no packet comes");
        ends.iter_mut().for_each(|end| end.serve());
    }
}

/// A burst needs many buffers; what comes later uses the few that a processor's cache holds.
#[test]
fn a_burst_leaves_few_buffers_in_use() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = unserved(2, &preferring("tcp;ofi_rxm"));
    let longest = ends[0].limits(1).max_body;
    for _ in 0..3 {
        // As many as may be on their way, none of them taken.
        (0..WINDOW).for_each(|_| send(&mut ends, 0, longest));
        let deadline = Instant::now() + test_deadline();
        while ends[1].receiving.ready() < WINDOW as usize {
            assert!(Instant::now() < deadline, "the packets do not arrive");
            ends.iter_mut().for_each(|end| end.serve());
        }
        let (all, _) = ends[1].receiving.count();
        assert!(all > 2 * FIRST, "{all} buffers for {WINDOW} packets");
        (0..WINDOW).for_each(|_| _ = take(&mut ends, 1));
    }
    // Those that were posted during the burst are used up first.
    let mut places = BTreeSet::new();
    for round in 0..4000 {
        send(&mut ends, 0, 4096);
        let at = take(&mut ends, 1);
        if round >= 2000 {
            places.insert(at >> 12);
        }
    }
    // 2,000 packets of 4 KiB and a head; each buffer has 32 pages, and a part of one more.
    assert!(places.len() <= (FIRST + 1) * 34, "{} pages", places.len());
    assert_eq!(ends[1].receiving.count().1, FIRST);
}

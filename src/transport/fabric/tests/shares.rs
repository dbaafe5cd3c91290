//! What is shared by all peers: buffers for packets.

use super::network::{preferring, unserved};
use super::{FabricTransport, is_there};
use crate::base::clock::test_deadline;
use crate::transport::fabric::own::Wants;
use crate::transport::fabric::posting::SENDS;
use crate::transport::{Endpoint, Outgoing, Piece, SendOutcome, Task};
use std::time::Instant;

const PROVIDER: &str = "tcp;ofi_rxm";

/// Takes so many send buffers for messages to the peer that are not posted.
fn fill(end: &mut FabricTransport, peer: Task, count: usize) -> Vec<usize> {
    (0..count).map(|_| end.posting.make_of(peer, &[0; 4]).expect("a buffer")).collect()
}

/// Gives them back.
fn empty(end: &mut FabricTransport, slots: Vec<usize>) {
    slots.into_iter().for_each(|slot| _ = end.posting.remove(slot));
}

/// The credits leave in a message of their own while a packet waits for a buffer.
#[test]
fn credits_are_returned_once() {
    if !is_there(PROVIDER) {
        return;
    }
    const GIVEN: u16 = 40;
    const BEFORE: u32 = 100_000;
    let mut ends = unserved(2, &preferring(PROVIDER));
    ends[1].peer_mut(0).expect("a peer").in_flight = BEFORE;
    let slots = fill(&mut ends[0], 0, SENDS - 1);
    // Too long to be injected, and copied: it takes the last buffer.
    let data = [7_u8; 5000];
    let packet = Outgoing {
        head: &[1; 24],
        first: Piece::EMPTY,
        second: Piece::of(&data).into(),
        copy_limit: usize::MAX,
    };
    // SAFETY: the data is copied before the call returns.
    let send = |end: &mut FabricTransport| unsafe { end.try_send(1, &packet) };
    assert_eq!(send(&mut ends[0]), SendOutcome::Sent);
    let deadline = Instant::now() + test_deadline();
    let mut given = 0;
    loop {
        assert!(Instant::now() < deadline, "the buffer is never free");
        let peer = ends[0].peer(1).expect("a peer");
        if peer.owed.replace(GIVEN) == 0 {
            given += u32::from(GIVEN);
        }
        ends[0].owe(1, Wants::CREDITS);
        match send(&mut ends[0]) {
            SendOutcome::Sent => break,
            outcome => assert_eq!(outcome, SendOutcome::NoRoom),
        }
    }
    let mut taken = 0;
    while taken < 2 {
        assert!(Instant::now() < deadline, "the packets do not arrive");
        ends[0].serve();
        if let Some(packet) = ends[1].recv() {
            ends[1].release(packet);
            taken += 1;
        }
    }
    assert_eq!(ends[1].peer(0).expect("a peer").in_flight, BEFORE - given);
    empty(&mut ends[0], slots);
}

//! What is shared by all peers: buffers for packets, and slots for accesses.

use super::network::{preferring, unserved};
use super::{FabricTransport, is_there};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::transport::conformance::Calls;
use crate::transport::fabric::own::Wants;
use crate::transport::fabric::posting::SENDS;
use crate::transport::presence::Presence;
use crate::transport::{
    Access, AccessId, Copy, Endpoint, Exposure, Outgoing, PeerState, Peers, Piece, RemoteAccess, SendOutcome,
    Started, Task,
};
use crate::wire::network::{Content, Notice};
use std::time::{Duration, Instant};

const PROVIDER: &str = "tcp;ofi_rxm";

/// Takes `count` send buffers for messages to the peer that are not posted.
fn fill(end: &mut FabricTransport, peer: Task, count: usize) -> Vec<usize> {
    (0..count).map(|_| end.posting.make_of(peer, &[0; 4]).expect("a buffer")).collect()
}

/// Gives them back.
fn empty(end: &mut FabricTransport, slots: Vec<usize>) {
    slots.into_iter().for_each(|slot| _ = end.posting.remove(slot));
}

/// Begins to read from a task.
fn read(ends: &mut [FabricTransport], from: Task, there: &[u8], here: &mut [u8]) -> AccessId {
    let exposure = Exposure { access: Access::Read, one_rail: false };
    // SAFETY: both places live longer than the ends.
    unsafe {
        let key = ends[from as usize].expose(0, Piece::of(there), exposure).expect("a key");
        let remote = there.as_ptr().expose_provenance() as u64;
        let copy = Copy { local: here.as_mut_ptr(), remote, len: here.len() };
        match ends[0].start(Access::Read, from, Some(key), &[copy]) {
            Ok(Started::Pending(id)) => id,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_peer_that_is_stopped_leaves_slots_to_the_accesses_of_others() {
    if !is_there(PROVIDER) {
        return;
    }
    let there = [vec![1_u8; 64 << 20], vec![2_u8; 1 << 20]];
    let mut here = [vec![0_u8; 64 << 20], vec![0_u8; 1 << 20]];
    let mut ends = unserved(3, &preferring(PROVIDER));
    let [stopped, served] = &mut here;
    // Nobody serves task 2.
    read(&mut ends, 2, &there[0], stopped);
    let id = read(&mut ends, 1, &there[1], served);
    let deadline = Instant::now() + test_deadline();
    let (done, outcome) = loop {
        assert!(Instant::now() < deadline, "it waits for the peer that is stopped");
        ends[..2].iter_mut().for_each(|end| end.serve());
        if let Some(report) = ends[0].accessed() {
            break report;
        }
    };
    assert!(done == id && outcome.is_ok());
    assert!(here[1].iter().all(|byte| *byte == 2));
    ends.iter_mut().for_each(|end| end.linger = Duration::ZERO);
}

/// All tasks of a host end at the same time, with it.
#[test]
fn what_is_under_way_with_many_peers_that_have_left_is_awaited_once() {
    if !is_there(PROVIDER) {
        return;
    }
    const PEERS: usize = 4;
    let there = vec![1_u8; 8 << 20];
    let mut here = vec![vec![0_u8; 8 << 20]; PEERS];
    let mut ends = unserved(PEERS as u32 + 2, &preferring(PROVIDER));
    for (at, here) in here.iter_mut().enumerate() {
        read(&mut ends, at as Task + 1, &there, here);
    }
    let (all, own) = (ends.len(), Process::own());
    ends[0].watch_others(vec![0; all], vec![own; all], Box::default());
    for task in 1..=PEERS as Task {
        let died = Notice { content: Content::Died, task, life: own.life() };
        ends[0].keep_notice(PEERS as Task + 1, &died.encode());
    }
    ends[0].note_notices();
    ends[0].follow_ring();
    assert!((1..=PEERS as Task).all(|task| ends[0].standing(task).state == PeerState::Dead));
    assert_eq!(ends[0].deadlines, 1);
    for _ in 0..PEERS {
        assert!(ends[0].accessed().expect("each of them is reported").1.is_err());
    }
    ends.iter_mut().for_each(|end| end.linger = Duration::ZERO);
}

#[test]
fn a_poll_looks_at_accesses_that_wait_only_after_a_change() {
    if !is_there(PROVIDER) {
        return;
    }
    const ACCESSES: usize = 100;
    let there = vec![1_u8; 4096];
    let mut here = vec![vec![0_u8; 4096]; ACCESSES];
    let mut ends = unserved(2, &preferring(PROVIDER));
    // Nobody serves task 1: it has the half of the slots.
    let ids: Vec<AccessId> = here.iter_mut().map(|here| read(&mut ends, 1, &there, here)).collect();
    let deadline = Instant::now() + test_deadline();
    while ends[0].accesses.may_start() {
        assert!(Instant::now() < deadline, "the endpoint never has room");
        ends[0].serve();
    }
    assert!(ends[0].accesses.wait());
    let before = ends[0].accesses.looks;
    (0..100).for_each(|_| ends[0].serve());
    assert_eq!(ends[0].accesses.looks, before);
    for id in ids {
        let (done, outcome) = loop {
            assert!(Instant::now() < deadline, "{id:?} does not end");
            ends.iter_mut().for_each(|end| end.serve());
            if let Some(report) = ends[0].accessed() {
                break report;
            }
        };
        assert!(done == id && outcome.is_ok());
    }
    assert!(!ends[0].accesses.wait());
    assert!(here.iter().flatten().all(|byte| *byte == 1));
}

#[test]
fn peers_that_take_nothing_leave_send_buffers_to_others() {
    if !is_there(PROVIDER) {
        return;
    }
    const WINDOW: usize = crate::transport::fabric::WINDOW as usize;
    let mut ends = unserved(2, &preferring(PROVIDER));
    let end = &mut ends[0];
    let mut slots = Vec::new();
    for peer in 10..15 {
        let before = slots.len();
        while slots.len() < before + WINDOW && !end.posting.refuses(peer) {
            slots.extend(fill(end, peer, 1));
        }
        assert!(peer != 10 || slots.len() == WINDOW, "one peer has its whole window");
        assert!(slots.len() > before && slots.len() < SENDS, "task {peer}: {before} and {}", slots.len());
    }
    assert!(!end.posting.refuses(1));
    empty(end, slots);
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

#[test]
fn a_packet_to_a_peer_that_begins_to_rejoin_finds_no_room() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = unserved(2, &preferring(PROVIDER));
    let end = &mut ends[0];
    let slots = fill(end, 1, SENDS);
    for (standing, outcome) in [
        (Presence::Rejoining, SendOutcome::NoRoom),
        (Presence::Up, SendOutcome::NoRoom),
        (Presence::Parted, SendOutcome::Gone),
    ] {
        end.peer_mut(1).expect("a peer").standing = standing;
        assert_eq!(end.refusal_without_buffer(1), Some(outcome));
    }
    end.peer_mut(1).expect("a peer").standing = Presence::Up;
    empty(end, slots);
}

//! What is still under way to a peer from a connection that has ended, or to a process before.

use super::network::{self, preferring};
use super::{is_there, rejoins};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::transport::conformance::Calls;
use crate::transport::fabric::ofi::{Errno, Failed, Failure, Slot};
use crate::transport::fabric::{FabricTransport, PUBLISHED_BEFORE};
use crate::transport::{PeerState, Peers};
use crate::wire::network::Rejoin;
use std::time::{Duration, Instant};

const PROVIDER: &str = "tcp;ofi_rxm";

/// A copy for task 0 that the endpoint does not end.
fn post(end: &mut FabricTransport) -> Slot {
    let slot = end.posting.make_of(0, &[0; 4]).expect("a buffer");
    end.posting.pretend_posted(slot);
    slot
}

fn fails(end: &mut FabricTransport, slot: Slot) {
    let errno = Errno(libc::ECONNRESET);
    end.note_failure(Failure { of: Failed::Operation(Some(slot)), errno, text: errno.text() });
}

/// Task 1 lets task 0 rejoin: the message for that, which is under way.
fn part_and_rejoin(end: &mut FabricTransport) -> Slot {
    end.part(0);
    let before: Vec<Slot> = end.posting.of(0).collect();
    Peers::rejoin(end, 0, 3).expect("can rejoin");
    let new = end.posting.of(0).find(|slot| !before.contains(slot));
    new.expect("it is sent a message")
}

/// Task 0 has the tag of task 1.
fn proves(ends: &mut [FabricTransport]) {
    let process = Process::own();
    let mine = ends[1].peer(0).expect("a peer").mine;
    rejoins(ends, Rejoin { tag: 101, echo: mine, epoch: 9, process, waits: false });
    assert_eq!(ends[1].rejoined(), Some((0, 9)));
}

fn state(ends: &[FabricTransport]) -> (PeerState, bool) {
    (ends[1].standing(0).state, ends[1].peer(0).expect("a peer").broken)
}

#[test]
fn a_message_from_before_the_parting_that_fails_does_not_end_the_connection_after_it() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(2, &preferring(PROVIDER));
    let copy = post(&mut ends[1]);
    part_and_rejoin(&mut ends[1]);
    proves(&mut ends);
    fails(&mut ends[1], copy);
    assert_eq!(state(&ends), (PeerState::Up, false));
    let copy = post(&mut ends[1]);
    fails(&mut ends[1], copy);
    assert_eq!(state(&ends), (PeerState::Dead, true), "one of this connection");
}

#[test]
fn a_message_to_a_former_process_that_fails_says_nothing_about_its_successor() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(2, &preferring(PROVIDER));
    let rejoin = part_and_rejoin(&mut ends[1]);
    // The former one had another port.
    let published = ends[0].credentials.published.clone();
    let mut other = published.clone();
    other[PUBLISHED_BEFORE + 3] ^= 1;
    ends[1].enter(0, &other).expect("an address");
    ends[1].enter(0, &published).expect("an address");
    proves(&mut ends);
    fails(&mut ends[1], rejoin);
    assert_eq!(state(&ends), (PeerState::Up, false));
}

#[test]
fn a_message_from_before_the_parting_does_not_keep_others_from_being_repeated() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(2, &preferring(PROVIDER));
    // What is pretended to be under way would be awaited at the end.
    ends.iter_mut().for_each(|end| end.linger = Duration::ZERO);
    post(&mut ends[1]);
    let rejoin = part_and_rejoin(&mut ends[1]);
    ends[1].posting.remove(rejoin);
    let deadline = Instant::now() + test_deadline();
    while ends[1].posting.of(0).count() < 2 {
        assert!(Instant::now() < deadline, "it is not repeated");
        ends[1].look_for_awaited();
    }
}

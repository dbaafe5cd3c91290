//! Peers that have left, or are leaving: what they are owed, and what is queued for them.

use super::network::{self, preferring};
use super::{is_there, rejoins};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::transport::fabric::FabricTransport;
use crate::transport::fabric::ofi::Errno;
use crate::transport::fabric::own::Wants;
use crate::transport::fabric::progress::{FAILS_FOR, FAILURES};
use crate::transport::presence::Presence;
use crate::transport::{Endpoint, PeerState, Peers};
use crate::wire::network::{Frame, FrameKind, Rejoin};
use std::time::{Duration, Instant};

const PROVIDER: &str = "tcp;ofi_rxm";

fn rests(end: &FabricTransport) -> bool {
    end.tally().outstanding == 0 && end.due().is_none()
}

#[test]
fn nothing_is_owed_to_a_peer_that_has_died() {
    if !is_there(PROVIDER) {
        return;
    }
    for how in [Presence::Dead("has died".to_owned()), Presence::HasParted] {
        let mut ends = network::unserved(2, &preferring(PROVIDER));
        ends[0].owe(1, Wants::CREDITS | Wants::KICK);
        ends[0].note_left(1, how);
        assert_eq!(ends[0].peer(1).expect("a peer").wants.get(), 0);
        ends[0].serve();
        assert!(rests(&ends[0]));
    }
}

#[test]
fn what_is_sent_at_once_is_not_pending() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(2, &preferring(PROVIDER));
    let deadline = Instant::now() + test_deadline();
    for _ in 0..3 {
        ends[0].owe(1, Wants::CREDITS);
        ends[0].owe(1, Wants::KICK);
        assert_eq!(ends[0].tally().outstanding, 1, "it is listed once");
        while ends[0].peer(1).expect("a peer").wants.get() != 0 {
            assert!(Instant::now() < deadline, "there is no room");
            ends[0].send_own(1);
        }
        assert!(rests(&ends[0]));
    }
    ends[0].owe(1, Wants::KICK);
    ends[0].part(1);
    assert!(rests(&ends[0]), "nothing is owed to one that has parted");
}

/// With `ofi_rxm` there is never room to an endpoint that is closed.
#[test]
fn a_peer_that_departs_is_told_that_this_was_seen_as_long_as_it_waits() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::strangers(2, &preferring(PROVIDER));
    drop(ends.pop());
    assert!(ends[0].meet(1));
    ends[0].linger = Duration::from_millis(20);
    ends[0].owe(1, Wants::SEEN | Wants::CREDITS);
    ends[0].note_left(1, Presence::Closed);
    assert_eq!(ends[0].peer(1).expect("a peer").wants.get(), Wants::SEEN);
    let deadline = Instant::now() + test_deadline();
    while !rests(&ends[0]) {
        assert!(Instant::now() < deadline, "it is tried again for ever");
        ends[0].serve();
    }
}

/// The departure comes on a new connection, while the proof that both have rejoined is lost with
/// the one before, and sent again.
#[test]
fn a_departure_that_overtakes_the_proof_of_rejoining_is_seen_after_it() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(2, &preferring(PROVIDER));
    ends[1].part(0);
    Peers::rejoin(&mut ends[1], 0, 3).expect("can rejoin");
    let mine = ends[1].peer(0).expect("a peer").mine;
    let departure =
        Frame { kind: FrameKind::Departure, src: 0, tag: mine, credits: 0, head_len: 0, body_len: 0 };
    let deadline = Instant::now() + test_deadline();
    let peer = ends[0].peer(1).expect("a peer");
    while let Err(errno) = ends[0].inject_own(1, peer, &departure, &[]) {
        assert!(errno.is_again() && Instant::now() < deadline, "{}", errno.text());
    }
    while ends[1].peer(0).expect("a peer").departs_after.is_none() {
        assert!(Instant::now() < deadline, "the departure does not arrive");
        ends[1].serve();
    }
    assert!(ends[1].peer(0).expect("a peer").seen_owed.get().is_none(), "it departs before it is there");
    let process = Process::own();
    rejoins(&mut ends, Rejoin { tag: 101, echo: mine, epoch: 9, process, waits: true });
    assert_eq!(ends[1].standing(0).state, PeerState::Closed);
    assert!(ends[1].peer(0).expect("a peer").seen_owed.get().is_some());
}

#[test]
fn what_is_dropped_from_the_queue_of_an_awaited_peer_is_not_queued() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(2, &preferring(PROVIDER));
    let end = &mut ends[0];
    end.part(1);
    Peers::rejoin(end, 1, 3).expect("can rejoin");
    let address = end.peer_mut(1).expect("a peer").address.take();
    let slot = end.posting.make_of(1, &[0; 4]).expect("a buffer");
    end.post_own(1, slot);
    assert!(end.peer(1).expect("a peer").queued != 0);
    end.serve();
    assert_eq!((end.posting.waiting(), end.peer(1).expect("a peer").queued), (0, 0));
    end.peer_mut(1).expect("a peer").address = address;
}

/// The completion queue fails at this time.
fn fail(end: &mut FabricTransport, at: Instant) {
    let failed = end.device.read(-(libc::EIO as isize), || at);
    assert!(failed.is_err());
    end.note_all(failed);
}

fn states(end: &FabricTransport) -> [PeerState; 2] {
    [1, 2].map(|task| end.standing(task).state)
}

/// As with a card that has failed: otherwise each transfer would wait for its timeout.
#[test]
fn all_peers_are_lost_when_the_completion_queue_fails_again_and_again() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(3, &preferring(PROVIDER));
    let (end, start) = (&mut ends[0], Instant::now());
    for _ in 0..FAILURES - 1 {
        fail(end, start);
    }
    assert_eq!(states(end), [PeerState::Up; 2]);
    fail(end, start + FAILS_FOR);
    assert_eq!(states(end), [PeerState::Dead; 2]);
    let Presence::Dead(why) = &end.peer(1).expect("a peer").standing else { panic!("it is not dead") };
    assert!(why.contains(&Errno(libc::EIO).text()), "{why}");
}

/// As with a shortage of memory.
#[test]
fn no_peer_is_lost_when_the_completion_queue_fails_for_a_moment() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(3, &preferring(PROVIDER));
    let (end, mut now) = (&mut ends[0], Instant::now());
    // Nothing has ended, or an operation has.
    for works in [-(libc::EAGAIN as isize), 1] {
        // A thread that polls without a pause does so often in a moment.
        for _ in 0..10 * FAILURES {
            fail(end, now);
        }
        assert_eq!(states(end), [PeerState::Up; 2], "it may pass");
        assert!(end.device.read(works, || now).is_ok());
        now += FAILS_FOR;
        for _ in 0..FAILURES {
            fail(end, now);
        }
        assert_eq!(states(end), [PeerState::Up; 2], "it has passed");
        assert!(end.device.read(works, || now).is_ok());
        for _ in 0..FAILURES - 1 {
            now += FAILS_FOR;
            fail(end, now);
        }
        assert!(end.device.read(works, || now).is_ok());
        now += FAILS_FOR;
        fail(end, now);
        assert_eq!(states(end), [PeerState::Up; 2], "there are {FAILURES} failures, but not in turn");
    }
}

#[test]
fn all_peers_are_lost_when_failures_cannot_be_read() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = network::unserved(3, &preferring(PROVIDER));
    ends[0].device.make_unreadable();
    let deadline = Instant::now() + test_deadline();
    while states(&ends[0]) != [PeerState::Dead; 2] {
        assert!(Instant::now() < deadline, "the failures do not count");
        ends[0].advance();
    }
}

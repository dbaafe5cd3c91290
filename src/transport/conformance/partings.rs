//! Tasks that part, and come together again.

use super::support::{Deadline, Sample, expect, try_send};
use super::{PeerState, SendError, pass, signals};
use crate::transport::conformance::Calls;
use crate::transport::{PeerStanding, Task, Transport};

pub(super) fn suite<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    cuts_one_connection(make);
    forgets_what_was_under_way(make);
    reconnects_in_either_order(make);
    parts_again_and_again(make);
    survives_parting_in_the_middle_of_a_packet(make);
    shows_that_a_peer_has_parted(make);
    signals::are_forgotten(make);
}

fn cuts_one_connection<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    pass(&mut ends, 0, 1, &Sample::exact(1, 8, 100, None));
    ends[0].part(1);
    assert_eq!(ends[0].standing(1).state, PeerState::Dead);
    assert!(!ends[0].is_open(1));
    let sample = Sample::exact(2, 8, 10, None);
    assert_eq!(try_send(&mut ends[0], 1, &sample.outgoing()), Err(SendError::PeerGone));
    ends[0].part(1);
    pass(&mut ends, 0, 2, &Sample::exact(3, 8, 100, None));
    pass(&mut ends, 2, 1, &Sample::exact(4, 8, 100, None));
    assert!(ends[0].rejoined().is_none());
}

fn forgets_what_was_under_way<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    for (from, to) in [(0, 1), (1, 0)] {
        for id in 0..5 {
            let sample = Sample::exact(id, 8, 1000.min(ends[from].limits(to as Task).max_body), None);
            // As many as find room.
            let _ = try_send(&mut ends[from], to, &sample.outgoing());
        }
    }
    ends[0].part(1);
    ends[1].part(0);
    reconnect(&mut ends, 0, 1);
    both_ways(&mut ends, 100);
}

fn reconnects_in_either_order<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    for (first, second) in [(0, 1), (1, 0)] {
        let mut ends = make(2);
        ends[first].part(second as Task);
        ends[second].part(first as Task);
        ends[first].rejoin(second as Task, 7).expect("can rejoin");
        // It counts as up, packets wait, and that alone connects nothing.
        assert_eq!(ends[first].standing(second as Task).state, PeerState::Up);
        assert!(ends[first].is_open(second as Task));
        let sample = Sample::exact(1, 8, 100, None);
        assert_eq!(try_send(&mut ends[first], second as Task, &sample.outgoing()), Err(SendError::NoRoom));
        assert!(ends[first].rejoined().is_none());
        ends[second].rejoin(first as Task, 8).expect("can rejoin");
        let mut epochs = [7; 2];
        epochs[first] = 8;
        both_are_back(&mut ends, epochs);
        both_ways(&mut ends, 200);
    }
}

fn parts_again_and_again<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    for round in 0..20_u64 {
        let (first, second) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        ends[first].part(second as Task);
        if round % 3 == 0 {
            // It changes its mind.
            ends[first].rejoin(second as Task, 1).expect("can rejoin");
            ends[first].part(second as Task);
        }
        ends[second].part(first as Task);
        reconnect(&mut ends, first, second);
        both_ways(&mut ends, 1000 * (round + 1));
    }
}

fn survives_parting_in_the_middle_of_a_packet<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let sample = Sample::exact(1, 8, 2000.min(ends[1].limits(0).max_body), None);
    let deadline = Deadline::new("a packet arrives");
    while try_send(&mut ends[1], 0, &sample.outgoing()).is_err() {
        deadline.check();
        assert!(ends[1].recv().is_none());
    }
    let packet = loop {
        deadline.check();
        if let Some(packet) = ends[0].recv() {
            break packet;
        }
    };
    ends[0].part(1);
    ends[1].part(0);
    for end in 0..2 {
        ends[end].rejoin(1 - end as Task, 5).expect("can rejoin");
        ends[1 - end].rejoined();
    }
    // Still there, and given back without harm to the new connection.
    sample.check(&packet, 1);
    ends[0].release(packet);
    ends[0].part(1);
    ends[1].part(0);
    reconnect(&mut ends, 0, 1);
    both_ways(&mut ends, 300);
}

/// A peer that has parted from this task, and lets it rejoin, counts as dead until this task has
/// done the same; again and again.
fn shows_that_a_peer_has_parted<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    for round in 0..3_u64 {
        let (first, second) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        both_ways(&mut ends, 1000 * (round + 1));
        assert_eq!(ends[second].standing(first as Task), PeerStanding::UP);
        ends[first].part(second as Task);
        ends[first].rejoin(second as Task, 40 + first as u64).expect("can rejoin");
        let deadline = Deadline::new("the peer has parted");
        while ends[second].standing(first as Task).state != PeerState::Dead {
            deadline.check();
            assert!(ends.iter_mut().all(|end| end.recv().is_none()), "a packet");
        }
        let standing = ends[second].standing(first as Task);
        let why = standing.absence.expect("a reason");
        assert!(why.contains("has purged this task") && standing.has_parted, "{why}");
        assert!(ends[second].rejoined().is_none() && ends[first].rejoined().is_none());
        assert_eq!(
            (ends[first].standing(second as Task).state, ends[2].standing(1).state),
            (PeerState::Up, PeerState::Up)
        );
        pass(&mut ends, 2, first as Task, &Sample::exact(round, 8, 100, None));
        ends[second].part(first as Task);
        assert!(!ends[second].standing(first as Task).has_parted);
        ends[second].rejoin(first as Task, 40 + second as u64).expect("can rejoin");
        both_are_back(&mut ends, [41, 40]);
    }
    both_ways(&mut ends, 9000);
}

/// A task ends LAPI while a peer that has parted from it waits for it to rejoin.
pub(crate) fn tells_its_end_to_a_peer_that_waits_for_it<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    pass(&mut ends, 0, 1, &Sample::exact(1, 8, 100, None));
    ends[1].part(0);
    ends[1].rejoin(0, 41).expect("can rejoin");
    let deadline = Deadline::new("the peer has parted");
    while !ends[0].standing(1).has_parted {
        deadline.check();
        assert!(ends.iter_mut().all(|end| end.recv().is_none()), "a packet");
    }
    ends[0].close();
    let deadline = Deadline::new("the end of the peer that is awaited");
    while ends[1].standing(0).state != PeerState::Closed {
        deadline.check();
        assert!(ends[1].recv().is_none(), "a packet");
    }
}

/// Both let the other rejoin, and this is reported to each once.
pub(super) fn reconnect<T: Transport>(ends: &mut [T], first: usize, second: usize) {
    ends[first].rejoin(second as Task, 40 + first as u64).expect("can rejoin");
    ends[second].rejoin(first as Task, 40 + second as u64).expect("can rejoin");
    both_are_back(ends, [41, 40]);
}

/// Waits until each has that report, with this epoch of the other.
fn both_are_back<T: Transport>(ends: &mut [T], epochs: [u64; 2]) {
    let deadline = Deadline::new("both are back");
    let mut back = [false; 2];
    while back != [true; 2] {
        deadline.check();
        for end in 0..2 {
            assert!(ends[end].recv().is_none(), "a packet of before");
            if let Some((task, epoch)) = ends[end].rejoined() {
                assert_eq!((task as usize, epoch), (1 - end, epochs[end]));
                assert!(!std::mem::replace(&mut back[end], true), "named twice");
            }
        }
    }
}

fn both_ways<T: Transport>(ends: &mut [T], id: u64) {
    let limit = ends[0].limits(1).max_body;
    for at in 0..30 {
        let sample = Sample::exact(id + at, 8, (10 + 50 * at as usize).min(limit), None);
        pass(ends, 0, 1, &sample);
        pass(ends, 1, 0, &sample);
    }
    for end in 0..2 {
        let peer = 1 - end;
        assert_eq!(ends[end].standing(peer as Task).state, PeerState::Up);
        let sample = Sample::exact(id + 99, 8, 64, None);
        let deadline = Deadline::new("a packet arrives");
        while try_send(&mut ends[end], peer as Task, &sample.outgoing()).is_err() {
            deadline.check();
        }
        expect(&mut ends[peer], "the last packet", |packet| sample.check(packet, end as Task));
    }
}

//! Which peer the device serves at less cost: that follows the traffic, and no packet is lost
//! or late by it.

use super::*;
use crate::base::poll::await_readable;
use crate::transport::{Wakeup, Want};

/// A packet from each of the two ends to the other one, and their arrival.
fn exchange(ends: &mut [UdpTransport], one: usize, other: usize, number: u64) {
    for (from, to) in [(one, other), (other, one)] {
        assert!(matches!(send(&mut ends[from], to as Task, number), SendOutcome::Sent));
        serve_until(ends, "a packet", |ends| match take(&mut ends[to]) {
            None => false,
            Some(packet) => {
                assert_eq!(packet, (from as Task, number));
                true
            }
        });
    }
}

#[test]
fn the_peer_that_has_most_of_the_traffic_is_preferred() {
    let device = |socket, _| Box::new(socket) as Box<dyn Device>;
    let mut ends = met(ends_on(3, Security::Auth, 1472, device));
    let address = |ends: &mut [UdpTransport], task| ends[0].directory.address_of(task).ok();
    let mut number = 0;
    for peer in [1, 2, 1] {
        for _ in 0..200 {
            number += 1;
            exchange(&mut ends, 0, peer, number);
        }
        assert_eq!(ends[0].preferred_peer.preferred(), address(&mut ends, peer as Task));
        assert!(ends[0].preferred_peer.preferred().is_some());
    }
    for _ in 0..200 {
        for peer in [1, 2] {
            number += 1;
            exchange(&mut ends, 0, peer, number);
        }
    }
    for end in &mut ends {
        assert!(take(end).is_none(), "a packet that was not sent");
    }
}

/// What a peer sends that is not the preferred one arrives within a bounded number of polls,
/// although there is always something of that one.
#[test]
fn a_peer_that_sends_without_end_keeps_no_other_one_waiting() {
    let device = |socket, _| Box::new(socket) as Box<dyn Device>;
    let mut ends = met(ends_on(3, Security::Auth, 1472, device));
    (0..200).for_each(|number| exchange(&mut ends, 0, 1, number));
    for round in 0..50 {
        assert!(matches!(send(&mut ends[2], 0, round), SendOutcome::Sent));
        let (mut turns, mut arrived) = (0, false);
        while !arrived {
            turns += 1;
            assert!(turns < 100, "round {round}: it is still waited for");
            while matches!(send(&mut ends[1], 0, 7), SendOutcome::Sent) {}
            ends[0].serve();
            while let Some(packet) = take(&mut ends[0]) {
                arrived |= packet == (2, round);
            }
            ends[1].serve();
        }
        serve_until(&mut ends, "the rest", |ends| {
            while take(&mut ends[0]).is_some() {}
            ends[1].settled()
        });
    }
}

/// A task that sleeps is woken by the preferred peer, and by another one.
#[test]
fn every_peer_wakes_a_task_that_sleeps() {
    let device = |socket, _| Box::new(socket) as Box<dyn Device>;
    let mut ends = met(ends_on(3, Security::Auth, 1472, device));
    (0..200).for_each(|number| exchange(&mut ends, 0, 1, number));
    for number in 0..20 {
        for peer in [1, 2] {
            serve_until(&mut ends, "rest", |ends| ends.iter().all(|end| end.settled()));
            let deadline = Instant::now() + test_deadline();
            while !ends[0].arm() {
                assert!(Instant::now() < deadline, "it may never sleep");
            }
            assert!(matches!(send(&mut ends[peer], 0, number), SendOutcome::Sent));
            let mut sleeps = true;
            let packet = loop {
                if sleeps {
                    let woken = await_readable(&[ends[0].event_fd()], Some(test_deadline()));
                    assert!(woken[0], "by task {peer}");
                    ends[0].disarm();
                }
                if let Some(packet) = take(&mut ends[0]) {
                    break packet;
                }
                // That was an acknowledgement.
                sleeps = ends[0].arm();
            };
            assert_eq!(packet, (peer as Task, number));
        }
    }
}

/// Another process at the address of the one before, to which the socket is connected still.
#[test]
fn the_successor_of_the_preferred_peer_is_heard() {
    let device = |socket, _| Box::new(socket) as Box<dyn Device>;
    let mut ends = met(ends_on(2, Security::Auth, 1472, device));
    (0..200).for_each(|number| exchange(&mut ends, 0, 1, number));
    let address = ends[0].preferred_peer.preferred().expect("the only peer");
    let listed: Vec<SocketAddr> =
        (0..2).map(|task| ends[0].directory.address_of(task).expect("listed")).collect();
    let gone = ends.pop().expect("two");
    ends[0].part(1);
    drop(gone);
    // What is sent to no one comes back as an error, which loses nothing.
    let socket = Socket::open(address, Options::default()).expect("its port is free");
    let directory = Box::new(Listed(Arc::new(listed)));
    let mut next = UdpTransport::new(&settings(1, 2, Security::Auth, 1472), Box::new(socket), directory)
        .expect("an end");
    next.replaces_another();
    next.want(0, Want::Connection);
    ends.push(next);
    ends[0].rejoin(1, 5).expect("can rejoin");
    serve_until(&mut ends, "a connection", |ends| {
        ends[0].rejoined();
        ends[1].rejoined();
        ends[0].standing(1).absence.is_none() && ends[1].standing(0).absence.is_none()
    });
    (0..200).for_each(|number| exchange(&mut ends, 0, 1, 1000 + number));
    assert_eq!(ends[0].preferred_peer.preferred(), Some(address));
}

//! What is sent by one who knows all but the job's secret.

use super::is_there;
use super::network::{preferring, strangers, unserved};
use crate::base::clock::test_deadline;
use crate::transport::fabric::FabricTransport;
use crate::transport::{Endpoint, PeerState, Peers, Task, Want};
use crate::wire::network::{Content, Frame, FrameKind, NOTICE, Notice};
use std::time::Instant;

/// A message of the transport's own for task 0, in the name of task 1, from the endpoint of task 2.
fn pretend<const LEN: usize>(ends: &[FabricTransport], kind: FrameKind, content: &[u8; LEN]) {
    let frame = Frame {
        kind,
        src: 1,
        tag: ends[0].credentials.first_tag,
        credits: 0,
        head_len: 0,
        body_len: LEN as u32,
    };
    let deadline = Instant::now() + test_deadline();
    loop {
        let peer = ends[2].peer(0).expect("they have had contact");
        match ends[2].inject_own(0, peer, &frame, content) {
            Ok(()) => return,
            Err(errno) => assert!(errno.is_again() && Instant::now() < deadline, "{}", errno.text()),
        }
    }
}

fn serve_until(ends: &mut [FabricTransport], what: &str, so: impl Fn(&[FabricTransport]) -> bool) {
    let deadline = Instant::now() + test_deadline();
    while !so(ends) {
        ends.iter_mut().for_each(|end| end.serve());
        assert!(Instant::now() < deadline, "waited for {what}");
    }
}

#[test]
fn messages_of_the_transport_without_the_secret_change_nothing() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = unserved(3, &preferring("tcp;ofi_rxm"));
    serve_until(&mut ends, "contact", |ends| {
        (1..3).all(|task| ends[0].peer(task).is_some_and(|peer| peer.met))
    });
    assert_eq!(ends[0].tally().refused, 0);
    ends[2].credentials.set_secret(&[8; 16]);
    let death: [u8; NOTICE] = Notice { content: Content::Died, task: 1, life: 0 }.encode();
    for _ in 0..20 {
        pretend(&ends, FrameKind::Departure, &[]);
        pretend(&ends, FrameKind::DepartureSeen, &[]);
        pretend(&ends, FrameKind::Hello, &[]);
        pretend(&ends, FrameKind::Kick, &[]);
        pretend(&ends, FrameKind::Notice, &death);
        pretend(&ends, FrameKind::RailNote, &[7; 48]);
    }
    serve_until(&mut ends, "what was sent", |ends| ends[0].tally().refused == 120);
    let states = [1, 2].map(|task: Task| ends[0].standing(task).state);
    assert_eq!(states, [PeerState::Up; 2]);
    // With the secret, the first one is a departure.
    ends[2].credentials.set_secret(&[7; 16]);
    pretend(&ends, FrameKind::Departure, &[]);
    serve_until(&mut ends, "a departure", |ends| ends[0].standing(1).state == PeerState::Closed);
    assert_eq!(ends[0].tally().refused, 120);
}

/// Tasks of different jobs do not know of each other, though one has the address of the other.
#[test]
fn another_job_is_refused() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = strangers(2, &preferring("tcp;ofi_rxm"));
    ends[1].credentials.set_secret(&[8; 16]);
    ends[1].want(Want::Connection(0));
    serve_until(&mut ends, "a greeting", |ends| ends[0].tally().refused != 0);
    assert!(ends[0].peer(1).is_none());
}

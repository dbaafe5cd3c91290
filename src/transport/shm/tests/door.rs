//! Packets that are written through a door, among others.

use super::*;
use crate::base::rng::Rng;
use crate::memory::bytes::pad8;
use crate::wire::packet::Head;
use std::collections::VecDeque;

/// Sends a packet through the door. `false`: it takes none.
fn through(end: &mut ShmTransport, peer: Task, head: &Head, first: &[u8], second: &[u8]) -> bool {
    let door = end.door(peer).expect("a connection");
    let Ok(filling) = door.begin() else { return false };
    // SAFETY: the pieces live during the call.
    let filled = unsafe { head.write(filling).body(Piece::of(first), Piece::of(second).into()) };
    let Ok(filled) = filled else { return false };
    filled.publish();
    door.published();
    true
}

/// Sends such a packet the usual way.
fn usually(end: &mut ShmTransport, peer: Task, head: &Head, first: &[u8], second: &[u8]) -> SendOutcome {
    let head = head.encode();
    let (first, second) = (Piece::of(first), Piece::of(second).into());
    let packet = Outgoing { head: head.as_bytes(), first, second, copy_limit: usize::MAX };
    // SAFETY: the pieces live during the call.
    unsafe { end.try_send(peer, &packet) }
}

/// Whether a task that sleeps now would wake at once.
fn is_woken(end: &ShmTransport) -> bool {
    crate::base::poll::await_events([end.event_fd()], Some(std::time::Duration::ZERO))[0]
}

fn some_head(rng: &mut Rng) -> Head {
    let mut word = || if rng.below(3) == 0 { 0 } else { rng.next_u64() };
    let (id, tgt_cntr, cookie) = (word() as u32, word(), word());
    if word() % 2 == 0 {
        return Head::Put { id, addr: word(), tgt_cntr, cookie, total: 0 };
    }
    let (uhdr_len, handler) = (word() as u16, word());
    Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total: 0, atoms: false }
}

/// Whatever the door and the usual way write in turns arrives as it was written, in order, and both
/// find room at the same moments.
#[test]
fn packets_through_a_door_are_packets() {
    for seed in 1..=8 {
        let (mut rng, mut ends, mut under_way) = (Rng::stream(seed, 1), ends(2), VecDeque::new());
        for step in 0..3000 {
            if rng.below(5) < 3 {
                let (head, words) = (some_head(&mut rng), rng.below(300));
                let bytes: Vec<u8> = (0..words).map(|_| rng.next_u64() as u8).collect();
                let cut = if rng.below(2) == 0 { 0 } else { rng.below(words + 1) as usize };
                let (first, second) = bytes.split_at(cut);
                let sent = if rng.below(2) == 0 {
                    through(&mut ends[1], 0, &head, first, second)
                } else {
                    usually(&mut ends[1], 0, &head, first, second) == SendOutcome::Sent
                };
                if sent {
                    let mut body = first.to_vec();
                    body.resize(if second.is_empty() { cut } else { pad8(cut) }, 0);
                    body.extend(second);
                    under_way.push_back((head, cut, body));
                }
            } else if let Some(packet) = ends[0].recv() {
                // SAFETY: both are there until the packet is released.
                let (head, body) = unsafe {
                    (
                        std::slice::from_raw_parts(packet.head, packet.head_len),
                        std::slice::from_raw_parts(packet.body, packet.body_len),
                    )
                };
                let (sent, cut, expected) = under_way.pop_front().expect("a packet that was sent");
                assert_eq!(Head::decode(head), Some(sent), "seed {seed}, step {step}");
                assert_eq!(body.len(), expected.len(), "seed {seed}, step {step}");
                // Between the pieces is what was there before.
                assert_eq!(body[..cut], expected[..cut], "seed {seed}, step {step}");
                let next = pad8(cut).min(body.len());
                assert_eq!(body[next..], expected[next..], "seed {seed}, step {step}");
                ends[0].release(packet);
            } else {
                assert!(under_way.is_empty(), "seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn a_door_is_shut_where_packets_do_not_go() {
    let mut ends = ends(3);
    let head = Head::Ping;
    assert!(ends[0].door(0).is_none(), "to oneself");
    while through(&mut ends[1], 0, &head, &[], &[]) {}
    assert_eq!(usually(&mut ends[1], 0, &head, &[], &[]), SendOutcome::NoRoom);
    while let Some(packet) = ends[0].recv() {
        ends[0].release(packet);
    }
    assert!(!through(&mut ends[1], 0, &head, &[], &[]), "what waits for room goes first");
    assert_eq!(usually(&mut ends[1], 0, &head, &[], &[]), SendOutcome::Sent);
    assert!(through(&mut ends[1], 0, &head, &[], &[]));
    ends[0].part(1);
    assert!(ends[0].door(1).is_none(), "they have parted");
    ends[0].close();
    assert!(!through(&mut ends[2], 0, &head, &[], &[]), "it has ended LAPI");
}

/// A packet that is written wakes a peer that sleeps, and announces itself to one that does not
/// poll.
#[test]
fn a_packet_through_a_door_wakes() {
    for mut ends in [ends(2), selective_ends(2)] {
        while ends[0].recv().is_some() {}
        ends[0].disarm();
        assert!(ends[0].arm() && !is_woken(&ends[0]));
        assert!(through(&mut ends[1], 0, &Head::Ping, &[], &[]));
        assert!(is_woken(&ends[0]));
        ends[0].disarm();
        let packet = ends[0].recv().expect("the packet");
        ends[0].release(packet);
    }
}

/// Sends a packet through the door that is to be reported under this name.
fn to_be_reported(end: &mut ShmTransport, peer: Task, name: u64, body: &[u8]) -> bool {
    let door = end.door(peer).expect("a connection");
    let Ok(filling) = door.begin() else { return false };
    // SAFETY: the body lives during the call.
    let filled = unsafe { Head::Ping.write(filling).body(Piece::of(body), Piece::EMPTY.into()) };
    let Ok(filled) = filled else { return false };
    let count = filled.publish_reported();
    door.await_report(count, name);
    door.published();
    true
}

/// Packets are reported in order, each once it is released and not before.
#[test]
fn a_packet_is_reported_when_it_is_released() {
    for seed in 1..=8 {
        let (mut rng, mut ends) = (Rng::stream(seed, 2), ends(2));
        let (mut sent, mut under_way, mut released) = (0, VecDeque::new(), VecDeque::new());
        for step in 0..3000 {
            let body = vec![7; rng.below(200) as usize];
            match rng.below(5) {
                0 | 1 if to_be_reported(&mut ends[1], 0, sent, &body) => {
                    under_way.push_back(Some(sent));
                    sent += 1;
                }
                2 if through(&mut ends[1], 0, &Head::Ping, &body, &[]) => under_way.push_back(None),
                3 => {
                    if let Some(packet) = ends[0].recv() {
                        let door = ends[1].door(0).expect("a connection");
                        assert_eq!(door.has_report(), !released.is_empty(), "seed {seed}, step {step}");
                        ends[0].release(packet);
                        released.extend(under_way.pop_front().expect("it was sent"));
                    }
                }
                _ => {
                    let door = ends[1].door(0).expect("a connection");
                    assert_eq!(door.report(), released.pop_front(), "seed {seed}, step {step}");
                }
            }
        }
    }
}

/// A report wakes a task that sleeps. What a task drops is not reported.
#[test]
fn a_report_wakes() {
    let mut ends = ends(2);
    // Of the connection.
    ends[1].disarm();
    assert!(to_be_reported(&mut ends[1], 0, 5, &[]));
    assert!(ends[1].arm());
    let packet = ends[0].recv().expect("the packet");
    assert!(!is_woken(&ends[1]));
    ends[0].release(packet);
    assert!(is_woken(&ends[1]));
    ends[1].disarm();
    let door = ends[1].door(0).expect("a connection");
    assert!(door.report() == Some(5) && !door.awaits_reports());
    ends[0].door(1).expect("a connection").fall_silent();
    for name in 0..200 {
        assert!(to_be_reported(&mut ends[1], 0, name, &[]));
        let packet = ends[0].recv().expect("the packet");
        ends[0].release(packet);
    }
    assert_eq!(ends[1].door(0).expect("a connection").report(), None);
}

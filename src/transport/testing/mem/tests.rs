use super::*;
use crate::transport::conformance::Calls;
use crate::transport::{
    Access, Copy, Endpoint, Exposure, Outgoing, Peers, Piece, RemoteAccess, SendError, conformance,
};

#[test]
fn conforms() {
    conformance::suite(|tasks| network(tasks, MemOptions { remote: true, ..MemOptions::default() }));
}

#[test]
fn conforms_when_it_takes_packets_and_reports_later() {
    let later = MemOptions { take: true, remote: true, pending: true, ..MemOptions::default() };
    conformance::suite(|tasks| network(tasks, later));
    conformance::suite(|tasks| network(tasks, MemOptions { capacity: 2, ..later }));
}

#[test]
fn conforms_with_keys() {
    for pending in [false, true] {
        let keyed = MemOptions { remote: true, keyed: true, pending, ..MemOptions::default() };
        conformance::suite(|tasks| network(tasks, keyed));
        conformance::checks_keys(|tasks| network(tasks, keyed));
    }
}

#[test]
fn registrations_fail_after_a_number_of_them() {
    let options = MemOptions { remote: true, keyed: true, registrations: 2, ..MemOptions::default() };
    let mut ends = network(2, options);
    for end in &mut ends {
        let peer = 1 - end.task;
        // SAFETY: a constant.
        let mut register = || unsafe {
            end.expose(peer, Piece::of(b"data"), Exposure { access: Access::Read, one_rail: false })
        };
        assert_ne!(register().unwrap(), register().unwrap());
        assert_eq!(register().unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }
}

#[test]
fn conforms_when_packets_are_lost_and_sent_again() {
    for (take, lose) in [(false, 50), (true, 31)] {
        conformance::suite(|tasks| network(tasks, MemOptions { take, lose, ..MemOptions::default() }));
    }
}

#[test]
fn conforms_with_room_for_one() {
    conformance::suite(|tasks| {
        network(tasks, MemOptions { capacity: 1, max_body: 1024, ..MemOptions::default() })
    });
}

#[test]
fn conforms_with_an_odd_limit() {
    conformance::suite(|tasks| {
        network(tasks, MemOptions { capacity: 3, max_body: 2_043, ..MemOptions::default() })
    });
}

#[test]
fn receives_from_all_in_turn() {
    let mut ends = network(4, MemOptions::default());
    for src in [1, 1, 1, 2, 2, 3] {
        send(&mut ends, src, 0).unwrap();
    }
    let order: Vec<Task> = std::iter::from_fn(|| take(&mut ends[0])).collect();
    assert_eq!(order, [1, 2, 3, 1, 2, 1]);
}

#[test]
fn the_packet_in_hand_keeps_its_place() {
    let mut ends = network(2, MemOptions { capacity: 1, ..MemOptions::default() });
    send(&mut ends, 0, 1).unwrap();
    let packet = ends[1].recv().unwrap();
    assert_eq!(send(&mut ends, 0, 1), Err(SendError::NoRoom));
    ends[1].release(packet);
    send(&mut ends, 0, 1).unwrap();
}

#[test]
fn a_killed_task_is_dead_for_all() {
    let mut ends = network(3, MemOptions { remote: true, ..MemOptions::default() });
    let handle = ends[0].handle();
    send(&mut ends, 1, 2).unwrap();
    send(&mut ends, 0, 1).unwrap();
    assert!(ends[0].arm());
    handle.kill(1);
    // Its peers wake, and see it.
    assert!(readable(&ends[0]));
    ends[0].disarm();
    assert_eq!(ends[0].standing(1).state, PeerState::Dead);
    assert_eq!(send(&mut ends, 0, 1), Err(SendError::PeerGone));
    let mut word = 0u64;
    let mut local = [0u8; 8];
    let remote = (&raw mut word).expose_provenance() as u64;
    let copy = Copy { local: local.as_mut_ptr(), remote, len: 8 };
    // SAFETY: 8 bytes are readable there.
    assert!(unsafe { ends[0].start(Access::Write, 1, None, &[copy]) }.is_err());
    // It was not armed, and yet does not sleep over it.
    assert!(!ends[2].arm());
    assert_eq!(take(&mut ends[2]), Some(1), "what it sent before");
    // It does nothing any more, but its thread does not hang either.
    assert_eq!(take(&mut ends[1]), None);
    assert_eq!(send(&mut ends, 1, 0), Err(SendError::PeerGone));
    ends[1].close();
    assert_eq!(ends[0].standing(1).state, PeerState::Dead);
    for _ in 0..3 {
        ends[1].arm();
        assert!(readable(&ends[1]));
        ends[1].disarm();
    }
    // The others continue.
    send(&mut ends, 0, 2).unwrap();
    assert_eq!(take(&mut ends[2]), Some(0));
}

#[test]
fn a_task_may_be_killed_with_a_packet_in_hand() {
    let mut ends = network(2, MemOptions::default());
    send(&mut ends, 0, 1).unwrap();
    let packet = ends[1].recv().unwrap();
    ends[0].handle().kill(1);
    ends[1].release(packet);
    assert_eq!(take(&mut ends[1]), None);
}

#[test]
fn dropped_without_close_is_dead() {
    let mut ends = network(2, MemOptions::default());
    drop(ends.pop());
    assert_eq!(ends[0].standing(1).state, PeerState::Dead);
    assert_eq!(send(&mut ends, 0, 1), Err(SendError::PeerGone));
}

#[test]
fn a_sender_that_waits_for_room_is_woken_by_the_peers_end() {
    for closed in [true, false] {
        let mut ends = network(2, MemOptions { capacity: 1, ..MemOptions::default() });
        send(&mut ends, 0, 1).unwrap();
        assert_eq!(send(&mut ends, 0, 1), Err(SendError::NoRoom));
        assert!(ends[0].arm() && !readable(&ends[0]));
        if closed {
            ends[1].close();
        } else {
            ends[0].handle().kill(1);
        }
        assert!(readable(&ends[0]));
        ends[0].disarm();
        assert_eq!(send(&mut ends, 0, 1), Err(SendError::PeerGone));
    }
}

#[test]
fn room_that_comes_before_arm_fails_arm_once() {
    let mut ends = network(2, MemOptions { capacity: 1, ..MemOptions::default() });
    send(&mut ends, 0, 1).unwrap();
    assert_eq!(send(&mut ends, 0, 1), Err(SendError::NoRoom));
    assert_eq!(take(&mut ends[1]), Some(0));
    assert!(!ends[0].arm());
    assert!(ends[0].arm());
    assert!(!readable(&ends[0]));
}

#[test]
fn thousands_of_tasks_fit_in_one_thread() {
    let mut ends = network(4_096, MemOptions::default());
    for src in 0..4_096 {
        send(&mut ends, src, (src + 1) % 4_096).unwrap();
    }
    for (task, end) in ends.iter_mut().enumerate() {
        assert_eq!(take(end), Some((task as Task + 4_095) % 4_096));
        // No descriptor is spent on a task that never sleeps.
        assert!(end.network.end(task as Task).event.get().is_none());
    }
}

fn send(ends: &mut [MemTransport], from: Task, to: Task) -> Result<(), SendError> {
    let packet = Outgoing {
        head: &[1; 8],
        first: Piece::of(b"some bytes"),
        second: Piece::EMPTY.into(),
        copy_limit: usize::MAX,
    };
    // SAFETY: the piece is a slice that outlives the call.
    unsafe { ends[from as usize].try_send(to, &packet) }.accepted().map(drop)
}

/// The sender of the next packet.
fn take(end: &mut MemTransport) -> Option<Task> {
    let packet = end.recv()?;
    let src = packet.src;
    assert_eq!((packet.head_len, packet.body_len), (8, 10));
    end.release(packet);
    Some(src)
}

fn readable(end: &MemTransport) -> bool {
    conformance::readable(end)
}

//! Another process takes the place of a task that has died.

use super::*;
use crate::transport::HEAD_MAX;
use crate::transport::conformance::Calls;
use crate::transport::testing::mem::NetworkHandle;
use crate::wire::rails::{Head, RailFrameKind};

/// The epoch of the task that survives.
const EPOCH: u64 = 9;

/// Task 1 has died, task 0 has let it rejoin, and the process that takes its place has not
/// looked yet: both.
fn replaced() -> (Rails<TestRail>, Rails<TestRail>, Arc<Network>) {
    let (mut ends, network) = unserved(2, 2, MemOptions::default());
    let former = ends.pop().expect("task 1");
    let mut survivor = ends.pop().expect("task 0");
    let handles: Vec<NetworkHandle> = former.rails.iter().map(|rail| rail.inner.handle()).collect();
    drop(former);
    survivor.part(1);
    survivor.rejoin(1, EPOCH).expect("can rejoin");
    let rails = handles.iter().enumerate().map(|(number, handle)| {
        let rail = TestRail::new(handle.restart(1, NO_EPOCH), 1, 2, number, &network);
        TestRail { replaces: true, ..rail }
    });
    let links = Box::new(TestLinks { network: network.clone(), task: 1 });
    let successor = Rails::new(rails.collect(), 1, 2, links, None).expect("rails");
    (survivor, successor, network)
}

/// Serves both until there is something to return.
fn serve_until<T>(
    ends: [&mut Rails<TestRail>; 2],
    what: &str,
    mut found: impl FnMut(&mut Rails<TestRail>, &mut Rails<TestRail>) -> Option<T>,
) -> T {
    let [first, second] = ends;
    let deadline = Instant::now() + test_deadline();
    loop {
        if let Some(found) = found(first, second) {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        first.serve();
        second.serve();
        std::thread::yield_now();
    }
}

/// Sends a packet when there is room.
fn send(end: &mut Rails<TestRail>, to: Task, head: &[u8; 8]) -> Option<()> {
    let packet = Outgoing { head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head is readable during the call.
    (unsafe { end.try_send(to, &packet) } == SendOutcome::Sent).then_some(())
}

/// The first byte of the next packet's head.
fn receive(end: &mut Rails<TestRail>) -> Option<u8> {
    let packet = end.recv()?;
    // SAFETY: the head is readable until the packet is released.
    let first = unsafe { *packet.head };
    end.release(packet);
    Some(first)
}

/// The survivor is ready first: its note is there before the successor has looked for
/// the first time.
#[test]
fn a_note_that_comes_before_the_peer_has_rejoined_is_no_contact() {
    let (mut survivor, mut successor, network) = replaced();
    let deadline = Instant::now() + test_deadline();
    let has_note = |rail: usize| !network.boxes[rail][1].lock().expect("a lock").arrived.is_empty();
    while !(has_note(0) && has_note(1)) {
        assert!(Instant::now() < deadline, "no note");
        survivor.serve();
        std::thread::yield_now();
    }
    assert_eq!(survivor.rejoined(), Some((1, NO_EPOCH)));
    let ends = [&mut survivor, &mut successor];
    let back = serve_until(ends, "it never rejoins", |_, successor| successor.rejoined());
    assert_eq!(back, (0, EPOCH));
    let ends = [&mut survivor, &mut successor];
    serve_until(ends, "no room", |survivor, successor| {
        send(survivor, 1, &[5; 8]).and_then(|()| send(successor, 0, &[6; 8]))
    });
    let ends = [&mut survivor, &mut successor];
    assert_eq!(serve_until(ends, "no packet", |_, successor| receive(successor)), 5);
    let ends = [&mut survivor, &mut successor];
    assert_eq!(serve_until(ends, "no packet", |survivor, _| receive(survivor)), 6);
    for end in [&survivor, &successor] {
        assert_eq!(end.tally().sent_again, 0, "a rail was left");
    }
}

/// Until it is named, what is known of the connection before is still in use.
#[test]
fn packets_of_a_peer_that_has_rejoined_wait_until_it_is_named() {
    let (mut survivor, mut successor, _network) = replaced();
    let ends = [&mut survivor, &mut successor];
    serve_until(ends, "no room", |survivor, _| send(survivor, 1, &[5; 8]));
    let ends = [&mut survivor, &mut successor];
    serve_until(ends, "no packet", |_, successor| {
        let kept = successor.ready.len() + successor.peer(0).map_or(0, |peer| peer.aside.len());
        (kept != 0).then_some(())
    });
    assert_eq!(receive(&mut successor), None);
    successor.want(Want::Hold(0, true));
    successor.want(Want::Hold(0, false));
    assert_eq!(receive(&mut successor), None);
    // They do not keep it awake: peers that have rejoined are asked for after a sleep.
    let deadline = Instant::now() + test_deadline();
    while !successor.arm() {
        assert!(Instant::now() < deadline, "it never sleeps");
        survivor.serve();
    }
    successor.disarm();
    assert_eq!(successor.rejoined(), Some((0, EPOCH)));
    assert_eq!(receive(&mut successor), Some(5));
}

/// What is to be done for the next connection begins with nothing.
#[test]
fn a_peer_from_which_this_task_has_parted_is_not_looked_after() {
    let (mut ends, _network) = unserved(2, 2, MemOptions::default());
    send(&mut ends[0], 1, &[1; 8]).expect("room");
    assert_eq!(ends[0].active, [1]);
    ends[0].part(1);
    assert!(ends[0].active.is_empty());
    ends[0].rejoin(1, EPOCH).expect("can rejoin");
    ends[0].look_after(1);
    assert_eq!(ends[0].active, [1], "once");
}

#[test]
fn a_packet_with_a_head_that_is_too_long_is_dropped() {
    let (mut ends, _network) = unserved(2, 2, MemOptions::default());
    let body = [0_u64; 16];
    for (head_len, taken) in [(HEAD_MAX + 8, false), (HEAD_MAX, true)] {
        let head = Head {
            kind: RailFrameKind::Packet,
            number: 0,
            accepted: 0,
            session: 0,
            head_len: head_len as u8,
        }
        .encode();
        let first = Piece { ptr: body.as_ptr().cast(), len: size_of_val(&body) };
        let packet = Outgoing { head: &head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
        // SAFETY: head and body are readable during the call.
        assert_eq!(unsafe { ends[1].rails[0].try_send(0, &packet) }, SendOutcome::Sent);
        let arrived = ends[0].recv();
        assert_eq!(arrived.as_ref().map(|packet| packet.head_len), taken.then_some(HEAD_MAX));
        arrived.into_iter().for_each(|packet| ends[0].release(packet));
    }
}

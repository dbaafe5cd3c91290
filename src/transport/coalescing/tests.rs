use super::*;
use crate::base::clock::ticks;
use crate::memory::bytes::Piece;
use crate::transport::conformance::Calls;
use crate::transport::conformance::{self, Served, served};
use crate::transport::testing::faults::{FaultPlan, Faulty};
use crate::transport::testing::mem::{MemOptions, MemTransport, network};
use crate::transport::{Endpoint, Outgoing, PeerState, Peers, SendOutcome, Task, Wakeup, Want};
use std::time::Duration;

type End = Coalescing<MemTransport>;

/// Ticks that are far more than those for which packets wait, and far fewer than a clock counts.
const FAR: u64 = 1 << 40;

fn always<T: Transport>(ends: Vec<T>) -> Vec<Coalescing<T>> {
    ends.into_iter().map(Coalescing::always).collect()
}

/// A task that is served from time to time, as in a job: a bundle that has found no room
/// is sent later.
fn always_served<T: Transport + 'static>(ends: Vec<T>) -> Vec<Served<Coalescing<T>>> {
    served(always(ends))
}

/// As jobs have it, and with packets that always wait.
#[test]
fn conforms() {
    let plain = MemOptions { remote: true, ..MemOptions::default() };
    let later = MemOptions { take: true, pending: true, ..plain };
    for options in [plain, later] {
        let as_in_jobs = |end| Coalescing::new(end, true, usize::MAX);
        let as_in_jobs = |tasks| network(tasks, options).into_iter().map(as_in_jobs).collect();
        conformance::served_suite(|tasks| served(as_in_jobs(tasks)));
        conformance::served_suite(|tasks| always_served(network(tasks, options)));
        conformance::has_left_when_dropped(&|tasks| always(network(tasks, options)));
    }
}

#[test]
fn conforms_with_keys() {
    let keyed = MemOptions { remote: true, keyed: true, pending: true, ..MemOptions::default() };
    conformance::served_suite(|tasks| always_served(network(tasks, keyed)));
    conformance::checks_keys(|tasks| always(network(tasks, keyed)));
}

/// Bundles find no room, are late, overtake each other, and are refused.
#[test]
fn conforms_when_it_is_disturbed() {
    for options in [
        MemOptions { capacity: 2, ..MemOptions::default() },
        MemOptions { lose: 31, ..MemOptions::default() },
    ] {
        conformance::disturbed(|tasks| always_served(network(tasks, options)));
    }
    for max_body in [1024, 2_043] {
        let options = MemOptions { capacity: 3, max_body, ..MemOptions::default() };
        conformance::disturbed(|tasks| always_served(network(tasks, options)));
    }
    for seed in [1, 0x5eed, u64::MAX] {
        let plan = FaultPlan::rough(seed);
        eprintln!("{plan}");
        conformance::disturbed(|tasks| {
            always_served(Faulty::join(network(tasks, MemOptions::default()), &plan))
        });
    }
}

/// Ends as jobs have them.
fn streams(tasks: Task) -> Vec<End> {
    let options = MemOptions { max_body: 33_000, ..MemOptions::default() };
    network(tasks, options).into_iter().map(|end| Coalescing::new(end, true, usize::MAX)).collect()
}

/// Ends whose next packets to task 0, and from there to task 1, wait.
fn ends(tasks: Task, options: MemOptions) -> Vec<End> {
    let mut ends = always(network(tasks, options));
    for (from, to) in (1..tasks).map(|from| (from, 0)).chain([(0, 1)]) {
        assert_eq!(send(&mut ends[from as usize], to, 99, 8), SendOutcome::Sent);
        assert_eq!(take(&mut ends[to as usize]), Some((99, 8)));
    }
    ends
}

fn pair(options: MemOptions) -> Vec<End> {
    ends(2, options)
}

fn send(end: &mut End, peer: Task, value: u64, len: usize) -> SendOutcome {
    let body = vec![value as u8; len];
    let head = value.to_le_bytes();
    let first = Piece::of(&body);
    let packet = Outgoing { head: &head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: all of it lives during the call.
    unsafe { end.try_send(peer, &packet) }
}

fn take(end: &mut End) -> Option<(u64, usize)> {
    let packet = end.recv()?;
    // SAFETY: heads have 8 bytes here, and both are readable until the release.
    let (head, body) = unsafe {
        let body: &[u8] =
            if packet.body_len == 0 { &[] } else { std::slice::from_raw_parts(packet.body, packet.body_len) };
        (packet.head.cast::<u64>().read(), body)
    };
    assert!(body.iter().all(|byte| *byte == head as u8));
    let len = body.len();
    end.release(packet);
    Some((head, len))
}

fn all(end: &mut End) -> Vec<u64> {
    let mut idle = 0;
    let mut all = Vec::new();
    while idle < 3 {
        match take(end) {
            Some((value, _)) => all.push(value),
            None => idle += 1,
        }
    }
    all
}

/// The rule of jobs: whatever the task looks for meanwhile, a packet that follows another one waits
/// until it is flushed.
#[test]
fn packets_wait_until_they_are_flushed() {
    let mut ends = pair(MemOptions::default());
    for value in 0..5 {
        assert_eq!(send(&mut ends[0], 1, value, 8), SendOutcome::Held);
        assert!(ends[0].recv().is_none());
    }
    assert!(!ends[0].settled() && ends[0].due().is_some());
    assert!(take(&mut ends[1]).is_none(), "nothing has left");
    ends[0].want(Want::Flush);
    assert!(ends[0].settled() && ends[0].due().is_none());
    assert_eq!(all(&mut ends[1]), [0, 1, 2, 3, 4]);
}

/// A packet waits only behind another one to the same peer that was sent just before.
#[test]
fn the_first_packet_to_a_peer_leaves_at_once() {
    let mut ends = streams(3);
    assert_eq!(send(&mut ends[0], 1, 1, 8), SendOutcome::Sent);
    assert_eq!(send(&mut ends[0], 2, 2, 8), SendOutcome::Sent);
    ends[0].outgoing.note_sent(2, 0);
    assert_eq!(send(&mut ends[0], 2, 3, 8), SendOutcome::Sent, "the one before was sent long ago");
    ends[0].outgoing.note_sent(2, ticks().wrapping_add(FAR));
    assert_eq!(send(&mut ends[0], 2, 4, 8), SendOutcome::Held, "a clock that is behind another");
    assert_eq!(send(&mut ends[0], 2, 5, 9000), SendOutcome::Sent, "too long, and behind what waits");
    assert_eq!(all(&mut ends[1]), [1]);
    assert_eq!(all(&mut ends[2]), [2, 3, 4, 5]);
}

/// A stream that does not end is sent in bundles.
#[test]
fn what_has_waited_for_long_leaves_with_the_next_packet() {
    let mut ends = streams(2);
    let mut held = 0;
    for value in 0..1000 {
        ends[0].outgoing.note_sent(1, ticks().wrapping_add(FAR));
        let sent = send(&mut ends[0], 1, value, 8);
        held = if sent == SendOutcome::Held { held + 1 } else { 0 };
        assert!(held < 64);
        let begun = ticks();
        while held != 0 && ticks() - begun < 20_000 {}
        assert!(held < 4, "four have waited for longer than packets wait");
        all(&mut ends[1]);
    }
}

#[test]
fn what_waits_leaves_before_a_sleep_and_when_the_thread_serves() {
    let mut ends = pair(MemOptions::default());
    send(&mut ends[0], 1, 1, 8);
    assert!(ends[0].arm());
    ends[0].disarm();
    assert_eq!(all(&mut ends[1]), [1]);
    send(&mut ends[0], 1, 2, 8);
    ends[0].serve();
    assert_eq!(all(&mut ends[1]), [2]);
    send(&mut ends[0], 1, 3, 8);
    ends[0].close();
    assert_eq!(all(&mut ends[1]), [3]);
}

#[test]
fn order_is_kept_with_packets_of_all_lengths_and_without_room() {
    let mut ends = pair(MemOptions { capacity: 3, max_body: 33_000, ..MemOptions::default() });
    let (mut sent, mut got) = (0, Vec::new());
    let lens = [0, 1, 8, 100, 2048, 8192, 8193, 64, 20_000, 0];
    while got.len() < 2000 {
        while sent < 2000 && send(&mut ends[0], 1, sent, lens[sent as usize % lens.len()]).accepted().is_ok()
        {
            sent += 1;
        }
        ends[0].want(Want::Flush);
        while let Some((value, len)) = take(&mut ends[1]) {
            assert_eq!(len, lens[value as usize % lens.len()]);
            got.push(value);
        }
    }
    assert!(got.iter().copied().eq(0..2000));
}

/// No packet of a peer that is held back is handed out, also of a bundle that was
/// begun; others are.
#[test]
fn a_bundle_is_held_back_in_the_middle() {
    let mut ends = ends(3, MemOptions::default());
    for value in 0..4 {
        send(&mut ends[1], 0, value, 8);
    }
    ends[1].serve();
    assert_eq!(take(&mut ends[0]), Some((0, 8)));
    ends[0].want(Want::Hold(1, true));
    for value in 10..13 {
        send(&mut ends[2], 0, value, 8);
    }
    ends[2].serve();
    assert_eq!(all(&mut ends[0]), [10, 11, 12]);
    assert!(ends[0].arm(), "what is held back does not keep a task awake");
    ends[0].disarm();
    ends[0].want(Want::Hold(1, false));
    assert!(!ends[0].arm());
    assert_eq!(all(&mut ends[0]), [1, 2, 3]);
}

/// Also when a bundle is over: otherwise a peer may seem silent that is not.
#[test]
fn the_progress_of_a_peer_grows_with_each_packet() {
    let mut ends = pair(MemOptions::default());
    let mut seen = ends[0].view(1).progress;
    for value in 0..8 {
        if value % 4 == 0 {
            (value..value + 4).for_each(|value| _ = send(&mut ends[1], 0, value, 8));
            ends[1].serve();
        }
        assert_eq!(take(&mut ends[0]), Some((value, 8)));
        let now = ends[0].view(1).progress;
        assert!(now > seen, "{now} after {seen}");
        seen = now;
    }
}

/// A bundle of which a packet is in hand is gone with its peer, and so is what waits for the peer.
#[test]
fn nothing_is_left_of_a_peer_that_has_parted() {
    let mut ends = pair(MemOptions::default());
    for value in 0..4 {
        send(&mut ends[1], 0, value, 8);
    }
    ends[1].serve();
    send(&mut ends[0], 1, 9, 8);
    let packet = ends[0].recv().expect("the first one");
    assert_eq!(send(&mut ends[0], 1, 11, 8), SendOutcome::Held);
    ends[0].part(1);
    ends[0].release(packet);
    assert!(ends[0].settled());
    assert_eq!(all(&mut ends[0]), []);
}

/// To recall or to part may take long, and what was sent before has left without bundles, too.
#[test]
fn what_waits_leaves_before_a_peer_is_given_up() {
    for (given_up, parts) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut ends = ends(3, MemOptions::default());
        send(&mut ends[0], 1, 1, 8);
        assert_eq!(send(&mut ends[0], 1, 2, 8), SendOutcome::Held);
        if parts {
            ends[0].part(given_up)
        } else {
            ends[0].recall(given_up)
        }
        assert!(ends[0].settled());
        assert_eq!(all(&mut ends[1]), [1, 2]);
    }
}

/// A peer without room that is given up does not keep what is sent to others, nor the end.
#[test]
fn what_waits_for_room_is_given_up_with_its_peer() {
    for ended in [false, true] {
        let mut ends = pair(MemOptions { capacity: 1, ..MemOptions::default() });
        send(&mut ends[0], 1, 1, 8);
        ends[0].serve();
        send(&mut ends[0], 1, 2, 8);
        send(&mut ends[0], 1, 3, 8);
        ends[0].serve();
        assert!(!ends[0].settled() && ends[0].due().is_none(), "there is no room");
        if ended {
            ends[0].close()
        } else {
            ends[0].recall(1)
        }
        assert!(ends[0].settled() && ends[0].due().is_none());
    }
}

/// A peer that has ended is seen as such at once, and what has come from it still arrives: as for a
/// transport without bundles.
#[test]
fn packets_of_a_peer_that_has_left_arrive() {
    let mut ends = pair(MemOptions::default());
    for value in 0..3 {
        send(&mut ends[1], 0, value, 8);
    }
    ends[1].close();
    let packet = ends[0].recv().expect("the first one");
    assert_eq!((ends[0].standing(1).state, ends[0].is_open(1)), (PeerState::Closed, false));
    ends[0].release(packet);
    assert_eq!(all(&mut ends[0]), [1, 2]);
}

/// While the bundle for one peer has no room, packets to others leave alone and at once, and it
/// keeps its place.
#[test]
fn a_bundle_without_room_does_not_delay_others() {
    let mut ends = ends(3, MemOptions { capacity: 1, max_body: 33_000, ..MemOptions::default() });
    assert_eq!(send(&mut ends[0], 1, 1, 8), SendOutcome::Held);
    ends[0].serve();
    assert_eq!(send(&mut ends[0], 1, 2, 8), SendOutcome::Held);
    assert_eq!(send(&mut ends[0], 1, 3, 8), SendOutcome::Held);
    ends[0].serve();
    assert!(!ends[0].settled() && ends[0].due().is_none(), "there is no room");
    for value in 10..15 {
        assert_eq!(send(&mut ends[0], 2, value, 8), SendOutcome::Sent);
        assert_eq!(take(&mut ends[2]), Some((value, 8)));
    }
    assert_eq!(send(&mut ends[0], 1, 4, 9000), SendOutcome::NoRoom, "it is behind those that wait");
    assert_eq!(take(&mut ends[1]), Some((1, 8)));
    assert!(ends[0].recv().is_none(), "a task that looks for packets finds the room");
    assert_eq!(all(&mut ends[1]), [2, 3]);
    assert_eq!(send(&mut ends[0], 1, 4, 9000), SendOutcome::Sent);
    assert_eq!(take(&mut ends[1]), Some((4, 9000)));
}

/// The bundle does not wait until there is nothing to receive.
#[test]
fn a_bundle_without_room_is_tried_again_while_packets_come() {
    let mut ends = ends(3, MemOptions { capacity: 1, ..MemOptions::default() });
    for values in [&[1][..], &[2, 3]] {
        for &value in values {
            assert_eq!(send(&mut ends[0], 1, value, 8), SendOutcome::Held);
        }
        ends[0].want(Want::Flush);
    }
    assert!(ends[0].due().is_none(), "there is no room");
    assert_eq!(take(&mut ends[1]), Some((1, 8)));
    for value in 10..26 {
        send(&mut ends[2], 0, value, 8);
        ends[2].want(Want::Flush);
        assert_eq!(take(&mut ends[0]), Some((value, 8)));
    }
    assert_eq!(all(&mut ends[1]), [2, 3]);
}

/// What is due is done between the packets of a bundle: their handlers may be slow.
#[test]
fn the_network_is_served_while_a_bundle_is_handed_out() {
    let mut ends = pair(MemOptions { lose: 3, ..MemOptions::default() });
    for value in 0..4 {
        assert_eq!(send(&mut ends[1], 0, value, 8), SendOutcome::Held);
    }
    ends[1].want(Want::Flush);
    assert_eq!(take(&mut ends[0]), Some((0, 8)));
    for value in [5, 6] {
        assert_eq!(send(&mut ends[0], 1, value, 8), SendOutcome::Held);
        ends[0].want(Want::Flush);
    }
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(all(&mut ends[1]), [5], "the other one was lost");
    assert_eq!(take(&mut ends[0]), Some((1, 8)));
    assert_eq!(all(&mut ends[1]), [6], "it was sent again");
}

/// A task that does not send bundles understands those of its peers.
#[test]
fn one_side_may_send_packets_alone() {
    let mut ends = network(2, MemOptions { capacity: 100, ..MemOptions::default() }).into_iter();
    let mut ends =
        [Coalescing::always(ends.next().unwrap()), Coalescing::new(ends.next().unwrap(), false, usize::MAX)];
    for value in 0..100 {
        assert!(send(&mut ends[0], 1, value, 8).accepted().is_ok());
        assert_eq!(send(&mut ends[1], 0, value, 8), SendOutcome::Sent);
    }
    ends[0].serve();
    for end in &mut ends {
        assert!(all(end).into_iter().eq(0..100));
    }
}

/// What no task sends changes nothing, and is counted.
#[test]
fn a_bundle_of_something_else_is_counted() {
    let bodies: [&[u64]; 4] = [&[], &[8], &[8 | 800 << 32, 1, 2], &[u64::MAX, 5, 6, 7]];
    let mut ends = network(2, MemOptions::default()).into_iter();
    let (mut from, mut to) = (ends.next().unwrap(), Coalescing::always(ends.next().unwrap()));
    for words in bodies {
        let first = Piece { ptr: words.as_ptr().cast(), len: size_of_val(words) };
        let head = &crate::wire::coalesced::HEAD;
        let packet = Outgoing { head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
        // SAFETY: all of it lives during the call.
        assert_eq!(unsafe { from.try_send(1, &packet) }, SendOutcome::Sent);
    }
    assert_eq!(all(&mut to), []);
    assert_eq!(to.tally().refused, 3, "one was empty");
}

//! What every transport has to do, tested once and run on each of them.
//!
//! [`suite`] tests a transport against the contract at the head of the `transport` module, line by
//! line. It needs nothing but a function that makes all ends of a job of `n` tasks in this process:
//!
//! ```ignore
//! #[test]
//! fn conforms() {
//!     conformance::suite(|tasks| my_transport::ends(tasks));
//! }
//! ```
//!
//! Seven files by theme: here what packets carry, in `partings` tasks that leave and rejoin, in
//! `events` sleeping and waking, in `later` what is reported later, in `signals` numbers that are
//! given without a packet, in `remote` remote access, in `storm` many threads at once.
//! Every wait has a deadline, and none of the checks depends on how fast anything runs. A transport
//! may refuse a packet without a reason visible here, hold packets back, or reorder them where its
//! limits allow it.

mod events;
mod later;
mod partings;
mod remote;
mod served;
mod signals;
mod storm;
mod support;

use std::collections::BTreeSet;

pub(crate) use self::partings::tells_its_end_to_a_peer_that_waits_for_it;
pub(crate) use self::remote::{checks_keys, reports_what_is_under_way_when_the_peer_leaves};
pub(crate) use self::served::{Served, served};
pub(crate) use self::support::{Calls, readable};
use self::support::{Deadline, HEAD_LENS, Ledger, Sample, expect, try_send};
use super::{HEAD_MAX, Look, MIN_BODY, Outgoing, PeerState, Piece, SendError, Task, Transport, Want, pad8};
use crate::base::rng::Rng;

/// Runs every check on the transport that `make` makes: element `i` of what it returns is the
/// end of task `i`.
pub(crate) fn suite<T: Transport>(make: impl Fn(u32) -> Vec<T>) {
    suite_with(&make, &make);
}

/// The suite, with the ends that `patient` makes where a task leaves amid the accesses of another
/// one, which must learn of it.
pub(crate) fn suite_with<T: Transport>(make: impl Fn(u32) -> Vec<T>, patient: impl Fn(u32) -> Vec<T>) {
    has_left_when_dropped(&make);
    connected_until_closed(&make);
    reports_what_is_under_way_when_the_peer_leaves(&patient);
    partings::suite(&make);
}

/// The suite for ends that a thread serves ([`served`]), and which so are not dropped:
/// [`has_left_when_dropped`] is left out.
pub(crate) fn served_suite<T: Transport>(make: impl Fn(u32) -> Vec<T>) {
    connected_until_closed(&make);
    reports_what_is_under_way_when_the_peer_leaves(&make);
    partings::suite(&make);
}

/// The suite without tasks that part, for a transport whose ends cannot do that inside one process.
pub(crate) fn connected<T: Transport>(make: impl Fn(u32) -> Vec<T>) {
    has_left_when_dropped(&make);
    connected_until_closed(&make);
    reports_what_is_under_way_when_the_peer_leaves(&make);
}

fn connected_until_closed<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    says_what_it_is(make);
    carries_every_size(make);
    carries_every_split(make);
    keeps_a_packet_in_place(make);
    delivers_each_packet_once(make);
    changes_nothing_without_room(make);
    reports_polling(make);
    shows_progress(make);
    closes(make);
    events::suite(make);
    later::suite(make);
    signals::suite(make);
    remote::suite(make);
    storm::suite(make);
}

/// Traffic and remote access, for a transport that is disturbed all the time: it need not
/// let a task sleep.
pub(crate) fn disturbed<T: Transport>(make: impl Fn(u32) -> Vec<T>) {
    keeps_a_packet_in_place(&make);
    delivers_each_packet_once(&make);
    changes_nothing_without_room(&make);
    events::disturbed(&make);
    remote::suite(&make);
    storm::disturbed(&make);
}

fn says_what_it_is<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    for tasks in [1, 2, 5] {
        let ends = make(tasks);
        assert_eq!(ends.len(), tasks as usize);
        for end in &ends {
            for peer in 0..tasks {
                assert_eq!(end.standing(peer).state, PeerState::Up);
            }
        }
        for (a, b) in (0..tasks).flat_map(|a| (0..tasks).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let limits = ends[a as usize].limits(b);
            assert!(!limits.name.is_empty());
            assert!(limits.max_body >= MIN_BODY, "{limits:?} is too little for a protocol");
            assert!(limits.window > 0 && limits.receive_buffer >= limits.max_body, "{limits:?}");
            assert_eq!(limits.max_body, ends[b as usize].limits(a).max_body, "both ends agree");
            assert_eq!(limits, ends[a as usize].limits(b), "and nothing changes them");
        }
    }
}

/// Lengths of body from 0 to the longest, in one piece and in two: every one up to three datagrams
/// of an Ethernet, near the longest, and near multiples of a page, where transports change their
/// ways.
fn carries_every_size<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let max = ends[0].limits(1).max_body;
    let mut rng = Rng::new(1);
    let mut id = 0;
    let mut len = 0;
    while len <= max {
        let head_len = HEAD_LENS[id as usize % HEAD_LENS.len()];
        for cut in [None, Some(rng.below(len as u64 / 8 + 1) as usize)] {
            id += 1;
            let sample = Sample::exact(id, head_len, len, cut);
            assert_eq!(sample.outgoing().body_len(), len);
            pass(&mut ends, 0, 1, &sample);
        }
        let each = len < 4_500 || (len + 256) % 4096 < 512 || len + 64 >= max;
        len += if each { 1 } else { 61 };
    }
}

/// Pieces that begin at every address modulo 8, all short lengths of both, all lengths of
/// head, null pieces.
fn carries_every_split<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let (mut id, mut rng) = (0, Rng::new(2));
    for first_len in 0..=17 {
        for second_len in 0..=17 {
            for head_len in HEAD_LENS {
                id += 1;
                let starts = [rng.below(8) as usize, rng.below(8) as usize];
                let sample = Sample::pieces(id, head_len, [first_len, second_len], starts);
                pass(&mut ends, 1, 0, &sample);
            }
        }
    }
    let max = ends[0].limits(1).max_body;
    for misaligned in 0..8 {
        for first_len in [0, 1, 7, 8, 9, max / 2 + misaligned, max - 16, max - 8] {
            id += 1;
            let lens = [first_len, max - pad8(first_len)];
            let sample = Sample::pieces(id, HEAD_MAX, lens, [misaligned, 7 - misaligned]);
            pass(&mut ends, 0, 1, &sample);
        }
    }
    let head = [7u8; 8];
    let empty =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    send_now(&mut ends[0], 1, &empty);
    expect(&mut ends[1], "a packet without a body", |packet| {
        assert_eq!((packet.src, packet.head_len, packet.body_len), (0, 8, 0));
    });
}

/// A packet stays as it is until it is released, whatever arrives meanwhile.
fn keeps_a_packet_in_place<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    let max = ends[0].limits(1).max_body;
    let mut id = 0;
    for round in 0..20 {
        id += 1;
        let kept = Sample::random(id, max);
        send_now(&mut ends[0], 1, &kept.outgoing());
        let (mut from_0, mut from_2) = (Vec::new(), Vec::new());
        let mut packet = support::next(&mut ends[1], &Deadline::new("the packet that is kept"));
        for _ in 0..200 {
            id += 1;
            let (src, list) = if id % 2 == 0 { (0, &mut from_0) } else { (2, &mut from_2) };
            let sample = Sample::random(id, max);
            if try_send(&mut ends[src], 1, &sample.outgoing()).is_ok() {
                list.push(sample);
            }
        }
        kept.check(&packet, 0);
        ends[1].release(packet);
        while !(from_0.is_empty() && from_2.is_empty()) {
            packet = support::next(&mut ends[1], &Deadline::new("the packets sent meanwhile"));
            let list = if packet.src == 0 { &mut from_0 } else { &mut from_2 };
            let id = Sample::id_of(&packet);
            let at = list.iter().position(|sample| sample.id == id);
            let at = at.unwrap_or_else(|| panic!("packet {id} was not sent, or came twice (round {round})"));
            list.remove(at).check(&packet, packet.src);
            ends[1].release(packet);
        }
    }
}

/// All tasks send to all, stepped in one thread by chance: each packet comes once, whole, and in
/// order where that is promised.
fn delivers_each_packet_once<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    for tasks in [2, 4] {
        const EACH: u64 = 400;
        let mut ends = make(tasks);
        let mut rng = Rng::new(tasks.into());
        let mut ledgers: Vec<_> = (0..tasks).map(|task| Ledger::new(task, tasks, EACH)).collect();
        let mut sent = vec![vec![0u64; tasks as usize]; tasks as usize];
        let deadline = Deadline::new("all packets of all tasks");
        while ledgers.iter().any(|ledger| ledger.missing() > 0) {
            let task = rng.below(tasks.into()) as usize;
            let peer = rng.below(tasks.into()) as usize;
            if rng.chance(0.5) {
                if peer != task && sent[task][peer] < EACH {
                    let max_body = ends[task].limits(peer as Task).max_body;
                    let sample = Sample::numbered(task as Task, peer as Task, sent[task][peer], max_body);
                    if try_send(&mut ends[task], peer as Task, &sample.outgoing()).is_ok() {
                        sent[task][peer] += 1;
                    }
                }
                continue;
            }
            let idle = ends[task].look(Look::All).is_nothing();
            if let Some(packet) = ends[task].recv() {
                assert!(!idle, "a packet has come, and the end was idle");
                ledgers[task].enter(&packet, &ends[task]);
                ends[task].release(packet);
                deadline.has_moved();
            }
            deadline.check();
        }
        nothing_more(&mut ends);
    }
}

/// A refused packet has no effect, and neither has refusing on the packets that were taken.
fn changes_nothing_without_room<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let max = ends[0].limits(1).max_body;
    let mut id = 0;
    for _ in 0..5 {
        let mut taken = BTreeSet::new();
        // A transport is full when it refuses many consecutive times: it may refuse once
        // without being full.
        let mut refused_in_a_row = 0;
        while refused_in_a_row < 100 && taken.len() < 20_000 {
            id += 1;
            match try_send(&mut ends[0], 1, &Sample::random(id, max).outgoing()) {
                Ok(()) => {
                    taken.insert(id);
                    refused_in_a_row = 0;
                }
                Err(SendError::NoRoom) => refused_in_a_row += 1,
                Err(SendError::PeerGone) => panic!("the peer is up"),
            }
        }
        assert!(!taken.is_empty());
        let deadline = Deadline::new("the packets that were taken");
        while !taken.is_empty() {
            let packet = support::next(&mut ends[1], &deadline);
            let id = Sample::id_of(&packet);
            assert!(taken.remove(&id), "packet {id} was refused, or came twice");
            Sample::random(id, max).check(&packet, 0);
            ends[1].release(packet);
        }
        nothing_more(&mut ends);
    }
    // There is room again.
    pass(&mut ends, 0, 1, &Sample::random(0, max));
}

/// Peers see whether a task polls, or the transport does not report it: then the task
/// counts as polling.
fn reports_polling<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    ends[1].want(Want::Polling(false, 0));
    let known = !ends[0].polls(1);
    for polling in [true, false, true, true, false, false] {
        ends[1].want(Want::Polling(polling, 0));
        ends[2].want(Want::Polling(!polling, 0));
        if known {
            assert_eq!((ends[0].polls(1), ends[0].polls(2)), (polling, !polling));
        } else {
            assert!(ends[0].polls(1) && ends[0].polls(2));
        }
    }
    ends[1].want(Want::Polling(true, 0));
    ends[1].look(Look::All);
    assert!(ends[0].polls(1));
    ends[1].look(Look::Polled(0));
    assert_eq!(ends[0].polls(1), !known, "a look says that the task has polled");
}

/// Packets in either direction are progress, and nothing else is.
fn shows_progress<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    let silent = ends[0].view(2).progress;
    let mut id = 0;
    for _ in 0..3 {
        let before = ends[0].view(1).progress;
        id += 1;
        pass(&mut ends, 1, 0, &Sample::exact(id, 8, 0, None));
        assert_ne!(ends[0].view(1).progress, before, "a packet has come");
        // A peer that takes packets may report many together.
        let before = ends[0].view(1).progress;
        while ends[0].view(1).progress == before {
            id += 1;
            assert!(id < 100_000, "the peer has taken {id} packets without a change of its progress count");
            pass(&mut ends, 0, 1, &Sample::exact(id, 8, 0, None));
        }
        // The peer may still report packets of before.
        let changes = |ends: &mut [T]| {
            let before = ends[0].view(1).progress;
            let _ = try_send(&mut ends[0], 2, &Sample::exact(id, 8, 0, None).outgoing());
            ends[0].view(1).progress != before
        };
        let changed = (0..100).take_while(|_| changes(&mut ends)).count();
        assert!(changed < 100, "packets to task 2 are counted as progress of task 1");
        assert_eq!(ends[0].view(2).progress, silent, "task 2 has made no progress");
    }
}

/// What was sent before the end still arrives; after it the peer is known to be gone, and
/// only that peer.
fn closes<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    let max = ends[0].limits(1).max_body;
    let mut left = BTreeSet::new();
    for id in 0..20 {
        if try_send(&mut ends[0], 1, &Sample::random(id, max).outgoing()).is_ok() {
            left.insert(id);
        }
    }
    ends[0].close();
    let deadline = Deadline::new("the packets sent before close");
    while !left.is_empty() {
        let packet = support::next(&mut ends[1], &deadline);
        let id = Sample::id_of(&packet);
        assert!(left.remove(&id), "packet {id} was refused, or came twice");
        Sample::random(id, max).check(&packet, 0);
        ends[1].release(packet);
    }
    for task in [1, 2] {
        let deadline = Deadline::new("the report that a peer has closed");
        while ends[task].standing(0).state != PeerState::Closed {
            deadline.check();
        }
        while try_send(&mut ends[task], 0, &Sample::random(1, max).outgoing()) != Err(SendError::PeerGone) {
            deadline.check();
        }
        assert_eq!(ends[task].standing(0).state, PeerState::Closed);
    }
    assert_eq!(ends[1].standing(2).state, PeerState::Up);
    pass(&mut ends, 1, 2, &Sample::random(2, max));
    pass(&mut ends, 2, 1, &Sample::random(3, max));
    // Ending twice is ending once, and an end that is simply dropped ends no other.
    ends[0].close();
    drop(ends.remove(0));
    assert_eq!(ends[0].standing(0).state, PeerState::Closed);
}

/// A task that drops its end without closing it has left as well: no peer may wait for it for ever.
pub(crate) fn has_left_when_dropped<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    let max = ends[0].limits(1).max_body;
    // One peer has seen it before, the other has not.
    pass(&mut ends, 2, 1, &Sample::random(1, max));
    drop(ends.pop());
    for end in &mut ends {
        let deadline = Deadline::new("the report that a peer has dropped its end");
        while end.standing(2).state == PeerState::Up {
            deadline.check();
        }
        while try_send(end, 2, &Sample::random(1, 1000).outgoing()) != Err(SendError::PeerGone) {
            deadline.check();
        }
        assert!(!end.is_open(2));
    }
    assert_eq!(ends[0].standing(1).state, PeerState::Up);
}

/// Sends one packet and takes it at the other side.
fn pass<T: Transport>(ends: &mut [T], from: Task, to: Task, sample: &Sample) {
    send_now(&mut ends[from as usize], to, &sample.outgoing());
    expect(&mut ends[to as usize], "the packet just sent", |packet| sample.check(packet, from));
}

/// Sends where there must be room.
fn send_now<T: Transport>(end: &mut T, to: Task, packet: &Outgoing<'_>) {
    let deadline = Deadline::new("room where nothing is on its way");
    while let Err(why) = try_send(end, to, packet) {
        assert_eq!(why, SendError::NoRoom);
        deadline.check();
    }
}

fn nothing_more<T: Transport>(ends: &mut [T]) {
    for (task, end) in ends.iter_mut().enumerate() {
        for _ in 0..100 {
            if let Some(packet) = end.recv() {
                panic!("task {task} got {packet:?}, which no task sent");
            }
        }
    }
}

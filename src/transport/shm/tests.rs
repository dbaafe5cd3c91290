//! Shared memory, tested against the contract of transports; the tasks are threads of this process.

use super::in_process::{ends, selective_ends, star};
use super::*;
use crate::base::asymmetric_barrier;
use crate::base::clock::ticks;
use crate::base::ring::FIRST_SLOT;
use crate::transport::conformance::Calls;
use crate::transport::{
    Access, Copy, Endpoint, Look, Outgoing, PeerState, Peers, Piece, SendOutcome, Wakeup, Want, conformance,
};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

mod connections;
mod door;
mod pages;
mod polled;

#[test]
fn conforms() {
    conformance::suite(ends);
    // Of which the suite does not say that it must be so.
    assert!(ends(2)[0].door(1).is_some_and(|door| door.signal(0)));
}

#[test]
fn conforms_under_faults() {
    for seed in 0..4 {
        let plan = crate::transport::testing::faults::FaultPlan::rough(seed);
        println!("{plan}");
        conformance::suite(|tasks| crate::transport::testing::faults::Faulty::join(ends(tasks), &plan));
    }
}

/// The conformance of tasks that stop polling each ring that they find empty.
#[test]
fn conforms_by_announcements() {
    conformance::suite(selective_ends);
    for seed in 0..4 {
        let plan = crate::transport::testing::faults::FaultPlan::rough(seed);
        println!("{plan}");
        conformance::suite(|tasks| {
            crate::transport::testing::faults::Faulty::join(selective_ends(tasks), &plan)
        });
    }
}

/// The clock of the peer's processor may be read later than this one's, and earlier.
#[test]
fn a_peer_that_has_polled_at_any_time_near_now_polls() {
    let mut ends = ends(2);
    let polls = |ends: &mut [ShmTransport], polling, at| {
        ends[1].want(Want::Polling(polling, at));
        ends[0].view(1).polls
    };
    let now = ticks();
    assert!(polls(&mut ends, true, now));
    // A thread that is interrupted looks when that time is long ago.
    let mut later = |_| polls(&mut ends, false, ticks().wrapping_add(segment::RECENT / 2));
    assert!((0..1000).any(&mut later), "a later time");
    assert!(!polls(&mut ends, false, now.wrapping_add(1 << 40)), "before a hibernation");
    assert!(!polls(&mut ends, false, now.wrapping_sub(2 * segment::RECENT)), "long ago");
}

fn refused(file: &OwnedFd, why: &str) {
    let error = Segment::open(file.as_fd(), Sizes::of(2, page()), 1, None).err().expect("an error");
    assert_eq!(error.code, LAPI_ERR_SHM_SETUP);
    assert!(error.detail.contains("task 1") && error.detail.contains(why), "{error}");
}

#[test]
fn a_file_of_another_size_or_without_seals_is_refused() {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    let (ring, _memory) = segment::RingMemory::create(Sizes::of(2, page()), None).expect("shared memory");
    refused(&ring, "bytes");
    let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a file");
    ftruncate(&file, Sizes::of(2, page()).segment as u64).expect("room");
    refused(&file, "not sealed");
}

#[test]
fn a_peer_whose_ring_is_corrupt_is_lost_and_no_other() {
    let mut ends = ends(3);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // The word of the first slot in the ring from task 1 to task 0: a packet that reaches beyond
    // the end of the ring.
    let word = 1_u64 | 1 << 32 | 0xffff << 35 | 4094 << 51;
    let memory = ends[0].peer(1).map(|peer| &peer.door.memory).expect("a connection");
    memory.receive.write_word(FIRST_SLOT, word);
    // SAFETY: the head lives during the call.
    unsafe {
        assert_eq!(ends[2].try_send(0, &packet), SendOutcome::Sent);
        let from_2 = (0..10).find_map(|_| ends[0].recv()).expect("the packet of task 2");
        assert_eq!(from_2.src, 2);
        ends[0].release(from_2);
        assert_eq!((ends[0].standing(1).state, ends[0].standing(2).state), (PeerState::Dead, PeerState::Up));
        assert_eq!(ends[0].try_send(1, &packet), SendOutcome::Gone);
        assert_eq!(ends[0].try_send(2, &packet), SendOutcome::Sent);
    }
}

/// What a round would do when no packet has arrived counts, too.
#[test]
fn a_task_is_idle_while_it_has_no_packet_and_nothing_else_to_do() {
    let mut ends = ends(3);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    assert!(ends.iter_mut().all(|end| end.look(Look::All).is_nothing()));
    for src in [1, 2] {
        // SAFETY: the head lives during the call.
        unsafe { assert_eq!(ends[src].try_send(0, &packet), SendOutcome::Sent) };
        assert!(!ends[0].look(Look::All).is_nothing() && ends[1].look(Look::All).is_nothing());
        let packet = ends[0].recv().expect("a packet");
        assert!(!ends[0].look(Look::All).is_nothing(), "it is not released");
        ends[0].release(packet);
        assert!(ends[0].look(Look::All).is_nothing());
    }
    ends[0].part(2);
    assert!(!ends[0].look(Look::All).is_nothing(), "memory is to be given back");
    assert!(ends[0].recv().is_none() && ends[0].look(Look::All).is_nothing());
    assert!(
        !selective_ends(2)[0].look(Look::All).is_nothing(),
        "one that does not poll every ring counts its rounds"
    );
}

/// A task that has parted from a peer gives its memory back although packets of another
/// peer never cease.
#[test]
fn the_memory_of_a_lost_peer_is_unmapped_under_constant_load() {
    let mut ends = ends(3);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    ends[0].part(2);
    assert_eq!(ends[0].left.len(), 1);
    for _ in 0..20 {
        // SAFETY: the head lives during the calls.
        unsafe {
            assert_eq!(ends[1].try_send(0, &packet), SendOutcome::Sent);
            assert_eq!(ends[1].try_send(0, &packet), SendOutcome::Sent);
        }
        let packet = ends[0].recv().expect("a packet");
        ends[0].release(packet);
    }
    assert!(ends[0].left.is_empty());
}

/// From the moment at which a task has parted from a peer, the peer does not access the task's
/// memory, though no report has reached it.
#[test]
fn memory_of_a_task_that_has_parted_is_not_accessed() {
    let mut ends = ends(3);
    let (mut there, mut here) = ([1_u8; 64], [2_u8; 64]);
    let copy = Copy { remote: there.as_mut_ptr() as u64, local: here.as_mut_ptr(), len: 64 };
    ends[0].part(1);
    assert_eq!(ends[1].standing(0).state, PeerState::Up, "nothing has reached it");
    for (access, expected) in [(Access::Write, 2), (Access::Read, 3)] {
        // SAFETY: both places live during the call.
        let refused = unsafe { ends[1].start(access, 0, None, &[copy]) }.expect_err("refused");
        assert_eq!(refused.kind(), std::io::ErrorKind::NotConnected);
        assert_ne!(there, here);
        // SAFETY: the same.
        unsafe { ends[2].start(access, 0, None, &[copy]) }.expect("the third task may");
        assert_eq!((there, here), ([expected; 64], [expected; 64]));
        there.fill(3);
    }
}

/// A channel says that its task lives, also where the kernel lets nothing of the task's memory be
/// read; a process that has become another program has none.
#[test]
fn a_task_that_has_parted_lives_as_long_as_its_channel() {
    let mut ends = ends(2);
    ends[0].peers.get_mut(1).expect("a connection").process.pid = 0;
    ends[1].part(0);
    assert_eq!(ends[0].standing(1).state, PeerState::Up);
    ends[1].parted.clear();
    assert_eq!(ends[0].standing(1).state, PeerState::Dead);
}

/// A task that finds no room and polls learns of room for many packets together; one that
/// sleeps, of the first.
#[test]
fn room_is_asked_for_before_a_sleep_only() {
    let mut ends = ends(2);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head lives during the call.
    while unsafe { ends[1].try_send(0, &packet) } == SendOutcome::Sent {}
    let take_one = |ends: &mut [ShmTransport]| {
        let packet = ends[0].recv().expect("a packet");
        ends[0].release(packet);
        ends[1].peer(0).map(|peer| peer.door.out.given_back())
    };
    assert_eq!(take_one(&mut ends), Some(0), "the sender polls");
    assert!(ends[1].arm());
    assert_eq!(take_one(&mut ends), Some(2), "the sender sleeps");
    ends[1].disarm();
}

/// What has waited for room may have been given up, for want of memory.
#[test]
fn room_that_is_not_used_keeps_no_task_from_sleeping() {
    let mut ends = ends(2);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    for _ in 0..2 {
        // SAFETY: the head lives during the call.
        while unsafe { ends[1].try_send(0, &packet) } == SendOutcome::Sent {}
        assert!(ends[1].arm());
        ends[1].disarm();
        while let Some(packet) = ends[0].recv() {
            ends[0].release(packet);
        }
        assert!(!ends[1].arm(), "there is room");
        assert!(ends[1].arm(), "it was not used");
        ends[1].disarm();
    }
}

#[test]
fn the_segment_cannot_be_cut_off() {
    let (file, _segment) = Segment::create(2).expect("shared memory");
    assert!(rustix::fs::ftruncate(&file, 0).is_err());
}

#[test]
fn peers_memory_is_mapped_where_room_was_kept() {
    let before: BTreeSet<String> = maps().collect();
    let mut all = ends(2);
    let ranges: Vec<String> =
        maps().filter(|line| !before.contains(line) && line.contains("memfd:lapi")).collect();
    // Each task maps its own segment, and of its peer a segment and two rings.
    assert!(ranges.len() >= 8 || cfg!(one_mapping), "{ranges:?}");
    all[0].part(1);
    all[1].part(0);
    assert!(all.iter_mut().all(|end| crate::transport::Endpoint::recv(end).is_none()));
    assert_eq!(all[0].standing(1).state, PeerState::Dead);
}

fn maps() -> impl Iterator<Item = String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    maps.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

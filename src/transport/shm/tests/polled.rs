//! Tasks with many peers, whose rings are not all polled.

use super::*;
use crate::base::rng::Rng;
use crate::transport::conformance::readable;
use crate::transport::shm::in_process::ends_of;
use crate::transport::shm::polled::Bounds;
use crate::transport::{Wakeup, Want};
use std::collections::VecDeque;

const PEERS: u32 = 40;

#[track_caller]
fn send(from: &mut ShmTransport, to: Task, word: u64) -> SendOutcome {
    let head = word.to_ne_bytes();
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head lives during the call.
    unsafe { from.try_send(to, &packet) }
}

fn take(end: &mut ShmTransport) -> Option<(Task, u64)> {
    let packet = end.recv()?;
    // SAFETY: the packet is not released yet, and its head is 8-byte aligned and as long as a word.
    let found = (packet.src, unsafe { packet.head.cast::<u64>().read() });
    end.release(packet);
    Some(found)
}

/// Each peer has sent something once, and then nothing any more: the rings of most of them
/// are not polled.
fn after_a_packet_of_each(tasks: u32) -> Vec<ShmTransport> {
    let mut ends = star(tasks);
    let (server, peers) = ends.split_first_mut().expect("a task");
    for peer in peers.iter_mut() {
        assert_eq!(send(peer, 0, 1), SendOutcome::Sent);
    }
    let senders: BTreeSet<_> = std::iter::from_fn(|| take(server)).map(|(src, _)| src).collect();
    assert!(senders.into_iter().eq(1..tasks));
    for _ in 0..1000 {
        assert_eq!(take(server), None);
    }
    ends
}

#[test]
fn an_empty_poll_costs_the_same_whatever_number_of_peers_have_sent() {
    let looks = [20, PEERS, 120].map(|tasks| after_a_packet_of_each(tasks)[0].polled.tasks().len());
    assert_eq!(looks, [looks[0]; 3]);
    assert!(looks[0] <= 16, "{looks:?}");
}

#[test]
fn tasks_with_few_peers_poll_all_their_rings() {
    for tasks in [2, 3, 17] {
        let ends = after_a_packet_of_each(tasks);
        assert_eq!(ends[0].polled.tasks().len(), tasks as usize - 1);
        assert!(!ends[0].polled.selective() && !ends[0].segment.doorbell().selective());
    }
}

#[test]
fn a_quiet_peer_is_received_from_and_its_ring_polled_again() {
    let mut ends = after_a_packet_of_each(PEERS);
    let polled = ends[0].polled.tasks().to_vec();
    let quiet = (1..PEERS).find(|task| !polled.contains(task)).expect("a quiet peer");
    assert_eq!(send(&mut ends[quiet as usize], 0, 7), SendOutcome::Sent);
    assert_eq!(send(&mut ends[quiet as usize], 0, 8), SendOutcome::Sent);
    assert_eq!([take(&mut ends[0]), take(&mut ends[0])], [Some((quiet, 7)), Some((quiet, 8))]);
    assert!(ends[0].polled.tasks().contains(&quiet));
    // Its ring is polled: it announces nothing.
    assert_eq!(send(&mut ends[quiet as usize], 0, 9), SendOutcome::Sent);
    assert!(!ends[0].segment.announcements().any());
    assert_eq!(take(&mut ends[0]), Some((quiet, 9)));
}

#[test]
fn a_quiet_peer_wakes_a_task_that_sleeps() {
    let mut ends = after_a_packet_of_each(PEERS);
    let polled = ends[0].polled.tasks().to_vec();
    let mut quiet = (1..PEERS).filter(|task| !polled.contains(task));
    let (one, other) = (quiet.next().expect("a quiet peer"), quiet.next().expect("another one"));
    assert!(ends[0].arm());
    assert_eq!(send(&mut ends[one as usize], 0, 7), SendOutcome::Sent);
    assert!(readable(&ends[0]));
    ends[0].disarm();
    assert!(!ends[0].arm(), "the packet was not taken");
    assert_eq!(take(&mut ends[0]), Some((one, 7)));
    assert_eq!(take(&mut ends[0]), None);
    assert!(ends[0].arm());
    assert!(!readable(&ends[0]));
    ends[0].disarm();
    // An announcement that came before.
    assert_eq!(send(&mut ends[other as usize], 0, 8), SendOutcome::Sent);
    assert!(!ends[0].arm());
    assert_eq!(take(&mut ends[0]), Some((other, 8)));
}

/// A job on many hosts has tasks whose numbers are higher than the number of those that can share
/// memory.
#[test]
fn tasks_with_high_numbers_share_memory_and_announce() {
    let mut ends = ends_of(Group::new(2048, vec![1500, 1501], 2));
    ends.iter_mut().for_each(|end| end.set_bounds(Bounds::NONE));
    let [one, other] = &mut ends[..] else { panic!("two ends") };
    for word in 0..100 {
        for _ in 0..10 {
            assert_eq!((take(one), take(other)), (None, None));
        }
        assert!(one.segment.doorbell().selective() && other.segment.doorbell().selective());
        assert_eq!(send(one, 1501, word), SendOutcome::Sent);
        assert_eq!(send(other, 1500, word), SendOutcome::Sent);
        assert!(one.segment.announcements().any() && other.segment.announcements().any());
        let mut taken = [None; 2];
        for _ in 0..10 {
            taken = [taken[0].or_else(|| take(one)), taken[1].or_else(|| take(other))];
        }
        assert_eq!(taken, [Some((1501, word)), Some((1500, word))]);
    }
}

#[test]
fn the_tasks_of_one_host_are_limited_and_determine_the_rings() {
    let (own, _site) = Own::create(1500, Group::new(2048, vec![1500, 1501], 2)).expect("shared memory");
    let end = ShmTransport::new(own, false, None, Box::new(NoConnector));
    assert_eq!(end.geometry.data, segment::geometry(2).data);
    let here: Vec<Task> = (1000..2025).collect();
    let refused = Own::create(1500, Group::new(2048, here, 1025)).err().expect("too many tasks");
    assert!(refused.detail.contains("1025 tasks on one machine"), "{refused}");
}

/// A peer that never stops sending does not keep the packet of a quiet one from being received.
#[test]
fn a_quiet_peer_is_received_from_under_constant_load() {
    let mut ends = after_a_packet_of_each(PEERS);
    let polled = ends[0].polled.tasks().to_vec();
    let quiet = (1..PEERS).find(|task| !polled.contains(task)).expect("a quiet peer");
    assert_eq!(send(&mut ends[quiet as usize], 0, 7), SendOutcome::Sent);
    let received = (0..1000).any(|_| {
        for _ in 0..2 {
            assert_eq!(send(&mut ends[polled[0] as usize], 0, 1), SendOutcome::Sent);
        }
        let taken = [take(&mut ends[0]), take(&mut ends[0])];
        taken.contains(&Some((quiet, 7)))
    });
    assert!(received);
}

/// Nor do peers that each send their next packet a little after the last one was taken: there is
/// always a packet of one of them, and never a long streak of one.
#[test]
fn a_quiet_peer_is_received_from_when_others_take_turns() {
    let mut ends = after_a_packet_of_each(PEERS);
    let polled = ends[0].polled.tasks().to_vec();
    let quiet = (1..PEERS).find(|task| !polled.contains(task)).expect("a quiet peer");
    let mut last = polled[0];
    for &busy in &polled[1..] {
        assert_eq!(send(&mut ends[busy as usize], 0, 1), SendOutcome::Sent);
    }
    assert_eq!(send(&mut ends[quiet as usize], 0, 7), SendOutcome::Sent);
    let received = (0..1000).any(|_| {
        let (src, word) = take(&mut ends[0]).expect("a packet");
        assert_eq!(send(&mut ends[last as usize], 0, 1), SendOutcome::Sent);
        last = src;
        (src, word) == (quiet, 7)
    });
    assert!(received);
}

#[test]
fn a_quiet_peer_may_be_held_and_may_leave() {
    let mut ends = after_a_packet_of_each(PEERS);
    let polled = ends[0].polled.tasks().to_vec();
    let quiet: Vec<_> = (1..PEERS).filter(|task| !polled.contains(task)).collect();
    let (held, leaver) = (quiet[0], quiet[1]);
    ends[0].want(Want::Hold(held, true));
    assert_eq!(send(&mut ends[held as usize], 0, 7), SendOutcome::Sent);
    assert_eq!(send(&mut ends[leaver as usize], 0, 8), SendOutcome::Sent);
    ends[0].part(leaver);
    assert_eq!(take(&mut ends[0]), None);
    assert!(ends[0].arm(), "what is held does not keep a task awake");
    ends[0].disarm();
    ends[0].want(Want::Hold(held, false));
    assert_eq!(take(&mut ends[0]), Some((held, 7)));
    // All others leave: nothing is counted twice.
    (1..PEERS).for_each(|task| ends[0].part(task));
    assert!(!ends[0].polled.selective() && ends[0].polled.tasks().is_empty());
    assert!(!ends[0].segment.doorbell().selective(), "others would announce each packet");
}

/// Tasks send, receive, sleep, hold and part in an order that a seed decides. Each packet arrives,
/// in order; a task that sleeps with a packet for it is woken.
#[test]
fn any_order_of_steps() {
    for seed in 0..40 {
        println!("seed {seed}");
        any_order(&mut Rng::new(seed));
    }
}

fn any_order(rng: &mut Rng) {
    let tasks = 2 + rng.below(10) as u32;
    let bounds = if rng.below(2) == 0 { Bounds::NONE } else { Bounds::of(3, 1, 5) };
    let mut ends = ends(tasks);
    ends.iter_mut().for_each(|end| end.set_bounds(bounds));
    let of = |from: Task, to: Task| (from * tasks + to) as usize;
    let mut on_the_way = vec![VecDeque::new(); (tasks * tasks) as usize];
    let mut armed = vec![false; tasks as usize];
    let mut held = BTreeSet::new();
    let mut word = 0;
    let task_of = |rng: &mut Rng| rng.below(u64::from(tasks)) as Task;
    for _ in 0..3000 {
        let (me, peer) = (task_of(rng), task_of(rng));
        let end = &mut ends[me as usize];
        let waiting = |on_the_way: &[VecDeque<u64>], held: &BTreeSet<_>| {
            (0..tasks).any(|from| !on_the_way[of(from, me)].is_empty() && !held.contains(&(me, from)))
        };
        match rng.below(8) {
            0..3 if me != peer => {
                word += 1;
                if send(end, peer, word) == SendOutcome::Sent {
                    on_the_way[of(me, peer)].push_back(word);
                }
            }
            3 if me != peer && !armed[me as usize] => {
                let hold = rng.below(2) == 0;
                end.want(Want::Hold(peer, hold));
                if hold {
                    held.insert((me, peer))
                } else {
                    held.remove(&(me, peer))
                };
            }
            4 if !armed[me as usize] => {
                armed[me as usize] = end.arm();
                assert!(
                    !(armed[me as usize] && waiting(&on_the_way, &held)),
                    "task {me} sleeps with a packet"
                );
            }
            _ => {
                if armed[me as usize] {
                    assert!(
                        readable(end) || !waiting(&on_the_way, &held),
                        "task {me} has a packet and was not woken"
                    );
                    end.disarm();
                    armed[me as usize] = false;
                }
                match take(end) {
                    Some((from, word)) => {
                        assert!(!held.contains(&(me, from)), "task {me} holds task {from}");
                        assert_eq!(on_the_way[of(from, me)].pop_front(), Some(word), "from {from} to {me}");
                    }
                    None => assert!(!waiting(&on_the_way, &held), "task {me} does not find its packets"),
                }
            }
        }
    }
    for me in 0..tasks {
        (0..tasks)
            .filter(|&peer| peer != me)
            .for_each(|peer| ends[me as usize].want(Want::Hold(peer, false)));
        while let Some((from, word)) = take(&mut ends[me as usize]) {
            assert_eq!(on_the_way[of(from, me)].pop_front(), Some(word), "from {from} to {me}");
        }
    }
    assert!(on_the_way.iter().all(VecDeque::is_empty));
}

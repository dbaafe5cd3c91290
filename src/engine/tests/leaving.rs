//! A task that leaves for a checkpoint, and comes back.

use super::calls::enter;
use super::job::{self, Habits};
use super::recovery::{all_is_well, look, settle};
use crate::api::checkpoint;
use crate::engine::context::Core;
use crate::engine::context::partings::Stage;
use crate::engine::progress::dispatcher;
use crate::memory::bytes::Piece;
use crate::proto::Transmit;
use crate::transport::{Outgoing, Task};
use crate::wire::packet::Head;

/// Sends packets for as long as there is room.
fn fill(core: &mut Core, peer: Task) {
    let head = Head::Ping.encode();
    let (first, second) = (Piece::EMPTY, Piece::EMPTY.into());
    let packet = Outgoing { head: head.as_bytes(), first, second, copy_limit: usize::MAX };
    // SAFETY: the packet has no body.
    while unsafe { core.out().1.send(peer, &packet) }.accepted().is_ok() {}
}

/// A peer would let the task leave, but has no room to say so: it refuses, and sends on; the task
/// asks again, and leaves.
#[test]
fn a_consent_that_finds_no_room_is_a_refusal() {
    let tasks = job::open(job::boxed(job::shm(2)), &Habits::STEPPED);
    let leaver = tasks[0].clone();
    let leaving = std::thread::spawn(move || checkpoint::before(&mut enter(&leaver)));
    let refused = loop {
        assert!(!leaving.is_finished(), "the task has left without an answer");
        let mut leaver = enter(&tasks[0]);
        if leaver.core().partings.stage() != Stage::Asking {
            drop(leaver);
            std::thread::yield_now();
            continue;
        }
        // It takes no packet until its lock is free.
        let mut peer = enter(&tasks[1]);
        fill(peer.core(), 0);
        dispatcher::turn(&mut peer);
        let core = peer.core();
        break core.partings.is_wanted(0) && !core.membership.is_held(0) && core.outbox.waits(0);
    };
    assert!(refused, "the peer has granted it, or its refusal does not wait for room");
    while !leaving.is_finished() {
        tasks[1].step();
    }
    leaving.join().expect("the thread has returned").expect("a task that may leave");
    checkpoint::after(&mut enter(&tasks[0])).expect("a task that has left");
    look(&tasks);
    settle(&tasks);
    for (from, to) in [(0, 1), (1, 0)] {
        all_is_well(&tasks, from, to);
    }
    assert!(tasks.iter().all(|task| task.reports().is_empty()));
    job::close(tasks);
}

//! Packets that no correct task sends, from a peer that is broken: they are reported, ask for no memory, and keep nothing.

use super::calls::enter;
use super::job::{self, Habits, Report, Task};
use crate::abi::{FETCH_AND_ADD, INT_ERR, LAPI_ERR_UNKNOWN};
use crate::base::bytes::Piece;
use crate::transport::{Outgoing, SendOutcome};
use crate::wire::packet::{Head, RMW_WIDE, VECTOR_PUT};
use std::sync::Arc;

const REPORT: Report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 0, src: 1 };

fn open() -> Vec<Arc<Task>> {
    job::open(job::mem(2, 8, false), &Habits::STEPPED)
}

/// Task 1 sends this packet to task 0, which handles it.
fn inject(tasks: &[Arc<Task>], head: &Head, body: &[u8]) {
    let head = head.encode();
    let packet = Outgoing {
        head: head.as_bytes(),
        first: Piece::of(body),
        second: Piece::EMPTY.into(),
        copy_limit: usize::MAX,
    };
    // SAFETY: the pieces live during the call, and a copy is made.
    let outcome = unsafe { enter(&tasks[1]).core().transport.try_send(0, &packet) };
    assert_eq!(outcome, SendOutcome::Sent);
    assert!(tasks[0].step());
}

/// What follows the malformed first packet of a message would wait for ever for the message to begin.
#[test]
fn data_of_a_message_that_was_refused_is_not_kept() {
    let tasks = open();
    let (tgt_cntr, cookie) = (0, 0);
    let am = Head::Am { id: 5, uhdr_len: 64, handler: 1, tgt_cntr, cookie, total: 100, atoms: false };
    let amv = Head::Amv { id: 6, uhdr_len: 64, handler: 1, shape: 0, tgt_cntr, cookie, total: 100 };
    for (number, (first, id)) in [(am, 5), (amv, 6)].into_iter().enumerate() {
        // The user header is said to be longer than the packet.
        inject(&tasks, &first, &[1; 8]);
        assert_eq!(tasks[0].reports(), vec![REPORT; number + 1]);
        inject(&tasks, &Head::Data { id, offset: 8 }, &[2; 40]);
        assert_eq!(enter(&tasks[0]).core().inbox.early_bytes(1), 0, "data of message {id}");
    }
    inject(&tasks, &Head::Data { id: 7, offset: 8 }, &[2; 40]);
    assert_ne!(enter(&tasks[0]).core().inbox.early_bytes(1), 0, "message 7 may still begin");
    job::close(tasks);
}

/// This process's memory that is in use, in bytes.
fn resident() -> usize {
    let numbers = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages: usize = numbers.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

/// The first packet of a vector's description says how long the description is.
#[test]
fn a_description_takes_memory_only_as_it_arrives() {
    let tasks = open();
    let before = resident();
    let (data, total, cookie, tgt_cntr) = (2, 8, 0, 0);
    for (id, words) in [(1, 100 << 20), (3, u32::MAX)] {
        inject(&tasks, &Head::Vector { id, op: VECTOR_PUT, words, data, total, cookie, tgt_cntr }, &[0; 64]);
    }
    // The other tests of this process use some memory, too.
    assert!(resident() < before + (700 << 20), "{} MiB more are in use", (resident() - before) >> 20);
    assert!(tasks[0].reports().iter().all(|report| *report == REPORT), "there may be no room of that length");
    job::close(tasks);
}

/// The origin's call has refused such an address; should it come nevertheless, the origin must not wait for ever.
#[test]
fn a_read_modify_write_that_is_refused_gets_a_reply() {
    let tasks = open();
    let words = [7_u64; 2];
    let var = words.as_ptr().addr() as u64 + 3;
    let head = Head::Rmw { op: FETCH_AND_ADD as u16 | RMW_WIDE, var, value: 1, swap: 0, cookie: 9 };
    inject(&tasks, &head, &[]);
    let mut held = enter(&tasks[1]);
    let packet = held.core().transport.recv().expect("a reply");
    // SAFETY: the packet is not released yet.
    let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
    assert_eq!(Head::decode(head), Some(Head::RmwReply { cookie: 9, value: 0 }));
    held.core().transport.release(packet);
    drop(held);
    assert_eq!((words, tasks[0].reports()), ([7; 2], vec![]));
    job::close(tasks);
}

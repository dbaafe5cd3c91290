//! The key of all memory of a peer.

use super::is_there;
use super::network::{preferring, strangers, unserved};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::transport::conformance::Calls;
use crate::transport::fabric::FabricTransport;
use crate::transport::fabric::single::SINGLES;
use crate::transport::presence::Presence;
use crate::transport::{
    Access, COPIED_MAX, Copy, Endpoint, Key, PeerState, Peers, Started, Want, Withdrawal,
};
use std::collections::BTreeSet;
use std::io;
use std::ptr::with_exposed_provenance;
use std::time::Instant;

const LEN: usize = 3 << 20;

/// The two tasks have heard of each other.
fn acquainted(provider: &str) -> Vec<FabricTransport> {
    let mut ends = unserved(2, &preferring(provider));
    await_that(&mut ends, "they hear of each other", |ends| {
        (0..2).all(|me| ends[me as usize].standing_key(1 - me).is_some())
    });
    ends
}

fn await_that(
    ends: &mut [FabricTransport],
    what: &str,
    mut holds: impl FnMut(&mut [FabricTransport]) -> bool,
) {
    let deadline = Instant::now() + test_deadline();
    while !holds(ends) {
        assert!(Instant::now() < deadline, "{what}: never");
        ends.iter_mut().for_each(|end| end.serve());
    }
}

/// Task 0 accesses memory of task 1, by this key.
fn access(
    ends: &mut [FabricTransport],
    access: Access,
    key: Key,
    here: &mut [u8],
    there: &mut [u8],
) -> io::Result<()> {
    let remote = there.as_mut_ptr().expose_provenance() as u64;
    let copy = Copy { local: here.as_mut_ptr(), remote, len: here.len().min(there.len()) };
    // SAFETY: both places live until the access is reported.
    match unsafe { ends[0].start(access, 1, Some(key), &[copy]) }? {
        Started::Done => Ok(()),
        Started::Pending(id) => {
            let mut outcome = None;
            await_that(ends, "the access is reported", |ends| {
                outcome = ends[0].accessed();
                outcome.is_some()
            });
            let (reported, outcome) = outcome.expect("a report");
            assert_eq!(reported, id);
            outcome
        }
    }
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..LEN).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// Without an answer it is not known whether the peer has registered anything.
#[test]
fn a_stranger_has_no_key() {
    if is_there("tcp;ofi_rxm") {
        let mut ends = strangers(2, &preferring("tcp;ofi_rxm"));
        assert_eq!(ends[0].standing_key(1), None);
        ends[0].want(Want::Connection(1));
        assert_eq!(ends[0].standing_key(1), None, "nothing has come from it");
        assert_eq!(ends[0].standing_key(0), None, "itself");
    }
}

#[test]
fn memory_that_was_not_registered_is_written_and_read() {
    for provider in ["tcp;ofi_rxm", "udp;ofi_rxd"] {
        if !is_there(provider) {
            continue;
        }
        let mut ends = acquainted(provider);
        let key = ends[0].standing_key(1).expect("a key");
        assert_ne!(Some(key), ends[1].standing_key(0), "each task has another key");
        let (mut here, mut there) = (pattern(1), vec![0; LEN]);
        access(&mut ends, Access::Write, key, &mut here, &mut there).expect("a write");
        assert!(here == there, "{provider}");
        there = pattern(2);
        access(&mut ends, Access::Read, key, &mut here, &mut there).expect("a read");
        assert!(here == there, "{provider}");
    }
}

/// What a task has ended with a peer holds for the key as well: the memory is not accessed, and the
/// next connection has another key.
#[test]
fn a_peer_that_was_given_up_accesses_nothing() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = acquainted("tcp;ofi_rxm");
    let former = ends[0].standing_key(1).expect("a key");
    ends[1].part(0);
    let (mut here, mut there) = (pattern(1), vec![9; LEN]);
    access(&mut ends, Access::Write, former, &mut here, &mut there)
        .expect_err("memory of a peer that has parted");
    assert!(there.iter().all(|byte| *byte == 9));
    assert_eq!(ends[0].standing_key(1), None, "an access was refused");
    // They meet again.
    ends[0].part(1);
    assert_eq!(ends[0].standing_key(1), None);
    rejoin(&mut ends);
    let key = ends[0].standing_key(1).expect("a key");
    assert_ne!(key, former);
    access(&mut ends, Access::Write, key, &mut here, &mut there).expect("a write");
    assert!(here == there);
    access(&mut ends, Access::Write, former, &mut here, &mut there)
        .expect_err("the key of the former connection");
}

/// A provider has begun to receive a write when its origin dies, and the task gives that up: then
/// nothing more is stored.
#[test]
fn the_rest_of_a_write_is_not_stored_later() {
    for provider in ["tcp;ofi_rxm", "udp;ofi_rxd"] {
        if !is_there(provider) {
            continue;
        }
        // On a busy machine a provider may store all of it at once.
        let is_cut_off = (0..50).any(|_| a_write_is_cut_off(provider));
        assert!(is_cut_off, "{provider}: all was stored before the end each time, and nothing was tested");
    }
}

/// Whether the origin has died before all was stored.
fn a_write_is_cut_off(provider: &str) -> bool {
    let mut ends = acquainted(provider);
    let key = ends[0].standing_key(1).expect("a key");
    let here = vec![1; 64 << 20];
    let mut there: Vec<u8> = vec![0; here.len()];
    let remote = there.as_mut_ptr().expose_provenance();
    let copy = Copy { local: here.as_ptr().cast_mut(), remote: remote as u64, len: here.len() };
    // SAFETY: both places live until the endpoints are closed.
    let started = unsafe { ends[0].start(Access::Write, 1, Some(key), &[copy]) };
    assert!(matches!(started, Ok(Started::Pending(_))));
    let stored = |at: usize| {
        let at: *const u8 = with_exposed_provenance(remote + at);
        // SAFETY: in the memory of `there`, which only the kernel and the provider
        // write meanwhile.
        unsafe { at.read_volatile() }
    };
    let all = || (0..here.len()).step_by(64).map(stored).filter(|byte| *byte == 1).count();
    await_that(&mut ends, "the first bytes are stored", |_| stored(0) == 1);
    drop(ends.remove(0));
    ends[0].part(0);
    let before = all();
    (0..2000).for_each(|_| ends[0].serve());
    assert_eq!(all(), before, "{provider}");
    // Closed before the memory goes.
    ends.clear();
    before < here.len() / 64
}

/// Of each length, as many at a time as there is room for.
#[test]
fn writes_are_reported_once() {
    for provider in ["tcp;ofi_rxm", "udp;ofi_rxd"] {
        if !is_there(provider) {
            continue;
        }
        let mut ends = acquainted(provider);
        let (mut here, mut there) = (pattern(1), pattern(2));
        let (local, remote) = (here.as_mut_ptr(), there.as_mut_ptr().expose_provenance() as u64);
        let copy = |at: usize, len| Copy { local: local.wrapping_add(at), remote: remote + at as u64, len };
        // SAFETY: both places live until the writes are reported.
        let start = |ends: &mut [FabricTransport], at, len, cookie| unsafe {
            ends[0].write(1, copy(at, len), cookie, false)
        };
        assert!(!start(&mut ends, 0, LEN, 0), "it is too long");
        for (round, len) in [1, 7, 64, 300, 4096, 16 << 10].into_iter().enumerate() {
            let place = |cookie: u64| cookie as usize * 20_000..cookie as usize * 20_000 + len;
            let mut under_way: BTreeSet<u64> =
                (0..).take_while(|&cookie| start(&mut ends, place(cookie).start, len, cookie)).collect();
            // The endpoint has less room for datagrams.
            let all = under_way.len();
            assert!(all == SINGLES || provider.starts_with("udp") && all > 0, "{provider}, {len}: {all}");
            assert_eq!(ends[0].accesses.unreported(), all);
            let mut reported = Vec::new();
            await_that(&mut ends, "all are reported", |ends| {
                reported.extend(std::iter::from_fn(|| ends[0].written()));
                reported.len() >= all
            });
            for ended in reported {
                assert!(under_way.remove(&ended.cookie) && ended.peer == 1, "round {round}: {ended:?}");
                assert!(ended.outcome.is_ok() && ended.copy.len == len);
                assert!(here[place(ended.cookie)] == there[place(ended.cookie)], "{provider}, {len}");
            }
            assert_eq!(ends[0].accesses.unreported(), 0);
        }
    }
}

/// The owner of the memory is stopped, and the origin gives it up: it does not wait for the same
/// writes again, and what becomes of them has no effect on the next connection.
#[test]
fn writes_that_were_given_up_are_not_awaited_again() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    for len in [8, 300_000] {
        let mut ends = acquainted("tcp;ofi_rxm");
        let (mut here, mut there) = (pattern(1), pattern(2));
        let remote = there.as_mut_ptr().expose_provenance() as u64;
        let copy = Copy { local: here.as_mut_ptr(), remote, len };
        for cookie in 0..3 {
            // SAFETY: both places live until the endpoints are closed.
            assert!(unsafe { ends[0].write(1, copy, cookie, false) });
        }
        let chunks = Copy { remote: remote + len as u64, local: here.as_mut_ptr().wrapping_add(len), len };
        let key = ends[0].standing_key(1);
        // SAFETY: both places live until the endpoints are closed.
        let started = unsafe { ends[0].start(Access::Write, 1, key, &[chunks]) };
        assert!(matches!(started, Ok(Started::Pending(_))));
        // Only this end runs.
        ends[0].part(1);
        assert_eq!(ends[0].accesses.unreported(), 0);
        assert_eq!(ends[0].accesses.of(1), [], "they are not awaited again");
        (0..2000).for_each(|_| ends.iter_mut().for_each(|end| end.serve()));
        assert!(ends[0].written().is_none());
        // They meet again.
        ends[1].part(0);
        rejoin(&mut ends);
        assert!(ends[0].standing_key(1).is_some());
        // SAFETY: both places live until the endpoints are closed.
        assert!(unsafe { ends[0].write(1, copy, 9, false) });
        let mut ended = None;
        await_that(&mut ends, "it is reported", |ends| {
            ended = ends[0].written();
            ended.is_some()
        });
        let ended = ended.expect("a report");
        assert!(ended.outcome.is_ok() && ended.cookie == 9 && here[..len] == there[..len]);
    }
}

/// A write that the origin has given up reaches the owner when that has withdrawn the key: the
/// provider ends the connection, and what was sent behind it to rejoin is lost.
#[test]
fn tasks_rejoin_although_a_late_write_ends_their_connection() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    for len in [100, 200_000] {
        let mut ends = acquainted("tcp;ofi_rxm");
        ends.iter_mut().for_each(|end| end.watch_others(vec![0, 1], vec![Process::own(); 2], Box::default()));
        let (mut here, mut there) = (pattern(1), vec![9; LEN]);
        let remote = there.as_mut_ptr().expose_provenance() as u64;
        let copy = Copy { local: here.as_mut_ptr(), remote, len };
        // SAFETY: both places live until the endpoints are closed.
        assert!(unsafe { ends[0].write(1, copy, 5, false) });
        ends[0].part(1);
        ends[0].rejoin(1, 5).expect("can rejoin");
        let key = ends[1].peer_mut(0).and_then(|peer| peer.own_key.take()).expect("a key");
        ends[1].withdraw(0, Withdrawal::Key(key));
        ends[1].part(0);
        rejoin(&mut ends);
        assert!(there.iter().all(|byte| *byte == 9));
    }
}

/// The two that have parted meet again, as far as they have not begun.
fn rejoin(ends: &mut [FabricTransport]) {
    for me in 0..2 {
        if ends[me as usize].peer(1 - me).is_some_and(|peer| peer.standing == Presence::Parted) {
            ends[me as usize].rejoin(1 - me, 5).expect("can rejoin");
        }
    }
    await_that(ends, "they rejoin", |ends| {
        ends.iter_mut().for_each(|end| _ = end.rejoined());
        (0..2).all(|me| ends[me as usize].standing(1 - me).state == PeerState::Up)
    });
    await_that(ends, "one learns of the other", |ends| {
        ends.iter_mut().for_each(|end| _ = end.rejoined());
        ends[1].want(Want::Attention(0));
        ends[0].standing_key(1).is_some()
    });
}

/// The owner has given the origin up: the copy fails, and none is started after it. One that is
/// recalled is not reported.
#[test]
fn single_copies_end_with_the_connection() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    for recalls in [false, true] {
        let mut ends = acquainted("tcp;ofi_rxm");
        let (mut here, mut there) = (pattern(1), vec![9; LEN]);
        let remote = there.as_mut_ptr().expose_provenance() as u64;
        let copy = Copy { local: here.as_mut_ptr(), remote, len: 100 };
        ends[1].part(0);
        // SAFETY: both places live until the copy is reported, or recalled.
        assert!(unsafe { ends[0].write(1, copy, 5, false) });
        if recalls {
            ends[0].part(1);
            (0..1000).for_each(|_| ends.iter_mut().for_each(|end| end.serve()));
            assert!(ends[0].written().is_none() && ends[0].accesses.unreported() == 0);
        } else {
            let mut ended = None;
            await_that(&mut ends, "it is reported", |ends| {
                ended = ends[0].written();
                ended.is_some()
            });
            let ended = ended.expect("a report");
            assert!(ended.outcome.is_err() && ended.cookie == 5 && ended.copy.len == 100);
        }
        // SAFETY: it is refused, and both places live until the end of the turn.
        assert!(!unsafe { ends[0].write(1, copy, 6, false) });
        assert!(there.iter().all(|byte| *byte == 9));
    }
}

/// What was there when the write began is stored, and returned when the write fails.
#[test]
fn data_that_is_copied_may_be_changed_at_once() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = acquainted("tcp;ofi_rxm");
    let (mut here, there) = (vec![0_u8; COPIED_MAX], pattern(2));
    let (local, remote) = (here.as_mut_ptr(), there.as_ptr().expose_provenance());
    let copy = |at: usize, len| Copy { local, remote: (remote + at) as u64, len };
    // SAFETY: the place here is readable, the one there lives until the endpoints are closed.
    let write = |ends: &mut [FabricTransport], copy, cookie| unsafe { ends[0].write(1, copy, cookie, true) };
    assert!(!write(&mut ends, copy(0, COPIED_MAX + 1), 0), "it is too long");
    for number in 0..SINGLES {
        here.fill(number as u8);
        assert!(write(&mut ends, copy(number * 200, 1 + number * 2), number as u64));
    }
    here.fill(0xee);
    assert!(!write(&mut ends, copy(0, 1), 0), "there is no room");
    let mut count = 0;
    await_that(&mut ends, "all are reported", |ends| {
        while let Some(ended) = ends[0].written() {
            assert!(ended.outcome.is_ok() && ended.data.is_none());
            count += 1;
        }
        count == SINGLES
    });
    for number in 0..SINGLES {
        let at: *const u8 = with_exposed_provenance(remote + number * 200);
        // SAFETY: in the memory of `there`, which is not written now.
        let stored = unsafe { std::slice::from_raw_parts(at, 1 + number * 2) };
        assert!(stored.iter().all(|byte| *byte == number as u8), "write {number}");
    }
    ends[1].part(0);
    here.fill(7);
    assert!(write(&mut ends, copy(0, 100), 5));
    here.fill(0xee);
    let mut failed = None;
    await_that(&mut ends, "it is reported", |ends| {
        failed = ends[0].written();
        failed.is_some()
    });
    let failed = failed.expect("a report");
    assert!(failed.outcome.is_err() && failed.data.as_deref() == Some(&[7; 100][..]));
}

//! Requests for memory that the target cannot have, as a task of 64 bits can make them to one of 32
//! bits: they are reported there, they write nowhere, and the origin waits for nothing.

use super::calls::{counter, enter, forever};
use super::failure::never;
use super::job::{self, BULK_MINIMUM, Habits, MAX_BODY, Report, Task};
use super::malformed::inject;
use super::recovery::{all_is_well, settle};
use crate::abi::{
    AM_ERR, FETCH_AND_ADD, INT_ERR, LAPI_ERR_DATA_LEN, LAPI_ERR_HDR_HNDLR_NULL, LAPI_ERR_UNKNOWN,
};
use crate::api::put_get;
use crate::dgsp::Layout;
use crate::dgsp::description::describe_layout;
use crate::engine::context::request::{Get, Hint, Layouts, Places, Put};
use crate::memory::bytes::MEMORY_END;
use crate::proto::outbox::SendDone;
use crate::wire::key::{Exposed, Key, Part};
use crate::wire::packet::{Head, RMW_WIDE};
use std::ptr::without_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::SeqCst;

/// What the target reports.
const AT_TARGET: Report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 1, src: 0 };
/// What the origin of a get reports.
const AT_ORIGIN: Report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 0, src: 1 };

/// Two tasks with packets alone, and two that reach each other's memory by keys.
fn jobs() -> [(Vec<Arc<Task>>, &'static str); 2] {
    let habits = Habits { copy_limit: 0, ..Habits::STEPPED };
    let packets = job::open(job::mem(2, 8, false), &habits);
    [(packets, "packets"), (job::open(job::asynchronous(2, job::KEYED), &habits), "keys")]
}

/// Two pieces of one length here, and two beyond the end of memory.
fn beyond(len: usize) -> Places {
    let here = forever(2 * len + 8);
    here.fill(7);
    let at = here.as_mut_ptr();
    let there = without_provenance_mut::<u8>(MEMORY_END as usize);
    let local = Layout::pieces([(at, len as u64), (at.wrapping_add(len + 8), len as u64)]);
    let remote = Layout::pieces([(there, len as u64), (there.wrapping_add(2 * len), len as u64)]);
    layouts(local, remote)
}

fn layouts(local: Layout, remote: Layout) -> Places {
    let description = describe_layout(&remote);
    Places::Layouts(Arc::new(Layouts { local: local.into(), remote: remote.into(), description }))
}

/// More bytes of a strided vector than the target's memory has, though each has a place in it.
fn too_many() -> Places {
    let at = forever(8).as_mut_ptr();
    let (block, count) = (1 << 40, 1 << 17);
    let local = Layout::strided(at, block, 0, count);
    let description = vec![1, at.expose_provenance() as u64, block, 0, count];
    let remote = Layout::strided(at, block, 0, count);
    Places::Layouts(Arc::new(Layouts { local: local.into(), remote: remote.into(), description }))
}

fn address(counter: &AtomicI32) -> usize {
    counter.as_ptr().expose_provenance()
}

/// All counters of a put move, as those of a message whose data is dropped do.
#[test]
fn a_put_ends_without_a_trace() {
    for (tasks, kind) in jobs() {
        for (number, len) in [8, MAX_BODY, BULK_MINIMUM].into_iter().enumerate() {
            let what = format!("2 pieces of {len} bytes, {kind}");
            let [tgt, org, cmpl] = [(); 3].map(|()| counter());
            let done = SendDone { org_cntr: address(org), user: true, ..SendDone::nothing(1) };
            let (tgt_cntr, cmpl_cntr) = (address(tgt) as u64, address(cmpl));
            let put = Put { tgt: 1, places: Places::EMPTY, tgt_cntr, cmpl_cntr, done, hint: Hint::None };
            // SAFETY: the memory at the origin lives for ever, and the other one does not exist.
            unsafe { put_get::put(&mut enter(&tasks[0]), &put.with(beyond(len))).expect("a put") };
            settle(&tasks);
            assert_eq!([tgt, org, cmpl].map(|counter| counter.load(SeqCst)), [1; 3], "{what}");
            assert_eq!(tasks[1].reports(), vec![AT_TARGET; number + 1], "{what}");
            assert_eq!(tasks[0].reports(), [], "{what}");
        }
        ends_well(tasks);
    }
}

/// What follows works, and a fence has nothing to wait for.
fn ends_well(tasks: Vec<Arc<Task>>) {
    assert!(enter(&tasks[0]).core().ops.is_empty());
    all_is_well(&tasks, 0, 1);
    job::close(tasks);
}

/// No counter of a get moves, because its data is not there.
#[test]
fn a_get_ends_with_an_error_at_its_origin() {
    for (tasks, kind) in jobs() {
        let far = Places::Contiguous { local: forever(64).as_mut_ptr().addr(), remote: MEMORY_END, len: 64 };
        let cases = [far, beyond(8), beyond(BULK_MINIMUM), too_many()];
        for (number, places) in cases.into_iter().enumerate() {
            if kind == "keys" && places.len() > 4 * BULK_MINIMUM {
                // No transport registers that many bytes.
                continue;
            }
            let [tgt, org] = [(); 2].map(|()| counter());
            let (tgt_cntr, org_cntr) = (address(tgt) as u64, address(org));
            let hint = Hint::None;
            let get = Get { tgt: 1, places, tgt_cntr, org_cntr, handler: None, parameter: 0, hint };
            // SAFETY: the memory at the origin lives for ever, and the other one does not exist.
            unsafe { put_get::get(&mut enter(&tasks[0]), &get).expect("a get") };
            settle(&tasks);
            assert_eq!([tgt, org].map(|counter| counter.load(SeqCst)), [0; 2], "case {number}, {kind}");
            assert_eq!(tasks[1].reports(), vec![AT_TARGET; number + 1], "case {number}, {kind}");
            assert_eq!(tasks[0].reports(), vec![AT_ORIGIN; number + 1], "case {number}, {kind}");
        }
        ends_well(tasks);
    }
}

/// The header handler is not asked for so much memory.
#[test]
fn a_message_of_more_than_all_memory_is_buried() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::STEPPED);
    let (handler, total) = (never as *const () as u64, MEMORY_END + 1);
    let (uhdr_len, tgt_cntr, cookie, id) = (0, 0, 0, 0);
    let mut words = Vec::new();
    Part { from: 0, len: 8, exposed: Exposed { addr: 64, key: Key { key: 1, offset: 0 } } }
        .append_to(&mut words);
    let part: &[u8] = bytemuck::cast_slice(&words);
    let (shape, atoms, more) = (None, false, false);
    let heads = [
        (Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total, atoms }, &[1; 64][..]),
        (Head::Amv { id, uhdr_len, handler, shape: 0, tgt_cntr, cookie, total }, &[1; 64]),
        (Head::RequestToSend { id, uhdr_len, handler, addr: 64, total, cookie, tgt_cntr }, &[]),
        (Head::PartsToSend { id, uhdr_len, handler, shape, total, cookie, tgt_cntr, atoms, more }, part),
    ];
    for (number, (head, body)) in heads.iter().enumerate() {
        inject(&tasks, head, body);
        let report = Report { code: LAPI_ERR_DATA_LEN, kind: AM_ERR, task: 0, src: 1 };
        assert_eq!(tasks[0].reports(), vec![report; number + 1], "{head:?}");
    }
    job::close(tasks);
}

/// A put of one packet, a read-modify-write, and counters.
#[test]
fn words_that_cannot_be_there_are_not_touched() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::STEPPED);
    let (addr, tgt_cntr, cookie, id) = (MEMORY_END, 0, 0, 0);
    inject(&tasks, &Head::Put { id, addr, tgt_cntr, cookie, total: 8 }, &[1; 8]);
    let op = FETCH_AND_ADD as u16 | RMW_WIDE;
    inject(&tasks, &Head::Rmw { op, var: addr, value: 1, swap: 0, cookie }, &[]);
    assert_eq!(tasks[0].reports(), vec![AT_ORIGIN]);
    // The data arrives, or leaves, all the same.
    let memory = forever(8);
    let addr = memory.as_mut_ptr().expose_provenance() as u64;
    let tgt_cntr = MEMORY_END + 8;
    inject(&tasks, &Head::Put { id: 1, addr, tgt_cntr, cookie, total: 8 }, &[1; 8]);
    assert_eq!((&*memory, tasks[0].reports().len()), (&[1; 8][..], 2));
    let (uhdr_len, total, atoms) = (0, 0, false);
    inject(&tasks, &Head::Get { addr, len: 8, cookie: 1, tgt_cntr }, &[]);
    assert_eq!(tasks[0].reports(), vec![AT_ORIGIN; 3]);
    // So does a message, but its handler cannot be there either.
    let handler = MEMORY_END + 64;
    inject(&tasks, &Head::Am { id: 2, uhdr_len, handler, tgt_cntr, cookie, total, atoms }, &[]);
    let codes: Vec<_> = tasks[0].reports().iter().skip(3).map(|report| report.code).collect();
    assert_eq!(codes, [LAPI_ERR_HDR_HNDLR_NULL, LAPI_ERR_UNKNOWN]);
    job::close(tasks);
}

/// A task that names such memory of its own has no other way than the others.
#[test]
fn a_task_that_asks_itself_for_what_it_cannot_have_is_told_so() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::STEPPED);
    let here = forever(64);
    here[0] = 7;
    let (local, there) = (here.as_mut_ptr().expose_provenance(), here[32..].as_mut_ptr().expose_provenance());
    let itself = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 0, src: 0 };
    let tgt_cntr = MEMORY_END + 8;
    let [org, cmpl] = [(); 2].map(|()| counter());
    let done = SendDone { org_cntr: address(org), user: true, ..SendDone::nothing(0) };
    let put = |remote, len| Put {
        tgt: 0,
        places: Places::Contiguous { local, remote, len },
        tgt_cntr,
        cmpl_cntr: address(cmpl),
        done,
        hint: Hint::None,
    };
    for (number, len) in [8, 32].into_iter().enumerate() {
        // SAFETY: the memory lives for ever.
        unsafe { put_get::put(&mut enter(&tasks[0]), &put(there as u64, len)).expect("a put") };
        assert_eq!([org, cmpl].map(|counter| counter.load(SeqCst)), [number as i32 + 1; 2]);
        assert_eq!(tasks[0].reports(), vec![itself; number + 1]);
    }
    // SAFETY: what is not there is not touched.
    unsafe { put_get::put(&mut enter(&tasks[0]), &put(MEMORY_END, 8)).expect("a put") };
    assert_eq!([org, cmpl].map(|counter| counter.load(SeqCst)), [3; 2]);
    let far = Places::Contiguous { local, remote: MEMORY_END, len: 8 };
    let places = Places::Contiguous { local: there, remote: local as u64, len: 8 };
    let (org_cntr, hint) = (address(org), Hint::None);
    for places in [far, places] {
        let get = Get { tgt: 0, places, tgt_cntr, org_cntr, handler: None, parameter: 0, hint };
        // SAFETY: what is not there is not touched.
        unsafe { put_get::get(&mut enter(&tasks[0]), &get).expect("a get") };
    }
    assert_eq!((org.load(SeqCst), here[32], tasks[0].reports()), (4, 7, vec![itself; 5]));
    job::close(tasks);
}

/// Packets far behind the beginning of a put, whose address and theirs together have no room.
#[test]
fn a_put_of_more_than_all_memory_writes_nowhere() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::STEPPED);
    let memory = forever(64);
    let addr = memory.as_mut_ptr().expose_provenance() as u64;
    let (total, tgt_cntr, cookie, id) = (MEMORY_END, 0, 0, 0);
    inject(&tasks, &Head::Put { id, addr, tgt_cntr, cookie, total }, &[1; 8]);
    inject(&tasks, &Head::Data { id, offset: 8 }, &[1; 8]);
    assert_eq!((&*memory, tasks[0].reports()), (&[0; 64][..], vec![AT_ORIGIN]));
    job::close(tasks);
}

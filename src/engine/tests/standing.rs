//! Puts by the key of all memory of the target: the target takes no part, and still every counter,
//! every fence and the statistics are exact; no memory is written after the end of a connection.

use super::calls::{Extras, counter, enter, forever, put};
use super::job::{self, BULK_MINIMUM, Task};
use super::keyed::{End, packets_of, two};
use super::recovery::settle;
use crate::abi::LAPI_RECV_COMPLETE;
use crate::engine::context::request::{Hint, Preference};
use crate::engine::progress::{fence, reports};
use crate::transport::testing::mem::MemOptions;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const LEN: usize = BULK_MINIMUM;

fn filled(seed: usize) -> &'static mut [u8] {
    let data = forever(LEN);
    data.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7 + at / 251 + seed) as u8 | 1);
    data
}

/// Bytes that a task has sent to the others, and received.
fn bytes_of(task: &Arc<Task>) -> (u64, u64) {
    let mut held = enter(task);
    let path = &held.core().stats.peers;
    (path.bytes_sent, path.bytes_received)
}

#[test]
fn a_put_without_a_target_counter_needs_nothing_of_the_target() {
    for pending in [false, true] {
        let (tasks, handle) = two(MemOptions { pending, ..job::STANDING }, Preference::Auto);
        let (org, cmpl) = (counter(), counter());
        let puts: Vec<_> = (0..100).map(|seed| (filled(seed), forever(LEN))).collect();
        let mut there = Vec::new();
        for (at, (data, to)) in puts.into_iter().enumerate() {
            let cmpl = (at % 2 == 0).then_some(cmpl);
            let extras = Extras { org_cntr: Some(org), cmpl_cntr: cmpl, reported: at, ..Extras::default() };
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            there.push((data, to));
        }
        // Only the origin makes progress.
        while org.load(Ordering::SeqCst) != 100 {
            tasks[0].step();
        }
        assert_eq!(cmpl.load(Ordering::SeqCst), 50);
        assert!(there.iter().all(|(data, to)| data == to));
        assert_eq!((handle.registrations(), packets_of(&tasks[1])), (0, 0));
        assert!(enter(&tasks[0]).core().ops.is_empty());
        job::close(tasks);
    }
}

#[test]
fn a_put_with_a_target_counter_raises_it() {
    let (tasks, _) = two(job::STANDING, Preference::Auto);
    let [tgt, org, cmpl] = [(); 3].map(|()| counter());
    let (data, to) = (&*filled(1), forever(LEN));
    let extras =
        Extras { tgt_cntr: Some(tgt), org_cntr: Some(org), cmpl_cntr: Some(cmpl), ..Extras::default() };
    put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
    settle(&tasks);
    assert_eq!([tgt, org, cmpl].map(|counter| counter.load(Ordering::SeqCst)), [1, 1, 1]);
    assert!(to == data);
    job::close(tasks);
}

/// A program that looks for receptions, and calls nothing else, finds those of puts
/// without counters.
#[test]
fn the_target_hears_of_each_reception() {
    for pending in [false, true] {
        let (tasks, _) = two(MemOptions { pending, ..job::STANDING }, Preference::Auto);
        let (data, to) = (&*filled(1), forever(LEN));
        for round in 1..4 {
            put(&tasks[0], 1, to.as_mut_ptr(), data, Extras::default()).expect("a put");
            settle(&tasks);
            assert!(to == data);
            assert_eq!(bytes_of(&tasks[1]).1, round * LEN as u64, "{pending}");
            let unreported = enter(&tasks[1]).core().take_completed();
            assert_ne!(unreported & LAPI_RECV_COMPLETE, 0, "round {round}, {pending}");
        }
        job::close(tasks);
    }
}

/// After a fence the data is there, and the target has counted it.
#[test]
fn a_fence_covers_what_the_target_does_not_know_of() {
    for (pending, accesses) in [(false, u64::MAX), (true, u64::MAX), (true, 3), (false, 0)] {
        let (tasks, _) = two(MemOptions { pending, accesses, ..job::STANDING }, Preference::Auto);
        let all: Vec<_> = (0..10).map(|seed| (&*filled(seed), forever(LEN))).collect();
        let mut all: Vec<_> = all.into_iter().collect();
        for (data, to) in &mut all {
            put(&tasks[0], 1, to.as_mut_ptr(), data, Extras::default()).expect("a put");
        }
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let target = scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    tasks[1].step();
                    std::thread::yield_now();
                }
            });
            fence::fence(&mut enter(&tasks[0])).expect("a fence");
            assert!(all.iter().all(|(data, to)| data == to), "{pending}, {accesses}");
            over.store(true, Ordering::SeqCst);
            target.join().expect("the target");
        });
        let bytes = (10 * LEN) as u64;
        assert_eq!((bytes_of(&tasks[0]).0, bytes_of(&tasks[1]).1), (bytes, bytes), "{pending}, {accesses}");
        job::close(tasks);
    }
}

/// Accesses fail from any moment on: the data goes in packets.
#[test]
fn data_arrives_when_accesses_fail() {
    for accesses in 0..6 {
        for pending in [false, true] {
            let (tasks, _) = two(MemOptions { accesses, pending, ..job::STANDING }, Preference::Auto);
            let [org, cmpl] = [(); 2].map(|()| counter());
            let extras = Extras { org_cntr: Some(org), cmpl_cntr: Some(cmpl), ..Extras::default() };
            let mut all: Vec<_> = (0..8).map(|seed| (&*filled(seed), forever(LEN))).collect();
            for (data, to) in &mut all {
                put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            }
            settle(&tasks);
            assert_eq!([org, cmpl].map(|counter| counter.load(Ordering::SeqCst)), [8, 8]);
            assert!(all.iter().all(|(data, to)| data == to), "{accesses}, {pending}");
            let refused = enter(&tasks[0]).core().stats.peers.refused;
            assert_eq!(refused, 8 - accesses, "{accesses}, {pending}");
            job::close(tasks);
        }
    }
}

/// One task is given up, or dies: the memory of the other is not written any more.
#[test]
fn no_memory_is_written_after_the_end_of_a_connection() {
    for end in End::ALL {
        for (steps, pending) in (0..4).flat_map(|steps| [(steps, false), (steps, true)]) {
            let (tasks, handle) = two(MemOptions { pending, ..job::STANDING }, Preference::Auto);
            let (data, to) = (&*filled(steps), forever(LEN));
            let extras =
                Extras { org_cntr: Some(counter()), reported: 1, hint: Hint::Bulk, ..Extras::default() };
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            (0..steps).for_each(|step| _ = tasks[(step + 1) % 2].step());
            end.happens(&tasks, &handle);
            if end.survivor() == 1 {
                to.fill(0x99);
            }
            (0..60).for_each(|step| _ = tasks[step % 2].step());
            let what = format!("{end:?} after {steps}, {pending}");
            assert!(end.survivor() == 0 || to.iter().all(|&byte| byte == 0x99), "{what}");
            if end.is_overcome(&tasks, &handle, &[1], &what) {
                // They access each other's memory as before.
                let before = packets_of(&tasks[1]);
                let (data, to, org) = (&*filled(7), forever(LEN), counter());
                let extras = Extras { org_cntr: Some(org), ..Extras::default() };
                put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
                while org.load(Ordering::SeqCst) != 1 {
                    tasks[0].step();
                }
                assert!(to == data && packets_of(&tasks[1]) == before, "{what}");
            }
            job::close(tasks);
        }
    }
}

/// A put of few bytes whose completion the program waits for, and no other counter, is a
/// write. With another one the data of a packet is the program's at once, and the target
/// raises its counter.
#[test]
fn a_short_put_is_a_write_when_only_its_completion_is_awaited() {
    for (pending, len) in [(false, 1), (true, 1), (true, 100), (false, LEN / 2)] {
        let (tasks, _) = two(MemOptions { pending, ..job::STANDING }, Preference::Auto);
        let [tgt, org, cmpl] = [(); 3].map(|()| counter());
        let mut there: Vec<_> = (0..20).map(|seed| (&filled(seed)[..len], forever(len))).collect();
        for (data, to) in &mut there {
            let extras = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            if !pending {
                assert_eq!(
                    enter(&tasks[0]).core().one_sided.under_way(),
                    0,
                    "it is complete when the call returns"
                );
            }
            if cmpl.load(Ordering::SeqCst) == 4 {
                // More than the transport has room for follow.
                assert_eq!(packets_of(&tasks[1]), 0);
            }
        }
        settle(&tasks);
        assert_eq!(cmpl.load(Ordering::SeqCst), 20);
        assert!(there.iter().all(|(data, to)| data == to), "{len} bytes, {pending}");
        assert_eq!(bytes_of(&tasks[1]).1, 20 * len as u64);
        assert_ne!(enter(&tasks[1]).core().take_completed() & LAPI_RECV_COMPLETE, 0);
        let only = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
        let (data, to) = (&filled(3)[..8], forever(8));
        let others = [
            Extras { tgt_cntr: Some(tgt), ..only },
            Extras { org_cntr: Some(org), ..only },
            Extras { reported: 7, ..only },
            Extras { hint: Hint::Packets, ..only },
        ];
        for extras in others {
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            assert_eq!(enter(&tasks[0]).core().one_sided.under_way(), 0);
            settle(&tasks);
            assert!(to == data);
            to.fill(0);
        }
        put(&tasks[0], 1, to.as_mut_ptr(), &data[..0], only).expect("a put");
        settle(&tasks);
        assert_eq!([tgt, org, cmpl].map(|counter| counter.load(Ordering::SeqCst)), [1, 1, 25]);
        job::close(tasks);
    }
}

/// The origin is given up, or gives the target up, while its writes are under way.
#[test]
fn short_puts_end_with_the_connection() {
    for end in End::ALL {
        for steps in 0..4 {
            let (tasks, handle) = two(job::STANDING, Preference::Auto);
            let (data, to, cmpl) = (&filled(steps)[..64], forever(64), counter());
            let extras = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            (0..steps).for_each(|step| _ = tasks[(step + 1) % 2].step());
            end.happens(&tasks, &handle);
            if end.survivor() == 1 {
                to.fill(0x99);
            }
            (0..60).for_each(|step| _ = tasks[step % 2].step());
            let what = format!("{end:?} after {steps}");
            assert!(end.survivor() == 0 || to.iter().all(|&byte| byte == 0x99), "{what}");
            if end.survivor() == 0 {
                assert_eq!(enter(&tasks[0]).core().one_sided.under_way(), 0, "{what}");
            }
            if end.is_overcome(&tasks, &handle, &[], &what) {
                let (before, cmpl) = (packets_of(&tasks[1]), counter());
                let extras = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
                put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
                while cmpl.load(Ordering::SeqCst) != 1 {
                    tasks[0].step();
                }
                assert!(to == data && packets_of(&tasks[1]) == before, "{what}");
            }
            job::close(tasks);
        }
    }
}

/// A fence ends when the data is there and the targets have heard of it; LAPI_Term, too.
#[test]
fn a_fence_covers_short_puts() {
    for (pending, accesses) in [(false, u64::MAX), (true, u64::MAX), (true, 2)] {
        let (tasks, _) = two(MemOptions { pending, accesses, ..job::STANDING }, Preference::Auto);
        let cmpl = counter();
        let extras = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
        let mut there: Vec<_> = (0..3).map(|seed| (&filled(seed)[..64], forever(64))).collect();
        for (data, to) in &mut there {
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
        }
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let target = scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    tasks[1].step();
                    std::thread::yield_now();
                }
            });
            let outcome = fence::fence(&mut enter(&tasks[0]));
            over.store(true, Ordering::SeqCst);
            target.join().expect("the target");
            outcome.expect("a fence");
        });
        assert!(there.iter().all(|(data, to)| data == to), "{pending}, {accesses}");
        assert_eq!(bytes_of(&tasks[1]).1, 3 * 64, "{pending}, {accesses}");
        job::close(tasks);
    }
}

/// Within the copy limit the data is the program's again when the call returns, whatever
/// becomes of the write.
#[test]
fn data_within_the_copy_limit_may_be_changed_at_once() {
    for (accesses, pending) in [(0, false), (0, true), (2, true), (u64::MAX, false), (u64::MAX, true)] {
        let options = MemOptions { accesses, pending, ..job::STANDING };
        let tasks = job::open(
            job::asynchronous(2, options),
            &job::Habits { copy_limit: 128, ..job::Habits::STEPPED },
        );
        let [org, cmpl] = [(); 2].map(|()| counter());
        let mut there: Vec<_> = [1, 64, 128, 100, 128, 7].map(|len| (forever(len), forever(len))).into();
        for (round, (data, to)) in there.iter_mut().enumerate() {
            data.fill(round as u8 + 1);
            let extras = Extras {
                org_cntr: Some(org),
                cmpl_cntr: Some(cmpl),
                reported: round + 1,
                ..Extras::default()
            };
            put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
            assert_eq!(org.load(Ordering::SeqCst), round as i32 + 1);
            data.fill(0x77);
        }
        settle(&tasks);
        for (round, (_, to)) in there.iter().enumerate() {
            assert!(to.iter().all(|&byte| byte == round as u8 + 1), "{round}, {accesses}, {pending}");
        }
        assert_eq!([org, cmpl].map(|counter| counter.load(Ordering::SeqCst)), [6, 6]);
        let reported: Vec<_> = tasks[0].reported.lock().iter().map(|(parameter, _)| *parameter).collect();
        assert_eq!(reported, [1, 2, 3, 4, 5, 6], "{accesses}, {pending}");
        let bytes = (1 + 64 + 128 + 100 + 128 + 7) as u64;
        assert_eq!((bytes_of(&tasks[0]).0, bytes_of(&tasks[1]).1), (bytes, bytes));
        job::close(tasks);
    }
}

/// A thread that waits takes reports also while no round of the dispatcher can begin.
#[test]
fn what_was_reported_of_a_peer_is_forgotten_when_it_is_given_up() {
    let (tasks, handle) = two(job::STANDING, Preference::Auto);
    let (data, to, short) = (&*filled(1), forever(LEN), forever(512));
    let long = Extras { org_cntr: Some(counter()), reported: 1, ..Extras::default() };
    // Another thread is in a handler that the dispatcher runs.
    assert!(enter(&tasks[0]).begin_round());
    put(&tasks[0], 1, to.as_mut_ptr(), data, long).expect("a put");
    let written = Extras { cmpl_cntr: Some(counter()), ..Extras::default() };
    put(&tasks[0], 1, short.as_mut_ptr(), &data[..512], written).expect("a put");
    let mut held = enter(&tasks[0]);
    let core = held.core();
    assert_eq!((core.copies.waiting(), core.one_sided.under_way()), (1, 1));
    // The accesses are made when there is no packet.
    assert!(core.transport.recv().is_none());
    reports::take(core);
    assert_eq!((core.copies.are_ready(), core.one_sided.have_ended()), (true, true));
    held.end_round();
    drop(held);
    End::OriginPurges.happens(&tasks, &handle);
    let mut held = enter(&tasks[0]);
    let core = held.core();
    assert!(!core.copies.are_ready() && !core.one_sided.have_ended());
    assert_eq!(core.one_sided.under_way(), 0);
    drop(held);
    assert!(End::OriginPurges.is_overcome(&tasks, &handle, &[1], "reported"));
    job::close(tasks);
}

//! Short messages: what goes the short way, and that it leaves everything as the usual way does.

use super::calls::{self, Extras, as_the_header_says, counter, enter, forever};
use super::job::{self, Ends, Habits, Task};
use super::recovery::settle;
use crate::base::rng::Rng;
use crate::engine::context::Core;
use crate::engine::context::request::{PlainMessage, PlainPut, Preference};
use crate::engine::context::statistics::Path;
use crate::engine::progress::poll::poll_once;
use crate::engine::progress::short;
use crate::memory::bytes::Piece;
use crate::proto::tests::seeds;
use crate::transport::Task as Number;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Longer than what the tasks copy, and now and then longer than a packet.
const LONGEST: [u64; 4] = [200, 200, 3_000, 12_000];

/// What a run leaves behind: the target's memory, its and the origin's counters, and the
/// statistics of both.
type Outcome = (Vec<u8>, [i32; 3], [[u64; 4]; 2]);

/// Messages from a seed, from task 0 to task 1, and gets of task 0. With a completion handler each
/// of them goes the usual way.
fn run(ends: Ends, seed: u64, handler: bool) -> Outcome {
    // The way of long messages would be chosen by how long each has taken before.
    let tasks = job::open(ends, &Habits { preference: Preference::Packets, ..Habits::STEPPED });
    let mut rng = Rng::new(seed);
    let counters = [(); 3].map(|()| counter());
    let (mut sources, mut everything) = (Vec::new(), Vec::new());
    for _ in 0..150 {
        let longest = LONGEST[rng.below(4) as usize];
        let data = forever(rng.below(longest) as usize);
        data.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
        let to = forever(data.len());
        let mut some = |counter: &'static AtomicI32| rng.chance(0.5).then_some(counter);
        let extras = Extras {
            tgt_cntr: some(counters[0]),
            org_cntr: some(counters[1]),
            cmpl_cntr: some(counters[2]),
            reported: usize::from(handler),
            ..Extras::default()
        };
        if rng.chance(0.3) {
            let noted = handler.then_some(calls::note_arrived as _);
            calls::get_noted(&tasks[0], 1, data, to.as_mut_ptr(), extras, noted).expect("a get");
        } else if rng.chance(0.5) {
            calls::put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
        } else {
            let header = forever(8 * (1 + rng.below(3) as usize));
            header[..8].copy_from_slice(&to.as_mut_ptr().expose_provenance().to_ne_bytes());
            calls::send(&tasks[0], 1, as_the_header_says, header, data, extras).expect("a message");
        }
        sources.push(&*data);
        everything.push(to);
        if rng.chance(0.1) {
            settle(&tasks);
        }
        if rng.chance(0.05) {
            fenced(&tasks);
        }
    }
    settle(&tasks);
    let values = counters.map(|counter| counter.load(Ordering::SeqCst));
    let counts = [0, 1].map(|me| counts(&tasks[me], 1 - me as Number));
    job::close(tasks);
    assert!(everything.concat() == sources.concat(), "seed {seed}: data is missing");
    (everything.concat(), values, counts)
}

fn counts(task: &Task, peer: Number) -> [u64; 4] {
    let &mut Path { packets_sent, packets_received, bytes_sent, bytes_received, .. } =
        enter(task).core().path_to(peer);
    [packets_sent, packets_received, bytes_sent, bytes_received]
}

/// Task 0 knows that everything has arrived.
fn fenced(tasks: &[Arc<Task>]) {
    let mut held = enter(&tasks[0]);
    let (outbox, mut wire) = held.core().out();
    outbox.ask(&mut wire, |_, _| {});
    drop(held);
    settle(tasks);
}

#[test]
fn both_ways_leave_the_same_behind() {
    seeds(5, |seed| {
        let without_doors = [|| job::mem(2, 8, false), || job::mem(2, 1, false)].map(|ends| {
            let outcome = run(ends(), seed, false);
            assert_eq!(outcome, run(ends(), seed, true), "seed {seed}");
            outcome
        });
        // Of short puts the ring itself reports to the origin that they are complete.
        let [(bytes, values, counts), (usual_bytes, usual_values, usual_counts)] =
            [false, true].map(|handler| run(job::boxed(job::shm(2)), seed, handler));
        assert!(bytes == usual_bytes, "seed {seed}");
        assert_eq!(values, usual_values, "seed {seed}");
        // Where there are doors packets are taken the short way, too.
        for (bytes_there, values_there, _) in without_doors {
            assert!(bytes == bytes_there, "seed {seed}");
            assert_eq!(values, values_there, "seed {seed}");
        }
        let there = |[[sent, _, bytes_sent, _], [_, received, _, bytes_received]]: [[u64; 4]; 2]| {
            [sent, received, bytes_sent, bytes_received]
        };
        assert_eq!(there(counts), there(usual_counts), "seed {seed}");
        let back = |[[_, received, ..], [sent, ..]]: [[u64; 4]; 2]| {
            assert_eq!(sent, received, "seed {seed}");
            sent
        };
        let reported = back(usual_counts).checked_sub(back(counts));
        let completions = values[2] as u64;
        assert!(reported.is_some_and(|reported| (1..=completions).contains(&reported)), "seed {seed}");
    });
}

/// What the short way does with a put and with a message of 8 bytes to that task.
fn tried(task: &Task, tgt: Number, org_cntr: &AtomicI32) -> [bool; 2] {
    tried_with(8, task, tgt, org_cntr)
}

/// What the short way does with a put and with a message of this many bytes.
fn tried_with(len: usize, task: &Task, tgt: Number, org_cntr: &AtomicI32) -> [bool; 2] {
    let (data, to) = (forever(len), forever(len));
    let header = to.as_mut_ptr().expose_provenance().to_ne_bytes();
    let (data, header) = (Piece::of(data), Piece::of(&header));
    let (local, remote) = (data.ptr.expose_provenance(), to.as_mut_ptr().expose_provenance() as u64);
    let org_cntr = org_cntr.as_ptr().addr();
    let handler = as_the_header_says as *const () as u64;
    let put = PlainPut { tgt, local, remote, len, tgt_cntr: 0, org_cntr, cmpl_cntr: 0 };
    let message = PlainMessage { tgt, handler, header, data, tgt_cntr: 0, org_cntr, cmpl_cntr: 0 };
    // SAFETY: memory and counter live for as long as the process, and the header is copied.
    let put = short::within(&mut enter(task), tgt, |way| unsafe { short::put(way, &put) });
    let message = short::within(&mut enter(task), tgt, |way| {
        // SAFETY: as for the put.
        unsafe { short::active_message(way, &message) }
    });
    [put, message]
}

#[test]
fn only_what_nothing_hinders_goes_the_short_way() {
    let ends: [fn() -> Ends; 2] = [|| job::mem(3, 64, false), || job::boxed(job::shm(3))];
    for ends in ends {
        let tasks = job::open(ends(), &Habits::STEPPED);
        let origin = &tasks[0];
        let org = counter();
        let usual = || calls::put(origin, 1, forever(8).as_mut_ptr(), forever(8), Extras::default());
        assert_eq!(tried(origin, 1, org), [false; 2], "a fence does not know of the peer");
        usual().expect("a put");
        settle(&tasks);
        assert_eq!(tried(origin, 1, org), [true; 2]);
        assert_eq!(tried(origin, 0, org), [true, false], "this task");
        assert_eq!(tried(origin, 3, org), [false; 2], "no task");
        assert_eq!(org.load(Ordering::SeqCst), 3);
        settle(&tasks);
        fenced(&tasks);
        assert_eq!(tried(origin, 1, org), [false; 2], "a fence has to ask the peer first");
        // Without room one message waits, and then all.
        usual().expect("a put");
        let before = org.load(Ordering::SeqCst);
        let sent = (0..1000).take_while(|_| tried(origin, 1, org) == [true; 2]).count();
        assert!((8..1000).contains(&sent), "{sent} pairs found room");
        usual().expect("a put");
        assert!(enter(origin).core().outbox.waiting());
        assert_eq!(tried(origin, 1, org), [false; 2]);
        settle(&tasks);
        assert!(org.load(Ordering::SeqCst) - before >= 2 * sent as i32);
        assert_eq!(tried(origin, 1, org), [true; 2]);
        settle(&tasks);
        let mut held = enter(origin);
        held.core().membership.lose(1);
        drop(held);
        assert_eq!(tried(origin, 1, org), [false; 2], "the peer is given up");
        job::close(tasks);
    }
}

#[test]
fn what_a_ring_copies_goes_the_short_way_whatever_its_length() {
    let ends: [(fn() -> Ends, bool); 2] =
        [(|| job::mem(2, 64, false), false), (|| job::boxed(job::shm(2)), true)];
    for (ends, copies) in ends {
        let tasks = job::open(ends(), &Habits::STEPPED);
        let (origin, org) = (&tasks[0], counter());
        calls::put(origin, 1, forever(8).as_mut_ptr(), forever(8), Extras::default()).expect("a put");
        settle(&tasks);
        let packet = enter(origin).core().outbox.max_body();
        assert_eq!(tried_with(120, origin, 1, org), [true; 2]);
        assert_eq!(tried_with(1_000, origin, 1, org), [copies; 2], "its origin counter may wait");
        assert_eq!(tried_with(packet - 16, origin, 1, org), [copies; 2]);
        assert_eq!(tried_with(packet + 1, origin, 1, org), [false; 2], "more than a packet");
        assert_eq!(org.load(Ordering::SeqCst), if copies { 6 } else { 2 });
        settle(&tasks);
        job::close(tasks);
    }
}

/// No transport looks for reports through doors before a sleep.
#[test]
fn a_report_through_a_door_keeps_a_task_awake() {
    let tasks = job::open(job::boxed(job::shm(2)), &Habits::STEPPED);
    let (complete, to, data) = (counter(), forever(8), forever(8));
    let mut put = |extras| calls::put(&tasks[0], 1, to.as_mut_ptr(), data, extras).expect("a put");
    put(Extras::default());
    settle(&tasks);
    put(Extras { cmpl_cntr: Some(complete), ..Extras::default() });
    let arms = |by: fn(&mut Core) -> bool| {
        let mut held = enter(&tasks[0]);
        let armed = by(held.core());
        held.core().disarm();
        armed
    };
    assert!(enter(&tasks[0]).core().awaits_reports(), "the put goes through the door");
    assert!(arms(Core::arm));
    tasks[1].step();
    assert!(arms(|core| core.transport.arm()) && !arms(Core::arm));
    tasks[0].step();
    assert!(complete.load(Ordering::SeqCst) == 1 && arms(Core::arm));
    job::close(tasks);
}

#[test]
fn a_guarded_task_takes_nothing_by_a_short_way() {
    let tasks = job::open(job::boxed(job::shm(2)), &Habits { wait_policy: job::AWAKE, ..Habits::STEPPED });
    let (to, data) = (forever(8), forever(8));
    data.fill(7);
    let data = &*data;
    let at = to.as_mut_ptr();
    let put = || calls::put(&tasks[1], 0, at, data, Extras::default()).expect("a put");
    put();
    settle(&tasks);
    assert_eq!(to, data, "tasks are believed");
    to.fill(0);
    enter(&tasks[0]).core().options.guarded = true;
    for _ in 0..100 {
        poll_once(&mut enter(&tasks[0]));
    }
    put();
    for _ in 0..100 {
        poll_once(&mut enter(&tasks[0]));
    }
    assert_eq!(tasks[0].reports().len(), 1);
    assert_eq!(to, &[0; 8], "the address of a peer is used");
    job::close(tasks);
}

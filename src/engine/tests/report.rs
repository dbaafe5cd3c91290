//! The report of a context, over the transport in memory.

use super::calls::{Extras, counter, enter, forever, put, wait};
use super::job::{self, Habits, Task, in_threads};
use crate::api::fence;
use crate::engine::context::request::Preference;
use crate::engine::context::snapshot::{Snapshot, snapshot};
use crate::engine::context::wait_policy::WaitPolicy;
use crate::transport::PeerState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ASLEEP: WaitPolicy = WaitPolicy::NONE;

/// Tasks with room for `room` packets between them; nothing moves unless a thread of the
/// test makes a call.
fn open(tasks: u32, room: usize) -> Vec<Arc<Task>> {
    let habits = Habits { preference: Preference::Packets, wait_policy: ASLEEP, ..Habits::STEPPED };
    job::open(job::mem(tasks, room, false), &habits)
}

fn look(task: &Task) -> Snapshot {
    snapshot(&mut enter(task))
}

/// Makes reports until one is as wanted.
fn eventually(task: &Task, enough: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let last = Instant::now() + Duration::from_secs(20);
    loop {
        let report = look(task);
        if enough(&report) {
            return report;
        }
        assert!(Instant::now() < last, "{report:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_idle_context_has_an_empty_report() {
    let tasks = open(3, 4);
    let report = look(&tasks[1]);
    assert_eq!((report.me, report.tasks, &report.collective), (1, 3, &(0, None)));
    assert!(report.clauses().is_empty() && report.awaited().next().is_none());
    assert_eq!((report.operations.count, report.peers.count, report.packets), (0, 0, (0, 0)));
    assert_eq!(report.lines().len(), 2, "{:#?}", report.lines());
    job::close(tasks);
}

#[test]
fn what_waits_for_room_and_for_a_reply_is_reported() {
    let tasks = open(2, 2);
    let (data, there, done) = (&*forever(9000), forever(9000).as_mut_ptr(), counter());
    for len in [8, 8, 8, 40, 9000] {
        let extras = Extras { cmpl_cntr: Some(done), ..Extras::default() };
        put(&tasks[0], 1, there, &data[..len], extras).expect("a put");
    }
    let report = look(&tasks[0]);
    assert_eq!(report.operations.count, 5);
    let raises = format!("put or message, to raise the completion counter at {:#x}", done.as_ptr().addr());
    assert_eq!(report.operations.list, vec![format!("with task 1: {raises}; not seen before"); 5]);
    let [peer] = &report.peers.list[..] else { panic!("one peer: {:#?}", report.peers) };
    assert_eq!((peer.traffic.peer, peer.state, peer.traffic.parked), (1, PeerState::Up, 2));
    assert_eq!((peer.traffic.parked_bytes, &peer.traffic.streams[..]), (48, &[(0, 9000)][..]));
    assert_eq!(peer.traffic.messages, 5);
    // The first report has left a mark.
    let again = look(&tasks[0]);
    let raises = format!("with task 1: {raises}; at least ");
    assert!(again.operations.list.iter().all(|operation| operation.starts_with(&raises)));
    let text = again.lines().join("\n");
    for line in
        ["operations that wait for a reply: 5", "2 packets wait for room (48 bytes)", "0 of 9000 bytes"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // The target receives what has arrived, two packets at a time: it has a part of the
    // long message then.
    tasks[1].step();
    tasks[0].step();
    tasks[1].step();
    tasks[0].step();
    tasks[1].step();
    let report = look(&tasks[1]);
    let [message] = &report.assemblies.list[..] else { panic!("one message: {:#?}", report.assemblies) };
    let arrived = message.strip_prefix("from task 0, number 4: ");
    let arrived = arrived.and_then(|text| text.strip_suffix(" of 9000 bytes have arrived"));
    let arrived = arrived.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    assert!((1..9000).contains(&arrived), "{message}");
    job::close(tasks);
}

#[test]
fn a_waiting_call_is_reported_with_the_tasks_that_it_waits_for() {
    let tasks = open(3, 8);
    let done = counter();
    let extras = Extras { cmpl_cntr: Some(done), ..Extras::default() };
    put(&tasks[0], 2, forever(8).as_mut_ptr(), &forever(8)[..], extras).expect("a put");
    let watched = tasks[0].clone();
    let (seen, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    in_threads(&tasks, 1, move |task, _| match task.me {
        0 => {
            wait(task, done, 1).expect("the put is complete");
            ended.store(true, Ordering::Release);
        }
        1 => {
            let report = eventually(&watched, |report| !report.waits.is_empty());
            let [wait] = &report.waits[..] else { panic!("one wait: {:#?}", report.waits) };
            assert_eq!(wait.waiter.awaited.call, "LAPI_Waitcntr");
            assert_eq!((wait.waiter.awaited.counter, wait.value), (Some((done.as_ptr().addr(), 1)), Some(0)));
            assert_eq!(wait.awaited, [2]);
            assert_eq!(report.clauses(), ["waits in LAPI_Waitcntr for task 2"]);
            assert_eq!(report.peers.list.len(), 1);
            seen.store(true, Ordering::Release);
        }
        // Serves the put only after the report has shown a thread that waits for it.
        _ => {
            while !seen.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            while !ended.load(Ordering::Acquire) {
                task.step();
                std::thread::yield_now();
            }
        }
    });
    let report = look(&tasks[0]);
    assert!(report.waits.is_empty() && report.polling == 0, "no thread waits any more: {:#?}", report.waits);
    job::close(tasks);
}

#[test]
fn a_collective_call_reports_its_kind_and_the_awaited_task() {
    let tasks = open(3, 8);
    let watched = tasks[0].clone();
    let seen = Arc::new(AtomicBool::new(false));
    in_threads(&tasks, 1, move |task, _| match task.me {
        2 => {
            let report = eventually(&watched, |report| !report.waits.is_empty());
            // Task 0 needs the packets of task 1, which comes, and of task 2.
            let wanted = (1, Some((0, vec![2])));
            let report = match report.collective == wanted {
                true => report,
                false => eventually(&watched, |report| report.collective == wanted),
            };
            assert_eq!(report.clauses(), ["waits in LAPI_Gfence for task 2"]);
            assert!(
                report.lines().join("\n").contains("number 1 is in round 0 and needs the packet of task 2")
            );
            seen.store(true, Ordering::Release);
            fence::gfence(&mut enter(task)).expect("a fence");
        }
        _ => {
            fence::gfence(&mut enter(task)).expect("a fence");
            assert!(seen.load(Ordering::Acquire), "task 2 has come after it had seen the others wait");
        }
    });
    assert_eq!(look(&tasks[1]).collective, (1, None));
    job::close(tasks);
}

#[test]
fn a_lock_that_is_held_is_not_waited_for() {
    let tasks = open(1, 2);
    let held = enter(&tasks[0]);
    let context = tasks[0].context.clone();
    let owner = std::thread::spawn(move || match context.enter_within(Duration::from_millis(20)) {
        Ok(_) => panic!("the lock was had"),
        Err(owner) => owner,
    });
    assert_eq!(owner.join().expect("the thread has not panicked"), crate::base::known_threads::this_thread());
    drop(held);
    assert!(tasks[0].context.enter_within(Duration::ZERO).is_ok_and(|held| held.is_some()));
    job::close(tasks);
}

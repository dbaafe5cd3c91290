//! Tasks that give each other up and rejoin, and tasks that die and are restarted, in the middle
//! of everything.

use super::calls::{Extras, counter, enter, fence, forever, get, gfence, increment, put, send, wait};
use super::failure::{LONG, code, never, start_everything};
use super::job::{self, Habits, MAX_BODY, Task, in_threads};
use crate::abi::*;
use crate::api::recovery;
use crate::base::rng::Rng;
use crate::engine::context::Held;
use crate::engine::context::membership::Standing;
use crate::engine::context::request::Preference;
use crate::engine::progress::{closing, reports, sleep};
use crate::proto::tests::seeds;
use crate::transport::Transport;
use crate::transport::testing::faults::{FaultPlan, Faulty};
use crate::transport::testing::mem::{MemOptions, NetworkHandle, network};
use libc::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(in crate::engine) fn purge(task: &Task, peer: u32) {
    recovery::purge(&mut enter(task), peer).expect("a purge");
}

pub(in crate::engine) fn resume(task: &Task, peer: u32) {
    recovery::resume(&mut enter(task), peer).expect("a task that may rejoin");
}

/// Both take note that the other is back.
pub(in crate::engine) fn look(tasks: &[Arc<Task>]) {
    tasks.iter().for_each(|task| reports::take(enter(task).core()));
}

pub(in crate::engine) fn settle(tasks: &[Arc<Task>]) {
    let mut quiet = 0;
    for _ in 0..20_000 {
        let moved = tasks.iter().fold(false, |moved, task| task.step() | moved);
        let busy = tasks.iter().any(|task| {
            let mut held = enter(task);
            let core = held.core();
            core.is_sending()
        });
        quiet = if moved || busy { 0 } else { quiet + 1 };
        // Faults hold packets back for some polls.
        if quiet == 50 {
            return;
        }
    }
    panic!("no end: {:?}", tasks.iter().map(|task| task.standing()).collect::<Vec<_>>());
}

/// The ends of a job whose tasks may be restarted, with faults from the seed.
pub(super) fn ends(tasks: u32, rng: &mut Rng, seed: u64) -> (job::Ends, NetworkHandle, Option<FaultPlan>) {
    let options = MemOptions {
        max_body: MAX_BODY,
        capacity: [1, 4, 16][rng.below(3) as usize],
        remote: rng.chance(0.5),
        take: rng.chance(0.5),
        pending: rng.chance(0.5),
        keyed: rng.chance(0.5),
        standing: rng.chance(0.5),
        registrations: if rng.chance(0.7) { u64::MAX } else { rng.below(20) },
        accesses: if rng.chance(0.7) { u64::MAX } else { rng.below(20) },
        ..job::SHORT
    };
    let ends = network(tasks, options);
    let handle = ends[0].handle();
    let plan = rng.chance(0.6).then(|| FaultPlan::rough(seed));
    let ends = match &plan {
        Some(plan) => job::boxed(Faulty::join(ends, plan)),
        None => job::boxed(ends),
    };
    (ends, handle, plan)
}

pub(super) fn habits(rng: &mut Rng) -> Habits {
    let preference = [Preference::Packets, Preference::Attach, Preference::Auto][rng.below(3) as usize];
    let copy_limit = [0, 128, 4096][rng.below(3) as usize];
    Habits { preference, copy_limit, hosts: 1 + rng.below(3) as u32, ..Habits::STEPPED }
}

/// A header handler that refuses its message.
pub(in crate::engine) unsafe extern "C" fn later(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    info: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the library gives the structure for the time of the call.
    unsafe { (*info.cast::<lapi_return_info_t>()).ctl_flags = LAPI_DROP_PKT };
    ptr::null_mut()
}

/// Each send was reported exactly once, and those that were reported as failed were purged.
fn reported_exactly(task: &Task, sends: &[usize]) {
    let mut reported = task.reported.lock().clone();
    assert!(
        reported.iter().all(|&(_, reason)| reason == 0 || reason as c_int == LAPI_ERR_TGT_PURGED),
        "{reported:?}"
    );
    reported.sort_unstable();
    let mut sends = sends.to_vec();
    sends.sort_unstable();
    assert_eq!(reported.iter().map(|(parameter, _)| *parameter).collect::<Vec<_>>(), sends);
}

/// What is exact after a reconnect: three operations of each kind that wait for one another.
pub(in crate::engine) fn all_is_well(tasks: &[Arc<Task>], from: usize, to: usize) {
    let (came, done, here) = (counter(), counter(), counter());
    let (there, data, variable) = (forever(LONG), forever(LONG), Box::leak(Box::new(AtomicU64::new(0))));
    data.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    let (task, tgt) = (&tasks[from], tasks[to].me);
    let extras = Extras { tgt_cntr: Some(came), cmpl_cntr: Some(done), ..Extras::default() };
    for len in [8, MAX_BODY, LONG] {
        put(task, tgt, there.as_mut_ptr(), &data[..len], extras).expect("a put");
        send(task, tgt, never, &data[..16], &data[..len], extras).expect("a message");
    }
    increment(task, tgt, variable.as_ptr(), Extras { org_cntr: Some(here), ..Extras::default() })
        .expect("an addition");
    settle(tasks);
    let reached = [came, done, here].map(|counter| counter.load(Ordering::SeqCst));
    assert_eq!(reached, [6, 6, 1], "{}\n{}", tasks[from].standing(), tasks[to].standing());
    assert_eq!(variable.load(Ordering::SeqCst), 1);
    assert!(there == data);
    let back = forever(LONG);
    get(task, tgt, data, back.as_mut_ptr(), Extras { org_cntr: Some(here), ..Extras::default() })
        .expect("a get");
    settle(tasks);
    assert!(here.load(Ordering::SeqCst) == 2 && back == data);
    fence_in_steps(tasks, from);
}

/// A fence that one thread makes for all.
fn fence_in_steps(tasks: &[Arc<Task>], of: usize) {
    let asked = {
        let mut held = enter(&tasks[of]);
        let (outbox, mut wire) = held.core().out();
        let mut asked = Vec::new();
        outbox.ask(&mut wire, |peer, count| asked.push((peer, count)));
        asked
    };
    settle(tasks);
    let mut held = enter(&tasks[of]);
    let core = held.core();
    for (peer, count) in asked {
        assert!(core.outbox.confirmed(peer, count), "task {peer} has not confirmed {count} messages");
    }
    assert!(core.ops.is_empty());
}

/// Two tasks with everything under way in both directions give each other up, in any
/// order, and rejoin.
#[test]
fn pairs_part_in_the_middle_of_everything() {
    seeds(60, |seed| {
        let mut rng = Rng::new(seed);
        let (ends, _, plan) = ends(3, &mut rng, seed);
        println!("{plan:?}");
        let tasks = job::open(ends, &habits(&mut rng));
        let (mut sends, late) = ([Vec::new(), Vec::new()], counter());
        for round in 0..4 {
            for (task, sends) in tasks.iter().zip(&mut sends) {
                task.reported.lock().clear();
                *sends = (1..=start_everything(task, 1 - task.me, Default::default())).collect();
                let extras = Extras { tgt_cntr: Some(late), ..Extras::default() };
                send(task, 1 - task.me, later, &[1; 8], &[2; 40], extras).expect("a message");
            }
            for _ in 0..rng.below(60) {
                tasks[rng.below(3) as usize].step();
            }
            let first = rng.below(2) as usize;
            for at in [first, 1 - first] {
                let peer = 1 - at as u32;
                purge(&tasks[at], peer);
                purge(&tasks[at], peer);
                let refused = put(&tasks[at], peer, forever(8).as_mut_ptr(), &[0; 8], Extras::default());
                assert_eq!(code(refused), LAPI_ERR_TGT_PURGED);
                let steps = rng.below(20);
                (0..steps).for_each(|_| _ = tasks[rng.below(3) as usize].step());
                if rng.chance(0.5) {
                    resume(&tasks[at], peer);
                }
            }
            tasks[..2].iter().for_each(|task| resume(task, 1 - task.me));
            look(&tasks);
            look(&tasks);
            settle(&tasks);
            for (at, task) in tasks[..2].iter().enumerate() {
                reported_exactly(task, &sends[at]);
                assert!(!enter(task).core().keeps_messages() && enter(task).core().ops.is_empty());
            }
            assert_eq!(late.load(Ordering::Relaxed), 0, "a message of before was delivered");
            let [from, to] = [[0, 1], [1, 0], [0, 2], [2, 1]][(round + first) % 4];
            all_is_well(&tasks, from, to);
        }
        for task in &tasks {
            assert_eq!(task.reports(), [], "task {}", task.me);
        }
        job::close(tasks);
    });
}

/// A task dies with everything under way, and is restarted, again and again; a third one
/// continues meanwhile.
#[test]
fn a_task_that_dies_is_restarted() {
    seeds(40, |seed| {
        let mut rng = Rng::new(seed);
        let (ends, fabric, plan) = ends(3, &mut rng, seed);
        let habits = habits(&mut rng);
        println!("{plan:?}");
        let mut tasks = job::open(ends, &habits);
        let between = counter();
        for round in 1..=4 {
            tasks[0].reported.lock().clear();
            let sends: Vec<_> = (1..=start_everything(&tasks[0], 1, Default::default())).collect();
            start_everything(&tasks[1], 0, Default::default());
            start_everything(&tasks[1], 2, Default::default());
            let own = Extras { tgt_cntr: Some(between), ..Extras::default() };
            put(&tasks[0], 2, forever(LONG).as_mut_ptr(), forever(LONG), own).expect("a put");
            for _ in 0..rng.below(60) {
                tasks[rng.below(3) as usize].step();
            }
            fabric.kill(1);
            for _ in 0..rng.below(10) {
                tasks[2 * rng.below(2) as usize].step();
            }
            let dead = tasks.remove(1);
            job::close(vec![dead]);
            // The survivors do their part before the new one has connected, or after.
            let before = rng.below(3);
            let purge_and_resume = |task: &Arc<Task>| {
                purge(task, 1);
                resume(task, 1);
            };
            if before > 0 {
                purge_and_resume(&tasks[0]);
            }
            let end = fabric.restart(1, 0);
            let end: Box<dyn Transport> = match &plan {
                Some(plan) => {
                    Box::new(Faulty::alone(end, 1, &FaultPlan { seed: seed + round, ..plan.clone() }))
                }
                None => Box::new(end),
            };
            let new = job::open_again(1, 3, end, &habits);
            tasks.insert(1, new);
            if before == 0 {
                purge_and_resume(&tasks[0]);
            }
            purge_and_resume(&tasks[2]);
            look(&tasks);
            look(&tasks);
            settle(&tasks);
            // Of what had been given up before it was purged the reason is that the task has left.
            let reported = tasks[0].reported.lock().clone();
            let right = [0, LAPI_ERR_TGT_PURGED, LAPI_ERR_NO_CONNECTIVITY];
            assert!(reported.iter().all(|&(_, reason)| right.contains(&(reason as c_int))), "{reported:?}");
            let mut parameters: Vec<_> = reported.iter().map(|(parameter, _)| *parameter).collect();
            parameters.sort_unstable();
            assert_eq!(parameters, sends);
            assert_eq!(between.load(Ordering::Relaxed), round as i32, "the counters of survivors are exact");
            assert_eq!(tasks[1].reports(), [], "something of before has arrived");
            for (from, to) in [(0, 1), (1, 0), (2, 1), (1, 2), (0, 2)] {
                all_is_well(&tasks, from, to);
            }
        }
        job::close(tasks);
    });
}

/// A thread fences while another one gives the target up, resumes it, and sends to it again:
/// numbers start again then.
#[test]
fn a_fence_passes_over_a_task_that_is_given_up_and_resumed() {
    for _ in 0..20 {
        let tasks = job::open(job::mem(2, 4, false), &Habits::THREADED);
        tasks[1].context.notifier.stop();
        in_threads(&tasks[..1], 2, |task, thread| {
            let data = &*forever(8);
            if thread == 0 {
                for _ in 0..20 {
                    let _ = put(task, 1, forever(8).as_mut_ptr(), data, Extras::default());
                }
                return fence(task).expect("a fence");
            }
            let mut held = enter(task);
            recovery::purge(&mut held, 1).expect("a purge");
            recovery::resume(&mut held, 1).expect("a task that may rejoin");
            drop(held);
            put(task, 1, forever(8).as_mut_ptr(), data, Extras::default()).expect("a put that waits");
            std::thread::yield_now();
            // What waits for it now is given up, so that a fence that began since ends too.
            purge(task, 1);
        });
        job::close(tasks);
    }
}

/// Nothing was under way that would have shown its death, and its successor is to be let in.
#[test]
fn a_task_that_has_died_unnoticed_is_resumed() {
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::STEPPED);
    fabric.kill(1);
    resume(&tasks[0], 1);
    assert_eq!(enter(&tasks[0]).core().membership.standing(1), Standing::Rejoining);
    assert_eq!(tasks[0].reports(), []);
    job::close(tasks);
}

/// What tells of a task that is back is a descriptor, which a thread that disarms may have emptied:
/// the next one that arms looks.
#[test]
fn a_task_that_is_back_is_found_before_a_sleep() {
    let tasks = job::open(job::mem(2, 4, false), &Habits::STEPPED);
    for (task, peer) in [(0, 1), (1, 0)] {
        purge(&tasks[task], peer);
    }
    for (task, peer) in [(0, 1), (1, 0)] {
        resume(&tasks[task], peer);
    }
    let standing = |held: &mut Held<'_>| held.core().membership.standing(1);
    let mut held = enter(&tasks[0]);
    assert_eq!(standing(&mut held), Standing::Rejoining);
    let armed = sleep::arm(&mut held).is_some();
    assert_eq!(standing(&mut held), Standing::Up, "armed: {armed}");
    if armed {
        held.core().disarm();
    }
    drop(held);
    job::close(tasks);
}

/// LAPI_Term does not wait for tasks that are awaited.
#[test]
fn lapi_ends_while_a_task_is_awaited() {
    let tasks = job::open(job::mem(2, 4, true), &Habits::THREADED);
    tasks[1].context.notifier.stop();
    in_threads(&tasks[..1], 1, |task, _| {
        let sends = start_everything(task, 1, Default::default());
        purge(task, 1);
        resume(task, 1);
        put(task, 1, forever(LONG).as_mut_ptr(), forever(LONG), Extras { reported: 6, ..Extras::default() })
            .expect("a put that waits");
        closing::close(&task.context, task.context.handle()).expect("an open context");
        reported_exactly(task, &(1..=sends + 1).collect::<Vec<_>>());
    });
    job::close(tasks);
}

/// A task in a collective call leaves it when the task that it waits for is purged, without the
/// error handler; and all tasks meet in later ones when that task has rejoined.
#[test]
fn a_collective_call_ends_when_the_missing_task_is_purged() {
    let tasks = job::open(job::mem(2, 4, false), &Habits::THREADED);
    tasks[1].context.notifier.stop();
    in_threads(&tasks[..1], 2, |task, thread| {
        if thread == 0 {
            return assert_eq!(code(gfence(task)), LAPI_ERR_TGT_PURGED);
        }
        while !enter(task).core().collectives.busy() {
            std::thread::yield_now();
        }
        purge(task, 1);
    });
    assert_eq!(tasks[0].reports(), []);
    purge(&tasks[1], 0);
    in_threads(&tasks, 1, |task, _| {
        resume(task, 1 - task.me);
        for _ in 0..5 {
            gfence(task).expect("a fence of two tasks that have come together again");
        }
        let came = counter();
        put(
            task,
            1 - task.me,
            forever(8).as_mut_ptr(),
            &*forever(8),
            Extras { cmpl_cntr: Some(came), ..Extras::default() },
        )
        .expect("a put");
        wait(task, came, 1).expect("its completion");
        gfence(task).expect("the last fence");
    });
    job::close(tasks);
}

/// Survivors have failed in more or fewer collective calls: when they have let the missing task
/// rejoin, all meet.
#[test]
fn survivors_that_have_failed_in_different_calls_meet_again() {
    for dead in 0..3_u32 {
        let (mem, fabric) = job::mortal_mem(3, 8, false);
        let mut tasks = job::open(mem, &Habits::THREADED);
        fabric.kill(dead);
        job::close(vec![tasks.remove(dead as usize)]);
        // The task that awaits the dead one's packet first detects it; the other survivor
        // makes no call.
        let ahead = tasks.iter().find(|task| (task.me + 1) % 3 == dead).expect("a survivor");
        for _ in 0..3 {
            gfence(ahead).expect_err("a fence without a task");
        }
        for task in &tasks {
            purge(task, dead);
            resume(task, dead);
        }
        let new = job::open_again(dead, 3, Box::new(fabric.restart(dead, 0)), &Habits::THREADED);
        tasks.insert(dead as usize, new);
        in_threads(&tasks, 1, |task, _| {
            for _ in 0..5 {
                gfence(task).expect("a fence of all tasks");
            }
        });
        job::close(tasks);
    }
}

/// Statuses of watched counters stay as a purge has left them, whatever comes later.
#[test]
fn watched_counters_keep_their_statuses() {
    let tasks = job::open(job::mem(3, 8, false), &Habits::STEPPED);
    let (cntr, statuses) = (counter(), Box::leak(Box::new([-1 as c_int; 2])));
    let at = statuses.as_mut_ptr();
    // SAFETY: counter and statuses are never freed.
    unsafe {
        let list = Some((vec![0, 1], at.expose_provenance()));
        recovery::setcntr_wstatus(&mut enter(&tasks[2]), cntr.as_ptr().addr(), list).expect("a list");
    }
    // SAFETY: as above; no other thread uses them meanwhile.
    let read = || unsafe { at.cast::<[c_int; 2]>().read() };
    let own = Extras { tgt_cntr: Some(cntr), ..Extras::default() };
    let again = || {
        put(&tasks[0], 2, forever(8).as_mut_ptr(), &*forever(8), own).expect("a put");
        settle(&tasks);
    };
    again();
    assert_eq!(read(), [LAPI_MSG_RECVD, LAPI_MSG_INITIAL]);
    for peer in 0..2 {
        purge(&tasks[2], peer);
        resume(&tasks[2], peer);
        purge(&tasks[peer as usize], 2);
        resume(&tasks[peer as usize], 2);
    }
    look(&tasks);
    look(&tasks);
    assert_eq!(read(), [LAPI_MSG_PURGED_RCVD, LAPI_MSG_PURGED]);
    again();
    assert_eq!((read(), cntr.load(Ordering::Relaxed)), ([LAPI_MSG_PURGED_RCVD, LAPI_MSG_PURGED], 2));
    job::close(tasks);
}

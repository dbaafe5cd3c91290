//! The program's event loop. None of these sleeps ends by its time: a call that is lost is a
//! sleep that does not end, and a failure at the deadline.

use super::*;
use crate::abi::{INTERRUPT_SET, LAPI_ERR_SET_VAL};
use crate::api::env;
use crate::base::clock::test_deadline;
use crate::base::rng::Rng;
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::time::Instant;

const ROUNDS: i32 = 1_000;

/// Runs the loop until this is so. No sleep ends by the time that it was given.
pub(super) fn run(session: &Session, until: impl FnMut() -> bool) {
    run_to(session, until, |deadline, _| deadline);
}

/// Runs the loop until this is so, also where only time tells.
pub(super) fn run_by_time(session: &Session, until: impl FnMut() -> bool) {
    run_to(session, until, |deadline, armed| armed.min(deadline));
}

fn run_to(session: &Session, mut until: impl FnMut() -> bool, end: impl Fn(Instant, Instant) -> Instant) {
    let deadline = Instant::now() + test_deadline();
    while !until() {
        if let Some(armed) = session.arm().expect("an open session") {
            let left = end(deadline, armed).saturating_duration_since(Instant::now());
            let left = left.try_into().expect("a time for poll");
            poll(&mut [PollFd::new(session, PollFlags::IN)], Some(&left)).expect("poll");
            assert!(Instant::now() < deadline, "the loop sleeps, and nothing wakes it");
        }
        session.disarm().expect("an open session");
        while session.poll().expect("an open session") {}
    }
}

fn dawdle(rng: &mut Rng) {
    (0..rng.below(2_000)).for_each(|_| std::hint::spin_loop());
}

fn put_once(from: &Task, to: &Task, tgt: u32) {
    static DATA: [u8; 24] = [3; 24];
    let mut held = from.session.enter().expect("an open session");
    // SAFETY: the data is static, and both tasks live until it is there.
    unsafe { from.start_put(&mut held, to, tgt, &DATA) };
}

#[test]
fn two_event_loops_wake_each_other() {
    for interrupts in [Interrupts::Never, Interrupts::Off, Interrupts::On] {
        let job = format!("two event loops, {interrupts:?}");
        let tasks = [0, 1].map(|me| Task::open_with(interrupts, &job, me, 2));
        std::thread::scope(|scope| {
            for me in [0, 1] {
                let (task, other) = (&tasks[me], &tasks[1 - me]);
                scope.spawn(move || {
                    let mut rng = Rng::new(me as u64);
                    for round in 1..=ROUNDS {
                        if me == 0 {
                            put_once(task, other, 1);
                        }
                        run(&task.session, || task.arrived.load(Ordering::Acquire) == round);
                        dawdle(&mut rng);
                        if me == 1 {
                            put_once(task, other, 0);
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_wake_at_any_moment_ends_a_sleep_or_keeps_the_next_from_beginning() {
    let task = Task::open_with(Interrupts::Never, "woken by a thread", 0, 1);
    let (queue, seen) = (Mutex::new(VecDeque::new()), AtomicI32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng::new(7);
            for round in 1..=ROUNDS {
                queue.lock().push_back(round);
                task.session.wake();
                while seen.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
                dawdle(&mut rng);
            }
        });
        for round in 1..=ROUNDS {
            let mut next = None;
            run(&task.session, || {
                next = queue.lock().pop_front();
                next.is_some()
            });
            assert_eq!(next, Some(round));
            seen.store(round, Ordering::Release);
        }
    });
}

/// A thread that waits in a call takes what has come for the loop, which sleeps or does not yet.
#[test]
fn what_a_thread_that_waits_handles_wakes_the_event_loop() {
    let tasks = [0, 1].map(|me| Task::open_with(Interrupts::Never, "a loop beside a wait", me, 2));
    let [target, origin] = &tasks;
    let (ends, seen) = (AtomicI32::new(0), AtomicI32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = target.session.enter().expect("an open session");
            // SAFETY: the counter lives.
            let left = unsafe { progress::waitcntr(&mut held, ends.as_ptr().addr(), 1) };
            assert_eq!(left.expect("the end"), 0);
        });
        scope.spawn(|| {
            let mut rng = Rng::new(9);
            for round in 1..=ROUNDS {
                put_once(origin, target, 0);
                while seen.load(Ordering::Acquire) < round {
                    origin.session.poll().expect("an open session");
                    std::thread::yield_now();
                }
                dawdle(&mut rng);
            }
        });
        for round in 1..=ROUNDS {
            run(&target.session, || target.arrived.load(Ordering::Acquire) == round);
            seen.store(round, Ordering::Release);
        }
        // SAFETY: the counter lives.
        unsafe { progress::setcntr(target.session.context(), ends.as_ptr().addr(), 1) };
    });
}

/// And the thread is served while the loop does not run, although it was called.
#[test]
fn an_event_loop_that_does_not_come_holds_up_no_thread_that_waits() {
    let tasks = [0, 1].map(|me| Task::open_with(Interrupts::Never, "a loop that is busy", me, 2));
    let [target, origin] = &tasks;
    while target.session.arm().expect("an open session").is_none() {
        target.session.poll().expect("an open session");
    }
    for round in 1..=20 {
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut held = target.session.enter().expect("an open session");
                // SAFETY: the counter lives.
                let left = unsafe { progress::waitcntr(&mut held, target.arrived.as_ptr().addr(), 1) };
                assert_eq!(left.expect("the put"), 0, "round {round}");
            });
            put_once(origin, target, 0);
            while !waiter.is_finished() {
                origin.session.poll().expect("an open session");
                std::thread::yield_now();
            }
        });
    }
    target.session.disarm().expect("an open session");
}

#[test]
fn the_thread_of_interrupts_serves_again_when_the_event_loop_does_not_sleep() {
    let tasks = [0, 1].map(|me| Task::open("a loop that has ended", me, 2));
    let [target, origin] = &tasks;
    put_once(origin, target, 0);
    run(&target.session, || target.arrived.load(Ordering::Acquire) == 1);
    for _ in 0..20 {
        // Its fence needs the target's progress.
        put_once(origin, target, 0);
        fence::fence(&mut origin.session.enter().expect("an open session")).expect("a fence");
    }
    assert_eq!(target.arrived.load(Ordering::Acquire), 21);
}

#[test]
fn a_session_without_a_thread_cannot_switch_interrupts_on() {
    let task = Task::open_with(Interrupts::Never, "no thread", 0, 1);
    let set = |value| env::set(task.session.context(), INTERRUPT_SET, value).map_err(|error| error.code);
    assert_eq!(set(1), Err(LAPI_ERR_SET_VAL));
    assert_eq!(set(0), Ok(()));
    let other = Task::open_with(Interrupts::Off, "a thread", 0, 1);
    env::set(other.session.context(), INTERRUPT_SET, 1).expect("INTERRUPT_SET");
}

/// The descriptor is the program's for as long as the session lives.
#[test]
fn a_closed_session_refuses_to_sleep_and_keeps_its_descriptor() {
    let task = Task::open_with(Interrupts::Never, "closed beneath its loop", 0, 1);
    while task.session.arm().expect("an open session").is_none() {
        task.session.poll().expect("an open session");
    }
    std::thread::scope(|scope| scope.spawn(|| task.session.close()).join().expect("a thread"))
        .expect("an open session");
    assert_eq!(task.session.disarm().unwrap_err().code, LAPI_ERR_HNDL_INVALID);
    assert_eq!(task.session.arm().unwrap_err().code, LAPI_ERR_HNDL_INVALID);
    assert!(rustix::io::fcntl_getfd(&task.session).is_ok());
    task.session.wake();
}

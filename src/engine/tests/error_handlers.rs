//! When calls that a death ends return: after the error handler.

use super::calls::{Extras, counter, fence, forever, gfence, put};
use super::failure::{code, lost};
use super::job::{self, Habits, Task, in_threads};
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How many error handlers have returned.
static RETURNED: AtomicUsize = AtomicUsize::new(0);
/// How many error handlers run, or have run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// Whether the fence has returned for which an error handler waits.
static FENCED: AtomicBool = AtomicBool::new(false);

/// The thread of interrupt mode notices a death: calls of the program that end by it return when
/// the error handler has.
#[test]
fn calls_that_a_death_ends_return_after_the_error_handler() {
    for round in 0..20 {
        let (ends, fabric) = job::mortal_mem(2, 8, false);
        let tasks = job::open(ends, &Habits::THREADED);
        tasks[1].context.notifier.stop();
        RETURNED.store(0, Ordering::Relaxed);
        let handler = |_: &Task| {
            std::thread::sleep(Duration::from_millis(20));
            RETURNED.fetch_add(1, Ordering::Relaxed);
        };
        assert!(tasks[0].on_report.set(handler).is_ok());
        in_threads(&tasks[..1], 2, move |task, thread| {
            if thread == 0 {
                let awaited = Extras { cmpl_cntr: Some(counter()), ..Extras::default() };
                put(task, 1, forever(8).as_mut_ptr(), &*forever(8), awaited).expect("a put");
                fabric.kill(1);
            }
            // One call begins before the handler is called, or both while it runs.
            while (round % 2 == 0 || thread == 0) && task.reports().is_empty() {
                std::thread::sleep(Duration::from_micros(100));
            }
            if thread == 0 {
                fence(task).expect("a fence");
            } else {
                assert_eq!(code(gfence(task)), LAPI_ERR_NO_CONNECTIVITY);
            }
            assert_eq!(RETURNED.load(Ordering::Relaxed), 1, "round {round}, thread {thread}");
        });
        assert_eq!(tasks[0].reports(), [lost(0, 1)]);
        job::close(tasks);
    }
}

/// Error handlers of two threads that fence, one while the other one runs: neither waits for
/// the other.
#[test]
fn error_handlers_that_fence_do_not_wait_for_each_other() {
    let (ends, fabric) = job::mortal_mem(3, 8, false);
    let tasks = job::open(ends, &Habits { notifier: false, ..Habits::THREADED });
    RUNNING.store(0, Ordering::Relaxed);
    let handler = |task: &Task| {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        while RUNNING.load(Ordering::Relaxed) != 2 {
            std::thread::yield_now();
        }
        fence(task).expect("a fence in an error handler");
    };
    assert!(tasks[0].on_report.set(handler).is_ok());
    in_threads(&tasks[..1], 2, move |task, thread| {
        let peer = 1 + thread as u32;
        put(task, peer, forever(8).as_mut_ptr(), &*forever(8), Extras::default()).expect("a put");
        if thread == 0 {
            fabric.kill(1);
        } else {
            // The first handler waits for this one.
            while task.reports().is_empty() {
                std::thread::sleep(Duration::from_micros(100));
            }
            fabric.kill(2);
        }
        fence(task).expect("a fence");
    });
    let mut reports = tasks[0].reports();
    reports.sort_by_key(|report| report.src);
    assert_eq!(reports, [lost(0, 1), lost(0, 2)]);
    job::close(tasks);
}

/// An error handler waits for a thread that fences, as by a mutex: the fence returns.
#[test]
fn an_error_handler_that_waits_for_a_fence_does_not_hold_it() {
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::THREADED);
    tasks[1].context.notifier.stop();
    let handler = |_: &Task| {
        while !FENCED.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    };
    assert!(tasks[0].on_report.set(handler).is_ok());
    in_threads(&tasks[..1], 1, move |task, _| {
        let awaited = Extras { cmpl_cntr: Some(counter()), ..Extras::default() };
        put(task, 1, forever(8).as_mut_ptr(), &*forever(8), awaited).expect("a put");
        fabric.kill(1);
        while task.reports().is_empty() {
            std::thread::sleep(Duration::from_micros(100));
        }
        fence(task).expect("a fence");
        assert_eq!(code(gfence(task)), LAPI_ERR_NO_CONNECTIVITY);
        FENCED.store(true, Ordering::Relaxed);
    });
    assert_eq!(tasks[0].reports(), [lost(0, 1)]);
    job::close(tasks);
}

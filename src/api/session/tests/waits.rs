//! Waits with a deadline, and for conditions of the program.

use super::*;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const SOON: Duration = Duration::from_millis(20);

/// A loop of waits with a deadline is a program that polls.
#[test]
fn a_wait_whose_deadline_has_passed_makes_progress() {
    let tasks = [0, 1].map(|me| Task::open_with(Interrupts::Never, "deadlines that have passed", me, 2));
    let [origin, target] = &tasks;
    std::thread::scope(|scope| {
        let put = scope.spawn(|| origin.put(target, 1, &[7; 24]));
        let passed = Instant::now();
        let mut held = target.session.enter().expect("an open session");
        let here = || target.arrived.load(Ordering::Acquire) == 1;
        while !progress::wait_until(&mut held, Some(passed), here).expect("an open session") {
            std::thread::yield_now();
        }
        // The origin's fence needs this task.
        while !put.is_finished() {
            assert!(!progress::wait_until(&mut held, Some(passed), || false).expect("an open session"));
        }
    });
    assert_eq!(target.memory[0], [7; 24]);
}

#[test]
fn a_condition_that_another_thread_makes_true_ends_the_wait() {
    let task = Task::open("waits for a condition", 0, 1);
    let (flag, waits) = (AtomicBool::new(false), AtomicBool::new(false));
    for deadline in [None, Some(Instant::now() + crate::base::clock::test_deadline())] {
        for _ in 0..100 {
            flag.store(false, Ordering::Release);
            waits.store(false, Ordering::Release);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !waits.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    // Most of the waits sleep by now.
                    std::thread::sleep(Duration::from_millis(2));
                    flag.store(true, Ordering::Release);
                    task.session.wake();
                });
                let mut held = task.session.enter().expect("an open session");
                let condition = || {
                    waits.store(true, Ordering::Release);
                    flag.load(Ordering::Acquire)
                };
                assert!(progress::wait_until(&mut held, deadline, condition).expect("an open session"));
            });
        }
    }
    let mut held = task.session.enter().expect("an open session");
    let soon = Some(Instant::now() + SOON);
    assert!(!progress::wait_until(&mut held, soon, || false).expect("an open session"));
}

#[test]
fn a_wait_ends_with_the_session() {
    let task = Task::open("closed beneath a wait", 0, 1);
    let waits = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut held = task.session.enter().expect("an open session");
            let never = || {
                waits.store(true, Ordering::Release);
                false
            };
            progress::wait_until(&mut held, None, never).map_err(|error| error.code)
        });
        while !waits.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        task.session.close().expect("an open session");
        assert_eq!(waiter.join().expect("a thread"), Err(LAPI_ERR_HNDL_INVALID));
    });
}

//! The lock that a program shares with LAPI: LAPI_GET_THREAD_FUNC.

mod ltest;

use ltest::{job, passed, run};

/// Threads that wait sleep almost at once, or not so soon.
const SPINS: [&str; 2] = ["0", "5000"];

#[test]
fn every_function_has_its_codes() {
    for procs in [1, 2] {
        run("locks/codes", procs, "single");
    }
}

#[test]
fn threads_wait_for_the_lock_and_for_conditions() {
    for procs in [1, 2] {
        run("locks/codes", procs, "threads");
    }
}

#[test]
fn every_call_gives_others_a_turn() {
    for procs in [1, 2] {
        run("locks/codes", procs, "turns");
    }
}

#[test]
fn handlers_that_the_dispatcher_runs_hold_it() {
    for (procs, interrupts) in [(1, 1), (2, 0), (2, 1), (3, 1)] {
        run("locks/handlers", procs, &format!("with {interrupts}"));
    }
}

#[test]
fn completion_handlers_and_error_handlers_do_not() {
    for (procs, interrupts) in [(1, 1), (2, 0), (2, 1), (3, 1)] {
        run("locks/handlers", procs, &format!("without {interrupts}"));
    }
}

#[test]
fn it_may_be_held_for_the_whole_run() {
    for interrupts in 0..2 {
        for procs in 1..=3 {
            run("locks/whole", procs, &format!("{interrupts}"));
        }
        for spin in SPINS {
            passed(&job("locks/whole", 2, &format!("{interrupts}")).env("LAPI_SPIN", spin).run(), 2);
        }
    }
    passed(&job("locks/whole", 2, "1").env("LAPI_SHM_ATTACH", "deny").run(), 2);
}

#[test]
fn threads_that_want_it_get_it_from_one_that_keeps_it() {
    for interrupts in 0..2 {
        run("locks/whole", 1, &format!("{interrupts} 2"));
        for spin in SPINS {
            passed(&job("locks/whole", 2, &format!("{interrupts} 3")).env("LAPI_SPIN", spin).run(), 2);
        }
    }
}

#[test]
fn a_queue_between_handlers_and_threads() {
    for procs in 1..=3 {
        run("locks/queue", procs, "0");
        run("locks/queue", procs, "1");
    }
    passed(&job("locks/queue", 2, "1").env("LAPI_SPIN", "0").run(), 2);
}

#[test]
fn it_ends_with_the_handle() {
    for procs in [1, 2] {
        run("locks/ends", procs, "held");
        run("locks/ends", procs, "fork");
    }
}

#[test]
fn a_thread_that_waits_for_it_at_the_end_gets_an_error() {
    for procs in [1, 2] {
        for case in ["waiters", "inside"] {
            run("locks/ends", procs, case);
        }
    }
}

#[test]
fn handlers_may_end_it() {
    for procs in [1, 2] {
        for case in ["handler", "complete"] {
            run("locks/ends", procs, case);
        }
    }
}

//! Many threads of one task, and the threads that LAPI creates.

mod ltest;

use ltest::{job, passed, run};
use openlapi_tests::on_hosts;

#[test]
fn waiting_threads_do_not_block_each_other() {
    for (procs, seed) in [(1, 1), (2, 2), (3, 3)] {
        run("threads/threads", procs, &format!("waiters {seed}"));
    }
}

/// A thread that is alone for long takes the lock in a cheaper way, until another one comes.
#[test]
fn one_thread_calls_for_long_and_others_come() {
    for procs in [1, 2] {
        run("threads/threads", procs, "alone");
    }
}

#[test]
fn collective_calls_in_turns() {
    for procs in [1, 2, 4] {
        run("threads/threads", procs, "turns");
    }
}

#[test]
fn handles_come_and_go_in_any_order() {
    if on_hosts("handles in any order", "the tasks open their instances in one order there") {
        return;
    }
    for (procs, seed) in [(1, 1), (2, 2), (2, 3), (3, 4)] {
        let outcome =
            job("threads/threads", procs, &format!("handles {seed}")).env("MP_INFOLEVEL", "0").run();
        passed(&outcome, procs);
    }
}

#[test]
fn term_while_others_are_in_every_call() {
    for (procs, seed) in [(1, 1), (2, 2), (2, 3)] {
        let outcome = job("threads/threads", procs, &format!("term {seed}")).env("MP_INFOLEVEL", "0").run();
        passed(&outcome, procs);
    }
}

#[test]
fn handlers_run_where_the_manual_says() {
    for procs in [1, 2, 3] {
        run("threads/handlers", procs, "where");
    }
}

#[test]
fn completion_handlers_at_the_same_time_and_in_order() {
    for (procs, threads) in [(1, 2), (2, 8), (1, 1)] {
        run("threads/handlers", procs, &format!("together {threads}"));
    }
    for procs in [1, 2] {
        run("threads/handlers", procs, "order");
        run("threads/handlers", procs, "limits");
    }
}

#[test]
fn threads_are_made_as_the_program_says() {
    for procs in [1, 2] {
        for case in ["plain", "schedule", "place", "small", "rename"] {
            run("threads/attributes", procs, case);
        }
    }
}

/// A stack of 64 TiB, for which there is no memory.
#[test]
fn threads_that_cannot_be_made_are_an_error() {
    passed(&job("threads/attributes", 1, "refused").env("MP_INFOLEVEL", "0").run(), 1);
}

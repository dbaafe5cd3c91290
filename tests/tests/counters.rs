//! Counters: the semantics of the calls, and when each counter is incremented.

mod ltest;

use ltest::{job, passed, run};

#[test]
fn local_counters() {
    run("counters/semantics", 1, "local");
}

#[test]
fn a_thousand_counters() {
    run("counters/semantics", 1, "many");
    run("counters/semantics", 3, "many");
}

#[test]
fn one_counter_for_several_things() {
    run("counters/semantics", 1, "shared");
    run("counters/semantics", 2, "shared");
}

#[test]
fn counters_are_taken_off_in_portions() {
    run("counters/semantics", 2, "portions");
}

#[test]
fn operations_of_no_bytes_count() {
    for procs in [1, 2, 4] {
        run("counters/semantics", procs, "nothing");
        run("counters/semantics", procs, "nothing-checked");
    }
}

#[test]
fn probing_for_a_counter() {
    run("counters/semantics", 1, "probing");
    run("counters/semantics", 2, "probing");
}

#[test]
fn threads_wait_each_for_its_own_counter() {
    run("counters/semantics", 1, "threads");
    run("counters/semantics", 2, "threads");
}

#[test]
fn another_thread_wakes_a_waiting_one() {
    run("counters/semantics", 1, "wakes");
    run("counters/semantics", 2, "wakes");
}

#[test]
fn target_and_completion_counter_follow_the_handler() {
    for procs in [1, 2, 3] {
        run("counters/when", procs, "handler");
    }
}

#[test]
fn small_messages_are_copied_by_the_call() {
    for procs in [1, 2] {
        run("counters/when", procs, "copied");
        passed(&job("counters/when", procs, "copied").env("MP_REXMIT_BUF_SIZE", "4096").run(), procs);
        passed(&job("counters/when", procs, "copied").env("MP_REXMIT_BUF_SIZE", "100K").run(), procs);
    }
}

#[test]
fn the_origin_counter_gives_the_buffer_back() {
    for bulk in ["auto", "pipeline", "attach"] {
        passed(&job("counters/when", 2, "reusable").env("LAPI_SHM_BULK", bulk).run(), 2);
    }
}

#[test]
fn puts_are_there_when_they_are_complete() {
    for procs in [1, 2, 3] {
        run("counters/when", procs, "complete");
        passed(&job("counters/when", procs, "complete").env("LAPI_SPIN", "0").run(), procs);
    }
}

#[test]
fn msgpoll_says_what_has_completed() {
    run("counters/when", 2, "msgpoll");
    passed(&job("counters/when", 2, "msgpoll").env("LAPI_SHM_BULK", "pipeline").run(), 2);
}

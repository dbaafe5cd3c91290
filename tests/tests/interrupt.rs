//! Interrupt mode, polling mode, and waiting without using the processor.

mod ltest;

use std::fs;

use ltest::{job, passed, run};
use openlapi_tests::{build_dir, on_network};

#[test]
fn a_computing_target_is_served() {
    for (name, value) in [
        ("LAPI_SHM_BULK", "auto"),
        ("LAPI_SHM_BULK", "pipeline"),
        ("LAPI_SHM_BULK", "attach"),
        ("LAPI_SHM_ATTACH", "deny"),
    ] {
        passed(&job("interrupt/interrupt", 2, "on").env(name, value).run(), 2);
    }
}

#[test]
fn without_interrupts_handlers_run_inside_calls() {
    let path = build_dir().join(format!("tests/polling-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let outcome = job("interrupt/interrupt", 2, "off").arg(&path).run();
    let _ = fs::remove_file(&path);
    let _ = fs::remove_file(format!("{}-ready", path.display()));
    passed(&outcome, 2);
}

#[test]
fn the_mode_may_change_at_any_time() {
    run("interrupt/interrupt", 2, "toggle");
    run("interrupt/interrupt", 4, "toggle");
}

#[test]
fn sleepers_are_woken() {
    for procs in [2, 3, 8] {
        run("interrupt/interrupt", procs, "asleep");
    }
}

#[test]
fn a_program_may_close_the_descriptors_of_the_library() {
    if on_network("descriptors that the program closes", "the connections of libfabric are among them") {
        return;
    }
    run("interrupt/closed", 2, "");
}

#[test]
fn waiting_is_idle() {
    run("interrupt/interrupt", 2, "idle");
    run("interrupt/interrupt", 6, "idle");
}

#[test]
fn operations_go_on_without_any_call() {
    for bulk in ["auto", "pipeline", "attach"] {
        passed(&job("interrupt/interrupt", 2, "both").env("LAPI_SHM_BULK", bulk).run(), 2);
    }
    run("interrupt/interrupt", 1, "own");
    run("interrupt/interrupt", 2, "own");
}

#[test]
fn signals_disturb_nothing() {
    run("interrupt/interrupt", 1, "signals");
    run("interrupt/interrupt", 3, "signals");
}

/// SEED, see `tests/c/interrupt/storm.c`.
#[test]
fn the_mode_changes_all_the_time() {
    for (procs, seed) in [(1, 1), (2, 2), (2, 3), (4, 4), (7, 5)] {
        run("interrupt/storm", procs, &format!("storm {seed}"));
    }
    for bulk in ["pipeline", "attach"] {
        passed(&job("interrupt/storm", 2, "storm 6").env("LAPI_SHM_BULK", bulk).run(), 2);
    }
}

#[test]
fn msgpoll_reports_what_has_happened() {
    for procs in [1, 2, 3] {
        passed(&job("interrupt/storm", procs, "bits").env("MP_INFOLEVEL", "0").run(), procs);
    }
}

#[test]
fn polling_in_handlers() {
    for procs in [1, 2, 3] {
        run("interrupt/storm", procs, "poll");
    }
}

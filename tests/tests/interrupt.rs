//! Interrupt mode, polling mode, and waiting without using the processor.

mod ltest;

use std::fs;

use ltest::{job, passed, run};
use openlapi_tests::build_dir;

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

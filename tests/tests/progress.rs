//! Progress: what LAPI_Msgpoll reports, which calls serve messages, and when a call gives the
//! processor away.

mod ltest;

use ltest::run;
use std::process::Command;

#[test]
fn receptions_are_reported_whichever_call_has_served_them() {
    run("progress/msgpoll", 2, "kept");
}

#[test]
fn ping_pong_that_waits_for_its_own_messages() {
    for mode in ["polling", "interrupts"] {
        for len in [0, 5000, 200_000] {
            for (wait, rounds) in [("none", 300), ("org", 2000), ("cmpl", 300), ("fence", 300)] {
                let rounds = if len > 100_000 { rounds / 10 } else { rounds };
                run("progress/msgpoll", 2, &format!("pingpong {mode} {len} {wait} {rounds}"));
            }
        }
    }
}

#[test]
fn other_threads_do_not_take_receptions_away() {
    run("progress/msgpoll", 2, "threads 300");
}

/// Of a put without a target counter, too, whether its origin goes on or computes.
#[test]
fn puts_are_receptions() {
    [8, 100, 5000, 200_000].iter().for_each(|len| run("progress/msgpoll", 2, &format!("written {len} 30")));
}

#[test]
fn every_call_serves_messages_in_polling_mode() {
    for call in [
        "LAPI_Fence",
        "LAPI_Waitcntr",
        "LAPI_Setcntr",
        "LAPI_Getcntr",
        "LAPI_Qenv",
        "LAPI_Senv",
        "LAPI_Probe",
        "LAPI_Msgpoll",
        "LAPI_Put",
        "LAPI_Amsend",
    ] {
        run("progress/polling", 2, &format!("served {call}"));
    }
}

#[test]
fn a_global_fence_does_not_handle_what_comes_after_it() {
    // With more tasks, a message of one that has left the fence may overtake the packet of
    // another that has not.
    run("progress/polling", 2, "stops");
}

#[test]
fn polling_calls_yield_only_where_tasks_share_processors() {
    run("progress/polling", openlapi_tests::hosts() * (processors() + 1), "yields");
    run("progress/polling", 1, "alone");
}

#[test]
fn threads_sleep_while_another_one_is_in_the_error_handler() {
    for mode in ["polling", "interrupts", "switched"] {
        run("progress/handler", 2, mode);
    }
}

#[test]
fn a_handler_that_makes_calls_runs_once_for_each_message() {
    run("progress/calls_in_handlers", 2, "");
}

/// How many processors the library sees.
fn processors() -> usize {
    let output = Command::new("getconf").arg("_NPROCESSORS_ONLN").output().expect("getconf runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

//! Data arrives exact: every size class, misalignment, path and number of operations.

mod ltest;
#[path = "ltest/paths.rs"]
mod paths;

use ltest::{job, passed, run};
use openlapi_tests::{long_form, needs_copies, on_network};
use paths::every_path;

const LARGEST: usize = 8 << 20;

#[test]
fn puts_of_every_size() {
    every_path(|| job("data/sizes", 2, &format!("put {LARGEST}")), 2);
    every_path(|| job("data/sizes", 2, "xput 1048576"), 2);
}

#[test]
fn gets_of_every_size() {
    every_path(|| job("data/sizes", 2, &format!("get {LARGEST}")), 2);
    every_path(|| job("data/sizes", 2, "xget 1048576"), 2);
}

#[test]
fn active_messages_of_every_size() {
    every_path(|| job("data/sizes", 2, &format!("am {LARGEST}")), 2);
    every_path(|| job("data/sizes", 2, "xam 1048576"), 2);
}

/// The kernel allows copies across address spaces at LAPI_Init and refuses each one later.
#[test]
fn every_size_when_copies_are_refused_later() {
    if needs_copies("sizes with copies refused later") {
        return;
    }
    for kind in ["put", "get", "am"] {
        passed(
            &job("data/sizes", 2, &format!("{kind} 2097152 refused")).env("LAPI_SHM_BULK", "attach").run(),
            2,
        );
        run("data/sizes", 3, &format!("{kind} 262144 refused"));
    }
}

#[test]
fn every_size_with_other_numbers_of_tasks() {
    for kind in ["put", "get", "am"] {
        run("data/sizes", 1, &format!("{kind} {LARGEST}"));
        run("data/sizes", 3, &format!("{kind} 262144"));
        run("data/sizes", 8, &format!("{kind} 65536"));
    }
}

#[test]
fn every_misalignment() {
    for kind in ["put", "get", "am"] {
        every_path(|| job("data/align", 2, &format!("{kind} 65537")), 2);
        run("data/align", 1, &format!("{kind} 65537"));
    }
}

#[test]
fn ten_thousand_operations_under_way() {
    every_path(|| job("stress/storm", 2, "20051101 10000 10000 1 65536"), 2);
    run("stress/storm", 1, "7 10000 10000 1 65536");
    run("stress/storm", 3, "11 10000 10000 1 16384");
}

#[test]
fn read_modify_write() {
    for procs in [1, 2, 3] {
        run("data/rmw", procs, "values");
        run("data/rmw", procs, "odd");
    }
    for procs in [1, 2, 4, 16] {
        run("data/rmw", procs, "storm");
        run("data/rmw", procs, "lock");
    }
}

/// A message of 5 GiB, and with `TEST_LONG=yes` in the environment also one of 1 GiB and those of
/// the other way, one after the other because they need the memory.
#[test]
fn messages_of_more_than_four_gib() {
    if on_network("messages of more than 4 GiB", "tests/tests/network.rs sends them") {
        return;
    }
    let others: &[_] = if long_form() { &[(5, "pipeline"), (1, "auto")] } else { &[] };
    for (gib, bulk) in [(5, "attach")].iter().chain(others) {
        let outcome = job("data/huge", 2, &gib.to_string()).env("LAPI_SHM_BULK", bulk).deadline(240).run();
        passed(&outcome, 2);
        for line in outcome.stdout.lines().filter(|line| line.contains("SKIP")) {
            eprintln!("{line}");
        }
    }
}

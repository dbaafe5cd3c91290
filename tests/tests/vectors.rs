//! Vectors: LAPI_Putv, LAPI_Getv, LAPI_Amsendv and their forms in LAPI_Xfer.

mod ltest;
#[path = "ltest/paths.rs"]
mod paths;

use ltest::{job, passed, run};
use openlapi_tests::needs_copies;
use paths::{PATHS, every_path};

/// One piece to a hundred thousand, 0 to 2 MiB, to the task itself and to others.
fn shapes(kind: &str) {
    every_path(|| job("vectors/shapes", 2, &format!("{kind} 2000000")), 2);
    run("vectors/shapes", 1, &format!("x{kind} 2000000"));
    run("vectors/shapes", 3, &format!("x{kind} 400000"));
}

#[test]
fn puts_of_every_shape() {
    shapes("putv");
}

#[test]
fn gets_of_every_shape() {
    shapes("getv");
}

#[test]
fn messages_of_every_shape() {
    shapes("amv");
}

/// The kernel allows copies across address spaces at LAPI_Init and refuses each one later.
#[test]
fn shapes_when_copies_are_refused_later() {
    if needs_copies("shapes with copies refused later") {
        return;
    }
    for kind in ["putv", "xgetv", "amv"] {
        let job = job("vectors/shapes", 2, &format!("{kind} 2000000 refused"));
        passed(&job.env("LAPI_SHM_BULK", "attach").run(), 2);
        run("vectors/shapes", 3, &format!("{kind} 400000 refused"));
    }
}

/// Pieces of many MiB.
#[test]
fn large_shapes() {
    for (kind, (name, value)) in ["xputv", "amv", "xgetv", "xamv"].into_iter().zip(PATHS) {
        passed(&job("vectors/shapes", 2, &format!("{kind} 100000000")).env(name, value).run(), 2);
    }
}

#[test]
fn random_vectors() {
    every_path(|| job("vectors/random", 2, "20051101 800"), 2);
    run("vectors/random", 1, "4 400");
    run("vectors/random", 3, "5 400");
    run("vectors/random", 4, "6 240");
}

#[test]
fn generic_vectors_of_other_pieces() {
    for procs in [1, 2, 3] {
        run("vectors/handler", procs, "chapter");
    }
    run("vectors/handler", 1, "generic");
    every_path(|| job("vectors/handler", 2, "generic"), 2);
}

#[test]
fn vector_header_handlers() {
    for procs in [1, 2, 3] {
        run("vectors/handler", procs, "interface");
    }
    passed(&job("vectors/handler", 2, "interface").env("LAPI_SHM_BULK", "attach").run(), 2);
}

#[test]
fn unwanted_data_is_dropped() {
    for procs in [1, 2, 3] {
        run("vectors/handler", procs, "unwanted");
    }
    passed(&job("vectors/handler", 2, "unwanted").env("LAPI_SHM_ATTACH", "deny").run(), 2);
}

#[test]
fn dropped_messages_come_again() {
    for procs in [1, 2, 4] {
        run("vectors/handler", procs, "drop");
    }
}

#[test]
fn threads_of_completion_handlers() {
    for procs in [1, 2] {
        run("vectors/handler", procs, "threads");
    }
}

#[test]
fn fences_wait_for_vectors() {
    for procs in [1, 2, 3] {
        run("vectors/calls", procs, "fence");
    }
    for value in ["pipeline", "attach"] {
        passed(&job("vectors/calls", 2, "fence").env("LAPI_SHM_BULK", value).run(), 2);
    }
}

#[test]
fn short_vectors_are_copied_at_once() {
    for procs in [1, 2, 3] {
        run("vectors/calls", procs, "copied");
    }
}

#[test]
fn vectors_to_a_target_that_computes() {
    for procs in [1, 2, 3] {
        run("vectors/calls", procs, "passive");
    }
}

#[test]
fn vectors_from_handlers_and_threads() {
    for procs in [1, 2, 3] {
        run("vectors/calls", procs, "replies");
        run("vectors/calls", procs, "threads");
    }
}

#[test]
fn every_wrong_vector_has_its_code() {
    for procs in [1, 2] {
        for case in ["checked", "unchecked", "handles"] {
            run("vectors/params", procs, case);
        }
    }
}

#[test]
fn no_pieces_at_all() {
    for procs in [1, 2, 3] {
        run("vectors/params", procs, "zero");
    }
}

#[test]
fn pieces_of_no_bytes() {
    run("vectors/params", 1, "empty");
    every_path(|| job("vectors/params", 2, "empty"), 2);
}

#[test]
fn wrong_results_of_header_handlers_are_reported() {
    for procs in [1, 2, 3] {
        run("vectors/async", procs, "reported");
        run("vectors/async", procs, "longer");
    }
    let outcome = job("vectors/async", 2, "default").run();
    assert!(
        !outcome.timed_out && outcome.status != Some(0),
        "without an error handler the job ends\n{outcome}"
    );
    outcome.says("LAPI_ERR_VEC_TYPE_DIFF").says("task 1");
}

/// One after the other, because they need the memory.
#[test]
fn more_than_four_gib() {
    for (kind, bulk) in [("getv", "attach"), ("amv", "pipeline")] {
        let outcome = job("vectors/huge", 2, kind).env("LAPI_SHM_BULK", bulk).deadline(240).run();
        passed(&outcome, 2);
        for line in outcome.stdout.lines().filter(|line| line.contains("SKIP")) {
            eprintln!("{line}");
        }
    }
}

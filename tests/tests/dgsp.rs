//! Data gather/scatter programs: LAPI_DGSP_XFER, the requests of LAPI_Util for them, data
//! distribution functions.

mod ltest;
#[path = "ltest/paths.rs"]
mod paths;

use ltest::{job, passed, run};
use paths::every_path;

#[test]
fn every_layout_at_origin_and_target() {
    run("dgsp/transfer", 1, "layouts");
    every_path(|| job("dgsp/transfer", 2, "layouts"), 2);
    run("dgsp/transfer", 3, "layouts");
}

#[test]
fn blocks_longer_than_packets() {
    run("dgsp/transfer", 1, "large");
    every_path(|| job("dgsp/transfer", 2, "large"), 2);
}

#[test]
fn programs_that_hold_addresses() {
    for procs in [1, 2, 3] {
        run("dgsp/transfer", procs, "absolute");
    }
}

#[test]
fn offsets_that_are_addresses_of_the_target() {
    run("dgsp/absolute", 1, "null");
    every_path(|| job("dgsp/absolute", 2, "null"), 2);
}

#[test]
fn contiguous_data_whatever_the_program_says() {
    run("dgsp/absolute", 1, "contiguous");
    every_path(|| job("dgsp/absolute", 2, "contiguous"), 2);
}

#[test]
fn atoms_larger_than_packets_are_refused_by_the_verifier() {
    for procs in [1, 2] {
        passed(&job("dgsp/absolute", procs, "atom").env("LAPI_VERIFY_DGSP", "yes").run(), procs);
    }
}

#[test]
fn fewer_bytes_delivered_than_sent() {
    for procs in [1, 2] {
        run("dgsp/transfer", procs, "bytes");
    }
}

#[test]
fn random_programs() {
    every_path(|| job("dgsp/random", 2, "20051101 400"), 2);
    run("dgsp/random", 1, "4 400");
    run("dgsp/random", 3, "5 240");
    run("dgsp/random", 4, "6 160");
}

/// The verifier accepts programs whose descriptors are correct.
#[test]
fn random_programs_verified() {
    passed(&job("dgsp/random", 2, "7 400").env("LAPI_VERIFY_DGSP", "yes").run(), 2);
    passed(&job("dgsp/ddm", 2, "random 8 100").env("LAPI_VERIFY_DGSP", "yes").run(), 2);
}

#[test]
fn random_packing() {
    run("dgsp/pack", 1, "random 1 400");
    run("dgsp/pack", 2, "random 2 200");
}

#[test]
fn packing_errors_and_edges() {
    for procs in [1, 2] {
        run("dgsp/pack", procs, "errors");
        run("dgsp/pack", procs, "edges");
    }
}

#[test]
fn accumulation() {
    run("dgsp/ddm", 1, "sums");
    every_path(|| job("dgsp/ddm", 2, "sums"), 2);
    run("dgsp/ddm", 3, "sums");
    for procs in [1, 2] {
        run("dgsp/ddm", procs, "partial");
        run("dgsp/ddm", procs, "replace");
    }
}

#[test]
fn random_programs_with_control() {
    every_path(|| job("dgsp/ddm", 2, "random 20051101 200"), 2);
    run("dgsp/ddm", 1, "random 4 200");
    run("dgsp/ddm", 3, "random 5 100");
}

#[test]
fn programs_live_as_long_as_they_are_used() {
    for procs in [1, 2] {
        for case in ["counts", "handles", "threads"] {
            run("dgsp/life", procs, case);
        }
    }
    for procs in [1, 2, 3] {
        run("dgsp/life", procs, "flight");
    }
    passed(&job("dgsp/life", 2, "flight").env("LAPI_SHM_BULK", "pipeline").run(), 2);
}

#[test]
fn wrong_programs_are_refused() {
    for procs in [1, 2] {
        run("dgsp/errors", procs, "verify");
        run("dgsp/errors", procs, "params");
    }
}

#[test]
fn programs_in_the_wrong_place_are_reported() {
    for procs in [1, 2, 3] {
        run("dgsp/errors", procs, "reported");
    }
    passed(&job("dgsp/errors", 2, "reported").env("LAPI_SHM_BULK", "attach").run(), 2);
    let outcome = job("dgsp/errors", 2, "default").run();
    assert!(
        !outcome.timed_out && outcome.status != Some(0),
        "without an error handler the job ends\n{outcome}"
    );
    outcome.says("LAPI_ERR_DGSP_CTL");
}

//! RDMA transfers: memory and contexts (LAPI_Util), and LAPI_RDMA_XFER (LAPI_Xfer).

#[expect(dead_code, reason = "the number of tasks is a part of each job here")]
mod ltest;
#[path = "ltest/paths.rs"]
mod paths;

use ltest::{job, passed};
use openlapi_tests::{Job, has_fabric, is_on_network, on_network, skipped};
use paths::every_path;

const PIECE: usize = 16 << 20;

/// A job that may hold this many contexts of each task.
fn rdma(case: &str, procs: usize, count: &str) -> Job {
    job("rdma/rdma", procs, case).poe_arg("-rdma_count").poe_arg(count)
}

fn firehose(procs: usize, args: &str) -> Job {
    job("rdma/firehose", procs, args).env("MP_RDMA_COUNT", "4").deadline(180)
}

/// The job over UDP, and over libfabric if it is here.
fn by_network(make: impl Fn() -> Job, procs: usize) {
    if on_network("RDMA transfers by UDP and libfabric", "the test chooses the transport itself") {
        return;
    }
    let here = || make().env("LAPI_USE_SHM", "no").env("TEST_TRANSPORT", "fabric").deadline(180);
    passed(&here().env("MP_EUILIB", "ip").run(), procs);
    if has_fabric() {
        passed(&here().env("LAPI_FABRIC_PROVIDER", "tcp;ofi_rxm").run(), procs);
    } else {
        skipped("RDMA transfers by libfabric", "libfabric.so.1 is not installed");
    }
}

#[test]
fn without_a_count_there_is_no_resource() {
    for count in [None, Some("0"), Some("0,4")] {
        let job = job("rdma/rdma", 2, "absent").env("MP_INFOLEVEL", "1");
        let outcome = count.into_iter().fold(job, |job, count| job.env("MP_RDMA_COUNT", count)).run();
        passed(&outcome, 2);
        assert!(!outcome.stderr.contains("LAPI_Util"), "a program may ask without a message\n{outcome}");
        // One that has not asked, or has not looked at the answer, cannot go on.
        outcome.says("LAPI_Xfer: LAPI_ERR_NO_RDMA_RESOURCE (498)");
    }
    let outcome = job("rdma/rdma", 1, "absent").env("MP_INFOLEVEL", "2").run();
    passed(&outcome, 1);
    assert!(outcome.stderr.contains("MP_RDMA_COUNT"), "{outcome}");
}

#[test]
fn a_count_that_is_no_number_is_refused() {
    let outcome = job("init/init", 1, "code 400").env("MP_RDMA_COUNT", "some").env("MP_INFOLEVEL", "1").run();
    passed(&outcome, 1);
    assert!(outcome.stderr.contains("MP_RDMA_COUNT is \"some\"; allowed: N, or N,M"), "{outcome}");
}

#[test]
fn memory_is_acquired_and_released() {
    for procs in [1, 2] {
        passed(&rdma("registrations", procs, "1").run(), procs);
    }
}

#[test]
fn contexts_of_other_tasks_are_counted() {
    for procs in [1, 2, 4] {
        passed(&rdma("contexts", procs, "3").run(), procs);
    }
    passed(&rdma("contexts", 2, "3,17").run(), 2);
}

#[test]
fn wrong_parameters_are_refused() {
    for procs in [2, 3] {
        passed(&rdma("refused", procs, "2").run(), procs);
    }
}

#[test]
fn puts_and_gets_of_every_length() {
    passed(&rdma(&format!("transfers {PIECE}"), 2, "1").deadline(180).run(), 2);
    every_path(|| rdma("transfers 1048576", 2, "1"), 2);
    passed(&rdma("transfers 65536", 3, "1").run(), 3);
}

#[test]
fn puts_and_gets_of_every_length_by_a_network() {
    by_network(|| rdma("transfers 1048576", 2, "1"), 2);
}

#[test]
fn a_put_is_counted_when_it_is_at_the_target() {
    every_path(|| rdma("counters", 2, "1"), 2);
    by_network(|| rdma("counters", 3, "1"), 3);
}

#[test]
fn handlers_run_after_completion() {
    every_path(|| rdma("handlers", 2, "1"), 2);
    by_network(|| rdma("handlers", 2, "1"), 2);
}

#[test]
fn a_purge_ends_transfers_by_their_handlers() {
    if on_network("a purge under RDMA transfers", "a network may complete them without the target") {
        return;
    }
    passed(&rdma("purged", 2, "1").env("LAPI_SHM_ATTACH", "no").run(), 2);
}

#[test]
fn a_firehose_of_gets_and_puts() {
    let (rounds, pieces) = if is_on_network() { (6, 1) } else { (20, 3) };
    passed(&firehose(2, &format!("11 {rounds} {pieces} 4")).run(), 2);
    passed(&firehose(4, &format!("12 {rounds} {pieces} 2")).run(), 4);
    by_network(|| firehose(3, "13 6 1 1"), 3);
}

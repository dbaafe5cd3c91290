//! All operations at once, from a seed.

mod ltest;

use ltest::{job, passed, run};
use openlapi_tests::{Job, is_on_network};

/// SEED OPS WINDOW THREADS LARGEST, see `tests/c/stress/storm.c`.
fn storm(procs: usize, args: &str) {
    passed(&job("stress/storm", procs, args).deadline(120).run(), procs);
}

#[test]
fn two_tasks() {
    for seed in 1..=4 {
        storm(2, &format!("{seed} 4000 64 1 262144"));
    }
    storm(2, "5 300 300 1 4000000");
}

#[test]
fn four_tasks() {
    for seed in 11..=13 {
        storm(4, &format!("{seed} 2000 100 1 131072"));
    }
}

#[test]
fn sixteen_tasks() {
    storm(16, "21 600 50 1 65536");
    storm(16, "22 600 600 1 16384");
}

#[test]
fn sixty_four_tasks() {
    storm(64, "25 150 30 1 8192");
}

#[test]
fn several_threads_on_one_handle() {
    storm(1, "31 2000 50 4 65536");
    storm(2, "32 1500 50 4 65536");
    storm(3, "33 1000 1 3 65536");
    storm(2, "34 500 500 8 16384");
}

/// HANDLES THREADS ROUNDS, see `tests/c/stress/threads.c`.
#[test]
fn many_threads_on_one_handle_and_on_several() {
    for (procs, args) in [(2, "1 4 100"), (1, "2 2 60"), (2, "3 3 60"), (4, "2 3 40")] {
        passed(&job("stress/threads", procs, args).deadline(120).run(), procs);
    }
}

#[test]
fn without_cross_memory_attach() {
    for (name, value) in
        [("LAPI_SHM_ATTACH", "deny"), ("LAPI_SHM_BULK", "attach"), ("LAPI_SHM_BULK", "pipeline")]
    {
        passed(&job("stress/storm", 4, "41 1500 100 2 262144").env(name, value).deadline(120).run(), 4);
    }
}

#[test]
fn a_long_run_needs_no_more_memory() {
    run("stress/steady", 1, "1500");
    run("stress/steady", 2, "1500");
    run("stress/steady", 4, "400");
}

/// How long the storms of [`bounded`] send: 2 seconds, or STORM_SECONDS.
fn storm_seconds() -> u64 {
    std::env::var("STORM_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2)
}

/// What a provider of libfabric takes for its own buffers, in MiB: tcp;ofi_rxm takes 1,024 of 16
/// KiB for each direction.
const PROVIDER: u32 = 32;

/// MODE SECONDS MIB, see `tests/c/stress/bounded.c`. After a storm everything arrives with a second
/// of CPU time, which takes minutes when dozens of other processes compute.
fn bounded(mode: &str, mib: u32, environment: &[(&str, &str)]) {
    let seconds = storm_seconds();
    let mib = if is_on_network() { mib + PROVIDER } else { mib };
    let job = job("stress/bounded", 2, &format!("{mode} {seconds} {mib}")).deadline(seconds + 300);
    let job = environment.iter().fold(job, |job: Job, (name, value)| job.env(name, value));
    passed(&job.run(), 2);
}

#[test]
fn what_a_sender_keeps_for_a_target_that_computes_is_bounded() {
    bounded("silent", 16, &[]);
    bounded("silent", 16, &[("LAPI_SHM_BULK", "pipeline")]);
}

/// Four buffers, and no more copies than that, however long messages are.
#[test]
fn the_number_of_copies_is_that_of_the_buffers() {
    let four = ("MP_REXMIT_BUF_CNT", "4");
    bounded("silent", 20, &[four, ("MP_REXMIT_BUF_SIZE", "65536")]);
    bounded("silent", 24, &[four, ("MP_REXMIT_BUF_SIZE", "1M"), ("LAPI_SHM_BULK", "pipeline")]);
}

/// A thousand handlers may wait, each with 16 KiB of the program's.
#[test]
fn what_waits_for_slow_completion_handlers_is_bounded() {
    bounded("slow", 40, &[]);
}

#[test]
fn what_is_kept_of_refused_messages_is_bounded() {
    bounded("refused", 16, &[]);
}

/// Both tasks have more handlers queued than they may, and each handler waits for a packet behind
/// what is held back: the bound gives way, and they end.
#[test]
fn tasks_that_exceed_their_bounds_and_wait_for_each_other_progress() {
    bounded("mutual", 96, &[]);
}

#[test]
fn a_call_that_finds_no_memory_says_so() {
    let buffers =
        [("MP_REXMIT_BUF_SIZE", "65536"), ("MP_REXMIT_BUF_CNT", "100000"), ("LAPI_SHM_BULK", "pipeline")];
    bounded("memory", 0, &buffers);
    bounded("little", 0, &buffers);
}

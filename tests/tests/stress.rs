//! All operations at once, from a seed.

mod ltest;

use ltest::{job, passed, run};

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

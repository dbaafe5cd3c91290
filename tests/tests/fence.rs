//! LAPI_Fence and LAPI_Gfence.

mod ltest;

use ltest::{job, passed, run};

#[test]
fn after_a_fence_the_data_of_puts_is_there() {
    for bulk in ["pipeline", "attach"] {
        passed(&job("fence/fence", 2, "put 150").env("LAPI_SHM_BULK", bulk).run(), 2);
    }
    run("fence/fence", 1, "put 20");
    run("fence/fence", 5, "put 10");
}

#[test]
fn after_a_fence_the_data_of_active_messages_is_there() {
    for procs in [1, 2, 3] {
        run("fence/fence", procs, "am 15");
    }
}

#[test]
fn a_fence_waits_for_gets_and_read_modify_writes() {
    run("fence/fence", 1, "get 20");
    run("fence/fence", 2, "get 100");
    run("fence/fence", 3, "get 20");
}

#[test]
fn global_fences_by_the_thousand() {
    for (procs, rounds) in [(1, 5000), (2, 5000), (3, 3000), (5, 2000), (8, 1000), (16, 500)] {
        run("fence/fence", procs, &format!("gfence {rounds}"));
    }
}

#[test]
fn global_fences_of_tasks_that_sleep() {
    for (procs, rounds) in [(2, 30), (4, 20), (5, 20), (16, 32)] {
        passed(&job("fence/fence", procs, &format!("late {rounds}")).env("LAPI_SPIN", "0").run(), procs);
    }
}

#[test]
fn a_global_fence_orders_everything() {
    for (procs, rounds) in [(1, 20), (2, 60), (3, 20)] {
        run("fence/fence", procs, &format!("mixed {rounds}"));
    }
}

#[test]
fn collective_calls_that_do_not_match_fail_in_every_task() {
    for procs in [2, 3, 5, 16] {
        let outcome = job("fence/mismatch", procs, "").env("MP_INFOLEVEL", "1").run();
        passed(&outcome, procs);
        for text in [
            "LAPI_Gfence of task 0 met LAPI_Address_init of task",
            "LAPI_Address_init of task 1 met LAPI_Gfence",
        ] {
            assert!(outcome.stderr.contains(text), "{text} is missing\n{outcome}");
        }
    }
}

//! Tasks that are purged and rejoin: LAPI_Purge_totask, LAPI_Resume_totask, and the counters for them.

mod ltest;

use ltest::{job, passed, program, run};
use openlapi_tests::Job;

#[test]
fn return_codes_and_purged_targets() {
    for procs in [2, 3] {
        run("recovery/codes", procs, "codes");
    }
    run("recovery/codes", 2, "level");
}

#[test]
fn statuses_say_from_which_tasks_messages_have_come() {
    for procs in [2, 3, 5] {
        run("recovery/codes", procs, "statuses");
    }
}

#[test]
fn a_purge_wakes_waiters() {
    run("recovery/codes", 2, "waiters");
}

#[test]
fn tasks_give_each_other_up_and_begin_again() {
    for (way, seed) in [("auto", 1), ("pipeline", 2), ("attach", 3)] {
        let outcome = job("recovery/again", 3, &format!("40 {seed}")).env("LAPI_SHM_BULK", way).run();
        passed(&outcome, 3);
    }
}

/// Without a launcher the death of a task does not end the job.
#[test]
fn a_task_that_was_killed_is_replaced() {
    for (tasks, way) in [(2, "auto"), (3, "pipeline"), (4, "attach")] {
        let key = format!("{}{tasks}", std::process::id());
        let start = |task: usize| {
            Job::direct(program("recovery/restart"))
                .arg("5")
                .env("MP_CHILD", task.to_string())
                .env("MP_PROCS", tasks.to_string())
                .env("MP_PARTITION", &key)
                .env("LAPI_SHM_BULK", way)
                .start()
        };
        let running: Vec<_> = (0..tasks).map(start).collect();
        let outcomes: Vec<_> = running.into_iter().map(openlapi_tests::Running::wait).collect();
        for (task, outcome) in outcomes.iter().enumerate() {
            if task == 1 {
                assert_eq!(outcome.signal, Some(9), "the first task 1 is killed\n{outcome}");
            } else {
                outcome.ok();
            }
        }
        // The last task 1 writes where task 0 does.
        let said: usize = outcomes.iter().map(|outcome| outcome.stdout.matches("PASS").count()).sum();
        assert_eq!(said, tasks, "every task prints one PASS\n{outcomes:?}");
    }
}

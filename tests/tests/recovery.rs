//! Tasks that are purged and rejoin: LAPI_Purge_totask, LAPI_Resume_totask, and the
//! counters for them.

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

/// What a stopped task sends when it continues reaches no memory that the program has back.
#[test]
fn a_stopped_task_is_given_up_and_continues() {
    for (way, seed) in [("auto", 1), ("pipeline", 2), ("attach", 3)] {
        let outcome = job("recovery/stopped", 3, &format!("2 {seed}")).env("LAPI_SHM_BULK", way).run();
        passed(&outcome, 3);
    }
}

/// A task that is purged and resumed by a living one learns of it when it waits for that one, and
/// both begin again.
#[test]
fn a_task_that_was_purged_alone_learns_of_it() {
    for case in ["waits", "sends", "quiet"] {
        for (a, b) in [(0, 1), (2, 0)] {
            passed(&job("recovery/parted", 3, &format!("{a} {b} {case}")).run(), 3);
        }
    }
}

/// Without a launcher the death of a task does not end the job.
#[test]
fn a_task_that_was_killed_is_replaced() {
    for (tasks, way) in [(2, "auto"), (3, "pipeline"), (4, "attach")] {
        restarted(&Job::direct(program("recovery/restart")).arg("5").env("LAPI_SHM_BULK", way), tasks, way);
    }
}

/// A task that learns of a death when it has communicated with the new process purges and resumes
/// the latter, which knows nothing of that.
#[test]
fn a_task_is_replaced_before_another_one_learns_of_its_death() {
    for case in ["quiet", "waits", "fences"] {
        restarted(&Job::direct(program("recovery/successor")).arg(case), 3, case);
    }
}

/// Runs a job without a launcher whose task 1 is killed, and started again by task 0.
#[track_caller]
fn restarted(job: &Job, tasks: usize, name: &str) {
    let key = format!("{}{tasks}{}", std::process::id(), name.bytes().map(u32::from).sum::<u32>());
    let start = |task: usize| {
        job.clone()
            .env("MP_CHILD", task.to_string())
            .env("MP_PROCS", tasks.to_string())
            .env("MP_PARTITION", &key)
            .start()
    };
    let running: Vec<_> = (0..tasks).map(start).collect();
    let outcomes: Vec<_> = running.into_iter().map(openlapi_tests::Running::wait).collect();
    for (task, outcome) in outcomes.iter().enumerate() {
        if task == 1 {
            assert_eq!(outcome.signal, Some(9), "{name}: the first task 1 is killed\n{outcome}");
        } else {
            outcome.ok();
        }
    }
    // The last task 1 writes where task 0 does.
    let said: usize = outcomes.iter().map(|outcome| outcome.stdout.matches("PASS").count()).sum();
    assert_eq!(said, tasks, "{name}: every task prints one PASS\n{outcomes:?}");
}

//! Processes that a task creates: forked children, programs that it starts, and programs that it
//! executes by exec.

mod ltest;

use ltest::{job, passed, program, run};
use openlapi_tests::{Job, on_network};

/// What a program that a task becomes or starts finds open.
const INHERITED: &str = "libfabric does not mark its descriptors close-on-exec";

/// A child makes calls that must fail, and they need not print messages.
fn quietly(program: &str, procs: usize, args: &str) {
    passed(&job(program, procs, args).env("MP_INFOLEVEL", "0").run(), procs);
}

#[test]
fn no_call_works_with_the_parents_handle() {
    for procs in [1, 2] {
        quietly("fork/fork", procs, "calls");
    }
}

#[test]
fn children_disturb_no_other_task() {
    for (procs, seed) in [(1, 1), (2, 2), (2, 3), (4, 4)] {
        quietly("fork/fork", procs, &format!("storm {seed}"));
    }
}

#[test]
fn children_do_not_keep_tasks_from_meeting() {
    for procs in [1, 2, 3] {
        quietly("fork/fork", procs, "opening");
    }
}

#[test]
fn handlers_may_fork() {
    for procs in [1, 2, 3] {
        quietly("fork/fork", procs, "handlers");
    }
}

#[test]
fn what_other_threads_held_does_not_stop_a_child() {
    quietly("fork/fork", 1, "locked 120");
}

#[test]
fn children_form_jobs() {
    if on_network("jobs of children", "no launcher exchanges the addresses of children") {
        return;
    }
    for procs in [1, 2] {
        quietly("fork/jobs", procs, "children");
    }
}

#[test]
fn one_process_forks_all_tasks() {
    passed(&Job::direct(program("fork/jobs")).arg("before").env("MP_INFOLEVEL", "0").run(), 1);
}

#[test]
fn a_job_of_one_task_forks_another() {
    passed(&Job::direct(program("fork/jobs")).arg("child").env("MP_INFOLEVEL", "0").run(), 1);
    quietly("fork/jobs", 1, "child");
}

#[test]
fn programs_inherit_nothing_of_ours() {
    if on_network("descriptors of programs that a task starts", INHERITED) {
        return;
    }
    for (procs, seed) in [(1, 1), (2, 2), (3, 3)] {
        run("fork/exec", procs, &format!("spawn {seed}"));
    }
}

#[test]
fn a_job_becomes_another_program() {
    if on_network("descriptors after exec", INHERITED) {
        return;
    }
    for procs in [1, 2, 4] {
        run("fork/exec", procs, "again 5 term");
        run("fork/exec", procs, "again 5 not");
    }
}

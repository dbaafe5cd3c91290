//! Jobs of several processes: each test starts itself under poe, and its tasks run the body.

use lapi::Context;
use openlapi_tests::{Job, Outcome};

const IN_JOB: &str = "LAPI_RUST_TEST";

/// Whether this process is a task, which is to run the body.
pub fn is_task() -> bool {
    std::env::var_os(IN_JOB).is_some()
}

/// The job of `test` with a number of tasks.
pub fn prepare(test: &str, tasks: usize) -> Job {
    let program = std::env::current_exe().expect("a program knows its path");
    let job = Job::new(program)
        .procs(tasks)
        .arg(test)
        .arg("--exact")
        .arg("--nocapture")
        .env(IN_JOB, "1")
        .env("LAPI_VERIFY_DGSP", "yes");
    // One copy would end a long get within the call that starts it.
    job.env("LAPI_SHM_ATTACH", "no")
}

/// Starts `test` with a number of tasks; `None` in a task, which is to run the body.
pub fn start(test: &str, tasks: usize) -> Option<Outcome> {
    (!is_task()).then(|| prepare(test, tasks).run())
}

/// Runs the body in each task of jobs of these numbers of tasks, all of which must succeed.
pub fn job(test: &str, numbers: &[usize], body: impl Fn(Context)) {
    for &tasks in numbers {
        let Some(outcome) = start(test, tasks) else { return body(Context::open().expect("a context")) };
        passed(&outcome, tasks);
    }
}

/// Fails unless the test has passed in that number of tasks.
#[track_caller]
pub fn passed(outcome: &Outcome, tasks: usize) {
    outcome.ok();
    assert_eq!(outcome.stdout.matches("1 passed").count(), tasks, "{outcome}");
}

pub fn code<T: std::fmt::Debug>(result: lapi::Result<T>) -> i32 {
    result.expect_err("the call is refused").code
}

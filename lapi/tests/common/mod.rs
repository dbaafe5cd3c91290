//! Jobs of several processes: each test starts itself under poe, and its tasks run the body.

use lapi::Context;
use openlapi_tests::{Job, Outcome};

const IN_JOB: &str = "LAPI_RUST_TEST";

/// Starts `test` with a number of tasks; `None` in a task, which is to run the body.
pub fn start(test: &str, tasks: usize) -> Option<Outcome> {
    if std::env::var_os(IN_JOB).is_some() {
        return None;
    }
    let program = std::env::current_exe().expect("a program knows its path");
    let job = Job::new(program)
        .procs(tasks)
        .arg(test)
        .arg("--exact")
        .arg("--nocapture")
        .env(IN_JOB, "1")
        .env("LAPI_VERIFY_DGSP", "yes");
    // One copy would end a long get within the call that starts it.
    Some(job.env("LAPI_SHM_ATTACH", "no").run())
}

/// Runs the body in each task of jobs of these numbers of tasks, all of which must succeed.
pub fn job(test: &str, numbers: &[usize], body: impl Fn(Context)) {
    for &tasks in numbers {
        let Some(outcome) = start(test, tasks) else { return body(Context::open().expect("a context")) };
        outcome.ok();
        assert_eq!(outcome.stdout.matches("1 passed").count(), tasks, "{outcome}");
    }
}

pub fn code<T: std::fmt::Debug>(result: lapi::Result<T>) -> i32 {
    result.expect_err("the call is refused").code
}

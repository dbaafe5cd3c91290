//! What the tests of the library's behaviour share: programs of `tests/c` linked with
//! `tests/c/common`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;

use openlapi_tests::{Job, Outcome, compile};

/// Programs, with the beginning of their arguments, that need the number of tasks that the test
/// gives, or whose work grows with the square of that number and takes minutes with 16.
const FIXED: [(&str, &str); 4] =
    [("dgsp/transfer", ""), ("failure/silence", ""), ("interrupt/storm", ""), ("recovery/again", "")];

/// Compiles `tests/c/NAME.c`.
pub fn program(name: &str) -> PathBuf {
    let source = format!("tests/c/{name}.c");
    compile(&name.replace('/', "-"), &[&source, "tests/c/common/ltest.c"], &[])
}

/// A job of that program with arguments split at blanks.
pub fn job(name: &str, procs: usize, args: &str) -> Job {
    args.split_whitespace().fold(Job::new(program(name)).procs(procs), Job::arg)
}

/// Fails unless the job succeeded and each of its tasks printed PASS.
#[track_caller]
pub fn passed(outcome: &Outcome, procs: usize) {
    outcome.ok();
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, procs, "every task prints one PASS\n{outcome}");
}

/// Runs a job and expects it to pass.
///
/// With `TEST_TASKS` in the environment (`make test-crowded`) a program that a test runs with
/// three tasks or more, and so works with any number, runs with that many instead, once for the
/// same arguments.
#[track_caller]
pub fn run(name: &str, procs: usize, args: &str) {
    let Some(tasks) = crowd(name, procs, args) else { return passed(&job(name, procs, args).run(), procs) };
    static RUN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let first = {
        let mut run = RUN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        run.get_or_insert_default().insert(format!("{name} {args}"))
    };
    if first {
        passed(&job(name, tasks, args).deadline(180).run(), tasks);
    }
}

/// The number of tasks that takes the place of `procs`.
fn crowd(name: &str, procs: usize, args: &str) -> Option<usize> {
    let tasks = std::env::var("TEST_TASKS").ok()?.parse().expect("TEST_TASKS is a number");
    let fixed = FIXED.iter().any(|(program, begin)| *program == name && args.starts_with(begin));
    (procs > 2 && !fixed).then_some(tasks)
}

//! What the tests of the library's behaviour share: programs of `tests/c` linked with `tests/c/common`.

use std::path::PathBuf;

use openlapi_tests::{Job, Outcome, compile};

/// Compiles `tests/c/NAME.c`.
pub fn program(name: &str) -> PathBuf {
    let source = format!("tests/c/{name}.c");
    compile(&name.replace('/', "-"), &[&source, "tests/c/common/ltest.c"], &[])
}

/// A job of that program with arguments split at blanks.
pub fn job(name: &str, procs: usize, args: &str) -> Job {
    args.split_whitespace().fold(Job::new(program(name)).procs(procs), Job::arg)
}

/// Fails unless the job ended well and each of its tasks said so.
#[track_caller]
pub fn passed(outcome: &Outcome, procs: usize) {
    outcome.ok();
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, procs, "every task prints one PASS\n{outcome}");
}

/// Runs a job and expects it to pass.
#[track_caller]
pub fn run(name: &str, procs: usize, args: &str) {
    passed(&job(name, procs, args).run(), procs);
}

//! `poe` as its users see it.

mod debugger;
mod early;
mod ends;
mod environment;
mod hosts;
mod leftovers;
mod limits;
mod options;
mod streams;

use std::fs;
use std::path::{Path, PathBuf};

use openlapi_tests::{Job, build_dir, compile_plain};

/// The program that all tests start: its first argument selects its action.
pub fn task() -> PathBuf {
    compile_plain("poe_task", &["tests/c/poe/task.c"], &[])
}

/// A job of this number of tasks with this action.
pub fn job(tasks: usize, what: &[&str]) -> Job {
    what.iter().fold(Job::new(task()).procs(tasks), Job::arg)
}

/// The job in a process for which the system refuses one thing: `thread`, `fork` or `terminal`.
pub fn refusing(job: Job, what: &str) -> Job {
    let library = compile_plain("poe_refuse", &["tests/c/poe/refuse.c"], &["-shared", "-fPIC"]);
    job.env("LD_PRELOAD", library).env("REFUSE", what)
}

/// The job in processes whose forks, from the third on, wait while this file is there: of poe and
/// its supervisor, those are the starts of tasks after the first one.
pub fn holding_forks(job: Job, file: &Path) -> Job {
    refusing(job, "").env("HOLD_FORKS", file)
}

/// A file in a folder of the tests, with this in it.
pub fn file(name: &str, text: &str) -> PathBuf {
    let path = build_dir().join("tests").join(name);
    fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the folder can be made");
    fs::write(&path, text).expect("the file can be written");
    path
}

/// The lines in an order of their own: tasks write in any.
pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

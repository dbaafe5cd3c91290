//! Tasks that end, or get a signal, before LAPI_Init or after LAPI_Term: no other task may hang
//! because of it.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use openlapi_tests::{Job, compile, eventually, has_fabric, on_network, skipped};

use crate::file;

/// A LAPI program whose first argument selects how task 1 ends.
pub fn program() -> PathBuf {
    compile("poe_early", &["tests/c/poe/early.c"], &[])
}

fn early(tasks: usize, what: &[&str]) -> Job {
    what.iter().fold(Job::new(program()).procs(tasks), Job::arg)
}

/// A name for a file that does not exist yet.
fn signpost(name: &str) -> PathBuf {
    let path = file(name, "");
    fs::remove_file(&path).expect("it was there");
    path
}

#[test]
fn a_task_that_ends_before_lapi_init_fails_the_calls_that_wait_for_it() {
    for status in [0, 1, 3, 127] {
        let ended = format!("exited with status {status} before it called LAPI_Init");
        let outcome = early(3, &["never", &status.to_string()]).run();
        // LAPI_Init waits for no task; without an error handler the failure of LAPI_Gfence ends the
        // others. The status is that of the first cause, where that is no success.
        let expected = if status == 0 { 134 } else { status };
        outcome.exited(expected).says("task 1 (").says(&ended).says("poe: first cause: task 1 (");
        outcome.says("LAPI_ERR_NO_CONNECTIVITY").says(&format!("task 1 {ended}"));
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
    // Task 0 is no exception, and the other tasks going on changes nothing.
    let outcome = early(3, &["never", "0", "0"]).poe_arg("-on_death").poe_arg("continue").run();
    outcome.exited(134).says("task 0 exited with status 0 before it called LAPI_Init");
}

#[test]
fn a_task_whose_lapi_init_fails_fails_the_calls_that_wait_for_it() {
    let outcome = early(3, &["full"]).run();
    outcome.exited(1).says("after its LAPI_Init had failed: LAPI_Init: LAPI_ERR_SHM_SETUP (439)");
    assert_eq!(outcome.stdout.matches("LAPI_Init returns").count(), 1, "{outcome}");
    assert!(!outcome.stdout.contains("returns 0"), "{outcome}");
}

/// A status below 128 ends no other task, and none that needs this one waits for it: over a network
/// it fails in LAPI_Init, over shared memory in LAPI_Gfence. The job has the status of the cause.
#[test]
fn a_job_ends_when_the_lapi_init_of_one_task_has_failed() {
    if on_network("LAPI_Init that fails in one task", "it chooses the transports itself") {
        return;
    }
    for (network, shares) in [("us", "only"), ("us", "no"), ("ip", "no")] {
        if (network, shares) == ("us", "no") && !has_fabric() {
            skipped("LAPI_Init that fails in one task, over us", "libfabric is not installed");
            continue;
        }
        for (status, task) in [(1, "0"), (2, "1"), (2, "2")] {
            let job = early(3, &["invalid", &status.to_string(), task]).deadline(60);
            let outcome = job.env("MP_EUILIB", network).env("LAPI_USE_SHM", shares).run();
            outcome.exited(status).says("LAPI_Init: LAPI_ERR_UNKNOWN (400): MP_INFOLEVEL is \"much\"");
            let last = outcome.stderr.trim_end().lines().last().unwrap_or_default();
            assert!(last.starts_with(&format!("poe: first cause: task {task} (")), "{network} {outcome}");
        }
    }
}

#[test]
fn a_task_that_comes_to_lapi_init_later_learns_of_the_end_too() {
    let go = signpost("early_go");
    let mut running =
        early(2, &["never-late", &go.to_string_lossy()]).poe_arg("-infolevel").poe_arg("2").start();
    running.until_it_says("exited with status 0");
    fs::write(&go, "").expect("it can be written");
    running.wait().exited(134).says("task 1 exited with status 0 before it called LAPI_Init");
}

/// The end with status 0 was no failure when it happened, and is a reason for one now.
#[test]
fn a_task_that_ended_before_any_task_came_to_lapi_init_is_named_when_the_job_fails() {
    let go = signpost("early_before_all");
    let mut running = early(2, &["never-late", &go.to_string_lossy()]).start();
    let process = PathBuf::from(format!("/proc/{}", running.lines(1)[0].trim()));
    assert!(eventually(|| !process.exists()), "{} does not end", process.display());
    fs::write(&go, "").expect("it can be written");
    let outcome = running.wait();
    outcome.exited(134).says("task 1 (").says("exited with status 0 before it called LAPI_Init");
    // Where nothing fails, and in programs that do not use LAPI, there is no message.
    let outcome = Job::new("/bin/sh").procs(2).arg("-c").arg("exit 0").run();
    assert_eq!(outcome.ok().stderr, "", "{outcome}");
    let outcome = Job::new("/bin/sh").procs(2).arg("-c").arg("sleep $MP_CHILD; exit $MP_CHILD").run();
    assert!(!outcome.exited(1).stderr.contains("task 0"), "{outcome}");
}

#[test]
fn a_task_that_leaves_without_lapi_term_has_not_died() {
    let outcome = early(2, &["noterm"]).run();
    outcome.says("task 1 (").says("exited with status 0 without calling LAPI_Term");
    assert!(outcome.status.is_some_and(|status| status > 0), "{outcome}");
    assert!(!outcome.stderr.contains("died"), "{outcome}");
    // When no other task needs it nothing has failed, and there is no message.
    let outcome = early(2, &["noterm-both"]).run();
    assert_eq!(outcome.ok().stderr, "", "{outcome}");
}

#[test]
fn asking_for_a_report_ends_no_task() {
    for (when, says) in [("late", "has not replied"), ("left", "has not replied")] {
        let go = signpost(&format!("early_{when}"));
        let mut running = early(2, &[when, &go.to_string_lossy()]).start();
        running.lines(1);
        running.signal(Signal::SIGUSR2);
        running.until_it_says("poe: end of the report\n");
        fs::write(&go, "").expect("it can be written");
        let outcome = running.wait();
        assert_eq!(outcome.ok().stdout.matches("PASS").count(), 2, "{outcome}");
        outcome.says(says);
    }
}

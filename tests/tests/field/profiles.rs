//! Profiles of jobs that do not end well, of handlers, of crowds; and what poe says of a profile.

use crate::job;
use nix::sys::signal::Signal;
use openlapi_tests::{Job, Running, build_dir, workspace};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let path = build_dir().join("tests/field-profiles").join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn profiled(job: Job, out: &Path) -> Job {
    job.poe_arg("-profile").poe_arg(out)
}

fn report(out: &Path) -> Value {
    let path = out.join("report.json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn findings(report: &Value) -> Vec<&str> {
    report["findings"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// The number of the line of a program that has this text.
fn line(program: &str, text: &str) -> usize {
    let source = fs::read_to_string(workspace().join(program)).expect("the program");
    1 + source.lines().position(|line| line.contains(text)).expect("the text")
}

/// A job whose tasks have all said READY, and some time after that.
fn hung(job: Job, tasks: usize) -> Running {
    let mut running = job.start();
    let lines = running.lines(tasks);
    assert_eq!(lines.iter().filter(|line| line.contains("READY")).count(), tasks, "{lines:?}");
    // Their waits are to be most of what they do.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    running
}

#[test]
fn the_profile_of_a_hung_job_says_where_its_tasks_were() {
    let out = folder("hung");
    let running = hung(profiled(job("dead", 3, ""), &out), 3);
    running.signal(Signal::SIGINT);
    let outcome = running.wait();
    outcome.exited(128 + 2).says(&format!("poe: profile: {}/report.html\n", out.display()));
    // Tables are printed when they are asked for.
    assert!(!outcome.stderr.contains("lapiprof: task"), "{outcome}");
    let report = report(&out);
    let fence = line("tests/field/dead.c", "/* here */");
    let found = findings(&report);
    assert_eq!(
        found[..2],
        [
            format!("Tasks 0, 1 were in LAPI_Gfence at dead.c:{fence} when the job was stopped.").as_str(),
            "Task 2 was outside LAPI when the job was stopped.",
        ],
        "{found:?}"
    );
    for task in &report["task"].as_array().expect("a list")[..2] {
        let (waiting, wall) =
            (task["waiting"].as_u64().expect("a time"), task["wall"].as_u64().expect("a time"));
        assert!(2 * waiting > wall, "{task}");
    }
    // Over time, too: in the last column of task 0 nearly all is waiting.
    let lane = &report["lanes"]["rows"][0];
    let wait = lane["share"]["wait"].as_array().expect("a list");
    assert!(wait[wait.len() - 2].as_u64() > Some(900), "{lane}");
}

#[test]
fn a_job_at_its_time_limit_has_a_profile_and_tables_on_request() {
    let out = folder("limit");
    let limited = profiled(job("dead", 2, ""), &out).poe_arg("-timeout").poe_arg("3");
    let outcome = limited.env("LAPIPROF_TABLE", "1").run();
    outcome.exited(124).says(&format!("poe: profile: {}/report.html\n", out.display()));
    assert_eq!(outcome.stderr.matches("lapiprof: task ").count(), 1, "{outcome}");
    let report = report(&out);
    assert!(findings(&report)[0].starts_with("Task 0 was in LAPI_Gfence at dead.c:"), "{report}");
}

/// The report of a job that hangs, which is asked for by a signal.
fn reported(how: &str) -> String {
    let mut running = hung(job("dead", 2, how), 2);
    // Long enough for the waiting thread to have slept for a period.
    std::thread::sleep(std::time::Duration::from_secs(2));
    running.signal(Signal::SIGUSR2);
    let text = running.until_it_says("poe: end of the report\n");
    running.signal(Signal::SIGTERM);
    running.wait();
    text
}

#[test]
fn the_report_of_a_hung_job_names_source_lines() {
    let fence = line("tests/field/dead.c", "/* here */");
    let text = reported("");
    let clause = format!("task 0 waits in LAPI_Gfence for task 1, called in main at dead.c:{fence}\n");
    assert!(text.contains(&clause), "{clause}\n{text}");
    assert!(text.contains(&format!("; for task 1, called in main at dead.c:{fence}\n")), "{text}");
    let text = reported("handler");
    let handler = line("tests/field/dead.c", "static void *never");
    let lines =
        [handler, handler + 1].map(|line| format!("in a header handler, never at dead.c:{line}, for "));
    assert!(lines.iter().any(|line| text.contains(line)), "{lines:?}\n{text}");
}

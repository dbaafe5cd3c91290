//! liblapiprof.so: a job that is interrupted, or a task of which dies, leaves a profile
//! of every task.

mod ltest;

use ltest::{passed, run};
use nix::sys::signal::Signal;
use openlapi_tests::{Job, Outcome, Running, build_dir, stage};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    let path = build_dir().join("tests/lapiprof-interrupted").join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn job(tasks: usize, how: &str, out: &Path) -> Job {
    ltest::job("profiling/interrupted", tasks, how)
        .env("LD_PRELOAD", stage().join("lib/liblapiprof.so"))
        .env("LAPIPROF_OUT", out)
}

/// Starts the job, and returns when every task waits for a signal.
#[track_caller]
fn ready(job: Job, tasks: usize) -> Running {
    let mut running = job.start();
    let lines = running.lines(tasks);
    assert_eq!(lines.iter().filter(|line| line.contains("READY")).count(), tasks, "{lines:?}");
    running
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Merges by hand; the report has everything that each task did, and has the reason for each part.
#[track_caller]
fn merged(out: &Path, why: &[&str], outcome: &Outcome) {
    let merged = Command::new(stage().join("bin/lapi_prof")).arg("merge").arg(out).output().expect("it runs");
    let said = String::from_utf8_lossy(&merged.stdout);
    let tasks = why.len() as u64;
    assert!(merged.status.success(), "{merged:?}\n{outcome}");
    assert!(said.contains(&format!("{tasks} of {tasks} tasks")), "{said}");
    assert!(said.contains("only an interim part of task"), "{said}");
    let report = read(&out.join("report.json"));
    assert_eq!(report["missing"], json!([]), "{outcome}");
    assert_eq!(report["interim"], json!((0..tasks).collect::<Vec<_>>()), "{outcome}");
    let found: Vec<&str> = report["task"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|task| task["interim"].as_str())
        .collect();
    assert_eq!(found, why, "{outcome}");
    let links = report["links"].as_array().expect("a list");
    assert_eq!(links.len() as u64, tasks, "{outcome}");
    for link in links {
        assert_eq!((&link["put"]["count"], &link["put"]["bytes"]), (&json!(5), &json!(500)), "{outcome}");
    }
    let puts = report["sites"].as_array().expect("a list").iter().find(|row| row["call"] == "LAPI_Put");
    let site = puts.expect("there were puts")["site"].as_str().expect("a name").to_owned();
    assert!(site.starts_with("put_five+0x"), "{site}");
    let page = fs::read_to_string(out.join("report.html")).expect("there is a page");
    assert!(page.contains("part written"), "{outcome}");
}

fn tables(outcome: &Outcome) -> usize {
    outcome
        .stderr
        .lines()
        .filter(|line| line.contains("lapiprof: task ") && line.contains(" calls in "))
        .count()
}

#[test]
fn an_interrupted_job_leaves_a_profile_of_every_task() {
    for (signal, name) in
        [(Signal::SIGINT, "SIGINT"), (Signal::SIGTERM, "SIGTERM"), (Signal::SIGHUP, "SIGHUP")]
    {
        let out = folder(name);
        let running = ready(job(3, "", &out), 3);
        running.signal(signal);
        let outcome = running.wait();
        outcome.exited(128 + signal as i32);
        assert_eq!(tables(&outcome), 3, "{outcome}");
        merged(&out, &[name; 3], &outcome);
    }
}

#[test]
fn a_task_that_crashes_leaves_a_profile_and_so_do_the_others() {
    for (how, signal, name) in [("segv", 11, "SIGSEGV"), ("abort", 6, "SIGABRT")] {
        let out = folder(how);
        let outcome = job(3, how, &out).run();
        outcome.exited(128 + signal);
        assert!(
            outcome.stderr.contains(&format!("signal {signal}")),
            "the task died by its signal\n{outcome}"
        );
        merged(&out, &["SIGTERM", name, "SIGTERM"], &outcome);
    }
}

/// LAPI itself ends a task in this way when another one has died and there is no error handler.
#[test]
fn tasks_that_end_by_the_system_call_leave_a_profile() {
    let out = folder("exit");
    let outcome = job(3, "exit", &out).run();
    assert_eq!(tables(&outcome), 3, "{outcome}");
    merged(&out, &["_exit"; 3], &outcome);
}

#[test]
fn a_task_that_is_killed_leaves_its_last_interim_part() {
    let out = folder("kill");
    let outcome = job(3, "kill", &out).env("LAPIPROF_INTERVAL", "1").run();
    outcome.exited(128 + 9);
    merged(&out, &["SIGTERM", "running", "SIGTERM"], &outcome);
}

/// Between the part that names the signal and the end of a task, several intervals pass.
#[test]
fn no_interim_part_replaces_the_one_of_the_signal() {
    let out = folder("slow");
    let running = ready(job(2, "slow", &out).env("LAPIPROF_INTERVAL", "1"), 2);
    running.signal(Signal::SIGTERM);
    let outcome = running.wait();
    merged(&out, &["SIGTERM"; 2], &outcome);
}

#[test]
fn the_handler_of_the_program_runs_as_without_the_profiler() {
    let out = folder("handler");
    let running = ready(job(2, "handler", &out), 2);
    running.signal(Signal::SIGTERM);
    let outcome = running.wait();
    assert_eq!(outcome.stdout.lines().filter(|line| line.contains("HANDLED")).count(), 2, "{outcome}");
    // The tasks continued to their LAPI_Term: the report is final, and made without help.
    let report = read(&out.join("report.json"));
    assert_eq!((&report["interim"], &report["missing"]), (&json!([]), &json!([])), "{outcome}");
    let left: Vec<_> =
        fs::read_dir(&out).expect("the folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("interim")), "{left:?}");
}

#[test]
fn a_forked_child_is_ended_by_a_signal_as_usual() {
    run("profiling/interrupted", 2, "child");
    let out = folder("child");
    let outcome = job(2, "child", &out).run();
    passed(&outcome, 2);
    assert_eq!(tables(&outcome), 2, "the child prints none\n{outcome}");
}

/// The program's handler and the profiler's do not call each other in turn.
#[test]
fn a_handler_that_calls_the_one_before_it_stays_in_a_forked_child() {
    let out = folder("chain");
    passed(&job(2, "chain", &out).run(), 2);
}

#[test]
fn without_a_folder_an_interrupted_task_prints_its_table() {
    let running = ready(job(2, "", Path::new("")), 2);
    running.signal(Signal::SIGINT);
    let outcome = running.wait();
    assert_eq!(tables(&outcome), 2, "{outcome}");
}

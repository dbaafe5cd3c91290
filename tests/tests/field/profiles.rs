//! Profiles of jobs that do not end well, of handlers, of crowds; and what poe says of a profile.

use crate::job;
use crate::surroundings::{library, opens, over_each_transport};
use nix::sys::signal::Signal;
use openlapi_tests::{
    Deadline, Job, Running, build_dir, compile_with, has_fabric, is_installed, on_network, skipped, stage,
    workspace,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

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

/// A job whose tasks have all said READY, and of which all but the last have waited most of the
/// time since its start.
fn hung(job: Job, tasks: usize) -> Running {
    let start = Instant::now();
    let mut running = job.deadline(300).start();
    let lines = running.lines(tasks);
    assert_eq!(lines.iter().filter(|line| line.contains("READY")).count(), tasks, "{lines:?}");
    // They say it before they wait.
    let wait = format!("{tasks} tasks, {} wait", tasks - 1);
    let mut last = Deadline::after(Duration::from_secs(60));
    loop {
        let mut top = Command::new(stage().join("bin/lapi_top"));
        let shown = top.args(["-b", "-n", "1", &running.pid().to_string()]).output().expect("it runs");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        if shown.contains(&wait) {
            break;
        }
        assert!(!last.has_passed(), "{wait}\n{shown}");
        sleep(Duration::from_millis(50));
    }
    sleep(start.elapsed() + Duration::from_secs(1));
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
    // Over time, too: of a column of task 0 in its second half nearly all is waiting. Its last ones
    // may be after its end.
    let lane = &report["lanes"]["rows"][0];
    let wait = lane["share"]["wait"].as_array().expect("a list");
    assert!(wait[wait.len() * 2 / 3].as_u64() > Some(900), "{lane}");
}

#[test]
fn a_job_at_its_time_limit_has_a_profile_and_tables_on_request() {
    // The time that the tasks take to come to their wait is the machine's.
    for seconds in ["3", "12", "48"] {
        let out = folder("limit");
        let limited = profiled(job("dead", 2, ""), &out).poe_arg("-timeout").poe_arg(seconds).deadline(120);
        let outcome = limited.env("LAPIPROF_TABLE", "1").run();
        outcome.exited(124);
        if outcome.stdout.matches("READY").count() < 2 && seconds != "48" {
            continue;
        }
        outcome.says(&format!("poe: profile: {}/report.html\n", out.display()));
        assert_eq!(outcome.stderr.matches("lapiprof: task ").count(), 1, "{outcome}");
        let report = report(&out);
        let waits = |found: &&str| found.starts_with("Task 0 was in LAPI_Gfence at dead.c:");
        if findings(&report).first().is_some_and(waits) {
            return;
        }
        assert!(seconds != "48", "{report}");
    }
}

/// A user asks once: the first report names the calls, their places and who is missing, over each
/// transport. A job that has not come to its wait yet, on a busy machine, gets more time.
#[test]
fn one_look_says_why_a_job_hangs() {
    if on_network("a hung job over each transport", "it chooses the transports itself") {
        return;
    }
    let place = format!("called in main at dead.c:{}", line("tests/field/dead.c", "/* here */"));
    let facts = [
        "poe: job report (requested): 3 of 3 tasks have replied\n",
        "  collective call number 2: entered by tasks 0, 1, not by task 2\n",
        &format!("  task 0 waits in LAPI_Gfence for task 2, {place}\n"),
        &format!("  task 1 waits in LAPI_Gfence for task 2, {place}\n"),
        "  task 2 is not inside LAPI (asleep, process state S)\n",
    ];
    for (network, shares) in [("us", "only"), ("us", "no"), ("ip", "no")] {
        if (network, shares) == ("us", "no") && !has_fabric() {
            skipped("a hung job over us", "libfabric is not installed");
            continue;
        }
        for seconds in [1, 6, 36] {
            let job = job("dead", 3, "").env("MP_EUILIB", network).env("LAPI_USE_SHM", shares);
            let mut running = job.deadline(120).start();
            running.lines(3);
            sleep(Duration::from_secs(seconds));
            running.signal(Signal::SIGUSR2);
            let report = running.until_it_says("poe: end of the report\n");
            running.signal(Signal::SIGTERM);
            running.wait();
            if facts.iter().all(|fact| report.contains(fact)) {
                break;
            }
            assert!(seconds != 36, "{network}, LAPI_USE_SHM={shares}: {facts:?} are expected\n{report}");
        }
    }
}

/// Asks a job that hangs for reports, by signals, until one is as it should be.
fn reported(job: Job, facts: impl Fn(&str) -> bool) {
    let mut running = job.deadline(300).start();
    running.lines(2);
    let mut last = Deadline::after(Duration::from_secs(60));
    for reports in 1.. {
        running.signal(Signal::SIGUSR2);
        let mut text = running.stderr_so_far();
        while text.matches("poe: end of the report\n").count() < reports {
            assert!(!last.has_passed(), "{reports} reports were asked for\n{text}");
            sleep(Duration::from_millis(10));
            text = running.stderr_so_far();
        }
        if facts(&text) {
            break;
        }
        // The waiting thread sleeps for a period first.
        assert!(!last.has_passed(), "{text}");
        sleep(Duration::from_millis(200));
    }
    running.signal(Signal::SIGTERM);
    running.wait();
}

#[test]
fn the_report_of_a_hung_job_names_source_lines() {
    let fence = line("tests/field/dead.c", "/* here */");
    let clause = format!("task 0 waits in LAPI_Gfence for task 1, called in main at dead.c:{fence}\n");
    let cause = format!("; for task 1, called in main at dead.c:{fence}\n");
    reported(job("dead", 2, ""), |text| text.contains(&clause) && text.contains(&cause));
    if is_installed("gfortran") {
        let fence = line("tests/field/dead.f90", "! here");
        let compiler = stage().join("bin/mpxlf90_r");
        let program = compile_with(&compiler, "field-dead-f90", &["tests/field/dead.f90"], &[]);
        let clause =
            format!("task 0 waits in LAPI_Gfence for task 1, called in MAIN__ at dead.f90:{fence}\n");
        let named = |text: &str| text.contains(&clause);
        reported(Job::new(&program).procs(2), named);
        reported(profiled(Job::new(&program).procs(2), &folder("reported")), named);
    } else {
        skipped("a hang report of a Fortran program", "gfortran is not installed");
    }
    let handler = line("tests/field/dead.c", "static void *never");
    let lines =
        [handler, handler + 1].map(|line| format!("in a header handler, never at dead.c:{line}, for "));
    let named = |text: &str| lines.iter().any(|line| text.contains(line));
    reported(job("dead", 2, "handler"), named);
    reported(profiled(job("dead", 2, "handler"), &folder("reported")), named);
}

/// The loader's lock is held all the time: LAPI's threads report without it, and run handlers,
/// which the profiler records; it tells the places of a profile, and a fault is described.
#[test]
fn a_job_that_hangs_in_the_constructor_of_a_library_is_reported() {
    // SAFETY: a name that ends with a zero.
    if unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }.is_null() {
        return skipped("a report under the loader's lock", "glibc is older than 2.35");
    }
    let fence = line("tests/field/in_constructor.c", "/* here */");
    let place = format!("called in waits at in_constructor.c:{fence}\n");
    let job = Job::new(opens()).arg(library("in_constructor")).procs(2);
    over_each_transport("a report under the loader's lock", &job, |transport, job| {
        let clause = format!("task 0 waits in LAPI_Gfence for task 1, {place}");
        reported(job.clone(), |text| text.contains(&clause));
        if transport != "shm" {
            return;
        }
        let out = folder("constructor");
        let running = hung(profiled(job.clone(), &out), 2);
        running.signal(Signal::SIGINT);
        running.wait().exited(128 + 2);
        let report = report(&out);
        let waits =
            format!("Task 0 was in LAPI_Gfence at in_constructor.c:{fence} when the job was stopped.");
        assert!(findings(&report).contains(&waits.as_str()), "{report}");

        let outcome = job.env("FAULT", "1").run();
        outcome.exited(139).says("signal 11 (SIGSEGV) at address 0x40");
        outcome.says(" in completes at in_constructor.c:");
    });
}

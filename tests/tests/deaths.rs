//! Tasks on several hosts that die or become silent, while the others continue.

#[expect(dead_code, reason = "every job here chooses its hosts")]
mod ltest;

use ltest::job;
use openlapi_tests::{Hosts, Job, Launcher, Marked, Outcome, skipped};

/// Two hosts, and a launcher by which poe reaches them.
fn two_hosts(what: &str) -> Option<Hosts> {
    if Launcher::Hydra.command().is_none() {
        skipped(what, "Hydra is not installed");
        return None;
    }
    Hosts::new(2).map_err(|why| skipped(what, &why)).ok()
}

/// The job with task `i` on host `places[i]`; the death of a task does not end it.
fn on(hosts: &Hosts, places: &[usize], job: Job) -> Job {
    let lines: Vec<String> = places.iter().map(|&host| hosts.name(host)).collect();
    let job = job.deadline(20).poe_arg("-launcher").poe_arg("hydra").poe_arg("-on_death").poe_arg("continue");
    hosts.poe_on(&hosts.host_file(&(lines.join("\n") + "\n")), job.poe_arg("-infolevel").poe_arg("0"))
}

#[track_caller]
fn all_but(outcome: &Outcome, procs: usize, gone: usize) {
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, procs - gone, "every survivor prints one PASS\n{outcome}");
}

/// The time from the death to its report, as far as the job has printed it.
fn delay(outcome: &Outcome) -> Option<i64> {
    let at = |word: &str| {
        let after = |line: &str| line.split_once(word)?.1.trim().parse::<i64>().ok();
        outcome.stdout.lines().find_map(after)
    };
    Some(at("REPORTED ")? - at("DIES ")?)
}

/// Only the deadline of the job is asserted; the time is printed.
#[test]
fn a_task_killed_on_another_host_is_reported() {
    let what = "the death of a task on another host";
    let Some(hosts) = two_hosts(what) else { return };
    for places in [&[0, 1][..], &[0, 1, 1], &[0, 1, 0, 1]] {
        let tasks = places.len();
        let outcome = Marked::start(on(&hosts, places, job("failure/silence", tasks, "killed"))).over();
        all_but(outcome.exited(137), tasks, 1);
        println!("{tasks} tasks: reported {:?} ms later", delay(&outcome));
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

#[test]
fn the_others_go_on_across_hosts() {
    let what = "deaths on several hosts";
    let Some(hosts) = two_hosts(what) else { return };
    for (case, places, victim, time) in [
        ("idle", &[0, 0, 1, 1][..], 3, 20_000),
        ("origin", &[0, 0, 1, 1], 2, 5_300),
        ("target", &[0, 1, 0, 1], 1, 20_000),
        ("deaf", &[0, 1, 1], 1, 30_000),
        ("header", &[0, 0, 1, 1], 0, 0),
        ("gfence", &[0, 0, 1, 1], 2, 9_700),
        ("exchange", &[0, 1, 0], 0, 4_100),
        ("counter", &[0, 0, 1], 2, 400_000),
        ("term", &[0, 0, 1, 1], 1, 10_000),
        ("init", &[0, 0, 1, 1], 2, 300_000),
    ] {
        let tasks = places.len();
        let job = job("failure/survive", tasks, &format!("{case} {victim} {time}"));
        let outcome = Marked::start(on(&hosts, places, job)).over();
        all_but(outcome.exited(137).says(&format!("task {victim} (")), tasks, 1);
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

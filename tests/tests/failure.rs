//! Tasks that die, and machines without a usable /dev/shm.

mod ltest;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, thread};

use ltest::{job, program, run};
use openlapi_tests::{Job, Outcome, eventually, named, skipped, stage};

/// A mark in the environment by which every process of one job is found.
fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("openlapi-failure-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn in_dev_shm() -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir("/dev/shm") else { return BTreeSet::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Runs a job of `procs` tasks and kills task `whom`, `delay` milliseconds after all of
/// them are at work.
fn kill_one(case: &str, procs: usize, whom: usize, delay: u64) {
    let (mark, before) = (mark(), in_dev_shm());
    let mut running = job("failure/victim", procs, case).env("OPENLAPI_TEST_MARK", &mark).start();
    let pids = running.lines(procs);
    let pid: i32 = pids
        .iter()
        .find_map(|line| line.strip_prefix(&format!("{whom} ")))
        .unwrap_or_else(|| panic!("task {whom} is not among {pids:?}"))
        .parse()
        .expect("a task prints its process number");
    thread::sleep(Duration::from_millis(delay));
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()), "process {pid} was there to be killed");
    let outcome = running.wait();
    assert!(!outcome.timed_out, "{case}: poe ends the job when task {whom} of {procs} is killed\n{outcome}");
    assert_ne!(outcome.status, Some(0), "{case}: the job has failed\n{outcome}");
    names_task_and_signal(&outcome, whom);
    assert!(eventually(|| named(&mark).is_empty()), "{case}: these are left: {:?}", named(&mark));
    // Processes of other programs end soon; those that this job has left behind would stay.
    let left = || in_dev_shm().difference(&before).cloned().collect::<Vec<_>>();
    assert!(eventually(|| left().is_empty()), "{case}: left in /dev/shm: {:?}", left());
    // Nothing of this job affects the next one.
    run("data/sizes", procs, "put 4096");
}

#[track_caller]
fn names_task_and_signal(outcome: &Outcome, whom: usize) {
    let line = outcome.stderr.lines().find(|line| {
        line.contains(&format!("task {whom}")) && (line.contains("SIGKILL") || line.contains("signal 9"))
    });
    assert!(line.is_some(), "poe names task {whom} and its signal\n{outcome}");
}

#[test]
fn a_task_killed_while_it_waits() {
    for (procs, whom) in [(1, 0), (2, 0), (2, 1), (5, 3)] {
        kill_one("idle", procs, whom, 20);
    }
}

#[test]
fn a_task_killed_in_large_transfers() {
    // Moments from a fixed seed: 0 to 80 ms after the start.
    for (i, delay) in [0, 3, 11, 29, 47, 80].into_iter().enumerate() {
        kill_one("transfer", 2 + i % 3, i % 2, delay);
    }
}

#[test]
fn a_task_killed_in_gfence() {
    for (i, delay) in [0, 2, 7, 31, 55].into_iter().enumerate() {
        kill_one("gfence", 2 + i % 4, (i + 1) % 2, delay);
    }
}

#[test]
fn a_task_killed_while_others_wait_for_it() {
    kill_one("absent", 2, 1, 30);
    kill_one("absent", 4, 1, 30);
}

/// What the error handler of task 0 has printed.
#[track_caller]
fn reported_task_1(outcome: &Outcome) {
    outcome.ok();
    let line = outcome.stdout.lines().find_map(|line| line.strip_prefix("ERROR ")).unwrap_or_default();
    let numbers: Vec<i32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(
        matches!(numbers[..], [code, 0, 1] if code >= 400),
        "the error handler runs in task 0 and gets a code and task 1\n{outcome}"
    );
}

/// Without a launcher the job is not ended: the operation that waits for the dead task ends
/// with an error.
#[test]
fn a_task_that_waits_for_a_dead_one_gets_a_report() {
    let key = format!("{}77", std::process::id());
    let start = |task: &str| {
        Job::direct(program("failure/victim"))
            .arg("owing")
            .env("MP_CHILD", task)
            .env("MP_PROCS", "2")
            .env("MP_PARTITION", &key)
            .start()
    };
    let (zero, mut one) = (start("0"), start("1"));
    one.lines(1);
    thread::sleep(Duration::from_millis(300));
    one.signal_group(nix::sys::signal::Signal::SIGKILL);
    reported_task_1(&zero.wait());
    assert_eq!(one.wait().signal, Some(9));
}

/// Nor does poe end it when a task exits with status 0: a task with an operation to it
/// gets a report.
#[test]
fn a_task_that_waits_for_one_that_has_left_gets_a_report() {
    reported_task_1(&job("failure/victim", 2, "gone").run());
}

/// Runs a job in a mount namespace of its own, after a script that changes what is mounted there.
fn with_mounts(script: &str, name: &str, procs: usize, args: &str) -> Option<Outcome> {
    let works = std::process::Command::new("unshare").args(["-m", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        skipped(name, "a mount namespace cannot be made here");
        return None;
    }
    let poe = stage().join("bin/poe");
    let script =
        format!("set -e\n{script}\nexec {} {} {args} -procs {procs}", poe.display(), program(name).display());
    Some(Job::direct("unshare").arg("-m").arg("sh").arg("-c").arg(script).run())
}

const SMALL: [(&str, usize, &str); 2] =
    [("data/sizes", 2, "put 1048576"), ("stress/storm", 4, "5 500 50 1 262144")];

#[test]
fn dev_shm_full() {
    let full = "mount -t tmpfs -o size=64k tmpfs /dev/shm\n\
                cat /dev/zero >/dev/shm/full 2>/dev/null || true\n\
                if echo more 2>/dev/null >/dev/shm/more; then exit 90; fi";
    for (name, procs, args) in SMALL {
        if let Some(outcome) = with_mounts(full, name, procs, args) {
            ltest::passed(&outcome, procs);
        }
    }
}

#[test]
fn dev_shm_absent() {
    // A /dev that has only the devices that every program needs.
    let absent = "dev=$(mktemp -d)\n\
                  mount -t tmpfs tmpfs $dev\n\
                  for node in null zero full random urandom; do : >$dev/$node; mount --bind /dev/$node $dev/$node; done\n\
                  mount --rbind $dev /dev\n\
                  umount -l $dev\n\
                  rmdir $dev\n\
                  if test -e /dev/shm; then exit 90; fi";
    for (name, procs, args) in SMALL {
        if let Some(outcome) = with_mounts(absent, name, procs, args) {
            ltest::passed(&outcome, procs);
        }
    }
}

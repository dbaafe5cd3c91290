//! No process is left behind, whatever happens.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getuid};
use openlapi_tests::{Job, Marked, descendants, eventually, is_installed, skipped, stage};

use crate::{job, sorted, task};

#[test]
fn killing_poe_leaves_nothing() {
    let mut job = Marked::start(job(3, &["beget"]));
    job.running().lines(9);
    job.running().signal(Signal::SIGKILL);
    job.nothing_is_left();
    assert_eq!(job.over().signal, Some(9));
}

#[test]
fn killing_poe_and_its_whole_group_leaves_nothing() {
    let mut job = Marked::start(job(3, &["beget"]));
    job.running().lines(9);
    job.running().signal_group(Signal::SIGKILL);
    job.nothing_is_left();
}

#[test]
fn killing_poe_while_it_starts_leaves_nothing() {
    for _ in 0..20 {
        let mut job = Marked::start(job(8, &["beget"]));
        let poe = job.running().pid();
        // At any moment from its first child on.
        assert!(eventually(|| !descendants(poe).is_empty()));
        job.running().signal(Signal::SIGKILL);
        job.nothing_is_left();
    }
}

#[test]
fn killing_the_supervisor_leaves_nothing() {
    let mut job = Marked::start(job(3, &["beget"]));
    job.running().lines(9);
    let children = descendants(job.running().pid());
    kill(Pid::from_raw(children[0]), Signal::SIGKILL).expect("the supervisor is poe's first child");
    job.over().exited(137).says("the supervisor process (pid ");
}

#[test]
fn offspring_of_tasks_does_not_outlive_the_job() {
    Marked::start(job(3, &["beget-and-leave"])).over().ok();
}

/// The task leaves a process that nobody may trace, and so a `/proc` with hidepid shows to root
/// alone.
#[test]
fn offspring_that_proc_hides_does_not_outlive_the_job() {
    let what = "a /proc that hides processes";
    if !getuid().is_root() || !is_installed("setpriv") {
        return skipped(what, "it needs root and setpriv");
    }
    let hides = r#"mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" "$@""#;
    let entry = ["--mount", "sh", "-c", hides].iter().fold(Job::direct("unshare"), Job::arg);
    let job = entry.arg(stage().join("bin/poe")).arg("-procs").arg("1").arg(task()).arg("beget-and-hide");
    Marked::start(job).over().ok();
}

#[test]
fn many_tasks_on_few_cores() {
    let outcome = job(64, &["env", "MP_CHILD"]).poe_arg("-labelio").poe_arg("yes").run();
    let mut expected: Vec<String> = (0..64).map(|task| format!("{task:3}:MP_CHILD={task}")).collect();
    expected.sort_unstable();
    assert_eq!(sorted(&outcome.ok().stdout), expected);
}

//! Tasks on several hosts that die, and what the others and poe make of it.

#[expect(dead_code, reason = "every job here chooses its hosts")]
mod ltest;

use ltest::{job, program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Cluster, Hosts, Job, Launcher, Marked, Outcome, skipped, stage};

/// A launcher by which poe reaches two hosts.
struct Way<'a> {
    hosts: &'a Hosts,
    /// As -launcher has it.
    name: &'static str,
    cluster: Option<&'a Cluster<'a>>,
}

impl Way<'_> {
    /// A job of a program of `tests/c` with task `i` on host `places[i]`, and these flags of poe.
    fn job(&self, places: &[usize], name: &str, args: &str, flags: &str) -> Job {
        let lines: String = places.iter().map(|&host| self.hosts.name(host) + "\n").collect();
        let file = self.hosts.host_file(&lines);
        let flags = flags.split_whitespace();
        let job = match self.cluster {
            None => {
                let job = job(name, places.len(), args).poe_arg("-launcher").poe_arg(self.name);
                self.hosts.poe_on(&file, flags.fold(job, Job::poe_arg))
            }
            Some(cluster) => {
                let job = cluster.client("salloc").arg("--quiet").arg("-N").arg("2").arg("-n").arg("8");
                let job = flags.fold(job.arg(stage().join("bin/poe")), Job::arg);
                let job = job.arg("-hostfile").arg(file).arg(program(name));
                args.split_whitespace().fold(job, Job::arg)
            }
        };
        // TIMEOUT is 15 minutes unless a program sets it.
        job.deadline(60)
    }

    /// The job, whose other tasks go on when one dies.
    fn survive(&self, places: &[usize], name: &str, args: &str) -> Outcome {
        let job = self.job(places, name, args, "-on_death continue -infolevel 0");
        Marked::start(job).over_soon()
    }
}

/// Two hosts; `None` where this machine cannot have them.
fn two_hosts(what: &str) -> Option<Hosts> {
    Hosts::new(2).map_err(|why| skipped(what, &why)).ok()
}

/// Does this with each launcher that is installed, on two hosts.
fn by_each(what: &str, test: impl Fn(&Way)) {
    let Some(hosts) = two_hosts(what) else { return };
    for launcher in Launcher::installed(what) {
        test(&Way { hosts: &hosts, name: launcher.name(), cluster: None });
    }
    match hosts.slurm() {
        Ok(cluster) => {
            eprintln!("{what}: srun");
            test(&Way { hosts: &hosts, name: "srun", cluster: Some(&cluster) });
            cluster.stop();
        }
        Err(why) => skipped(&format!("{what} by srun"), &why),
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Does this with the first launcher that is installed, on two hosts.
fn by_one(what: &str, test: impl Fn(&Way)) {
    let Some(hosts) = two_hosts(what) else { return };
    let Some(launcher) = Launcher::installed(what).next() else { return };
    test(&Way { hosts: &hosts, name: launcher.name(), cluster: None });
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

#[track_caller]
fn all_but_one_pass(outcome: &Outcome, tasks: usize) {
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, tasks - 1, "every survivor prints one PASS\n{outcome}");
}

/// The times from the death to its reports, as the job has printed them.
fn delays(outcome: &Outcome) -> Vec<i64> {
    let at = |word: &str| -> Vec<i64> {
        let after = |line: &str| line.split_once(word)?.1.trim().parse().ok();
        outcome.stdout.lines().filter_map(after).collect()
    };
    let died = at("DIES ").first().copied().unwrap_or_default();
    at("REPORTED ").into_iter().map(|reported| reported - died).collect()
}

/// Only the deadline of the job, which is far below TIMEOUT, is asserted; the times are printed.
#[test]
fn a_task_killed_on_another_host_is_reported_to_all() {
    by_each("the death of a task on another host", |way| {
        for places in [&[0, 1][..], &[0, 1, 1], &[0, 1, 0, 1]] {
            let tasks = places.len();
            let outcome = way.survive(places, "failure/silence", "killed");
            all_but_one_pass(outcome.exited(137).says("task 1 ("), tasks);
            println!("{}, {tasks} tasks: reported after {:?} ms", way.name, delays(&outcome));
        }
    });
}

#[test]
fn the_death_of_a_task_ends_the_job_and_is_named() {
    by_each("the end of a job on several hosts", |way| {
        let flags = "-infolevel 1";
        let outcome =
            Marked::start(way.job(&[0, 1, 0, 1], "failure/survive", "stay 3 20000", flags)).over_soon();
        outcome.exited(137).says("task 3 (").says("on node1) was ended by signal 9 (SIGKILL)");
        assert!(!outcome.stdout.contains("PASS"), "the others are ended\n{outcome}");
    });
}

#[test]
fn the_others_continue_across_hosts() {
    by_one("deaths on several hosts", |way| {
        for (case, places, victim, time) in [
            ("idle", &[0, 0, 1, 1][..], 3, 20_000),
            ("origin", &[0, 0, 1, 1], 2, 5_300),
            ("target", &[0, 1, 0, 1], 1, 20_000),
            ("deaf", &[0, 1, 1], 1, 30_000),
            ("header", &[0, 0, 1, 1], 0, 0),
            ("completion", &[0, 1, 1], 0, 0),
            ("gfence", &[0, 0, 1, 1], 2, 9_700),
            ("exchange", &[0, 1, 0], 0, 4_100),
            ("counter", &[0, 0, 1], 2, 400_000),
            ("term", &[0, 0, 1, 1], 1, 10_000),
        ] {
            let outcome = way.survive(places, "failure/survive", &format!("{case} {victim} {time}"));
            outcome.exited(137).says(&format!("task {victim} (")).says("was ended by signal 9 (SIGKILL)");
            all_but_one_pass(&outcome, places.len());
        }
    });
}

/// LAPI_Init is collective over a network: it fails in all tasks when one has died before it.
#[test]
fn a_death_before_lapi_init_ends_it_in_all_tasks() {
    by_one("a death before LAPI_Init", |way| {
        let outcome = way.survive(&[0, 0, 1, 1], "failure/survive", "init 2 0");
        // The first cause: the others exit with 199 because of it.
        let failed = outcome.exited(137).stderr.matches("got 434 (LAPI_ERR_NO_CONNECTIVITY").count();
        assert_eq!(failed, 3, "{outcome}");
    });
}

/// A job by Hydra itself, which ends the others at a death without this option.
fn without_poe(hosts: &Hosts, tasks: usize, name: &str) -> Job {
    hosts.launch_with(Launcher::Hydra, &["-disable-auto-cleanup"], tasks, program(name)).deadline(60)
}

/// A task that dies while its host's link is down was silent before; its host says that it has died
/// when the link is up again.
#[test]
fn a_death_while_the_link_is_down_is_found_without_poe() {
    let what = "a death while the link is down";
    let Some(hosts) = two_hosts(what) else { return };
    if Launcher::Hydra.command().is_none() {
        return skipped(what, "mpiexec.hydra is not installed");
    }
    let mut job = Marked::start(without_poe(&hosts, 2, "failure/cut"));
    let said = job.running().lines(1);
    let pid = said[0].trim().strip_prefix("PID ").and_then(|pid| pid.parse().ok()).expect("a process");
    hosts.set_link(1, 0, false);
    std::thread::sleep(std::time::Duration::from_secs(1));
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    hosts.set_link(1, 0, true);
    let outcome = job.over_soon();
    assert!(outcome.stdout.contains("PASS 0"), "{outcome}");
}

/// Only the tasks of its host see the end of a task that has communicated with none, when the
/// launcher reports none. The job's deadline is far below LAPI_INIT_TIMEOUT.
#[test]
fn a_death_before_first_contact_is_found_without_poe() {
    let what = "a death before first contact";
    let Some(hosts) = two_hosts(what) else { return };
    if Launcher::Hydra.command().is_none() {
        return skipped(what, "mpiexec.hydra is not installed");
    }
    let file = hosts.folder().join("victim");
    let outcome = Marked::start(without_poe(&hosts, 4, "failure/unmet").arg("1").arg(file)).over_soon();
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, 3, "every survivor prints one PASS\n{outcome}");
}

/// A host that cannot be reached any more is silent, and not dead: its tasks are given up after
/// TIMEOUT, with everything that waits.
#[test]
fn a_host_without_a_link_is_given_up_after_timeout() {
    by_one("a link that is down", |way| {
        let job = way.job(&[0, 1], "failure/silence", "cut", "-on_death continue -infolevel 0");
        let mut job = Marked::start(job);
        job.running().lines(1);
        way.hosts.set_link(1, 0, false);
        println!("{:?}", job.running().lines(2));
        way.hosts.set_link(1, 0, true);
        let outcome = job.over_soon();
        assert!(outcome.ok().stdout.contains("PASS 0"), "{outcome}");
    });
}

/// Tasks that are stopped are silent, too; MP_DEBUG_NOTIMEOUT waits for them.
#[test]
fn stopped_tasks_of_another_host_are_given_up_or_waited_for() {
    by_one("stopped tasks on another host", |way| {
        let silent =
            |places: &[usize], case: &str, flags: &str| way.job(places, "failure/silence", case, flags);
        let outcome = Marked::start(silent(&[0, 1, 0, 1], "roles", "-infolevel 0")).over_soon();
        let said = outcome.ok().stdout.lines().filter(|line| line.contains("PASS")).count();
        assert_eq!(said, 2, "tasks 0 and 2 pass\n{outcome}");
        let outcome = Marked::start(silent(&[0, 1], "computes", "")).over_soon();
        outcome.exited(134).says("LAPI_ERR_TIMEOUT (413)").says("task 1 has not replied for");
        let outcome = Marked::start(silent(&[0, 1], "probes", "-on_death continue")).over_soon();
        all_but_one_pass(outcome.exited(137), 2);
        let patient = silent(&[0, 1], "patient", "").env("MP_DEBUG_NOTIMEOUT", "yes");
        ltest::passed(&Marked::start(patient).over_soon(), 2);
    });
}

//! Those who are not of a job, beside it: another user of the machine, and another host on the
//! network. The job's data is exact, its memory bounded, and the attempts are in the statistics.
//! `tests/src/bin/hostile.rs` has what they do, `tests/c/hostile/victim.c` the job.
//!
//! `HOSTILE_DATAGRAMS` is how many datagrams are injected; `ci/test-net.sh` sends a million.

#[expect(dead_code, reason = "every job here chooses its transport")]
mod ltest;

use ltest::{job, passed, program};
use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Launcher, Layout, Outcome, Running, eventually, on_network, skipped};
use std::fs;
use std::net::SocketAddrV4;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const HOSTILE: &str = env!("CARGO_BIN_EXE_hostile");

/// A user without rights.
const OTHER_USER: &str = "65534";

/// Three hosts: the job is on two of them.
fn hosts(what: &str) -> Option<Hosts> {
    if on_network(what, "the test chooses the transport itself") {
        return None;
    }
    if !nix::unistd::geteuid().is_root() {
        skipped(what, "only root can be other users and send from other addresses");
        return None;
    }
    if Launcher::Hydra.command().is_none() {
        skipped(what, "mpiexec.hydra is not installed");
        return None;
    }
    Hosts::with(Layout { hosts: 3, rails: 1, own_tmp: false }).map_err(|why| skipped(what, &why)).ok()
}

/// The job that works until the file exists: its tasks, two of each host or one.
fn victim(hosts: &Hosts, tasks: usize) -> (Job, PathBuf) {
    let stop = hosts.folder().join("stop");
    let lines: String = (0..tasks).map(|task| format!("{}\n", hosts.name(2 * task / tasks))).collect();
    let job = job("hostile/victim", tasks, "").arg(&stop).env("MP_EUILIB", "ip").deadline(300);
    (hosts.poe_on(&hosts.host_file(&lines), job), stop)
}

fn hostile(hosts: &Hosts, host: usize, words: &str) -> Job {
    let job = words.split_whitespace().fold(Job::direct(HOSTILE), Job::arg);
    hosts.inside(host, job.deadline(300))
}

/// Ends the job, which must have succeeded, and returns what its tasks have refused, and what
/// has come twice.
fn ended(running: Running, stop: &PathBuf, tasks: usize) -> Vec<[u64; 2]> {
    fs::write(stop, "").expect("a file can be written");
    let outcome = running.wait();
    passed(&outcome, tasks);
    let mut counts = Vec::new();
    for line in outcome.stdout.lines().filter(|line| line.contains("refused")) {
        let number = |name: &str| {
            let after = line.split_whitespace().skip_while(|word| *word != name).nth(1);
            after.and_then(|number| number.parse().ok()).expect(line)
        };
        counts.push([number("refused"), number("duplicates")]);
    }
    assert_eq!(counts.len(), tasks, "{outcome}");
    counts
}

fn said(outcome: &Outcome, name: &str) -> u64 {
    let mut words = outcome.ok().stdout.split_whitespace().skip_while(|word| *word != name);
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name}: {outcome}"))
}

/// Datagrams of the job that were recorded, also those by which its tasks connect, unchanged and
/// changed, from another host and in the name of the tasks.
#[test]
fn injected_datagrams_change_nothing() {
    let Some(hosts) = hosts("injected datagrams") else { return };
    let count = std::env::var("HOSTILE_DATAGRAMS").unwrap_or_else(|_| "20000".to_owned());
    let file = hosts.folder().join("recorded");
    for (security, first) in [("auth", &count[..]), ("encrypt", "2000")] {
        let recorder = hostile(&hosts, 0, &format!("record 400 {}", file.display())).start();
        let (job, stop) = victim(&hosts, 2);
        let running = job.env("LAPI_NET_SECURITY", security).start();
        recorder.wait().ok();
        let injected = hostile(&hosts, 2, &format!("inject {first} {}", file.display())).run();
        assert!(said(&injected, "injected") > 0);
        for [refused, duplicates] in ended(running, &stop, 2) {
            eprintln!("{security}: refused {refused}, duplicates {duplicates}");
            assert!(refused > 0, "injected datagrams were not counted");
            assert!(duplicates > 0, "repeated datagrams were not counted");
        }
        fs::remove_file(stop).expect("it was written");
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// A task is killed, and another process takes its place at another port, while another host sends
/// to all of them, and to that port, as fast as it can: what it has recorded of this job.
#[test]
fn a_task_is_replaced_under_a_flood() {
    let Some(hosts) = hosts("a replacement under a flood") else { return };
    let at = |host, port| SocketAddrV4::new(hosts.address(host, 0), port);
    let (dead, file) = (hosts.folder().join("dead"), hosts.folder().join("recorded"));
    let places = [0, 1, 0];
    let before = [at(0, 7000), at(1, 7001), at(0, 7002)];
    let after = [before[0], at(1, 7777), before[2]];
    let start = |task: usize, list: &[SocketAddrV4], last: &str| {
        let list: Vec<String> = list.iter().map(SocketAddrV4::to_string).collect();
        let words = ["list", "moved", &list.join(","), &after[1].to_string(), last].map(str::to_owned);
        let job = words.iter().fold(Job::direct(program("standalone/tasks")), Job::arg);
        let job = hosts.inside(places[task], job.deadline(120)).env("MP_CHILD", task.to_string());
        job.env("MP_PROCS", "3").env("LAPI_JOB_SECRET", "000102030405060708090a0b0c0d0e0f").start()
    };
    let recorder = hostile(&hosts, 0, &format!("record 20 {}", file.display())).start();
    let mut running: Vec<Running> =
        (0..3).map(|task| start(task, &before, dead.to_str().expect("text"))).collect();
    recorder.wait().ok();
    // More than it sends before it is ended.
    let mut flood = hostile(&hosts, 2, &format!("inject 1000000000 {} {}", file.display(), after[1])).start();
    flood.lines(1);
    let killed = running.remove(1).wait();
    assert_eq!(killed.signal, Some(Signal::SIGKILL as i32), "it is killed in the end\n{killed}");
    fs::write(&dead, "").expect("a file");
    running.push(start(1, &after, "again"));
    for outcome in running.into_iter().map(Running::wait) {
        passed(&outcome, 1);
    }
    flood.signal(Signal::SIGKILL);
    let flood = flood.wait();
    assert_eq!(flood.signal, Some(Signal::SIGKILL as i32), "it has sent until the end\n{flood}");
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Prints how fast the job is while strangers send to it, in turn with how fast it is while they
/// send to another port: for docs/security.md, and not a condition. Strangers use the same
/// processors: both times they work as much.
#[test]
#[ignore = "measures"]
fn speed_beside_injected_datagrams() {
    const SLICE: i64 = 100;
    const RATE: i64 = 10_000;
    const SLICES: i64 = 600;
    let hosts = hosts("the job's speed").expect("what the test needs");
    let (file, ends) = (hosts.folder().join("recorded"), hosts.folder().join("ends"));
    let recorder = hostile(&hosts, 0, &format!("record 400 {}", file.display())).start();
    let (job, stop) = victim(&hosts, 2);
    let running = job.arg(&ends).start();
    recorder.wait().ok();
    let words = format!("alternate {} {} {RATE} {SLICE}", RATE * SLICE * SLICES / 1000, file.display());
    let injected = hostile(&hosts, 2, &words).run();
    ended(running, &stop, 2);
    let began = said(&injected, "began") as i64;
    let mut rounds = vec![0_u32; SLICES as usize];
    for line in fs::read_to_string(ends).expect("task 0 has written it").lines() {
        let passed = line.parse::<i64>().expect("microseconds") - began;
        if let Some(slice) = rounds.get_mut((passed / (SLICE * 1000)) as usize).filter(|_| passed >= 0) {
            *slice += 1;
        }
    }
    let mut ratios: Vec<f64> =
        rounds.chunks_exact(2).map(|pair| f64::from(pair[1]) / f64::from(pair[0].max(1))).collect();
    ratios.sort_by(f64::total_cmp);
    let of = |rest: usize| rounds.iter().skip(rest).step_by(2).sum::<u32>();
    let at = |part: usize| ratios[ratios.len() * part / 4];
    eprintln!(
        "rounds: {} beside datagrams to another port, {} beside those to the job, ratio {:.3}",
        of(0),
        of(1),
        f64::from(of(1)) / f64::from(of(0))
    );
    eprintln!("ratio of neighbours: median {:.3}, quarters {:.3} and {:.3}", at(2), at(1), at(3));
}

/// By the sockets at which tasks wait for others of their host, and by the kernel's ways to the
/// memory of a process.
#[test]
fn another_user_does_not_reach_shared_memory() {
    let Some(hosts) = hosts("another user") else { return };
    let (job, stop) = victim(&hosts, 4);
    let running = job.start();
    let tasks = || {
        let is_task = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.starts_with("hostile-victim"))
        };
        hosts.processes().into_iter().filter(is_task).collect::<Vec<_>>()
    };
    let names = |host| hostile(&hosts, host, &format!("attach {OTHER_USER}")).run();
    assert!(eventually(|| tasks().len() == 4 && said(&names(0), "names") >= 2), "{:?}", tasks());
    let pids: Vec<String> = tasks().iter().map(i32::to_string).collect();
    for host in [0, 1] {
        let outcome = hostile(&hosts, host, &format!("attach {OTHER_USER} {}", pids.join(" "))).run();
        assert!(said(&outcome, "connected") >= 100, "{outcome}");
        assert_eq!(said(&outcome, "tried"), 20, "{outcome}");
    }
    ended(running, &stop, 4);
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Connections of another user to the port of poe, before the tasks connect: more than there may
/// be, silent, incomplete, endless and wrong.
#[test]
fn another_user_does_not_exhaust_the_port_of_poe() {
    let Some(hosts) = hosts("the port of poe") else { return };
    let [once, ready, said, ssh] =
        ["once", "ready", "said", "guarded-ssh"].map(|name| hosts.folder().join(name));
    // The tasks start when the connections are there.
    let script = format!(
        "#!/bin/sh\n\
         if mkdir {once} 2>/dev/null; then {enter} {HOSTILE} ports {OTHER_USER} 500 {ready} poe >{said} 2>&1 & fi\n\
         turns=0\n\
         while [ ! -s {ready} ] && [ $turns -lt 600 ]; do sleep 0.1; turns=$((turns + 1)); done\n\
         exec {real} \"$@\"\n",
        once = once.display(),
        enter = hosts.entrance(0).display(),
        ready = ready.display(),
        said = said.display(),
        real = hosts.ssh().display(),
    );
    fs::write(&ssh, script).expect("a file can be written");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let (job, stop) = victim(&hosts, 2);
    fs::write(&stop, "").expect("a file can be written");
    let outcome = job.env("HYDRA_LAUNCHER_EXEC", &ssh).run();
    let attempts = fs::read_to_string(&said).unwrap_or_default();
    fs::remove_file(&ready).unwrap_or_else(|error| panic!("{error}: {attempts}\n{outcome}"));
    passed(&outcome, 2);
    let connected = attempts.split_whitespace().skip_while(|word| *word != "connected").nth(1);
    let connected: u32 =
        connected.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{attempts}"));
    assert!(connected >= 400, "{attempts}");
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

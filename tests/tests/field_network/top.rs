//! `lapi_top` of a job on several hosts.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Deadline, Hosts, Job, Running, compile, stage};

use crate::start::{on, two_hosts};

/// The columns up to the last number: task, host, pid, state, processor, packets, bytes.
const COLUMNS: usize = 9;

/// A job of these tasks whose tasks have all said READY.
fn ready(hosts: &Hosts, program: &str, tasks: usize) -> Running {
    let program = compile(&format!("field-{program}"), &[&format!("tests/field/{program}.c")], &[]);
    let job = Job::new(program).procs(tasks).poe_arg("-launcher").poe_arg("hydra");
    let mut running = hosts.place(tasks, job).start();
    let lines = running.lines(tasks);
    assert_eq!(lines.iter().filter(|line| line.contains("READY")).count(), tasks, "{lines:?}");
    running
}

/// Repeats `lapi_top` on poe's host until it shows this.
#[track_caller]
fn shows(hosts: &Hosts, job: &Running, arguments: &[&str], facts: impl Fn(&str) -> bool) {
    let mut last = Deadline::after(Duration::from_secs(60));
    loop {
        let top = arguments.iter().fold(Job::direct(stage().join("bin/lapi_top")).arg("-b"), Job::arg);
        let outcome = hosts.inside(0, top.arg(job.pid().to_string())).run();
        let said = &outcome.ok().stdout;
        if facts(said) {
            return;
        }
        assert!(!last.has_passed(), "this is shown to the last:\n{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The lines of a task, as words.
fn rows(said: &str, task: usize) -> Vec<Vec<&str>> {
    let lines = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| words.len() > COLUMNS && words[0] == task.to_string()).collect()
}

/// The only process of a host with this name and first argument.
#[track_caller]
fn only(hosts: &Hosts, host: usize, name: &str, argument: &str) -> Pid {
    let is_one = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // The supervisor of `poe --task` has its arguments, and a name of its own.
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let network = fs::read_link(format!("/proc/{pid}/ns/net"));
        comm.trim() == name
            && words.split(|byte| *byte == 0).nth(1) == Some(argument.as_bytes())
            && network.is_ok_and(|network| network.display().to_string() == hosts.network(host))
    };
    let found: Vec<i32> = hosts.processes().into_iter().filter(is_one).collect();
    let [one] = found[..] else { panic!("one {name} {argument} on host {host}: {found:?}") };
    Pid::from_raw(one)
}

fn end(hosts: &Hosts, job: Running) {
    job.signal(Signal::SIGTERM);
    job.wait().exited(128 + 15);
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Tasks of poe's own host and of another one.
#[test]
fn rates_of_a_job_on_two_hosts() {
    let Some(hosts) = two_hosts("lapi_top of a job on two hosts") else { return };
    let mut busy = ready(&hosts, "busy", 2);
    shows(&hosts, &busy, &["-n", "2", "-d", "1"], |said| {
        (0..2).all(|task| {
            let rows = rows(said, task);
            let named = rows.iter().all(|row| row[1] == hosts.name(task) && row[3].len() == 1);
            // Of each task two lines: the second has rates.
            named
                && rows.len() == 2
                && rows[0][4..COLUMNS].iter().all(|word| *word == "-")
                && rows[1][4] != "-"
                && rows[1][5..COLUMNS].iter().all(|word| *word != "-" && *word != "0")
        })
    });
    // A socket for those who look on takes no report: each task writes its own.
    busy.signal(Signal::SIGUSR2);
    for task in 0..2 {
        busy.until_it_says(&format!("LAPI: task {task}: report of process "));
    }
    end(&hosts, busy);
}

/// Who waits for whom, and what is shown while one host's `poe --task` is stopped.
#[test]
fn a_poe_that_is_stopped_on_one_host_holds_up_no_task_of_another() {
    let Some(hosts) = two_hosts("lapi_top of a job that hangs on two hosts") else { return };
    let dead = ready(&hosts, "dead", 2);
    let waits = |said: &str| {
        let row = rows(said, 0).concat().join(" ");
        said.contains("2 tasks, 1 wait for others; waited for most: task 1, by 1")
            && row.starts_with(&format!("0 {} ", hosts.name(0)))
            && row.contains("waits in LAPI_Gfence for task 1")
    };
    let all = |said: &str| waits(said) && rows(said, 1).concat().join(" ").contains("is not inside LAPI");
    shows(&hosts, &dead, &["-n", "1"], all);
    let starter = only(&hosts, 1, "poe", "--task");
    let send = |signal| kill(starter, signal).expect("it is ours");
    send(Signal::SIGSTOP);
    shows(&hosts, &dead, &["-n", "1"], |said| {
        let row = rows(said, 1).concat().join(" ");
        let expected = format!("1 {} ", hosts.name(1));
        waits(said) && row.starts_with(&expected) && row.ends_with(" - - - - - - no reply from its host")
    });
    send(Signal::SIGCONT);
    shows(&hosts, &dead, &["-n", "1"], all);
    end(&hosts, dead);
}

/// Of a program that does not use LAPI the state of its process is known, and when
/// that has ended, the others are shown as before.
#[test]
fn a_program_without_lapi_on_two_hosts() {
    let Some(hosts) = two_hosts("lapi_top of another program on two hosts") else { return };
    let job = Job::new("sh").procs(2).poe_arg("-on_death").poe_arg("continue");
    let mut sleeps = on(&hosts, job.arg("-c").arg("echo READY; exec sleep 1000")).start();
    sleeps.lines(2);
    shows(&hosts, &sleeps, &["-n", "1"], |said| {
        (0..2).all(|task| {
            let row = rows(said, task).concat().join(" ");
            row.contains(" S - - - - - does not reply: not in LAPI, or stopped")
        })
    });
    kill(only(&hosts, 1, "sleep", "1000"), Signal::SIGKILL).expect("it is ours");
    shows(&hosts, &sleeps, &["-n", "1"], |said| {
        said.contains("2 tasks, 1 ended, 0 wait for others")
            && rows(said, 0).concat().contains(&"reply:")
            && rows(said, 1).concat().ends_with(&["has", "ended"])
    });
    end(&hosts, sleeps);
}

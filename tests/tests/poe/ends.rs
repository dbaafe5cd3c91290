//! How a job ends: by itself, by the death of a task, by the user.

use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Job, Marked, Outcome, descendants, eventually, is_installed, skipped, stage};

use crate::{file, job, task};

#[test]
fn the_exit_status_is_the_highest() {
    job(3, &["leave", "0", "0", "0"]).run().ok();
    let outcome = job(4, &["leave", "3", "0", "17", "5"]).run();
    outcome.exited(17).says("task 2 (").says("exited with status 17");
    job(4, &["leave", "3", "0", "17", "5"]).poe_arg("-infolevel").poe_arg("0").run().exited(17);
}

#[test]
fn a_low_status_does_not_end_the_others() {
    let script = r#"if [ $MP_CHILD = 0 ]; then exit 9; else sleep 1; echo done; fi"#;
    let outcome = Job::new("/bin/sh").procs(2).arg("-c").arg(script).run();
    assert_eq!(outcome.exited(9).stdout, "done\n");
}

#[test]
fn a_status_of_128_and_above_ends_the_job() {
    let script = r#"if [ $MP_CHILD = 1 ]; then exit 130; else sleep 1000; fi"#;
    Job::new("/bin/sh").procs(3).arg("-c").arg(script).run().exited(130).says("exited with status 130");
}

#[test]
fn a_task_that_dies_ends_the_job_and_is_named() {
    for (signal, name) in [(9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT"), (36, "SIGRTMIN+2")] {
        let outcome = job(4, &["die", &signal.to_string(), "2"]).run();
        outcome.exited(128 + signal).says("task 2 (").says(&format!("was ended by signal {signal} ({name})"));
        // That another one takes longer to end is no other death.
        let of_tasks = outcome.stderr.lines().filter(|line| line.starts_with("poe: task"));
        assert_eq!(of_tasks.filter(|line| !line.contains("still runs after")).count(), 1, "{outcome}");
    }
}

#[test]
fn a_task_that_is_killed_from_outside_takes_the_others_along() {
    let mut job = Marked::start(job(3, &["wait"]));
    let lines = job.running().lines(3);
    let victim = lines.iter().find(|line| line.starts_with("task 1 ")).expect("task 1 waits");
    let victim: i32 =
        victim.rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("it prints its number");
    kill(Pid::from_raw(victim), Signal::SIGKILL).expect("it can be killed");
    let says = format!("task 1 ({}, pid {victim}) was ended by signal 9 (SIGKILL)", task().display());
    job.over().exited(137).says(&says);
}

#[test]
fn the_others_go_on_when_they_are_to() {
    let script = r#"case $MP_CHILD in
        0) kill -SEGV $$;;
        1) exit 130;;
        2) exit 7;;
        *) sleep 1; echo "$MP_CHILD is done";;
    esac"#;
    let job = |procs| Job::new("/bin/sh").procs(procs).arg("-c").arg(script);
    let outcome = job(5).poe_arg("-on_death").poe_arg("continue").run();
    // The status is that of the one whose end poe has seen first.
    let first = |outcome: &Outcome| assert!(matches!(outcome.status, Some(130 | 139)), "{outcome}");
    first(&outcome);
    outcome.says("task 0 (").says("was ended by signal 11 (SIGSEGV)");
    outcome.says("task 1 (").says("exited with status 130");
    let mut done: Vec<&str> = outcome.stdout.lines().collect();
    done.sort_unstable();
    assert_eq!(done, ["3 is done", "4 is done"], "{outcome}");
    // The same by the variable; and poe names a signal also at the lowest message level.
    let outcome = job(4).env("MP_ON_DEATH", "CONTINUE").poe_arg("-infolevel").poe_arg("0").run();
    first(&outcome);
    assert_eq!(outcome.says("SIGSEGV").stdout, "3 is done\n", "{outcome}");
    let endless = script.replace("sleep 1;", "exec sleep 1000;");
    let job_without_end = Job::new("/bin/sh").procs(4).arg("-c").arg(endless);
    let outcome = job_without_end.env("MP_ON_DEATH", "continue").poe_arg("-on_death").poe_arg("end").run();
    assert!(!outcome.timed_out && outcome.stdout.is_empty(), "the flag wins\n{outcome}");
    job(2).poe_arg("-on_death").poe_arg("ignore").run().exited(2).says("on_death");
}

#[test]
fn a_job_that_survives_deaths_ends_when_the_user_wants() {
    let script = r#"if [ $MP_CHILD = 0 ]; then kill -KILL $$; else exec "$0" wait; fi"#;
    let dead = Job::new("/bin/sh").procs(3).arg("-c").arg(script).arg(task());
    let mut job = Marked::start(dead.poe_arg("-on_death").poe_arg("continue"));
    job.running().lines(2);
    job.running().signal(Signal::SIGTERM);
    // The cause of the job's end takes precedence over that of task 0.
    job.over().exited(143);
}

#[test]
fn tasks_that_do_not_end_on_request_are_killed() {
    let script = r#"if [ $MP_CHILD = 0 ]; then "$0" step "$1"; kill -SEGV $$; else exec "$0" deaf; fi"#;
    let deaf = file("poe_all_are_deaf", "");
    fs::remove_file(&deaf).expect("it was there");
    let job = Job::new("/bin/sh").procs(3).arg("-c").arg(script).arg(task()).arg(&deaf);
    let mut job = Marked::start(job);
    job.running().lines(3);
    fs::write(&deaf, "").expect("it can be written");
    job.over().exited(139).says("still run after 5 s; killing them");
}

#[test]
fn the_keys_of_the_terminal_end_everything() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut job = Marked::start(job(3, &["beget"]));
        job.running().lines(9);
        job.running().signal_group(signal);
        job.over().exited(128 + signal as i32);
    }
}

#[test]
fn tasks_can_end_in_good_order_when_interrupted() {
    let mut running = job(2, &["signals"]).start();
    running.lines(2);
    running.signal(Signal::SIGINT);
    let outcome = running.wait();
    let named = outcome
        .exited(130)
        .says("poe: interrupted (SIGINT); ending all tasks")
        .stdout
        .lines()
        .filter(|line| line.ends_with("got signal 2"))
        .count();
    assert_eq!(named, 2, "{outcome}");
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let mut job = Marked::start(job(2, &["deaf"]).deadline(60));
    job.running().lines(2);
    job.running().signal(Signal::SIGINT);
    job.running().until_it_says("interrupted (SIGINT); ending all tasks");
    // For half a second a signal is the one that has come already.
    std::thread::sleep(std::time::Duration::from_millis(700));
    job.running().signal(Signal::SIGINT);
    let outcome = job.over();
    assert!(!outcome.exited(130).stderr.contains("still run"), "{outcome}");
}

#[test]
fn other_signals_are_passed_on() {
    let mut running = job(2, &["signals"]).start();
    running.lines(2);
    for (signal, lines) in [(Signal::SIGUSR1, 4), (Signal::SIGUSR2, 6)] {
        running.signal(signal);
        let text = running.lines(lines).join("\n");
        assert_eq!(text.matches(&format!("got signal {}", signal as i32)).count(), 2, "{text}");
    }
    running.signal(Signal::SIGTERM);
    running.wait().exited(143);
}

/// All tasks have ended in time, and what they wrote is read late: limits, requests for reports and
/// keys that stop a job lose nothing of it.
#[test]
fn output_that_is_read_late_is_whole() {
    let poe = Command::new(stage().join("bin/poe"))
        .args(["-procs", "2", "-timeout", "2", "head", "-c", "60000", "/dev/zero"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("poe starts");
    let pid = poe.id() as i32;
    let signal = |signal| kill(Pid::from_raw(pid), signal).expect("poe is there");
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(eventually(|| descendants(pid).is_empty()));
    // Past the limit of time.
    std::thread::sleep(std::time::Duration::from_secs(3));
    signal(Signal::SIGUSR2);
    signal(Signal::SIGTSTP);
    assert!(eventually(|| state().contains(") T ")), "{}", state());
    signal(Signal::SIGCONT);
    let output = poe.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.stdout.len(), output.status.code(), &*said), (120_000, Some(0), ""));
}

/// Nobody reads standard error, and it is full: the tasks end all the same, and what poe says of it
/// is there when it is read.
#[test]
fn a_job_whose_messages_are_not_read_ends() {
    for (flags, signal, status, says) in [
        (&["-timeout", "8"][..], None, 124, "poe: time limit of 8 s (-timeout) reached: "),
        (&[], Some(Signal::SIGTERM), 143, "poe: ended (SIGTERM); ending all tasks"),
    ] {
        let (mut read, write) = full_pipe();
        let deaf = ["-procs", "2", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"];
        let mut poe = Command::new(stage().join("bin/poe"))
            .args(flags)
            .args(deaf)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(write)
            .spawn()
            .expect("poe starts");
        let pid = poe.id() as i32;
        // poe's child, the tasks, and what these have started.
        assert!(eventually(|| descendants(pid).len() >= 5));
        if let Some(signal) = signal {
            kill(Pid::from_raw(pid), signal).expect("poe is there");
        }
        assert!(eventually(|| descendants(pid).is_empty()), "{:?}", descendants(pid));
        stop_and_continue(pid);
        let mut said = String::new();
        read.read_to_string(&mut said).expect("it is text");
        assert_eq!(poe.wait().expect("it ends").code(), Some(status), "{said}");
        assert!(said.contains(says), "{}", said.trim_start_matches('.'));
    }
}

/// The reason why a job could not be started is there, too, however late it is read.
#[test]
fn why_a_job_did_not_start_is_read_late() {
    let start = |arguments: &[&str]| {
        let (read, write) = full_pipe();
        let mut poe = Command::new(stage().join("bin/poe"));
        let poe = poe.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(write).spawn();
        (read, poe.expect("poe starts"))
    };
    let (mut read, mut poe) = start(&["-procs", "2", "./no-such-program"]);
    let (_unread, mut ended) = start(&["-procs", "0", "./program"]);
    // Longer than a message is waited for while tasks may run.
    std::thread::sleep(openlapi::base::patient::LIMIT * 2);
    stop_and_continue(poe.id() as i32);
    let mut said = String::new();
    read.read_to_string(&mut said).expect("it is text");
    let status = poe.wait().expect("it ends").code();
    let said = said.trim_start_matches('.');
    assert_eq!((status, said), (Some(127), "poe: ./no-such-program: No such file or directory\n"));
    // A signal ends the wait, in which it is blocked.
    let mask = || {
        let status = fs::read_to_string(format!("/proc/{}/status", ended.id())).unwrap_or_default();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
    };
    assert!(eventually(|| mask() >> (Signal::SIGTERM as u32 - 1) & 1 == 1));
    kill(Pid::from_raw(ended.id() as i32), Signal::SIGTERM).expect("poe is there");
    assert_eq!(ended.wait().expect("it ends").code(), Some(2));
}

/// A pipe that has no room.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (read, write) = std::io::pipe().expect("a pipe");
    let set = |flags| fcntl(&write, FcntlArg::F_SETFL(flags)).expect("it is a pipe");
    set(OFlag::O_NONBLOCK);
    while (&write).write(&[b'.'; 4096]).is_ok() {}
    set(OFlag::empty());
    (read, write)
}

/// Sends signals that end nothing, when their receiver has had time to wait for a reader.
fn stop_and_continue(pid: i32) {
    let signal = |signal| kill(Pid::from_raw(pid), signal).expect("poe is there");
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    std::thread::sleep(std::time::Duration::from_secs(1));
    signal(Signal::SIGUSR1);
    signal(Signal::SIGUSR2);
    signal(Signal::SIGTSTP);
    assert!(eventually(|| state().contains(") T ")), "{}", state());
    signal(Signal::SIGCONT);
}

/// The table of processes is read once for a signal, and not once for each task.
#[test]
fn a_signal_is_passed_on_by_one_look_at_the_processes() {
    if !is_installed("strace") {
        return skipped("how often poe looks at the processes", "strace is not installed");
    }
    let log = std::env::temp_dir().join(format!("openlapi-looks-{}", std::process::id()));
    // Task 0 sends the signal to poe, the parent of its parent.
    let script = "if [ $MP_CHILD = 0 ]; then kill -USR2 $(ps -o ppid= -p $PPID); fi; sleep 2";
    let looks = |tasks: &str| {
        let trace = ["-f", "-qq", "-e", "trace=openat", "-o"].iter().fold(Job::direct("strace"), Job::arg);
        let job = trace.arg(&log).arg(stage().join("bin/poe")).arg("-procs").arg(tasks);
        job.arg("sh").arg("-c").arg(script).deadline(120).run().ok();
        let text = fs::read_to_string(&log).expect("strace has written it");
        text.lines().filter(|line| line.contains("\"/proc\"")).count()
    };
    let (of_two, of_twenty) = (looks("2"), looks("20"));
    fs::remove_file(&log).expect("it is there");
    assert!(of_two > 0 && of_twenty == of_two, "{of_two} looks with 2 tasks, {of_twenty} with 20");
}

#[test]
fn a_stopped_job_stops_and_goes_on() {
    let mut running = job(2, &["signals"]).start();
    running.lines(2);
    let poe = running.pid();
    let state = |pid: i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let tasks: Vec<i32> =
        descendants(poe).into_iter().filter(|pid| state(*pid).contains("(poe_task")).collect();
    let stopped = |pid: &i32| state(*pid).contains(") T ");
    running.signal(Signal::SIGTSTP);
    assert!(eventually(|| tasks.len() == 2 && tasks.iter().all(stopped) && stopped(&poe)));
    running.signal(Signal::SIGCONT);
    assert!(eventually(|| !tasks.iter().any(stopped) && !stopped(&poe)));
    running.signal(Signal::SIGINT);
    running.wait().exited(130);
}

#[test]
fn signals_that_poe_inherits_as_ignored_stay_ignored() {
    let script = r#"trap '' HUP; exec "$0" -procs 2 "$1" signals"#;
    let mut running =
        Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).arg(task()).start();
    running.lines(2);
    running.signal(Signal::SIGHUP);
    running.signal(Signal::SIGUSR1);
    running.lines(4);
    running.signal(Signal::SIGTERM);
    running.wait().exited(143);
}

#[test]
fn every_task_that_dies_by_itself_is_named_the_first_first() {
    let mut job = Marked::start(job(4, &["wait"]));
    let lines = job.running().lines(4);
    let pid = |task: usize| {
        let line = lines.iter().find(|line| line.starts_with(&format!("task {task} "))).expect("it waits");
        Pid::from_raw(line.rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("it prints its number"))
    };
    let supervisor = Pid::from_raw(descendants(job.running().pid())[0]);
    let state = |pid: Pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Both are dead when the supervisor checks.
    kill(supervisor, Signal::SIGSTOP).expect("it is there");
    assert!(eventually(|| state(supervisor).contains(") T ")));
    for task in [2, 1] {
        kill(pid(task), Signal::SIGSEGV).expect("it is there");
        assert!(eventually(|| state(pid(task)).contains(") Z ")));
    }
    kill(supervisor, Signal::SIGCONT).expect("it is there");
    let outcome = job.over();
    let named: Vec<&str> =
        outcome.exited(139).stderr.lines().filter_map(|line| line.strip_prefix("poe: ")?.get(..6)).collect();
    assert_eq!(named, ["task 2", "task 1"], "{outcome}");
}

#[test]
fn tasks_that_exit_alike_are_said_together() {
    // All of them exit at one time.
    let file = file("exit_alike", "");
    fs::remove_file(&file).expect("it was there");
    let script = "echo waits; while ! test -e $0; do sleep 0.01; done\n\
                  case $MP_CHILD in 0) exit 0;; 11) exit 7;; *) exit 5;; esac";
    let mut running = Job::new("/bin/sh").procs(12).arg("-c").arg(script).arg(&file).start();
    running.lines(12);
    fs::write(&file, "").expect("it can be written");
    let outcome = running.wait();
    let said = outcome.exited(7).stderr.matches("exited with status 5").count();
    assert!((4..8).contains(&said), "three by themselves, the others together\n{outcome}");
    assert_eq!(outcome.stderr.matches("exited with status 7").count(), 1, "{outcome}");
    let all = job(12, &["leave", "5"]).poe_arg("-infolevel").poe_arg("2").run();
    assert_eq!(all.exited(5).stderr.matches("exited with status").count(), 12, "{all}");
}

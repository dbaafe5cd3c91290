//! `lapi_top`: what the tasks of a running job do.

use crate::job;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Deadline, Running, Terminal, descendants, stage};
use std::process::{Command, Output};
use std::time::Duration;

fn ready(program: &str, tasks: usize) -> Running {
    let mut running = job(program, tasks, "").start();
    let lines = running.lines(tasks);
    assert_eq!(lines.iter().filter(|line| line.contains("READY")).count(), tasks, "{lines:?}");
    running
}

fn top(arguments: &[&str]) -> Output {
    Command::new(stage().join("bin/lapi_top")).args(arguments).output().expect("it runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Repeats it until it succeeds with such an output: tasks that get no processor reply late, and
/// say READY before they wait.
#[track_caller]
fn shows(arguments: &[&str], facts: impl Fn(&str) -> bool) {
    let mut last = Deadline::after(Duration::from_secs(60));
    loop {
        let output = top(arguments);
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        if facts(&said) {
            return;
        }
        assert!(!last.has_passed(), "this is shown to the last:\n{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn rates_and_waits_of_a_running_job() {
    let busy = ready("busy", 3);
    let pid = busy.pid().to_string();
    shows(&["-b", "-n", "2", "-d", "1", &pid], |said| {
        let heads = said.lines().filter(|line| line.starts_with(&format!("poe {pid}: "))).count();
        // Of each task two lines: the second has rates.
        let rows = |task: usize| -> Vec<Vec<&str>> {
            let of_task = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            of_task.filter(|words| words.len() > 8 && words[0] == task.to_string()).collect()
        };
        let rates = |task: usize| {
            let rows = rows(task);
            let first_has_none = rows.len() == 2 && (rows[0][4], rows[0][7]) == ("-", "-");
            // To task 0 nothing is sent, and nothing is replied to its puts.
            first_has_none && rows[1][4] != "-" && (task == 0 || rows[1][5] != "0")
        };
        // Task 0 puts 4096 bytes at a time; task 2 puts nothing.
        let bytes = |task: usize| rows(task)[1][6].to_owned();
        heads == 2 && (0..3).all(rates) && bytes(0).ends_with(['k', 'M']) && bytes(2) == "0"
    });
    busy.signal(Signal::SIGTERM);
    busy.wait();
    let after = top(&["-b", "-n", "1", &pid]);
    assert_eq!(after.status.code(), Some(1), "{}", text(&after));
    assert!(text(&after).contains(&format!("process {pid} is no poe of this user")), "{}", text(&after));
}

#[test]
fn who_waits_for_whom_in_a_job_that_hangs() {
    let dead = ready("dead", 3);
    shows(&["-b", "-n", "1", &dead.pid().to_string()], |said| {
        said.contains("3 tasks, 2 wait for others; waited for most: task")
            && said.contains("waits in LAPI_Gfence for task")
            && said.contains("is not inside LAPI")
    });
    // A full disk is a failure, and a reader that has enough is none.
    let pid = dead.pid().to_string();
    for (to, status) in [("-n 1 >/dev/full", 1), ("| head -n 1; exit ${PIPESTATUS[0]}", 0)] {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!(r#""$TOP" -b -d 0.1 "$JOB" {to}"#)]);
        shell.env("TOP", stage().join("bin/lapi_top")).env("JOB", &pid);
        let output = shell.output().expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{to}: {}", text(&output));
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = if status == 1 {
            "lapi_top: standard output: No space left on device (os error 28)\n"
        } else {
            ""
        };
        assert_eq!(said, expected, "{to}");
    }
    // Who looks on causes no report of the job.
    dead.signal(Signal::SIGTERM);
    let outcome = dead.wait();
    assert!(!outcome.stderr.contains("job report"), "{outcome}");
}

/// `lapi_top` on a terminal, and then its status and the settings of the terminal.
fn on_a_terminal(job: &Running) -> Terminal {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"TERM=xterm "$TOP" -d 60 "$JOB"; echo "status $?"; stty -a"#]);
    shell.env("TOP", stage().join("bin/lapi_top")).env("JOB", job.pid().to_string());
    Terminal::start(shell)
}

/// On a terminal it draws until `q`, and leaves the terminal as it was.
#[test]
fn on_a_terminal_it_ends_with_q() {
    let busy = ready("busy", 2);
    let mut on = on_a_terminal(&busy);
    on.expect("doing");
    assert!(on.seen.starts_with("\x1b[?1049h"), "{:?}", on.seen);
    on.expect("\n    1 ");
    on.types("q");
    on.expect("\x1b[?25h\x1b[?1049l");
    on.expect("status 0");
    // Those that are off have a dash.
    on.expect(" icanon ");
    on.expect(" echo ");
    assert_eq!(on.status(), Some(0), "{}", on.seen);
    busy.signal(Signal::SIGTERM);
    busy.wait();
}

/// Where it cannot draw or read keys it says which of the two, and what it can do.
#[test]
fn a_terminal_that_cannot_be_used_is_named() {
    let busy = ready("busy", 2);
    for (command, said) in [
        ("TERM=xterm \"$TOP\" \"$JOB\" </dev/null", "standard input is no terminal"),
        ("TERM=xterm \"$TOP\" \"$JOB\" | cat", "standard output is no terminal"),
        ("TERM=dumb \"$TOP\" \"$JOB\"", "the terminal cannot be drawn on (TERM is \"dumb\")"),
        ("unset TERM; \"$TOP\" \"$JOB\"", "the terminal cannot be drawn on (TERM is not set)"),
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        shell.env("TOP", stage().join("bin/lapi_top")).env("JOB", busy.pid().to_string());
        let mut on = Terminal::start(shell);
        on.expect(&format!("lapi_top: {said}; -b writes text\r\n"));
        let status = if command.ends_with("cat") { 0 } else { 1 };
        assert_eq!(on.status(), Some(status), "{}", on.seen);
        assert!(!on.seen.contains('\x1b'), "{:?}", on.seen);
    }
    busy.signal(Signal::SIGTERM);
    busy.wait();
}

/// A signal ends it, and the terminal is as it was; another size is drawn at once.
#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let busy = ready("busy", 2);
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGINT] {
        let mut on = on_a_terminal(&busy);
        on.expect("\n    1 ");
        let below = descendants(on.pid());
        let top = below.iter().find(|pid| name(**pid) == "lapi_top").expect("it runs");
        let send = |signal| kill(Pid::from_raw(*top), signal).expect("it is ours");
        send(Signal::SIGWINCH);
        on.expect("\x1b[H");
        send(signal);
        on.expect("\x1b[?25h\x1b[?1049l");
        on.expect(&format!("status {}", 128 + signal as i32));
        on.expect(" icanon ");
        on.expect(" echo ");
        assert_eq!(on.status(), Some(0), "{}", on.seen);
    }
    busy.signal(Signal::SIGTERM);
    busy.wait();
}

/// The name of a process.
fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

#[test]
fn wrong_arguments_have_the_status_of_usage() {
    let output = top(&["-n", "never"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("usage: lapi_top"), "{}", text(&output));
}

/// Nobody can read what is said: the exit status is the same.
#[test]
fn the_tools_end_as_usual_where_standard_error_is_full_or_closed() {
    for (command, status) in [
        ("lapi_top -n never", 2),
        ("lapi_top 1", 1),
        ("lapi_top --version >/dev/full", 1),
        ("lapi_info --nothing", 2),
        ("lapi_info --short --json", 2),
        ("lapi_info such a word is nowhere", 1),
        ("lapi_perf --nothing", 2),
        ("lapi_prof", 2),
        ("lapi_prof merge /nonexistent", 1),
        ("poe -nothing", 2),
    ] {
        for to in ["2>/dev/full", "2>&-"] {
            let script = format!("\"$BIN\"/{command} {to}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).env("BIN", stage().join("bin"));
            let output = shell.output().expect("it runs");
            assert_eq!(output.status.code(), Some(status), "{script}\n{}", text(&output));
        }
    }
}

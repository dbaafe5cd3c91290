//! `lapi_top`: what the tasks of a running job do.

use crate::job;
use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::Signal;
use openlapi_tests::{Running, stage};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Output};

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

#[test]
fn rates_and_waits_of_a_running_job() {
    let busy = ready("busy", 3);
    let pid = busy.pid().to_string();
    let output = top(&["-b", "-n", "2", "-d", "1", &pid]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let heads = said.lines().filter(|line| line.starts_with(&format!("poe {pid}: "))).count();
    assert_eq!(heads, 2, "{said}");
    // Of each task two lines: the second has rates.
    let rows = |task: usize| -> Vec<Vec<&str>> {
        let of_task = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        of_task.filter(|words| words.len() > 8 && words[0] == task.to_string()).collect()
    };
    for task in 0..3 {
        let rows = rows(task);
        assert_eq!((rows.len(), rows[0][4], rows[0][7]), (2, "-", "-"), "{said}");
        assert!(rows[1][4] != "-" && rows[1][5] != "0", "packets of task {task}\n{said}");
    }
    // Task 0 puts 4096 bytes at a time; task 2 puts nothing.
    let bytes = rows(0)[1][6];
    assert!(bytes.ends_with(['k', 'M']), "{bytes}\n{said}");
    assert_eq!(rows(2)[1][6], "0", "{said}");
    busy.signal(Signal::SIGTERM);
    busy.wait();
    let after = top(&["-b", "-n", "1", &pid]);
    assert_eq!(after.status.code(), Some(1), "{}", text(&after));
    assert!(text(&after).contains(&format!("process {pid} is no poe of this user")), "{}", text(&after));
}

#[test]
fn who_waits_for_whom_in_a_job_that_hangs() {
    let dead = ready("dead", 3);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let said = text(&top(&["-b", "-n", "1", &dead.pid().to_string()]));
    assert!(said.contains("3 tasks, 2 wait for others; waited for most: task"), "{said}");
    assert!(said.contains("waits in LAPI_Gfence for task"), "{said}");
    assert!(said.contains("is not inside LAPI"), "{said}");
    // Who looks on causes no report of the job.
    dead.signal(Signal::SIGTERM);
    let outcome = dead.wait();
    assert!(!outcome.stderr.contains("job report"), "{outcome}");
}

/// On a terminal it draws until `q`, and leaves the terminal as it was.
#[test]
fn on_a_terminal_it_ends_with_q() {
    let busy = ready("busy", 2);
    let OpenptyResult { master, slave } = openpty(None, None).expect("a terminal");
    let mut command = Command::new(stage().join("bin/lapi_top"));
    command.args(["-d", "60"]).arg(busy.pid().to_string());
    let own = || slave.try_clone().expect("a descriptor");
    let mut child = command.stdin(own()).stdout(own()).stderr(own()).spawn().expect("it runs");
    let mut terminal = File::from(master);
    let mut shown = String::new();
    let mut more = |until: &str| {
        while !shown.contains(until) {
            let mut bytes = [0; 4096];
            let count = terminal.read(&mut bytes).expect("what it draws");
            shown += &String::from_utf8_lossy(&bytes[..count]);
        }
        shown.clone()
    };
    let first = more("doing");
    assert!(first.starts_with("\x1b[?1049h"), "{first:?}");
    more("\n    1 ");
    terminal.write_all(b"q").expect("a key");
    assert!(child.wait().expect("it ends").success());
    let mut bytes = [0; 4096];
    let count = terminal.read(&mut bytes).expect("its end");
    assert!(String::from_utf8_lossy(&bytes[..count]).ends_with("\x1b[?25h\x1b[?1049l"));
    let modes = nix::sys::termios::tcgetattr(&slave).expect("a terminal").local_flags;
    assert!(modes.contains(nix::sys::termios::LocalFlags::ICANON | nix::sys::termios::LocalFlags::ECHO));
    busy.signal(Signal::SIGTERM);
    busy.wait();
}

#[test]
fn wrong_arguments_have_the_status_of_usage() {
    let output = top(&["-n", "never"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("usage: lapi_top"), "{}", text(&output));
}

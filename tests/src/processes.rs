//! Other processes: reads `/proc`, and waits.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::deadline::Deadline;

/// Whether the process exists and is not merely waiting to be reaped.
pub fn alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// Copies a program, which all users may run then. Another process makes the copy: a child that a
/// test beside this one starts meanwhile would keep a file open that this process writes, and the
/// kernel runs no program whose file is open for writing.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let made = Command::new("install").args(["-m", "755"]).args([from, to]).status();
    assert!(made.is_ok_and(|made| made.success()), "a copy of {} at {}", from.display(), to.display());
}

/// The parent of a process, if the process exists.
pub fn parent(pid: i32) -> Option<i32> {
    stat(pid).map(|(_, parent)| parent)
}

/// All processes below `pid`, parents before children.
pub fn descendants(pid: i32) -> Vec<i32> {
    let everyone: Vec<(i32, i32)> =
        all().into_iter().filter_map(|pid| stat(pid).map(|(_, parent)| (pid, parent))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let of = found[next];
        found.extend(everyone.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        next += 1;
    }
    found.remove(0);
    found
}

/// All living processes in whose command line or environment `mark` occurs: finds those that have
/// left their parent. A process whose environment may not be read is not found.
pub fn named(mark: &str) -> Vec<i32> {
    let occurs = |path: String| {
        fs::read(path).is_ok_and(|bytes| bytes.windows(mark.len()).any(|window| window == mark.as_bytes()))
    };
    let me = std::process::id() as i32;
    all()
        .into_iter()
        .filter(|pid| *pid != me && alive(*pid))
        .filter(|pid| occurs(format!("/proc/{pid}/environ")) || occurs(format!("/proc/{pid}/cmdline")))
        .collect()
}

/// The state of each thread of the processes, what it waits for in the kernel, and for how long it
/// ran in the second after that: a thread that could run and did not waits for a processor, and
/// that is the machine's fault. Then the stacks, if gdb is installed; it stops a process for
/// seconds, and what another one does after that says nothing of what it did before.
pub(crate) fn standing(pids: &[i32]) -> String {
    let before: Vec<Vec<ThreadState>> = pids.iter().map(|pid| thread_states(*pid)).collect();
    thread::sleep(Duration::from_secs(1));
    let mut text = String::new();
    for (pid, states) in pids.iter().zip(before) {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let _ = writeln!(text, "--- process {pid}: {command}");
        for state in states {
            let ran = time_run(&state.folder).saturating_sub(state.ran);
            let _ = writeln!(text, "{}, ran for {ran:?} in the next second", state.text);
        }
    }
    for pid in pids {
        let _ = write!(text, "--- stacks of process {pid}\n{}", stacks(*pid));
    }
    text
}

struct ThreadState {
    folder: PathBuf,
    text: String,
    ran: Duration,
}

fn thread_states(pid: i32) -> Vec<ThreadState> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let state = |folder: PathBuf| {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let status = read("status");
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or("?").to_owned()
        };
        let text = format!(
            "thread {:?} {}: state {}, waits in {}, system call {}, pending signals {} {}",
            folder.file_name().unwrap_or_default(),
            read("comm").trim(),
            field("State:"),
            read("wchan"),
            read("syscall").trim(),
            field("SigPnd:"),
            field("ShdPnd:"),
        );
        let ran = time_run(&folder);
        ThreadState { folder, text, ran }
    };
    threads.flatten().map(|thread| state(thread.path())).collect()
}

/// For how long a thread has run; 0 where the kernel does not say it.
fn time_run(thread: &Path) -> Duration {
    let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or(0))
}

fn stacks(pid: i32) -> String {
    let gdb = Command::new("timeout")
        .args(["20", "gdb", "-nx", "-batch", "-p", &pid.to_string(), "-ex", "thread apply all bt 25"])
        .env("DEBUGINFOD_URLS", "")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match gdb {
        Ok(output) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(|line| line.starts_with('#') || line.starts_with("Thread "))
            .fold(String::new(), |text, line| text + line + "\n"),
        Err(_) => String::new(),
    }
}

/// All processes.
pub(crate) fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The state letter and the parent from `/proc/PID/stat`, whose second field may hold
/// any character.
fn stat(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Waits until `fact` holds, for at most 20 seconds, longer on a crowded machine; returns
/// whether it does.
pub fn eventually(fact: impl Fn() -> bool) -> bool {
    let mut last = Deadline::after(Duration::from_secs(20));
    while !fact() {
        if last.has_passed() {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

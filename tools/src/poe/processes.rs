//! What `/proc` says of processes, the names of signals, and the end of all processes below this one.

use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

/// Kills and reaps every descendant, those included that left their process group or session: this process is
/// the subreaper, so a process that loses its parent becomes a child of ours, until none is left.
///
/// A process that may not be signalled (it runs as another user) is left to the system.
pub(super) fn end_descendants() {
    while !matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Err(Errno::ECHILD)) {
        let mut signalled = false;
        for child in children() {
            signalled |= kill(child, Signal::SIGKILL).is_ok();
        }
        if !signalled {
            return;
        }
        // One that has just been killed, or that was reaped as this one's child: both bring us further.
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}

/// The children of this process, dead ones that are not reaped included.
fn children() -> Vec<Pid> {
    let me = getpid();
    all(|parent, _| parent == me)
}

/// The processes of a task: its own, and those of its process group.
pub(super) fn members(task: Pid) -> Vec<Pid> {
    let mut found = all(|_, group| group == task);
    if !found.contains(&task) {
        found.push(task);
    }
    found
}

/// All processes whose parent and process group are as wanted.
fn all(wanted: impl Fn(Pid, Pid) -> bool) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .filter(|pid| {
            // The name, which may hold anything, ends at the last bracket; state, parent and group follow.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(1);
            let mut number = || fields.next()?.parse().ok().map(Pid::from_raw);
            matches!((number(), number()), (Some(parent), Some(group)) if wanted(parent, group))
        })
        .collect()
}

/// Whether a process has a handler for a signal.
pub(super) fn handles(pid: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    bit(&status, "SigCgt:", signal)
}

/// The bit of a signal in a mask of `/proc/PID/status`.
pub(super) fn bit(status: &str, mask: &str, signal: Signal) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix(mask));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> (signal as u32 - 1) & 1 != 0
}

/// As `kill -l` has it.
pub(super) fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIGRTMIN+{}", signal - libc::SIGRTMIN()),
    }
}

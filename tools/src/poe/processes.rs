//! Ends all processes below this one.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

/// Kills and reaps every descendant, those included that left their process group or session: this process is
/// the subreaper, so whoever loses its parent becomes a child of ours, until none is left.
///
/// A process that may not be signalled (it runs as somebody else) is left to the system.
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
    let me = getpid().to_string();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .filter(|pid| {
            // The name, which may hold anything, ends at the last bracket; state and parent follow.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after = stat.rsplit(')').next().unwrap_or("");
            after.split_whitespace().nth(1) == Some(&me)
        })
        .collect()
}

//! What `/proc` says of processes, the names of signals, and the end of all processes
//! below this one.

use std::collections::HashSet;
use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

/// Kills and reaps every descendant, those included that left their process group or session:
/// this process is the subreaper, so a process that loses its parent becomes a child of ours,
/// until none is left.
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
        // One that has just been killed, or that was reaped as this one's child: both
        // bring us further.
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}

/// The children of this process, dead ones that are not reaped included: those that `/proc` shows,
/// and those that the kernel lists for the threads of this process. A `/proc` that is mounted with
/// hidepid does not show a process that this one may not trace, though it may kill it; a kernel
/// without CONFIG_PROC_CHILDREN has no lists.
fn children() -> HashSet<Pid> {
    let here = Here::of_this_process();
    let all = all();
    let shown = here.children(&all).map(|child| child.place);
    shown.chain(listed()).filter_map(|place| here.own_number(place)).collect()
}

/// The children in the kernel's lists. One may miss what follows a child that ends at that moment.
fn listed() -> Vec<i32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|place| place.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

/// The processes of these tasks, which are children of this process, that have a handler for a
/// signal: those of the tasks themselves, and those of their process groups.
pub(super) fn handling(tasks: &[Pid], signal: Signal) -> Vec<Pid> {
    let (here, all) = (Here::of_this_process(), all());
    let is_task = |process: &&Seen| here.own_number(process.place).is_some_and(|pid| tasks.contains(&pid));
    let groups: HashSet<i32> = here.children(&all).filter(is_task).map(|task| task.place).collect();
    all.iter()
        .filter(|process| groups.contains(&process.group) || groups.contains(&process.place))
        .filter(|process| handles(process.place, signal))
        .filter_map(|process| here.own_number(process.place))
        .collect()
}

/// Where this process is in `/proc`, which may belong to an outer process namespace:
/// `unshare --pid` leaves it as it was. All numbers there are of that namespace.
struct Here {
    /// The number of this process there.
    place: i32,
    /// How many namespaces are between that one and this process's.
    depth: usize,
}

/// A process as `/proc` shows it, with the numbers that it has there.
struct Seen {
    place: i32,
    parent: i32,
    group: i32,
}

impl Here {
    fn of_this_process() -> Self {
        let link = fs::read_link("/proc/self").ok();
        let place = link.and_then(|link| link.to_str()?.parse().ok()).unwrap_or(getpid().as_raw());
        Self { place, depth: numbers(place).len().saturating_sub(1) }
    }

    fn children<'a>(&self, all: &'a [Seen]) -> impl Iterator<Item = &'a Seen> + use<'a> {
        let me = self.place;
        all.iter().filter(move |process| process.parent == me)
    }

    /// The number that this process uses for one of `/proc`.
    fn own_number(&self, place: i32) -> Option<Pid> {
        let number = if self.depth == 0 { Some(place) } else { numbers(place).get(self.depth).copied() };
        number.map(Pid::from_raw)
    }
}

/// The numbers of a process in all namespaces that have it, that of `/proc` first.
fn numbers(place: i32) -> Vec<i32> {
    let status = status(place);
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    line.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// All processes.
fn all() -> Vec<Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|place: i32| {
            // The name, which may hold anything, ends at the last bracket; state, parent
            // and group follow.
            let stat = fs::read_to_string(format!("/proc/{place}/stat")).ok()?;
            let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(1);
            let mut number = || fields.next()?.parse().ok();
            Some(Seen { place, parent: number()?, group: number()? })
        })
        .collect()
}

fn handles(place: i32, signal: Signal) -> bool {
    bit(&status(place), "SigCgt:", signal)
}

fn status(place: i32) -> String {
    fs::read_to_string(format!("/proc/{place}/status")).unwrap_or_default()
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

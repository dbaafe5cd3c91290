//! A job key for tasks whose launcher gives none: the process that started them all.
//!
//! That is this process's nearest ancestor that is not itself a part of some task: the shell in which the tasks
//! were started by hand, or the daemon that the launcher keeps on each machine. A script around a task is not
//! it: it has the task's own variables in its environment, and is passed over. The process's start time goes
//! into the key beside its number, because numbers are used again.
//!
//! Where the tasks outlived the process that started them, their session stands in for it.

use std::fs;

use rustix::process::{getpid, getppid, getsid, getuid};

/// The variables that mark a process as a part of a task.
const MARKS: [&[u8]; 5] =
    [b"MP_CHILD=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"PMIX_RANK=", b"SLURM_PROCID="];

/// How many ancestors to look at: more than any real chain of scripts.
const MOST: u32 = 64;

/// The key.
pub(super) fn key() -> String {
    let uid = getuid().as_raw();
    let mut ancestor = getppid().map_or(0, |pid| pid.as_raw_pid());
    for _ in 0..MOST {
        if ancestor <= 1 || !is_part_of_a_task(ancestor) {
            break;
        }
        ancestor = stat(ancestor).map_or(0, |stat| stat.parent);
    }
    if ancestor <= 1 {
        let session = getsid(None).unwrap_or(getpid()).as_raw_pid();
        return format!("user {uid}, session {session}");
    }
    let start = stat(ancestor).map_or(0, |stat| stat.start);
    format!("user {uid}, started by process {ancestor} of {start}")
}

/// Whether the environment that process `pid` was started with has a task's variables. A process that cannot be
/// looked into belongs to somebody else, so it is no part of a task.
fn is_part_of_a_task(pid: i32) -> bool {
    let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environ.split(|byte| *byte == 0).any(|entry| MARKS.iter().any(|mark| entry.starts_with(mark)))
}

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: i32,
    /// In clock ticks since the machine started.
    start: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field, the program's name in parentheses, may hold anything, parentheses and blanks included.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_nasty_name() {
        let text = "42 (a) b (c) S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11";
        assert_eq!(parse_stat(text), Some(Stat { parent: 17, start: 987_654 }));
        assert_eq!(parse_stat("42 (short) S 17"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process() {
        let own = stat(getpid().as_raw_pid()).unwrap();
        assert_eq!(own.parent, getppid().unwrap().as_raw_pid());
        assert!(own.start > 0);
    }

    #[test]
    fn the_key_is_the_same_each_time() {
        assert_eq!(key(), key());
    }
}

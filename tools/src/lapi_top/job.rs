//! The job that is shown, and how `poe` is asked.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

use crate::poe::viewers::{Job, NAME, address};

/// How long `poe` may take: its tasks have a second.
const LIMIT: Duration = Duration::from_secs(5);

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("no job of this user that poe has started runs here")]
    NoJob,
    #[error("several jobs run here, name one of them by poe's process:{0}")]
    Several(String),
    #[error("process {0} is no poe of this user, or its network namespace is another one")]
    NotPoe(i32),
    #[error("the job has ended")]
    Ended,
    #[error("poe (process {0}) does not reply: {1}")]
    NoReply(i32, io::Error),
    #[error("the tasks run on other machines: their poe is asked for a report by `kill -USR2 {0}`")]
    Elsewhere(i32),
    #[error("standard output is no terminal that can be used ({0}); -b writes text")]
    Terminal(io::Error),
}

/// A `poe` that runs.
pub(super) struct Source {
    pid: i32,
    command: String,
}

impl Source {
    /// This one, or the only one.
    pub(super) fn find(pid: Option<i32>) -> Result<Self, Failure> {
        let of = |pid| Self { pid, command: command(pid) };
        if let Some(pid) = pid {
            return if is_ours(pid) && listening().contains(&pid) {
                Ok(of(pid))
            } else {
                Err(Failure::NotPoe(pid))
            };
        }
        let found: Vec<i32> = listening().into_iter().filter(|pid| is_ours(*pid)).collect();
        match found[..] {
            [] => Err(Failure::NoJob),
            [one] => Ok(of(one)),
            _ => {
                let lines = found.iter().map(|pid| format!("\n  {pid}  {}", command(*pid)));
                Err(Failure::Several(lines.collect()))
            }
        }
    }

    /// What the heading says of it.
    pub(super) fn name(&self) -> String {
        format!("poe {}: {}", self.pid, self.command)
    }

    /// The present state of the job.
    pub(super) fn ask(&self) -> Result<Job, Failure> {
        let no_reply = |error: io::Error| Failure::NoReply(self.pid, error);
        let socket = address(self.pid).and_then(|address| UnixStream::connect_addr(&address));
        let socket = socket.map_err(|_| Failure::Ended)?;
        // Somebody else may have taken the name.
        if !getsockopt(&socket, sockopt::PeerCredentials).is_ok_and(|peer| peer.pid() == self.pid) {
            return Err(Failure::NotPoe(self.pid));
        }
        socket.set_read_timeout(Some(LIMIT)).map_err(no_reply)?;
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).map_err(no_reply)?;
        if line.is_empty() {
            return Err(Failure::Ended);
        }
        let job: Job = serde_json::from_str(&line).map_err(|error| no_reply(error.into()))?;
        if job.elsewhere { Err(Failure::Elsewhere(self.pid)) } else { Ok(job) }
    }
}

/// The processes of every `poe` that listens in this network namespace.
fn listening() -> Vec<i32> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let names =
        sockets.lines().filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@')?.strip_prefix(NAME));
    let mut pids: Vec<i32> = names.filter_map(|pid| pid.parse().ok()).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Whether the process belongs to this user; to root all do.
fn is_ours(pid: i32) -> bool {
    let user = geteuid();
    user.is_root() || fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == user.as_raw())
}

fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_owned()
}

//! The job that is shown, and how `poe` is asked.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use nix::unistd::geteuid;

use crate::poe::state::Job;
use crate::poe::viewers::{NAME, address};

/// How long `poe` may take: its tasks have a second.
const LIMIT: Duration = Duration::from_secs(5);
/// How long its reply may be. It may be no `poe`.
const LONGEST: u64 = 64 << 20;

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
    #[error("standard output: {0}")]
    Output(io::Error),
    #[error("standard {0} is no terminal; -b writes text")]
    NoTerminal(&'static str),
    #[error("the terminal cannot be drawn on ({0}); -b writes text")]
    Dumb(&'static str),
    #[error("the terminal cannot be used ({0}); -b writes text")]
    Terminal(io::Error),
}

/// A `poe` that runs.
pub(super) struct Source {
    pid: i32,
    /// The user of the process when it was found.
    owner: u32,
    command: String,
}

impl Source {
    /// The `poe` that is process `pid`, or the only one.
    pub(super) fn find(pid: Option<i32>) -> Result<Self, Failure> {
        let user = geteuid();
        let of = |pid| {
            let owner = owner(pid).filter(|owner| user.is_root() || *owner == user.as_raw())?;
            Some(Self { pid, owner, command: command(pid) })
        };
        if let Some(pid) = pid {
            let listens = listening().contains(&pid);
            return of(pid).filter(|_| listens).ok_or(Failure::NotPoe(pid));
        }
        let mut found: Vec<Self> = listening().into_iter().filter_map(of).collect();
        match found.pop() {
            None => Err(Failure::NoJob),
            Some(one) if found.is_empty() => Ok(one),
            Some(last) => {
                found.push(last);
                let lines = found.iter().map(|one| format!("\n  {}  {}", one.pid, one.command));
                Err(Failure::Several(lines.collect()))
            }
        }
    }

    /// Whether it is of the user who looks. What another user's process says leads to no file
    /// that is opened.
    pub(super) fn is_own(&self) -> bool {
        self.owner == geteuid().as_raw()
    }

    /// What the heading says of it.
    pub(super) fn name(&self) -> String {
        format!("poe {}: {}", self.pid, self.command)
    }

    /// The present state of the job.
    pub(super) fn ask(&self) -> Result<Job, Failure> {
        let no_reply = |error: io::Error| Failure::NoReply(self.pid, error);
        let until = Instant::now() + LIMIT;
        let socket = match connected(self.pid) {
            Ok(socket) => socket,
            // It accepts nothing.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(no_reply(error)),
            Err(_) => return Err(Failure::Ended),
        };
        // Somebody else may have taken the name.
        let is_it = |pid, uid| pid == self.pid && uid == self.owner;
        if !getsockopt(&socket, sockopt::PeerCredentials).is_ok_and(|peer| is_it(peer.pid(), peer.uid())) {
            return Err(Failure::NotPoe(self.pid));
        }
        let line = line(socket, until).map_err(no_reply)?;
        if line.is_empty() {
            return Err(Failure::Ended);
        }
        serde_json::from_str(&line).map_err(|error| no_reply(error.into()))
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

/// The user of a process.
fn owner(pid: i32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|found| found.uid())
}

/// A connection to a `poe`, which may take [`LIMIT`] to accept it.
fn connected(pid: i32) -> io::Result<UnixStream> {
    let name = address(pid)?;
    let to = UnixAddr::new_abstract(name.as_abstract_name().unwrap_or_default())?;
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::SendTimeout, &TimeVal::new(LIMIT.as_secs() as _, 0))?;
    connect(socket.as_raw_fd(), &to)?;
    Ok(socket.into())
}

/// The first line that comes, or what comes of it before the end.
fn line(socket: UnixStream, until: Instant) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(Timed { socket, until }.take(LONGEST)).read_line(&mut line)?;
    Ok(line)
}

/// A socket from which is read until this time.
struct Timed {
    socket: UnixStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.read(buffer)
    }
}

/// A text that changes nothing about a terminal.
pub(super) fn shown(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy).collect();
    shown(words.join(" ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn one_that_sends_little_by_little_takes_no_longer() {
        let (here, mut there) = UnixStream::pair().expect("sockets");
        let drips = std::thread::spawn(move || {
            while there.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let error = line(here, Instant::now() + Duration::from_millis(200)).expect_err("no line ends");
        assert!([io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock].contains(&error.kind()), "{error}");
        drips.join().expect("nothing fails");
    }

    #[test]
    fn nothing_that_is_shown_reaches_the_terminal_as_a_command() {
        assert_eq!(shown("a\x1b]0;b\x07\u{9b}2J\nä"), "a?]0;b??2J?ä");
    }
}

//! A command on another host, by ssh.

use crate::environment::environment;
use crate::failure::{Failure, Result};
use crate::log::{STEPS, log};
use crate::target::Target;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The exit status of ssh itself when it fails,
const SSH_FAILED: i32 = 255;
/// and of a shell that finds no command, or none that it may run.
const NO_COMMAND: [i32; 2] = [126, 127];
/// How much of what ssh has said is looked at for its last line, in bytes.
const LOOKED_AT: u64 = 4096;

/// ssh, running a command.
pub struct Ssh {
    child: Child,
    /// What the command writes to standard error: a file in memory, which nobody needs to read so
    /// that the command goes on.
    said: File,
}

/// How the command has ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// The program has waited for it.
    Unknown,
}

impl Ssh {
    /// Starts a command on a host. Its standard input and output are pipes where `piped` says so,
    /// and otherwise /dev/null.
    ///
    /// # Errors
    /// ECONNREFUSED: ssh cannot be run. EMFILE and others: the system's.
    pub fn start(target: &Target, command: &str, piped: bool) -> Result<(Self, Option<(OwnedFd, OwnedFd)>)> {
        let said = memfd_create("rpmem-stderr", MemfdFlags::CLOEXEC)
            .map_err(|error| Failure::system("a file in memory")(error.into()))?;
        let said = File::from(said);
        let ssh = &environment().ssh;
        let mut line = Command::new(ssh);
        if let Some(port) = target.port {
            line.arg("-p").arg(port.to_string());
        }
        line.arg("-T");
        if !target.is_v6 {
            line.arg("-4");
        }
        line.arg("-oBatchMode=yes").arg(&target.place).arg(command);
        let way = || if piped { Stdio::piped() } else { Stdio::null() };
        line.stdin(way())
            .stdout(way())
            .stderr(said.try_clone().map_err(Failure::system("standard error of ssh"))?);
        log(STEPS, || format!("runs {line:?}"));
        let mut child = line.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                Failure::new(libc::ECONNREFUSED, format!("{}: {error}", ssh.to_string_lossy()))
            }
            _ => Failure::system(ssh.to_string_lossy())(error),
        })?;
        let pipes = child.stdout.take().map(OwnedFd::from).zip(child.stdin.take().map(OwnedFd::from));
        Ok((Self { child, said }, pipes))
    }

    /// Waits until the command has ended. When the time is over, it is killed.
    pub fn wait(mut self, patience: Option<Duration>) -> Ending {
        if patience.is_some_and(|patience| !self.ends_within(patience)) {
            let _ = self.child.kill();
        }
        match self.child.wait() {
            Err(_) => Ending::Unknown,
            Ok(status) => status
                .code()
                .map_or_else(|| Ending::Signal(status.signal().unwrap_or_default()), Ending::Status),
        }
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return true };
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], Some(&limit)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// What the command has said, for after its end.
    ///
    /// # Errors
    /// The system's.
    pub fn said(&self) -> io::Result<Said> {
        self.said.try_clone().map(Said)
    }

    /// Waits for a daemon that has not opened its session, and says why it has not.
    pub fn failure(self, patience: Duration, what: &str) -> Failure {
        let said = self.said();
        let ending = self.wait(Some(patience));
        let last = said.ok().and_then(|said| said.last_line()).unwrap_or_else(|| what.to_owned());
        match ending {
            Ending::Status(SSH_FAILED) => Failure::new(libc::ECONNREFUSED, format!("ssh: {last}")),
            // The daemon itself says so of its configuration.
            Ending::Status(libc::EINVAL) => Failure::invalid(last),
            Ending::Status(status) if NO_COMMAND.contains(&status) => {
                Failure::new(libc::EREMOTEIO, format!("the daemon cannot be run: {last}"))
            }
            Ending::Status(status) if status != 0 => {
                Failure::new(libc::EREMOTEIO, format!("the daemon has failed with status {status}: {last}"))
            }
            _ => Failure::new(libc::ECONNABORTED, format!("the daemon has ended: {last}")),
        }
    }
}

/// What a command has written to standard error.
pub struct Said(File);

impl Said {
    /// The last line that is not empty.
    pub fn last_line(&self) -> Option<String> {
        let end = self.0.metadata().ok()?.len();
        let mut bytes = vec![0; end.min(LOOKED_AT) as usize];
        self.0.read_exact_at(&mut bytes, end.saturating_sub(LOOKED_AT)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// A word as a shell takes it: quoted where it has more than plain characters.
pub fn quoted(word: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || "._-/+=:,@%".contains(one);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        for (word, expected) in
            [("a/b.set", "a/b.set"), ("two words", "'two words'"), ("", "''"), ("it's", r"'it'\''s'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}

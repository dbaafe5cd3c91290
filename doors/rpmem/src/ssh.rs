//! A command on another host, by ssh.

use crate::environment::environment;
use crate::failure::{Failure, Result};
use crate::log::{STEPS, log};
use crate::target::Target;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The exit status of ssh itself when it fails,
const SSH_FAILED: i32 = 255;
/// and of a shell that finds no command, or none that it may run.
const NO_COMMAND: [i32; 2] = [126, 127];

/// How much of what ssh says is kept, in bytes: the first.
const KEPT: u64 = 65536;

/// ssh, running a command.
pub struct Ssh {
    /// `None`: the program has waited for it at once.
    process: Option<OwnedFd>,
    /// What the command writes to standard error: a file in memory, so that
    /// the command goes on while it is not read.
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
    /// Starts a command on a host. Its standard input and output are ours where `piped` says so,
    /// and otherwise /dev/null.
    ///
    /// # Errors
    /// ECONNREFUSED: ssh cannot be run. EMFILE and others: the system's.
    pub fn start(target: &Target, command: &str, piped: bool) -> Result<(Self, Option<(OwnedFd, OwnedFd)>)> {
        let said = errors().map_err(Failure::system("a file in memory"))?;
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
        let mut input = None;
        if piped {
            // No pipe: a write to one whose reader is gone would be a signal to the program.
            let (ours, its) = UnixStream::pair().map_err(Failure::system("standard input of ssh"))?;
            input = Some(OwnedFd::from(ours));
            line.stdin(OwnedFd::from(its)).stdout(Stdio::piped());
        } else {
            line.stdin(Stdio::null()).stdout(Stdio::null());
        }
        line.stderr(said.try_clone().map_err(Failure::system("standard error of ssh"))?);
        log(STEPS, || format!("runs {line:?}"));
        let mut child = line.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                Failure::new(libc::ECONNREFUSED, format!("{}: {error}", ssh.to_string_lossy()))
            }
            _ => Failure::system(ssh.to_string_lossy())(error),
        })?;
        // The program may wait for all its children, by a handler of SIGCHLD for example: from
        // then on the number may be another process's.
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let pipes = child.stdout.take().map(OwnedFd::from).zip(input);
        Ok((Self { process, said }, pipes))
    }

    /// Waits until the command has ended. When the time is over, it is killed.
    pub fn wait(self, patience: Option<Duration>) -> Ending {
        let Some(process) = self.process else { return Ending::Unknown };
        if patience.is_some_and(|patience| !ends_within(&process, patience)) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
        let status = loop {
            match waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(Some(status)) => break status,
                Ok(None) | Err(_) => return Ending::Unknown,
            }
        };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => Ending::Status(status),
            (None, signal) => Ending::Signal(signal.unwrap_or_default()),
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

fn ends_within(process: &OwnedFd, patience: Duration) -> bool {
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

/// A file in memory that does not grow.
fn errors() -> io::Result<File> {
    let file = File::from(memfd_create("rpmem-stderr", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(KEPT)?;
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

/// What a command has written to standard error: the first [`KEPT`] bytes.
pub struct Said(File);

impl Said {
    /// The last line that is not empty.
    pub fn last_line(&self) -> Option<String> {
        let mut bytes = vec![0; KEPT as usize];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let end = bytes.iter().rposition(|byte| *byte != 0)? + 1;
        let text = String::from_utf8_lossy(&bytes[..end]);
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
    use std::io::Write;

    #[test]
    fn words_for_a_shell() {
        for (word, expected) in
            [("a/b.set", "a/b.set"), ("two words", "'two words'"), ("", "''"), ("it's", r"'it'\''s'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn what_is_said_takes_no_more_memory_than_is_kept() {
        let file = errors().expect("a file");
        let said = Said(file.try_clone().expect("a file"));
        assert_eq!(said.last_line(), None);
        let line = "a line\n".as_bytes();
        let written = (0..).take_while(|_| (&file).write_all(line).is_ok()).count();
        assert!(written * line.len() <= KEPT as usize);
        assert_eq!(file.metadata().expect("a file").len(), KEPT);
        assert!(said.last_line().is_some_and(|last| "a line".starts_with(&last)));
    }
}

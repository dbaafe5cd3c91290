//! What can fail before the tasks run, or apart from them.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use openlapi::base::limits;
use openlapi::base::patient::{LIMIT, say_to};

/// The exit status of a job that has reached its time limit: that of timeout(1).
pub(super) const LATE: u8 = 124;

/// Why a job could not be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
    /// What is asked for cannot be done here.
    #[error("{0}")]
    Failed(String),
    /// The system refused something that is needed.
    #[error("{what}: {}", reason(.source))]
    System { what: String, source: io::Error },
    /// A program could not be executed.
    #[error("{program}: {}", reason(.source))]
    Program { program: String, source: io::Error },
    /// A signal of the user ended the job before its tasks had started.
    #[error("ended by signal {signal} ({}) before all tasks had started", super::processes::signal_name(*.signal))]
    Ended { signal: i32 },
    /// The time of the job was over before its tasks had started.
    #[error("{limit} reached before all tasks had started")]
    Late { limit: String },
}

impl Error {
    pub(super) fn asked(message: impl Into<String>) -> Self {
        Self::Asked(message.into())
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(super) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// The exit status of `poe`; for programs the same as a shell's.
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::Asked(_) => 2,
            Self::Failed(_) | Self::System { .. } => 1,
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Ended { signal } => 128 + *signal as u8,
            Self::Late { .. } => LATE,
        }
    }
}

/// The limit that was reached, in the library's words, or else the system's text.
pub(super) fn reason(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    let limit = rustix::io::Errno::from_io_error(error).and_then(limits::met);
    limit.unwrap_or_else(|| Errno::from_raw(number).desc().to_owned())
}

/// What was said and found no room yet.
static UNSAID: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Writes one message of `poe` itself, whole, to standard error. A closed standard error is
/// not a failure. One that is not read is waited for up to [`LIMIT`]: the tasks' time limit and
/// the user's signals do not wait for a reader. The message is kept then ([`say_more`]).
pub(super) fn say(message: &str) {
    let mut unsaid = UNSAID.lock().unwrap_or_else(PoisonError::into_inner);
    // What has waited in vain once does not wait again.
    let limit = if unsaid.is_empty() { LIMIT } else { Duration::ZERO };
    unsaid.extend(format!("poe: {message}\n").as_bytes());
    write_some(&mut unsaid, limit);
}

/// Writes what was kept, as far as there is room. Whether something is left, or another thread
/// waits for room.
pub(super) fn say_more() -> bool {
    match UNSAID.try_lock() {
        Ok(mut unsaid) => write_some(&mut unsaid, Duration::ZERO),
        Err(TryLockError::Poisoned(unsaid)) => write_some(&mut unsaid.into_inner(), Duration::ZERO),
        Err(TryLockError::WouldBlock) => true,
    }
}

/// Writes what there is room for in time. Whether something is left.
fn write_some(unsaid: &mut Vec<u8>, limit: Duration) -> bool {
    let left = if unsaid.is_empty() { 0 } else { write(unsaid, limit) };
    let written = unsaid.len() - left;
    unsaid.drain(..written);
    left > 0
}

/// Writes to standard error, and returns how much there was no room for in time.
fn write(text: &[u8], limit: Duration) -> usize {
    let stderr = io::stderr();
    match unblocking_stderr() {
        Some(own) => say_to(own.as_fd(), text, limit).len(),
        None => {
            let limit = PollTimeout::try_from(limit).expect("a short time");
            let full = poll(&mut [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)], limit) == Ok(0);
            if full { text.len() } else { say_to(stderr.as_fd(), text, LIMIT).len() }
        }
    }
}

/// The pipe or the terminal that is standard error, opened once more so that it does not block: the
/// flag of standard error itself is also that of other programs, and the output of the tasks takes
/// the room that a look has found.
fn unblocking_stderr() -> Option<File> {
    const PATH: &str = "/proc/self/fd/2";
    let kind = std::fs::metadata(PATH).ok()?.file_type();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let open = || File::options().write(true).custom_flags(flags).open(PATH).ok();
    (kind.is_fifo() || kind.is_char_device()).then(open).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_names_the_limit() {
        let text = |errno: Errno| Error::system("x", errno).to_string();
        assert_eq!(text(Errno::EACCES), "x: Permission denied");
        assert!(text(Errno::EMFILE).ends_with(" (ulimit -n)"), "{}", text(Errno::EMFILE));
        assert!(
            text(Errno::EAGAIN).starts_with("x: process limit reached (ulimit -u"),
            "{}",
            text(Errno::EAGAIN)
        );
    }
}

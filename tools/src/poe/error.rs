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
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, rlim_t};

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

/// The system's text, and the limit that was reached where there is one.
pub(super) fn reason(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    let limit = match Errno::from_raw(number) {
        Errno::EMFILE => "open-file limit reached (ulimit -n)",
        Errno::ENFILE => "the system's open-file limit is reached (sysctl fs.file-max)",
        Errno::EAGAIN => of_threads(getrlimit(Resource::RLIMIT_AS).map_or(RLIM_INFINITY, |(limit, _)| limit)),
        Errno::ENOMEM => "not enough memory (ulimit -v, memory.max)",
        Errno::EFBIG => "file-size limit reached (ulimit -f)",
        other => return other.desc().to_owned(),
    };
    limit.to_owned()
}

/// The limit that a new process or thread has met: that of processes, or one of the address space
/// (this one), where there is one, in which a thread's stack has found no room.
fn of_threads(address_space: rlim_t) -> &'static str {
    match address_space {
        RLIM_INFINITY => "process limit reached (ulimit -u, pids.max)",
        _ => "process limit reached (ulimit -u, pids.max), or that of the address space (ulimit -v)",
    }
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
        for (errno, text) in [
            (Errno::EAGAIN, "x: process limit reached (ulimit -u, pids.max)"),
            (Errno::EMFILE, "x: open-file limit reached (ulimit -n)"),
            (Errno::EACCES, "x: Permission denied"),
        ] {
            assert_eq!(Error::system("x", errno).to_string(), text);
        }
    }

    #[test]
    fn a_thread_may_have_met_the_limit_of_the_address_space() {
        let threads = "process limit reached (ulimit -u, pids.max)";
        assert_eq!(of_threads(RLIM_INFINITY), threads);
        assert_eq!(of_threads(1 << 40), format!("{threads}, or that of the address space (ulimit -v)"));
    }
}

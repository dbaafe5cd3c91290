//! What can fail before the tasks run, or apart from them.

use std::io;

use nix::errno::Errno;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, rlim_t};

use openlapi::base::patient::Patient;

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

/// Writes one message of `poe` itself, whole, to standard error. A closed standard error is
/// not a failure.
pub(super) fn say(message: &str) {
    use std::io::Write;
    let _ = Patient(io::stderr()).write_all(format!("poe: {message}\n").as_bytes());
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

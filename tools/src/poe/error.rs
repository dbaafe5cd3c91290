//! What can go wrong before or beside the tasks themselves.

use std::io;

/// Why a job could not be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// What was asked for makes no sense, or is not there.
    #[error("{0}")]
    Asked(String),
    /// The system refused something that is needed.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// A program could not be executed.
    #[error("{program}: {source}")]
    Program { program: String, source: io::Error },
}

impl Error {
    pub(super) fn asked(message: impl Into<String>) -> Self {
        Self::Asked(message.into())
    }

    pub(super) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// The exit status of `poe`; for programs the same as a shell's.
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::Asked(_) | Self::System { .. } => 1,
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
        }
    }
}

/// Writes one message of `poe` itself, whole, to standard error. A closed standard error is no reason to fail.
pub(super) fn say(message: &str) {
    use std::io::Write;
    let _ = io::stderr().write_all(format!("poe: {message}\n").as_bytes());
}

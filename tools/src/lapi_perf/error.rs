//! Why `lapi_perf` ends without a result.

/// A reason to end, as a sentence. Its kind decides the exit status.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// What was asked for cannot be done: the arguments have to change.
    #[error("{0}")]
    Usage(String),
    /// A measurement was tried, and failed.
    #[error("{0}")]
    Failed(String),
    /// Task 0 has reported the cause, and ends with this status.
    #[error("task 0 has reported the cause")]
    Reported(u8),
}

impl Failure {
    pub(super) fn usage(why: impl Into<String>) -> Self {
        Self::Usage(why.into())
    }

    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

/// The result of everything here that can fail.
pub(super) type Result<T> = std::result::Result<T, Failure>;

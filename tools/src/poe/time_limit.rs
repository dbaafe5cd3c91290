//! The time after which a job is ended (MP_TIME_LIMIT).

use std::fmt;
use std::time::{Duration, Instant};

use super::error::Error;
use super::settings::Settings;

/// The time that all jobs of one `poe` have together.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    seconds: u32,
    at: Instant,
}

impl TimeLimit {
    /// The limit that is asked for, from now on.
    pub(super) fn of(settings: &Settings) -> Result<Option<Self>, Error> {
        let seconds = settings.parsed::<u32>("MP_TIME_LIMIT")?;
        Ok(seconds.map(|seconds| Self { seconds, at: Instant::now() + Duration::from_secs(seconds.into()) }))
    }

    /// When it is reached.
    pub(super) fn at(self) -> Instant {
        self.at
    }

    pub(super) fn is_reached(self) -> bool {
        self.at <= Instant::now()
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time limit of {} s (-timeout)", self.seconds)
    }
}

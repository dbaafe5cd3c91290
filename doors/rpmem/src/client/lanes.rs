//! Lanes: each has at most one request under way.

use crate::failure::{Failure, Result};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// No answer has come.
const OPEN: i32 = -1;

/// The answer that a lane waits for, and its flushes.
#[derive(Default)]
pub struct Lane {
    /// [`OPEN`], 0, or the errno of a failure.
    answer: AtomicI32,
    /// What the daemon says of the failure.
    text: Mutex<Vec<u8>>,
    /// Flushes since the last drain.
    flushes: AtomicU64,
}

impl Lane {
    /// A request is about to be sent.
    pub fn begin(&self) {
        self.answer.store(OPEN, Ordering::Release);
    }

    /// The daemon has answered.
    pub fn answer(&self, errno: i32, text: Vec<u8>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.answer.store(errno.max(0), Ordering::Release);
    }

    /// Whether the answer has come.
    pub fn is_answered(&self) -> bool {
        self.answer.load(Ordering::Acquire) != OPEN
    }

    /// The answer.
    ///
    /// # Errors
    /// The daemon's.
    pub fn outcome(&self) -> Result<()> {
        match self.answer.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => {
                let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
                Err(Failure::new(errno, String::from_utf8_lossy(&text).into_owned()))
            }
        }
    }

    /// One more flush is under way.
    pub fn count_flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// How many flushes a drain has to wait for.
    pub fn take_flushes(&self) -> u64 {
        self.flushes.swap(0, Ordering::Relaxed)
    }
}

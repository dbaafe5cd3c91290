//! Lanes: each has at most one request under way.

use crate::failure::{Failure, Result};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// No answer has come.
const OPEN: i32 = -1;
/// The most flushes of a lane; it drains before the next one.
const MOST_FLUSHES: usize = 1024;

/// The answer that a lane waits for, and its flushes.
#[derive(Default)]
pub struct Lane {
    /// [`OPEN`], 0, or the errno of a failure.
    answer: AtomicI32,
    /// What the daemon says of the failure.
    text: Mutex<Vec<u8>>,
    /// What was flushed since the last drain: first byte, and the one after the last.
    flushes: Mutex<Vec<(usize, usize)>>,
}

impl Lane {
    /// A request is about to be sent.
    pub fn begin(&self) {
        self.answer.store(OPEN, Ordering::Release);
    }

    /// The daemon has answered.
    pub fn answer(&self, errno: i32, text: Vec<u8>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        // No errno is negative.
        let errno = if errno < 0 { libc::EPROTO } else { errno };
        self.answer.store(errno, Ordering::Release);
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
    pub fn add_flush(&self, offset: usize, length: usize) {
        self.flushes().push((offset, offset + length));
    }

    /// Whether a drain has to come before these bytes are accessed: a flush of some of them is
    /// under way, which the daemon may do later than what is sent after it.
    pub fn must_drain(&self, offset: usize, length: usize) -> bool {
        let flushes = self.flushes();
        flushes.len() >= MOST_FLUSHES
            || flushes.iter().any(|(from, to)| offset < *to && *from < offset + length)
    }

    /// How many flushes a drain has to wait for.
    pub fn take_flushes(&self) -> u64 {
        let mut flushes = self.flushes();
        let count = flushes.len() as u64;
        flushes.clear();
        count
    }

    fn flushes(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        self.flushes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_drains_before_its_flushed_bytes_are_accessed() {
        let lane = Lane::default();
        lane.add_flush(100, 10);
        lane.add_flush(300, 1);
        for (offset, length, expected) in [
            (90, 10, false),
            (90, 11, true),
            (105, 1, true),
            (110, 190, false),
            (110, 191, true),
            (0, 999, true),
        ] {
            assert_eq!(lane.must_drain(offset, length), expected, "{offset}, {length} bytes");
        }
        assert_eq!((lane.take_flushes(), lane.take_flushes()), (2, 0));
        assert!(!lane.must_drain(100, 10));
        for at in 0..MOST_FLUSHES {
            assert!(!lane.must_drain(at, 1));
            lane.add_flush(at, 1);
        }
        assert!(lane.must_drain(MOST_FLUSHES, 1));
    }

    #[test]
    fn an_answer_that_is_no_errno_is_a_failure() {
        let lane = Lane::default();
        for (errno, expected) in [
            (0, None),
            (libc::EIO, Some(libc::EIO)),
            (-1, Some(libc::EPROTO)),
            (i32::MIN, Some(libc::EPROTO)),
        ] {
            lane.begin();
            lane.answer(errno, Vec::new());
            assert!(lane.is_answered());
            assert_eq!(lane.outcome().err().map(|failure| failure.errno), expected, "{errno}");
        }
    }
}

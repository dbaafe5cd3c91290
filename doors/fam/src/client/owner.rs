//! Whose an operation is: a context's, or a blocking call's.

use crate::error::{Failure, FamError};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What an operation is to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A get or a gather: `quiet` waits for it.
    Fetches,
    /// A put, a scatter, an atomic or a copy: `fence` waits for it, too.
    Changes,
}

/// Counts operations that are not complete, and keeps the first failure.
#[derive(Debug, Default)]
pub struct Owner {
    fetches: AtomicU32,
    changes: AtomicU32,
    /// The old value of the last atomic operation, in two halves.
    old: [AtomicU64; 2],
    failed: AtomicU32,
    failure: Mutex<Option<Failure>>,
}

impl Owner {
    /// An operation has begun.
    pub fn begin(&self, class: Class) {
        self.count(class).fetch_add(1, Ordering::Relaxed);
    }

    /// An operation has ended.
    pub fn end(&self, class: Class, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.failure().get_or_insert(failure);
            self.failed.store(1, Ordering::Relaxed);
        }
        // What the operation has written is seen by who sees the count.
        self.count(class).fetch_sub(1, Ordering::Release);
    }

    /// An atomic operation has had this old value.
    pub fn set_old(&self, value: u128) {
        self.old[0].store(value as u64, Ordering::Relaxed);
        self.old[1].store((value >> 64) as u64, Ordering::Relaxed);
    }

    /// The old value of the last atomic operation.
    pub fn old(&self) -> u128 {
        let [low, high] = self.old.each_ref().map(|half| u128::from(half.load(Ordering::Relaxed)));
        low | high << 64
    }

    /// How many operations are not complete.
    pub fn pending(&self) -> u32 {
        self.changing() + self.fetches.load(Ordering::Acquire)
    }

    /// How many operations that `fence` waits for are not complete.
    pub fn changing(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// The first failure since the last call of this.
    pub fn take_failure(&self) -> Result<(), Failure> {
        if self.failed.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.failed.store(0, Ordering::Relaxed);
        match self.failure().take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// A code of a reply.
    pub fn outcome(code: i32) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        let error = FamError::of(code);
        let text = match error {
            FamError::NoPerm => "the descriptor has not the right",
            FamError::NotFound => "the item is gone",
            FamError::OutOfRange => "the range is not within the item",
            FamError::Invalid => "the server takes the operation for none",
            _ => "the server has refused the operation",
        };
        Err(error.because(text))
    }

    fn count(&self, class: Class) -> &AtomicU32 {
        match class {
            Class::Fetches => &self.fetches,
            Class::Changes => &self.changes,
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

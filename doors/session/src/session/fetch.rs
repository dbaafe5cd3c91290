//! Atomic operations.

use super::Session;
use crate::error::Result;
use openlapi::abi::{COMPARE_AND_SWAP, FETCH_AND_ADD, FETCH_AND_OR, SWAP};
use openlapi::api::{SendDone, rmw};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Instant;

/// What an atomic operation does to a number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds this number, without regard to overflow.
    Add(u64),
    /// Sets these bits.
    Or(u64),
    /// Puts this number in its place.
    Swap(u64),
    /// Puts another number in its place if it is the expected one. Returns 1 if it was, and 0
    /// otherwise.
    CompareAndSwap {
        /// The expected number.
        expected: u64,
        /// The other one.
        new: u64,
    },
}

/// An atomic operation that was started. When this is dropped before, the operation goes on.
pub struct Fetch<'a> {
    session: &'a Session,
    /// Stays allocated where the operation goes on.
    memory: ManuallyDrop<Box<Memory>>,
}

/// What the core writes to.
#[derive(Default)]
struct Memory {
    previous: AtomicU64,
    arrived: AtomicI32,
}

impl Session {
    /// Changes a number of the peer as one step, and returns what it was before; of
    /// [`Change::CompareAndSwap`], whether it was changed.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over. [`Error::Core`]: the address is no
    /// multiple of 8, or null.
    ///
    /// [`Error::Closed`]: crate::Error::Closed
    /// [`Error::Lost`]: crate::Error::Lost
    /// [`Error::Core`]: crate::Error::Core
    ///
    /// # Safety
    /// The peer has a number of 64 bits at `at`, which others change by such calls alone.
    pub unsafe fn fetch(&self, at: u64, change: Change) -> Result<u64> {
        // SAFETY: the caller's promise.
        let started = unsafe { self.start_fetch(at, change) }?;
        loop {
            if let Some(previous) = started.wait(None)? {
                return Ok(previous);
            }
        }
    }

    /// Starts to change a number of the peer as one step.
    ///
    /// # Errors
    /// Those of [`Self::fetch`].
    ///
    /// # Safety
    /// As of [`Self::fetch`].
    pub unsafe fn start_fetch(&self, at: u64, change: Change) -> Result<Fetch<'_>> {
        let (op, values) = match change {
            Change::Add(value) => (FETCH_AND_ADD, [value, 0]),
            Change::Or(value) => (FETCH_AND_OR, [value, 0]),
            Change::Swap(value) => (SWAP, [value, 0]),
            Change::CompareAndSwap { expected, new } => (COMPARE_AND_SWAP, [expected, new]),
        };
        let memory = Box::<Memory>::default();
        let request = rmw::Request {
            tgt: self.peer(),
            op,
            size: 64,
            var: at,
            in_val: values.as_ptr().expose_provenance(),
            previous: memory.previous.as_ptr().expose_provenance(),
            done: SendDone {
                org_cntr: memory.arrived.as_ptr().expose_provenance(),
                ..SendDone::nothing(self.peer())
            },
        };
        self.check()?;
        // SAFETY: the values are read before this returns; number and counter live until the
        // operation is complete, or has ended with the session.
        self.enter_and(|held| unsafe { rmw::rmw(held, &request) })?;
        Ok(Fetch { session: self, memory: ManuallyDrop::new(memory) })
    }
}

impl Fetch<'_> {
    /// Waits for what the number was before; `None`: `deadline` has passed before.
    ///
    /// # Errors
    /// [`crate::Error::Closed`], [`crate::Error::Lost`]: the session is over.
    pub fn wait(&self, deadline: Option<Instant>) -> Result<Option<u64>> {
        let arrived = self.session.wait(deadline, || self.has_arrived())?;
        Ok(arrived.then(|| self.memory.previous.load(Ordering::Relaxed)))
    }

    fn has_arrived(&self) -> bool {
        self.memory.arrived.load(Ordering::Acquire) != 0
    }
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        if self.has_arrived() || self.session.watch.end().is_some() {
            // SAFETY: the core does not use it any more, and this is the end of its owner.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

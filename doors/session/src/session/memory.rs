//! What one process does to the memory of the other one.

use super::Session;
use crate::error::{Error, Result};
use openlapi::api::put_get;
use openlapi::api::request::{Get, Hint, Places, PlainPut};
use std::sync::atomic::{AtomicI32, Ordering};

impl Session {
    /// Starts to copy this process's memory to an address of the peer. [`Self::fence`] says when
    /// the data is in place.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over. [`Error::Core`].
    ///
    /// # Safety
    /// Until a fence has returned, with an error or without, `length` bytes at `from` are readable
    /// and do not change; and the peer has as much memory at `to`, which nothing else accesses.
    pub unsafe fn put(&self, from: *const u8, length: usize, to: u64) -> Result<()> {
        let put = self.plain_put(from, length, to, self.counter());
        // SAFETY: the caller's promise; the counter lives as long as the session.
        self.start(|held| unsafe { put_get::put(held, &put.into()) })
    }

    /// Starts to copy memory at an address of the peer to this process. [`Self::fence`] says when
    /// the data is here.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over. [`Error::Core`].
    ///
    /// # Safety
    /// Until a fence has returned, with an error or without, `length` bytes at `into` are writable
    /// and nothing else accesses them; and the peer has as much memory at `from`, which does not
    /// change.
    pub unsafe fn get(&self, into: *mut u8, length: usize, from: u64) -> Result<()> {
        let get = Get {
            tgt: self.peer(),
            places: Places::Contiguous { local: into.expose_provenance(), remote: from, len: length },
            tgt_cntr: 0,
            org_cntr: self.counter(),
            handler: None,
            parameter: 0,
            hint: Hint::None,
        };
        // SAFETY: the caller's promise; the counter lives as long as the session.
        self.start(|held| unsafe { put_get::get(held, &get) })
    }

    /// Copies this process's memory to an address of the peer, and returns when the data is in
    /// place. Other threads' operations do not delay it, as they do [`Self::fence`].
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over, and nothing uses the memory any
    /// more. [`Error::Core`]: if the call is made in a [`crate::Landing`], the memory is in use
    /// until the session is over.
    ///
    /// # Safety
    /// During the call, `length` bytes at `from` are readable and do not change; and the peer has
    /// as much memory at `to`, which nothing else accesses.
    pub unsafe fn write(&self, from: *const u8, length: usize, to: u64) -> Result<()> {
        let complete = Box::new(AtomicI32::new(0));
        let put = self.plain_put(from, length, to, complete.as_ptr().expose_provenance());
        self.check()?;
        // SAFETY: the caller's promise; the counter lives until the operation is complete, or has
        // ended with the session.
        self.enter_and(|held| unsafe { put_get::put(held, &put.into()) })?;
        self.wait_alone(complete)
    }

    /// Copies memory at an address of the peer to this process, and returns when the data is here.
    /// Other threads' operations do not delay it, as they do [`Self::fence`].
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over, and nothing uses the memory any
    /// more. [`Error::Core`]: if the call is made in a [`crate::Landing`], the memory is in use
    /// until the session is over.
    ///
    /// # Safety
    /// During the call, `length` bytes at `into` are writable and nothing else accesses them; and
    /// the peer has as much memory at `from`, which does not change.
    pub unsafe fn read(&self, into: *mut u8, length: usize, from: u64) -> Result<()> {
        let complete = Box::new(AtomicI32::new(0));
        let get = Get {
            tgt: self.peer(),
            places: Places::Contiguous { local: into.expose_provenance(), remote: from, len: length },
            tgt_cntr: 0,
            org_cntr: complete.as_ptr().expose_provenance(),
            handler: None,
            parameter: 0,
            hint: Hint::None,
        };
        self.check()?;
        // SAFETY: the caller's promise; the counter lives until the operation is complete, or has
        // ended with the session.
        self.enter_and(|held| unsafe { put_get::get(held, &get) })?;
        self.wait_alone(complete)
    }

    /// A put to the peer, which the counter at this address counts when it is complete.
    fn plain_put(&self, from: *const u8, length: usize, to: u64, cmpl_cntr: usize) -> PlainPut {
        PlainPut {
            tgt: self.peer(),
            local: from.expose_provenance(),
            remote: to,
            len: length,
            tgt_cntr: 0,
            org_cntr: 0,
            cmpl_cntr,
        }
    }

    /// Waits for an operation with a counter of its own, which stays allocated when the operation
    /// goes on.
    fn wait_alone(&self, complete: Box<AtomicI32>) -> Result<()> {
        let waited = self.wait(None, || complete.load(Ordering::Acquire) != 0);
        if matches!(waited, Err(Error::Core(_))) {
            std::mem::forget(complete);
        }
        waited.map(drop)
    }
}

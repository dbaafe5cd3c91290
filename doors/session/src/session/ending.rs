//! The end of a session: in order, by a failure, or at once.

use super::Session;
use super::opening::after;
use crate::error::{Error, Result};
use crate::messages::Inbox;
use crate::watch::End;
use openlapi::api::recovery;
use std::sync::PoisonError;

impl Session {
    /// Closes the session in order: waits until what this side has started is complete, and tells
    /// the peer. The peer's calls then fail with [`Error::Closed`], and it can still take what has
    /// arrived. A session that the peer has closed is closed by this, too.
    ///
    /// # Errors
    /// [`Error::Late`]: the peer has not taken all in the time that the settings give.
    /// [`Error::Closed`]: the peer has closed the session before it had all. [`Error::Lost`]. The
    /// session is closed in any case. In a child of fork this does nothing: the session is its
    /// parent's.
    pub fn close(self) -> Result<()> {
        if self.is_of_parent() {
            return Ok(());
        }
        let fenced = match self.fence_until(Some(after(self.patience))) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Late("the peer has not taken what was sent to it")),
            Err(Error::Closed) if self.is_complete() => Ok(()),
            Err(error) => Err(error),
        };
        if fenced.is_ok() {
            self.watch.part();
        }
        self.finish(End::Closed);
        fenced
    }

    /// Ends the session at once, while others still have references to it: after that nothing of it
    /// uses memory of the program, and all calls fail. The peer counts it as lost when the last
    /// reference is dropped.
    pub fn end(&self) {
        if !self.is_of_parent() {
            let _one = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            self.finish(End::Lost("this side has ended the session".to_owned()));
        }
    }

    /// The session is over: nothing of it uses memory of the program any more. One thread at a time
    /// does this.
    pub(super) fn finish(&self, end: End) {
        // A thread that sees the end may free memory, so the end is set last.
        match self.core.enter() {
            Ok(mut held) => {
                // It is another task of the job.
                let _ = recovery::purge(&mut held, self.peer());
                self.watch.set(end);
            }
            Err(_) => {
                // The core has ended by a failure, with operations under way, or is closed.
                let _ = self.core.close();
                self.watch.set(end);
            }
        }
        self.core.wake();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_of_parent() {
            // A child of fork: the session is its parent's.
            return std::mem::forget(self.core.clone());
        }
        self.finish(End::Lost("this side has dropped the session".to_owned()));
        // The core writes to no memory after that; it may be closed by a failure.
        let _ = self.core.close();
        Inbox::close(self.handle);
    }
}

//! An open session: its waits and its progress. What it does to memory, its messages and its end
//! are beside this file.

mod ending;
mod endpoints;
mod fetch;
mod memory;
mod opening;
mod sending;
mod sleep;
#[cfg(test)]
mod tests;

pub use fetch::{Change, Fetch};
pub use opening::Settings;
pub(crate) use opening::{after, open};

use crate::channel::User;
use crate::error::{Error, Result};
use crate::messages::{Inbox, Message};
use crate::watch::{End, Watch};
use crate::wire::{Routes, Side};
use endpoints::Endpoint;
use openlapi::abi::lapi_handle_t;
use openlapi::api::session::Session as Core;
use openlapi::api::{Held, progress};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A thread that waits looks this often whether the peer still runs.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// A session with one peer: a job of two tasks, of which this process is one. Any thread may make
/// calls.
///
/// Dropping it ends it at once, and the peer counts it as lost; [`Self::close`] ends it in order.
pub struct Session {
    /// In a child of fork one more reference keeps it as it is.
    core: Arc<Core>,
    /// The process that has opened it.
    process: u32,
    watch: Arc<Watch>,
    inbox: Arc<Inbox>,
    handle: lapi_handle_t,
    side: Side,
    route: Routes,
    user: Option<User>,
    patience: Duration,
    /// How many operations were started, and how many of them are complete.
    started: AtomicI32,
    complete: Box<AtomicI32>,
    sleep: sleep::Descriptors,
    /// Given back with the session; never read.
    _endpoint: Option<Endpoint>,
    /// Locked while a thread looks whether the session is over, and ends it.
    ending: Mutex<()>,
}

impl Session {
    /// The way that data takes: one of [`Routes`].
    pub fn route(&self) -> Routes {
        self.route
    }

    /// Whose process the peer is, as the kernel says: where the channel is a Unix socket. Of a
    /// listener, that is who has begun to listen.
    pub fn user(&self) -> Option<User> {
        self.user
    }

    /// Takes the next message of the peer, if one has arrived. Makes no progress.
    pub fn take(&self) -> Option<Message> {
        self.inbox.take()
    }

    /// How many messages [`Self::take`] would take now. Makes no progress.
    pub fn arrived(&self) -> usize {
        self.inbox.arrived()
    }

    /// Waits for the next message of the peer; `None`: none has come by `deadline`.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over, and all messages were taken.
    pub fn receive(&self, deadline: Option<Instant>) -> Result<Option<Message>> {
        let mut message = None;
        let mut arrived = || {
            message = message.take().or_else(|| self.inbox.take());
            message.is_some()
        };
        if !arrived() {
            self.wait(deadline, &mut arrived)?;
        }
        Ok(message)
    }

    /// Waits until all operations that were started before are complete: data in place here and at
    /// the peer, messages in its inbox.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over. No operation uses memory of the
    /// program any more.
    pub fn fence(&self) -> Result<()> {
        self.fence_until(None).map(drop)
    }

    /// Waits until a condition holds, and makes progress meanwhile; `false`: `deadline` has passed
    /// before. The condition must be short, and calls nothing of the session but [`Self::take`].
    /// What changes it is a put or a message of the peer, or a thread that calls [`Self::wake`]
    /// after that.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over, and the condition does not hold.
    pub fn wait(&self, deadline: Option<Instant>, mut condition: impl FnMut() -> bool) -> Result<bool> {
        loop {
            let now = Instant::now();
            let next = deadline.map_or(now + LOOK, |deadline| deadline.min(now + LOOK));
            let mut held = false;
            let waited = self.enter_and(|call| {
                progress::wait_until(call, Some(next), || {
                    held = held || condition();
                    let is_over = || self.watch.end().is_some() || self.inbox.refused().is_some();
                    held || self.watch.has_failed() || is_over()
                })
            });
            if held {
                return Ok(true);
            }
            if let Err(error) = self.look() {
                // What has arrived before the end counts.
                return if condition() { Ok(true) } else { Err(error) };
            }
            waited?;
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(false);
            }
        }
    }

    /// Threads in [`Self::wait`] look at their conditions again, and a sleep of the program's event
    /// loop ends.
    pub fn wake(&self) {
        self.core.wake();
    }

    /// How many bytes of messages wait here for room at the peer. With more than 1 MiB, each
    /// further one pauses for a time that grows: a loop that serves others, too, keeps what it has
    /// to send instead.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over.
    pub fn waiting(&self) -> Result<usize> {
        let waiting = self.core.waiting(self.peer());
        self.outcome(waiting)
    }

    /// Makes progress as [`Self::progress`] does, without a look whether the peer still runs: for a
    /// loop that does not sleep. A sleep must have been ended before.
    ///
    /// # Errors
    /// Those of [`Self::progress`].
    #[inline]
    pub fn poll(&self) -> Result<bool> {
        let moved = self.core.poll();
        self.outcome(moved)
    }

    /// Makes progress; returns whether anything moved. Ends the sleep of an event loop, see
    /// [`Self::arm`].
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over. Messages that have arrived before
    /// can still be taken.
    pub fn progress(&self) -> Result<bool> {
        let moved = self.core.disarm();
        self.look()?;
        Ok(moved?)
    }

    /// Gets ready for a sleep of the program's event loop on the session's descriptor ([`AsFd`]).
    /// Returns whether it may sleep; otherwise there may be something to do, or a message in the
    /// inbox is to be taken. In both cases [`Self::progress`] follows, after the sleep or at once.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over.
    pub fn arm(&self) -> Result<bool> {
        self.look()?;
        let Some(due) = self.core.arm()? else { return Ok(false) };
        self.sleep.until(self.watch.next_look().map_or(due, |look| look.min(due)))?;
        // What has arrived before wakes nobody again.
        Ok(self.inbox.arrived() == 0)
    }

    /// Waits as [`Self::fence`] does; `false`: `deadline` has passed before, and the operations go
    /// on.
    ///
    /// # Errors
    /// Those of [`Self::fence`].
    pub fn fence_until(&self, deadline: Option<Instant>) -> Result<bool> {
        self.check()?;
        self.wait(deadline, || self.is_complete())
    }

    /// Whether all operations that were started before are complete, as [`Self::fence`] has it.
    /// Makes no progress.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire) == self.started.load(Ordering::Acquire)
    }

    fn peer(&self) -> u32 {
        self.side.peer().task()
    }

    fn counter(&self) -> usize {
        self.complete.as_ptr().expose_provenance()
    }

    /// Starts an operation that raises the counter when it is complete.
    #[inline]
    fn start(&self, operation: impl FnOnce(&mut Held<'_>) -> openlapi::error::Result<()>) -> Result<()> {
        self.check()?;
        self.started.fetch_add(1, Ordering::AcqRel);
        let started = self.core.enter().and_then(|mut held| operation(&mut held));
        if started.is_err() {
            self.started.fetch_sub(1, Ordering::AcqRel);
        }
        self.outcome(started)
    }

    fn enter_and<T>(&self, call: impl FnOnce(&mut Held<'_>) -> openlapi::error::Result<T>) -> Result<T> {
        let result = self.core.enter().and_then(|mut held| call(&mut held));
        self.outcome(result)
    }

    /// The result of a call of the core, in which something may have ended the session.
    #[inline]
    fn outcome<T>(&self, result: openlapi::error::Result<T>) -> Result<T> {
        if result.is_err() || self.watch.has_failed() {
            self.check()?;
        }
        Ok(result?)
    }

    /// Fails once the session is over, and ends it where the core has reported a failure.
    #[inline]
    fn check(&self) -> Result<()> {
        if self.watch.has_failed() { self.look() } else { self.watch.check() }
    }

    /// Whether this process is a child of fork of the one that has opened the session.
    fn is_of_parent(&self) -> bool {
        self.process != std::process::id()
    }

    /// Looks whether the session is over.
    fn look(&self) -> Result<()> {
        if self.is_of_parent() {
            return Err(Error::Lost("it is the parent's of this child of fork".to_owned()));
        }
        if self.watch.end().is_none() {
            let _one = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            let refused = self.inbox.refused().map(End::Refused);
            if self.watch.end().is_none()
                && let Some(end) = refused.or_else(|| self.watch.look())
            {
                if matches!(end, End::Closed | End::Lost(_)) {
                    // What the peer has sent before it closed or ended is there. Of one that has
                    // sent what it must not, nothing more is taken.
                    let _ = self.core.drain(self.peer(), || !self.watch.has_failed());
                }
                self.finish(end);
            }
        }
        self.watch.check()
    }
}

/// What an event loop sleeps on, see [`Session::arm`]: readable when the peer has done something,
/// or a deadline of the session has come. An epoll descriptor; nothing reads from it.
impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sleep.as_fd()
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("side", &self.side)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

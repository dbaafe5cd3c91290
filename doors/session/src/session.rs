//! An open session: what two processes do to each other's memory, and its end.

mod fetch;
mod opening;
mod sleep;
#[cfg(test)]
mod tests;

pub use fetch::{Change, Fetch};
pub use opening::Settings;
pub(crate) use opening::{after, open};

use crate::channel::User;
use crate::error::{Error, Result};
use crate::messages::{HANDLER, Inbox, LONGEST_HEADER, Message};
use crate::watch::{End, Watch};
use crate::wire::{Routes, Side};
use openlapi::abi::lapi_handle_t;
use openlapi::api::request::{Get, Hint, Message as Request, Places, PlainPut};
use openlapi::api::session::Session as Core;
use openlapi::api::{Content, Held, MAX_UHDR, Piece, SendDone, active_message, progress, put_get, recovery};
use openlapi::dgsp::Layout;
use openlapi::wire::user_header;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A thread that waits looks this often whether the peer still runs.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// How many rounds of progress take what the peer has sent before it closed, at most.
const LAST_ROUNDS: u32 = 10_000;

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
        let put = PlainPut {
            tgt: self.peer(),
            local: from.expose_provenance(),
            remote: to,
            len: length,
            tgt_cntr: 0,
            org_cntr: 0,
            cmpl_cntr: self.counter(),
        };
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
        let put = PlainPut {
            tgt: self.peer(),
            local: from.expose_provenance(),
            remote: to,
            len: length,
            tgt_cntr: 0,
            org_cntr: 0,
            cmpl_cntr: complete.as_ptr().expose_provenance(),
        };
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

    /// Sends a message to the peer, who takes it by [`Self::receive`]. The header has at most 1020
    /// bytes; header and data may be changed at once. [`Self::fence`] says when it has arrived.
    ///
    /// # Errors
    /// [`Error::Limit`]: the header is too long. [`Error::Closed`], [`Error::Lost`]: the session is
    /// over. [`Error::Core`].
    pub fn send(&self, header: &[u8], data: &[u8]) -> Result<()> {
        let mut room = [0; MAX_UHDR];
        let packed = packed(header, &mut room)?;
        let data = Content::Piece(Piece { ptr: data.as_ptr(), len: data.len() });
        let message = self.message(packed, data, self.counter(), SendDone::nothing(self.peer()), true);
        // SAFETY: header and data are copied before this returns.
        self.start(|held| unsafe { active_message::amsend(held, &message) })
    }

    /// Sends a message as [`Self::send`] does, of whose arrival nothing tells: for one that the
    /// peer replies to, or that is a reply. [`Self::fence`] and [`Self::close`] do not wait for it.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    #[inline]
    pub fn post(&self, header: &[u8], data: &[u8]) -> Result<()> {
        let mut room = [0; MAX_UHDR];
        let packed = packed(header, &mut room)?;
        let data = Content::Piece(Piece { ptr: data.as_ptr(), len: data.len() });
        let message = self.message(packed, data, 0, SendDone::nothing(self.peer()), true);
        self.check()?;
        // SAFETY: header and data are copied before this returns.
        self.enter_and(|held| unsafe { active_message::amsend(held, &message) })
    }

    /// Starts to send a message whose data is gathered from several pieces of memory, one behind
    /// the other, without a copy of long ones. The header has at most 1020 bytes and is copied.
    /// `ended` rises by 2 in all, and has risen so far when the message is in the peer's inbox and
    /// the pieces may be changed. [`Self::fence`] and [`Self::close`] do not wait for it.
    ///
    /// # Errors
    /// [`Error::Limit`]: the header is too long. [`Error::Closed`], [`Error::Lost`]: the session is
    /// over. [`Error::Core`]. Then `ended` does not rise any more.
    ///
    /// # Safety
    /// Until `ended` has risen by 2, or a call has said that the session is over, it lives, and the
    /// bytes of the pieces are readable and do not change.
    pub unsafe fn send_pieces(
        &self,
        header: &[u8],
        pieces: &[(*const u8, usize)],
        ended: *const AtomicI32,
    ) -> Result<()> {
        let mut room = [0; MAX_UHDR];
        let packed = packed(header, &mut room)?;
        let layout = Layout::pieces(pieces.iter().map(|(at, length)| (at.cast_mut(), *length as u64)));
        let counter = ended.expose_provenance();
        let done = SendDone { org_cntr: counter, ..SendDone::nothing(self.peer()) };
        let message = self.message(packed, Content::from(layout), counter, done, false);
        self.check()?;
        // SAFETY: the caller's promise; the header is copied with the first packet, which leaves
        // or is kept before this returns.
        self.enter_and(|held| unsafe { active_message::amsend(held, &message) })
    }

    /// Takes the next message of the peer, if one has arrived. Makes no progress.
    pub fn take(&self) -> Option<Message> {
        self.inbox.take()
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
                    held || self.watch.has_failed() || self.watch.end().is_some()
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

    /// Waits for an operation with a counter of its own, which stays allocated when the operation
    /// goes on.
    fn wait_alone(&self, complete: Box<AtomicI32>) -> Result<()> {
        let waited = self.wait(None, || complete.load(Ordering::Acquire) != 0);
        if matches!(waited, Err(Error::Core(_))) {
            std::mem::forget(complete);
        }
        waited.map(drop)
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
    /// Returns whether it may sleep; otherwise there may be something to do. In both cases
    /// [`Self::progress`] follows, after the sleep or at once.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Lost`]: the session is over.
    pub fn arm(&self) -> Result<bool> {
        self.look()?;
        let Some(due) = self.core.arm()? else { return Ok(false) };
        self.sleep.until(self.watch.next_look().map_or(due, |look| look.min(due)))?;
        Ok(true)
    }

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

    /// A message to the inbox of the peer.
    fn message(
        &self,
        header: &[u8],
        data: Content,
        cmpl_cntr: usize,
        done: SendDone,
        copied: bool,
    ) -> Request {
        let done = SendDone { bytes: data.len() as u64, user: true, ..done };
        Request {
            tgt: self.peer(),
            handler: HANDLER,
            header: Piece { ptr: header.as_ptr(), len: header.len() },
            data,
            shape: None,
            atom: 0,
            tgt_cntr: 0,
            cmpl_cntr,
            done,
            hint: Hint::None,
            copied,
        }
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
                if end == End::Closed {
                    // What the peer has sent before it closed is there.
                    (0..LAST_ROUNDS).take_while(|_| self.core.poll().unwrap_or(false)).for_each(drop);
                }
                self.finish(end);
            }
        }
        self.watch.check()
    }

    /// The session is over: nothing of it uses memory of the program any more. One thread at a time
    /// does this.
    fn finish(&self, end: End) {
        // Whoever sees the end may free memory, so the end is set last.
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

/// A header as the core carries it.
fn packed<'a>(header: &[u8], room: &'a mut [u8; MAX_UHDR]) -> Result<&'a [u8]> {
    user_header::pack(header, room)
        .ok_or_else(|| Error::Limit(format!("a header of {} bytes; at most {LONGEST_HEADER}", header.len())))
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

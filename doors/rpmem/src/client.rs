//! An open remote pool, as the library has it.

mod lanes;
mod opening;

use crate::attributes::Attributes;
use crate::failure::{Failure, Result};
use crate::log::{FAILURES, STEPS, log};
use crate::ssh::Ssh;
use crate::wire::{Answer, Depth, NO_LANE, Range, Request, WHOLE};
use lanes::Lane;
use openlapi_session::{Error, Session};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use opening::{Local, open, remove};

/// The bytes of a pool that its header takes.
const HEADER: usize = crate::disk::HEADER;
/// How long the daemon may take to end once its pool is closed.
const END: Duration = Duration::from_secs(10);

/// A remote pool: a session with the daemon that has it.
pub struct Pool {
    session: Session,
    ssh: Ssh,
    /// The local pool: its address, and its size in bytes.
    local: (usize, usize),
    /// The address of the pool in the daemon.
    base: u64,
    has_header: bool,
    lanes: Box<[Lane]>,
    /// For what belongs to no lane. Locked while a request is under way.
    control: std::sync::Mutex<()>,
    control_lane: Lane,
    /// The daemon has sent what is no answer: no lane knows what it may wait for.
    no_answer: AtomicBool,
    /// Why no data operation succeeds any more.
    bad: OnceLock<Failure>,
}

/// What is done with a range once its data is at the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Durable when the call returns.
    Persist(Depth),
    /// Durable after the lane's next drain.
    Flush,
}

impl Pool {
    /// Copies a range of the local pool, which is durable when this returns. Up to 8192 bytes land
    /// as a whole.
    ///
    /// # Errors
    /// EINVAL; ECONNRESET, and what the daemon's system refuses: the pool is bad from then on.
    ///
    /// # Safety
    /// The local pool is still mapped, and the range does not change during the call.
    pub unsafe fn persist(&self, offset: usize, length: usize, lane: u32, depth: Depth) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.send(offset, length, lane, Then::Persist(depth)) }
    }

    /// Copies a range of the local pool, which is durable after the lane's next drain.
    ///
    /// # Errors
    /// Those of [`Self::persist`].
    ///
    /// # Safety
    /// The conditions of [`Self::persist`] hold.
    pub unsafe fn flush(&self, offset: usize, length: usize, lane: u32) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.send(offset, length, lane, Then::Flush) }
    }

    /// Waits until all that the lane has flushed is durable.
    ///
    /// # Errors
    /// Those of [`Self::persist`].
    pub fn drain(&self, lane: u32) -> Result<()> {
        self.check()?;
        let number = lane;
        let lane = self.lane(number)?;
        let flushes = lane.take_flushes();
        if flushes == 0 {
            return Ok(());
        }
        let request = Request::Drain { lane: number, flushes };
        self.data(self.ask(lane, &request, &[]))
    }

    /// Copies a range of the remote pool to `to`.
    ///
    /// # Errors
    /// Those of [`Self::persist`].
    ///
    /// # Safety
    /// `to` has room for `length` bytes, which nothing else accesses during the call.
    pub unsafe fn read(&self, to: *mut u8, offset: usize, length: usize, lane: u32) -> Result<()> {
        self.check()?;
        self.lane(lane)?;
        self.within(offset, length)?;
        if length == 0 {
            return Ok(());
        }
        self.drain_before(offset, length, lane)?;
        // SAFETY: the caller's promise; the range is one of the pool that the daemon has mapped.
        let read = unsafe { self.session.read(to, length, self.base + offset as u64) };
        self.data(read.map_err(|error| self.lost(error)))
    }

    /// Changes the attributes in the pool's headers.
    ///
    /// # Errors
    /// EINVAL: the pool has no header. ECONNRESET; what the daemon's system refuses.
    pub fn set_attributes(&self, attributes: Attributes) -> Result<()> {
        self.check()?;
        self.control(&Request::SetAttributes(attributes))
    }

    /// Drains the lane if bytes of this range have been flushed since its last drain.
    fn drain_before(&self, offset: usize, length: usize, number: u32) -> Result<()> {
        if self.lane(number)?.must_drain(offset, length) { self.drain(number) } else { Ok(()) }
    }

    /// Closes the pool, after a drain of each lane. It is freed in any case.
    ///
    /// # Errors
    /// ECONNRESET: the daemon is lost. What the daemon's system refuses.
    pub fn close(self) -> Result<()> {
        let closed = match self.bad.get().filter(|bad| bad.errno == libc::ECONNRESET) {
            Some(bad) => Err(bad.clone()),
            None => {
                let drained = (0..self.lanes.len()).try_for_each(|lane| self.drain(lane as u32));
                let closed = self.control(&Request::Close);
                drained.and(closed)
            }
        };
        let Self { session, ssh, .. } = self;
        // The daemon has closed its pool, or is gone: it may close the session first.
        let _ = session.close();
        let ending = ssh.wait(Some(END));
        log(STEPS, || format!("a pool is closed; ssh has ended with {ending:?}"));
        closed
    }

    unsafe fn send(&self, offset: usize, length: usize, number: u32, then: Then) -> Result<()> {
        self.check()?;
        if offset < HEADER && (self.has_header || then == Then::Persist(Depth::Deep)) {
            return Err(Failure::invalid(format!("offset {offset}: the first {HEADER} bytes are a header")));
        }
        let lane = self.lane(number)?;
        self.within(offset, length)?;
        if length == 0 {
            return Ok(());
        }
        self.drain_before(offset, length, number)?;
        let from = std::ptr::with_exposed_provenance::<u8>(self.local.0 + offset);
        let range = Range { offset: offset as u64, length: length as u64 };
        let data = if length <= WHOLE {
            // SAFETY: a range of the local pool, which is mapped and does not change: the caller's
            // promise.
            unsafe { std::slice::from_raw_parts(from, length) }
        } else {
            // SAFETY: the same; and the range is one of the pool that the daemon has mapped.
            let written = unsafe { self.session.write(from, length, self.base + range.offset) };
            self.data(written.map_err(|error| self.lost(error)))?;
            &[]
        };
        let done = match then {
            Then::Persist(depth) => self.ask(lane, &Request::Persist { lane: number, range, depth }, data),
            Then::Flush => {
                lane.add_flush(offset, length);
                let sent = self.session.post(&Request::Flush { lane: number, range }.encode(), data);
                sent.map_err(|error| self.lost(error))
            }
        };
        self.data(done)
    }

    /// Makes a request that belongs to no lane.
    fn control(&self, request: &Request) -> Result<()> {
        let _one = self.control.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.ask(&self.control_lane, request, &[])
    }

    /// Sends a request, and waits for its answer.
    fn ask(&self, lane: &Lane, request: &Request, data: &[u8]) -> Result<()> {
        lane.begin();
        self.session.post(&request.encode(), data).map_err(|error| self.lost(error))?;
        let answered = self.session.wait(None, || {
            self.take_answers();
            lane.is_answered() || self.no_answer.load(Ordering::Acquire)
        });
        answered.map_err(|error| self.lost(error))?;
        if !lane.is_answered() {
            let failure = Failure::new(libc::ECONNRESET, "the daemon has sent what is no answer");
            let _ = self.bad.set(failure.clone());
            return Err(failure);
        }
        lane.outcome()
    }

    /// Hands the answers that have arrived to their lanes: any thread that waits does so for all.
    fn take_answers(&self) {
        while let Some(message) = self.session.take() {
            let lane = match Answer::decode(&message.header) {
                Some(Answer::Done { lane: NO_LANE, errno }) => Some((&self.control_lane, errno)),
                Some(Answer::Done { lane, errno }) => self.lanes.get(lane as usize).map(|lane| (lane, errno)),
                _ => None,
            };
            match lane {
                Some((lane, errno)) => lane.answer(errno, message.data),
                None => {
                    self.no_answer.store(true, Ordering::Release);
                    self.session.wake();
                }
            }
        }
    }

    fn lane(&self, number: u32) -> Result<&Lane> {
        let count = self.lanes.len();
        self.lanes.get(number as usize).ok_or_else(|| Failure::invalid(format!("lane {number} of {count}")))
    }

    fn within(&self, offset: usize, length: usize) -> Result<()> {
        let size = self.local.1;
        if offset.checked_add(length).is_none_or(|end| end > size) {
            let range = format!("offset {offset}, {length} bytes: beyond the pool of {size} bytes");
            return Err(Failure::invalid(range));
        }
        Ok(())
    }

    /// Fails once the pool is bad.
    fn check(&self) -> Result<()> {
        self.bad.get().map_or(Ok(()), |bad| Err(bad.clone()))
    }

    /// The result of a data operation: a failure makes the pool bad.
    fn data(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|failure| {
            let _ = self.bad.set(failure.clone());
        })
    }

    /// The failure of a call whose session is over.
    fn lost(&self, error: Error) -> Failure {
        log(FAILURES, || format!("the daemon is lost: {error}"));
        let said = self.ssh.said().ok().and_then(|said| said.last_line());
        let said = said.map_or_else(String::new, |line| format!("; it has said: {line}"));
        let failure = Failure::new(libc::ECONNRESET, format!("the daemon is lost: {error}{said}"));
        let _ = self.bad.set(failure.clone());
        failure
    }
}

//! Whether the peer still runs, and whether it has closed the session.

use crate::error::Error;
use crate::line::{Line, News};
use crate::wire::Card;
use openlapi::base::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// How often the channel is read in one look.
const READS: u32 = 16;
/// How often it is read in the last look, at most: for 1 MiB, which is more than the system keeps
/// of a channel unless it is told otherwise.
const LAST_READS: u32 = 1 << 12;

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// One side has closed it in order.
    Closed,
    /// The peer is gone.
    Lost(String),
    /// A message of this many bytes is too long, or there was no memory for it.
    Refused(usize),
}

impl From<&End> for Error {
    fn from(end: &End) -> Self {
        match end {
            End::Closed => Self::Closed,
            End::Lost(why) => Self::Lost(why.clone()),
            End::Refused(length) => Self::Limit(format!(
                "a message of {length} bytes of the peer is longer than the settings allow, or has no memory"
            )),
        }
    }
}

/// The signs of a peer's life.
pub struct Watch {
    line: Arc<Mutex<Line>>,
    /// The peer's process, where this one sees it.
    process: Option<OwnedFd>,
    /// What the core has reported first, and whether the core itself has ended by a failure.
    failure: OnceLock<String>,
    is_fatal: AtomicBool,
    end: OnceLock<End>,
}

impl Watch {
    /// Of the peer that has said this of itself.
    pub fn new(line: Arc<Mutex<Line>>, peer: &Card, own: &Card) -> Self {
        let is_visible = peer.host == own.host && peer.numbering == own.numbering && own.numbering != 0;
        let process = if is_visible { open(peer.process) } else { None };
        let (failure, end) = (OnceLock::new(), OnceLock::new());
        Self { line, process, failure, is_fatal: AtomicBool::new(false), end }
    }

    /// Lets an epoll descriptor be readable when there is something to look at.
    ///
    /// # Errors
    /// The system's: a file that is no channel cannot be waited for.
    pub fn register(&self, epoll: &OwnedFd) -> rustix::io::Result<()> {
        add(epoll, self.line().channel().descriptor())?;
        self.process.as_ref().map_or(Ok(()), |process| add(epoll, process.as_fd()))
    }

    /// How the session has ended, if it has.
    pub fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Fails once the session is over.
    ///
    /// # Errors
    /// How it has ended.
    pub fn check(&self) -> Result<(), Error> {
        self.end().map_or(Ok(()), |end| Err(end.into()))
    }

    /// The session is to end by this failure. Operations may still be under way.
    pub fn note_failure(&self, why: String) {
        let _ = self.failure.set(why);
    }

    /// The core has ended by a failure.
    pub fn note_fatal(&self) {
        self.is_fatal.store(true, Ordering::Release);
        self.note_failure("the session cannot go on: a failure of the network, or no memory".to_owned());
    }

    /// Whether the session is to end by a failure, or has.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// The session is over, unless it already is. No operation may be under way any more.
    pub fn set(&self, end: End) {
        let _ = self.end.set(end);
    }

    /// How the session is to end: what the peer has done, as its channel and its process show it,
    /// or what the core has reported.
    pub fn look(&self) -> Option<End> {
        let failed = || self.failure.get().map(|why| End::Lost(why.clone()));
        if self.is_fatal.load(Ordering::Acquire) {
            return failed();
        }
        // First: a peer that closes the session has said so before it left.
        self.news(READS).or_else(|| {
            let ended = || self.process.as_ref().is_some_and(|process| is_readable(process.as_fd()));
            let gone = || ended().then(|| End::Lost("its process has ended".to_owned()));
            let end = failed().or_else(gone)?;
            // It may have said so since, or behind what was read.
            Some(self.news(LAST_READS).unwrap_or(end))
        })
    }

    /// When to look next at the latest, where nothing wakes.
    pub fn next_look(&self) -> Option<Instant> {
        self.line().next_look()
    }

    fn news(&self, reads: u32) -> Option<End> {
        match self.line().news(reads) {
            News::Bye => Some(End::Closed),
            News::Gone(why) => Some(End::Lost(why)),
            News::None => None,
        }
    }

    /// Tells the peer that this side closes the session.
    pub fn part(&self) {
        self.line().part();
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets an epoll descriptor be readable when this one is.
///
/// # Errors
/// The system's.
pub fn add(epoll: &OwnedFd, descriptor: BorrowedFd<'_>) -> rustix::io::Result<()> {
    epoll::add(epoll, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
}

/// The process, unless another one has its number by now.
fn open(process: Process) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    (process.started != 0 && Process::of(process.pid) == process).then_some(descriptor)
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready != 0)
}

//! Whether the peer still runs, and whether it has closed the session.

use crate::error::Error;
use crate::line::{Line, News};
use crate::wire::Card;
use openlapi::base::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// One side has closed it in order.
    Closed,
    /// The peer is gone.
    Lost(String),
    /// There was no memory for a message of this many bytes.
    NoMemory(usize),
}

impl From<&End> for Error {
    fn from(end: &End) -> Self {
        match end {
            End::Closed => Self::Closed,
            End::Lost(why) => Self::Lost(why.clone()),
            End::NoMemory(length) => {
                Self::Limit(format!("there is no memory for a message of {length} bytes of the peer"))
            }
        }
    }
}

/// The signs of a peer's life.
pub struct Watch {
    line: Arc<Mutex<Line>>,
    /// The peer's process, where this one sees it.
    process: Option<OwnedFd>,
    end: OnceLock<End>,
}

impl Watch {
    /// Of the peer that has said this of itself.
    pub fn new(line: Arc<Mutex<Line>>, peer: &Card, own: &Card) -> Self {
        let is_visible = peer.host == own.host && peer.numbering == own.numbering && own.numbering != 0;
        let process = if is_visible { open(peer.process) } else { None };
        Self { line, process, end: OnceLock::new() }
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

    /// The session is over, unless it already is.
    pub fn set(&self, end: End) {
        let _ = self.end.set(end);
    }

    /// What the peer has done, as its channel and its process show it. Does not say so to anyone.
    pub fn look(&self) -> Option<End> {
        match self.line().news() {
            News::Bye => return Some(End::Closed),
            News::Gone(why) => return Some(End::Lost(why)),
            News::None => {}
        }
        let ended = self.process.as_ref().is_some_and(|process| is_readable(process.as_fd()));
        ended.then(|| End::Lost("its process has ended".to_owned()))
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

//! The channel by which two processes find each other: a pair of pipes, a Unix socket, or a TCP
//! connection. Only start-up bytes and the end of the session travel on it.

use crate::error::{Error, Result};
use crate::silence::{self, Signs};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The most bytes of one write: a pipe that is ready takes them without blocking (PIPE_BUF).
const PIECE: usize = 4096;

/// How many bytes the system keeps of a TCP connection that were not read, where the other side has
/// proved itself.
const WIDE: usize = 128 << 10;

/// An open channel. Its descriptors keep the mode that they have: those of pipes may be shared with
/// other processes. So each step asks the system first whether it would wait.
pub struct Channel {
    read: OwnedFd,
    /// `None`: a socket, which `read` is, too.
    write: Option<OwnedFd>,
    /// A TCP connection, whose other end may be on a host that vanishes.
    has_host: bool,
    /// Who is at the other end, where the kernel says so.
    user: Option<User>,
}

/// A user, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The effective user number.
    pub uid: u32,
    /// The effective group number.
    pub gid: u32,
}

/// What a read has found.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// This number of bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The other side has closed the channel, or is gone.
    Ended,
}

impl Channel {
    /// A channel of two pipes, or of whatever else these are: ssh's standard input and output, for
    /// example.
    pub fn pipes(read: OwnedFd, write: OwnedFd) -> Self {
        Self { read, write: Some(write), has_host: false, user: None }
    }

    /// A Unix socket, whose other side must be a process of this user.
    ///
    /// # Errors
    /// [`Error::OtherUser`].
    pub fn unix(stream: UnixStream) -> Result<Self> {
        let channel = Self::unix_of_any_user(stream)?;
        match channel.user {
            Some(User { uid, .. }) if uid != rustix::process::geteuid().as_raw() => {
                Err(Error::OtherUser(uid))
            }
            _ => Ok(channel),
        }
    }

    /// A Unix socket, whose other side is a process of [`Self::user`].
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn unix_of_any_user(stream: UnixStream) -> Result<Self> {
        // Not through rustix: its type has no room for the process number 0, of a process that is
        // not visible from here.
        let peer = getsockopt(&stream, PeerCredentials);
        let peer = peer.map_err(|error| Error::System("the user at the other end", error.into()))?;
        let user = Some(User { uid: peer.uid(), gid: peer.gid() });
        Ok(Self { read: stream.into(), write: None, has_host: false, user })
    }

    /// Who is at the other end of a Unix socket.
    pub fn user(&self) -> Option<User> {
        self.user
    }

    /// A TCP connection. The system finds out that the other host is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn tcp(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true).map_err(Error::system("a TCP connection"))?;
        silence::ask(&stream).map_err(|error| Error::System("a TCP connection", error.into()))?;
        Ok(Self { read: stream.into(), write: None, has_host: true, user: None })
    }

    /// The signs of the other host, where there may be another one.
    pub fn signs(&self) -> Option<Signs> {
        if self.has_host { silence::of(&self.read).ok() } else { None }
    }

    /// The other side has proved itself: the system may keep more of what was not read.
    pub fn widen(&self) {
        if self.has_host {
            // It keeps at least what it does now.
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&self.read, WIDE);
        }
    }

    /// Whether a short frame can be written as a whole.
    pub fn has_room(&self) -> bool {
        let to = self.write.as_ref().unwrap_or(&self.read).as_fd();
        ready(to, PollFlags::OUT, Some(Duration::ZERO)).unwrap_or(false)
    }

    /// What is readable when the other side has sent something, or is gone.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Read> {
        loop {
            if !ready(self.read.as_fd(), PollFlags::IN, Some(Duration::ZERO))? {
                return Ok(Read::Nothing);
            }
            match rustix::io::read(&self.read, &mut *into) {
                Ok(0) | Err(Errno::CONNRESET | Errno::PIPE | Errno::TIMEDOUT | Errno::HOSTUNREACH) => {
                    return Ok(Read::Ended);
                }
                Ok(count) => return Ok(Read::Bytes(count)),
                Err(Errno::AGAIN) => return Ok(Read::Nothing),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until there is something to read; returns whether there is.
    ///
    /// # Errors
    /// The system's.
    pub fn await_readable(&self, until: Instant) -> io::Result<bool> {
        ready(self.read.as_fd(), PollFlags::IN, Some(until.saturating_duration_since(Instant::now())))
    }

    /// Waits until there is something to read, or room to write where this is wanted.
    ///
    /// # Errors
    /// The system's.
    pub fn await_either(&self, writes: bool, until: Instant) -> io::Result<()> {
        let limit = until.saturating_duration_since(Instant::now()).try_into().ok();
        let to = self.write.as_ref().unwrap_or(&self.read);
        let mut polled = [PollFd::new(&self.read, PollFlags::IN), PollFd::new(to, PollFlags::OUT)];
        match poll(&mut polled[..1 + usize::from(writes)], limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as many of the bytes as there is room for now; returns how many.
    ///
    /// # Errors
    /// The system's; `BrokenPipe`: no process reads any more.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write_within(bytes, Duration::ZERO)
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// The system's; `BrokenPipe`: no process reads any more. `TimedOut`.
    pub fn write_all(&self, mut bytes: &[u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let written = self.write_within(bytes, left)?;
            if written == 0 && left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn write_within(&self, bytes: &[u8], at_most: Duration) -> io::Result<usize> {
        let to = self.write.as_ref().unwrap_or(&self.read).as_fd();
        if !ready(to, PollFlags::OUT, Some(at_most))? {
            return Ok(0);
        }
        let piece = &bytes[..bytes.len().min(PIECE)];
        let written = match send(to, piece, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Err(Errno::NOTSOCK) => rustix::io::write(to, piece),
            sent => sent,
        };
        match written {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            written => Ok(written?),
        }
    }
}

/// Whether a descriptor is ready, or at its end.
fn ready(descriptor: BorrowedFd<'_>, what: PollFlags, at_most: Option<Duration>) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, what)];
    let limit = at_most.and_then(|time| time.try_into().ok());
    match poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let found = polled[0].revents();
    // A write to a pipe without a reader would be a signal.
    if what == PollFlags::OUT && found.contains(PollFlags::ERR) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(!found.is_empty())
}

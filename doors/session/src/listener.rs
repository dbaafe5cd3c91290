//! A socket at which peers find this process. Anyone may connect: all connections are served
//! together, none is waited for, and of one that has proved nothing little is kept, and not for
//! long.

use crate::channel::{Channel, Read, User};
use crate::error::{Error, Result};
use crate::handshake::{Agreed, Handshake, Trust};
use crate::line::Line;
use crate::messages::Receiver;
use crate::session::{Session, Settings, after, open};
use crate::watch::add;
use crate::wire::{Card, Side};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a connection may take to prove itself.
const PROOF: Duration = Duration::from_secs(5);
/// How many connections that have not proved themselves are kept. Where there are more, the oldest
/// one is closed, at first of those that had said nothing when they had a look.
const UNPROVED: usize = 128;
/// How many bytes of one the kernel keeps that were not read, until it has proved itself.
const KEPT: usize = 4096;
/// How many connections are accepted before the others are served again.
const AT_A_TIME: usize = 32;

enum Socket {
    /// With its file, which goes when the listener does.
    Unix(UnixListener, File),
    /// Of an abstract name, for processes of all users.
    Open(UnixListener),
    Tcp(TcpListener, [u8; 16]),
}

/// The file of a Unix socket.
struct File {
    path: PathBuf,
    /// Device and number. No other file has them while the socket is open.
    identity: Option<(u64, u64)>,
}

impl File {
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }

    /// Removes the file, unless that was done: a successor may listen under the name by now.
    fn remove(&self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// What has knocked at a listener and got no session: for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Connections of something that is no session's.
    pub strangers: u64,
    /// Connections of processes with another key.
    pub wrong_keys: u64,
    /// Connections of other users.
    pub other_users: u64,
    /// Connections that have proved nothing in time, or were closed in favour of later ones.
    pub silent: u64,
}

/// A listener. Its descriptor ([`AsFd`]) is readable when [`Self::accept`] has something to do.
pub struct Listener {
    socket: Socket,
    settings: Settings,
    unproved: VecDeque<Unproved>,
    seen: Seen,
    epoll: OwnedFd,
    /// Rings when a connection has had its time.
    timer: OwnedFd,
    /// The process that has opened it.
    process: u32,
}

/// A peer that has proved itself, before its session is open.
pub struct Arrived {
    line: Line,
    own: Card,
    peer: Card,
    settings: Settings,
}

impl Arrived {
    /// Whose process it is, as the kernel says.
    pub fn user(&self) -> Option<User> {
        self.line.channel().user()
    }

    /// The session gets this receiver.
    pub fn set_receiver(&mut self, receiver: Arc<dyn Receiver>) {
        self.settings.receiver = Some(receiver);
    }

    /// Opens the session, which waits for the peer.
    ///
    /// # Errors
    /// Those of [`crate::connect()`].
    pub fn open(self) -> Result<Session> {
        let until = after(self.settings.patience);
        open(self.line, Side::Accepting, (&self.own, &self.peer), &self.settings, until)
    }
}

/// A connection whose handshake is not over.
struct Unproved {
    channel: Channel,
    handshake: Handshake,
    /// What this side says of itself.
    own: Card,
    /// Bytes that had no room in the channel yet.
    output: Vec<u8>,
    /// From the first look on: what it has said until then waits for this process.
    until: Option<Instant>,
}

impl Listener {
    /// Listens at a Unix socket, which this makes, for processes of this user.
    ///
    /// # Errors
    /// [`Error::System`]: there is such a file, for example. [`Error::Limit`].
    pub fn unix(path: impl AsRef<Path>, settings: &Settings) -> Result<Self> {
        let failed = |error| Error::system("a Unix socket")(error);
        let path = path.as_ref();
        let socket = UnixListener::bind(path).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        // The kernel says who connects; that others cannot is a second lock.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Self::open(Socket::Unix(socket, File::at(path)), settings)
    }

    /// Listens at a Unix socket of this abstract name, for processes of all users of this network
    /// namespace: [`Session::user`] says whose one is. With one of another user there is no shared
    /// memory; data goes over the loopback interface. A listener for users who do not trust each
    /// other sets [`Settings::guarded`].
    ///
    /// # Errors
    /// [`Error::System`]: the name is taken or too long, for example. [`Error::Limit`].
    pub fn unix_of_any_user(name: &str, settings: &Settings) -> Result<Self> {
        let failed = |error| Error::system("a Unix socket")(error);
        let address = UnixAddress::from_abstract_name(name).map_err(failed)?;
        let socket = UnixListener::bind_addr(&address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Self::open(Socket::Open(socket), settings)
    }

    /// Listens at a TCP port, for processes that know the key ([`crate::key_file`]). Port 0 is any
    /// free one, see [`Self::address`].
    ///
    /// # Errors
    /// [`Error::System`], [`Error::Limit`].
    pub fn tcp(at: SocketAddr, key: [u8; 16], settings: &Settings) -> Result<Self> {
        let failed = |error| Error::system("a TCP port")(error);
        let socket = TcpListener::bind(at).map_err(failed)?;
        // What the kernel keeps of a connection that is not read yet; it doubles the number.
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, KEPT / 2)
            .map_err(|error| failed(error.into()))?;
        socket.set_nonblocking(true).map_err(failed)?;
        Self::open(Socket::Tcp(socket, key), settings)
    }

    fn open(socket: Socket, settings: &Settings) -> Result<Self> {
        let descriptors = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let timer =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            add(&epoll, socket.descriptor())?;
            add(&epoll, timer.as_fd())?;
            Ok::<_, rustix::io::Errno>((epoll, timer))
        };
        let (epoll, timer) = descriptors().map_err(|error| Error::system("a listener")(error.into()))?;
        let (unproved, seen, process) = (VecDeque::new(), Seen::default(), std::process::id());
        Ok(Self { socket, settings: settings.clone(), unproved, seen, epoll, timer, process })
    }

    /// Where a TCP listener listens.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Unix(..) | Socket::Open(_) => None,
            Socket::Tcp(socket, _) => socket.local_addr().ok(),
        }
    }

    /// What has got no session so far.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// Waits for the next peer, and opens a session with it. `None`: none has come by `deadline`;
    /// one that is over is enough to serve what is there. While a peer that has proved itself opens
    /// its side, others wait.
    ///
    /// # Errors
    /// Why there is no session with a peer that has proved itself, as [`crate::connect()`] has it;
    /// the next call goes on with the others. [`Error::Limit`], [`Error::System`]: the listener
    /// itself.
    pub fn accept(&mut self, deadline: Option<Instant>) -> Result<Option<Session>> {
        self.next(deadline)?.map(Arrived::open).transpose()
    }

    /// Waits for the next peer, as [`Self::accept`] does, whose session is to be opened: in another
    /// thread, where others shall not wait for it.
    ///
    /// # Errors
    /// Those of [`Self::accept`].
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Arrived>> {
        loop {
            if let Some((line, own, peer)) = self.serve()? {
                return Ok(Some(Arrived { line, own, peer, settings: self.settings.clone() }));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let limit = left.and_then(|left| left.try_into().ok());
            // An interrupted wait is a wait that ended early.
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], limit.as_ref());
        }
    }

    /// Serves what is there, until a peer has proved itself. Returns its line, and the cards of
    /// this side and of the peer.
    fn serve(&mut self) -> Result<Option<(Line, Card, Card)>> {
        // Others wait in the kernel's queue while one of these has proved itself.
        let (mut agreed, mut taken) = (self.step(0), Ok(()));
        if agreed.is_none() {
            let known = self.unproved.len();
            taken = self.take_connections();
            agreed = self.step(known);
            self.close_surplus(known);
        }
        self.set_timer()?;
        match agreed {
            Some(agreed) => agreed.map(Some),
            None => taken.map(|()| None),
        }
    }

    /// Goes on with the handshakes from this place on, until a peer has proved itself.
    fn step(&mut self, from: usize) -> Option<Result<(Line, Card, Card)>> {
        let (mut agreed, now) = (None, Instant::now());
        for mut one in self.unproved.split_off(from) {
            if agreed.is_some() {
                self.unproved.push_back(one);
                continue;
            }
            let until = *one.until.get_or_insert(now + PROOF);
            match one.step() {
                Ok(Some(Agreed { peer, frames })) => {
                    let _ = epoll::delete(&self.epoll, one.channel.descriptor());
                    one.channel.widen();
                    agreed = Some(Ok((Line::new(one.channel, frames), one.own, peer)));
                }
                Ok(None) if now < until => self.unproved.push_back(one),
                Ok(None) => self.seen.silent += 1,
                Err(Error::Stranger) => self.seen.strangers += 1,
                Err(Error::WrongKey) => self.seen.wrong_keys += 1,
                // It had proved itself.
                Err(error @ (Error::Version { .. } | Error::Refused(_))) => agreed = Some(Err(error)),
                Err(_) => self.seen.silent += 1,
            }
        }
        agreed
    }

    /// Closes connections that are too many, of this many that were there before: who has come just
    /// now may have connected, and not greeted yet.
    fn close_surplus(&mut self, mut known: usize) {
        while self.unproved.len() > UNPROVED {
            let before = || self.unproved.iter().take(known);
            let silent = before().position(|one| !one.handshake.has_begun());
            let unproved = || before().position(|one| !one.handshake.is_proved());
            self.unproved.remove(silent.or_else(unproved).unwrap_or(0));
            self.seen.silent += 1;
            known -= 1;
        }
    }

    /// Accepts connections that wait.
    fn take_connections(&mut self) -> Result<()> {
        for _ in 0..AT_A_TIME {
            let trust = self.socket.trust();
            let channel = match self.socket.accept() {
                Ok(Some(channel)) => channel,
                Ok(None) => return Ok(()),
                Err(Error::OtherUser(_)) => {
                    self.seen.other_users += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if add(&self.epoll, channel.descriptor()).is_err() {
                continue;
            }
            // This process may have another number, or another namespace, than when it began to
            // listen.
            let own = Card::own(self.settings.routes);
            let handshake = Handshake::new(Side::Accepting, trust, &own);
            let (output, until) = (Vec::new(), None);
            self.unproved.push_back(Unproved { channel, handshake, own, output, until });
        }
        Ok(())
    }

    /// The timer rings when the first connection has had its time, which is the oldest one, and at
    /// once where one had no look yet.
    fn set_timer(&self) -> Result<()> {
        let now = Instant::now();
        let due = self.unproved.iter().map(|one| one.until.unwrap_or(now)).min();
        // 0 would be never.
        let time = due.map(|due| due.saturating_duration_since(now).max(Duration::from_nanos(1)));
        let time = time.unwrap_or_default();
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let timer = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)
            .map(drop)
            .map_err(|error| Error::System("the timer of a listener", error.into()))
    }
}

impl Listener {
    /// The socket itself. A forked child may close its copy, without which the address is free when
    /// this process has ended.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, file) = &self.socket
            && self.process == std::process::id()
        {
            file.remove();
        }
    }
}

impl Socket {
    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket, _) | Self::Open(socket) => socket.as_fd(),
            Self::Tcp(socket, _) => socket.as_fd(),
        }
    }

    fn trust(&self) -> Trust {
        match self {
            Self::Unix(..) | Self::Open(_) => Trust::Channel,
            Self::Tcp(_, key) => Trust::Key(*key),
        }
    }

    /// The next connection, if there is one now. It does not block.
    fn accept(&self) -> Result<Option<Channel>> {
        let accepted = match self {
            Self::Unix(socket, _) => socket.accept().map(|(stream, _)| {
                stream.set_nonblocking(true).map_err(Error::system("a connection"))?;
                Channel::unix(stream)
            }),
            Self::Open(socket) => socket.accept().map(|(stream, _)| {
                stream.set_nonblocking(true).map_err(Error::system("a connection"))?;
                Channel::unix_of_any_user(stream)
            }),
            Self::Tcp(socket, _) => socket.accept().map(|(stream, _)| {
                stream.set_nonblocking(true).map_err(Error::system("a connection"))?;
                Channel::tcp(stream)
            }),
        };
        match accepted {
            Ok(channel) => channel.map(Some),
            Err(error) if is_nobody(&error) => Ok(None),
            Err(error) => Err(Error::system("a connection")(error)),
        }
    }
}

fn is_nobody(error: &io::Error) -> bool {
    [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind())
}

impl Unproved {
    /// Goes on with the handshake as far as bytes are there.
    fn step(&mut self) -> Result<Option<Agreed>> {
        let broken = |error: io::Error| Error::Lost(error.to_string());
        loop {
            self.output.extend(self.handshake.output());
            let written = self.channel.write(&self.output).map_err(broken)?;
            self.output.drain(..written);
            let mut bytes = [0; 4096];
            let wanted = self.handshake.wanted().min(bytes.len());
            let read = match self.channel.read(&mut bytes[..wanted]).map_err(broken)? {
                Read::Bytes(count) => self.handshake.read(&bytes[..count]),
                Read::Nothing => return Ok(None),
                Read::Ended => return Err(self.handshake.ended()),
            };
            match read {
                Ok(None) => {}
                Ok(Some(agreed)) => {
                    // The card is short, and the channel was empty.
                    let rest = [std::mem::take(&mut self.output), self.handshake.output()].concat();
                    let whole = self.channel.write(&rest).map_err(broken)? == rest.len();
                    return if whole { Ok(Some(agreed)) } else { Err(Error::Late("it reads nothing")) };
                }
                Err(error) => {
                    let _ = self.channel.write(&self.handshake.output());
                    return Err(error);
                }
            }
        }
    }
}

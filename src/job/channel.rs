//! Sockets with an abstract name that carry whole messages with file descriptors, and never block for longer than
//! a deadline.

use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};

/// The most descriptors that the kernel passes in one message (SCM_MAX_FD).
pub(in crate::job) const FDS_PER_MESSAGE: usize = 253;

/// No message is longer, in bytes.
pub(in crate::job) const MESSAGE_MAX: usize = 64 * 1024;

/// How long to wait before trying again what another process must first make room for.
const MOMENT: Duration = Duration::from_micros(200);

/// A point in time at which patience ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::job) struct Deadline(Instant);

impl Deadline {
    /// `patience` from now; a year, if it is longer.
    pub(in crate::job) fn after(patience: Duration) -> Self {
        Self(Instant::now() + patience.min(Duration::from_secs(365 * 24 * 3600)))
    }

    pub(in crate::job) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(in crate::job) fn has_passed(self) -> bool {
        self.left().is_zero()
    }

    /// Sleeps for `time`, but not beyond the deadline.
    pub(in crate::job) fn sleep(self, time: Duration) {
        thread::sleep(time.min(self.left()));
    }
}

/// Who is at the other end, as the kernel saw it when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::job) struct Peer {
    /// 0 when the process is not visible from here (another process namespace).
    pub(in crate::job) pid: i32,
    pub(in crate::job) uid: u32,
}

/// One message.
#[derive(Debug)]
pub(in crate::job) struct Received {
    pub(in crate::job) bytes: Vec<u8>,
    pub(in crate::job) fds: Vec<OwnedFd>,
}

/// What came of trying to receive.
#[derive(Debug)]
pub(in crate::job) enum Receive {
    Message(Received),
    /// Nothing yet.
    Nothing,
    /// The other end is closed; nothing will ever come.
    Closed,
}

/// A connection.
#[derive(Debug)]
pub(in crate::job) struct Channel(OwnedFd);

impl Channel {
    /// Connects to the listener of that name; `None` when there is none, or it is too busy just now.
    pub(in crate::job) fn connect(name: &str) -> io::Result<Option<Self>> {
        let socket = socket()?;
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => return Ok(Some(Self(socket))),
                Err(Errno::INTR) => {}
                Err(Errno::CONNREFUSED | Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(in crate::job) fn peer(&self) -> io::Result<Peer> {
        // Not through rustix: its type has no room for a process number of 0.
        let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the descriptor is open, and `cred` and `len` are writable and as large as they say.
        let status = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut cred).cast(),
                &raw mut len,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Peer { pid: cred.pid, uid: cred.uid })
    }

    /// Sends one message, waiting for room until the deadline.
    pub(in crate::job) fn send(
        &self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        deadline: Deadline,
    ) -> io::Result<()> {
        loop {
            match self.try_send(bytes, fds) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) if deadline.has_passed() => return Err(io::ErrorKind::TimedOut.into()),
                Err(Errno::AGAIN) => wait(&[(self.as_fd(), PollFlags::OUT)], deadline).map(drop)?,
                // The kernel bounds how many of a user's descriptors are under way at a time.
                Err(Errno::TOOMANYREFS) => deadline.sleep(MOMENT),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends one message if there is room for it now.
    pub(in crate::job) fn try_send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::INVAL);
        }
        rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
    }

    /// Receives one message if there is one now.
    pub(in crate::job) fn receive(&self) -> io::Result<Receive> {
        let mut bytes = vec![0; MESSAGE_MAX];
        let mut resets = 0;
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut slices = [IoSliceMut::new(&mut bytes)];
            let received =
                match rustix::net::recvmsg(&self.0, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
                    Ok(received) => received,
                    Err(Errno::INTR) => continue,
                    Err(Errno::AGAIN) => return Ok(Receive::Nothing),
                    // Reported once, ahead of what was sent before the other end closed with something unread.
                    Err(Errno::CONNRESET) if resets == 0 => {
                        resets += 1;
                        continue;
                    }
                    Err(Errno::CONNRESET) => return Ok(Receive::Closed),
                    Err(error) => return Err(error.into()),
                };
            let mut fds = Vec::new();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            if received.flags.contains(ReturnFlags::CTRUNC) {
                // The kernel drops the descriptors that this process has no room for.
                return Err(Errno::MFILE.into());
            }
            if received.flags.contains(ReturnFlags::TRUNC) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is too long"));
            }
            if received.bytes == 0 {
                return Ok(Receive::Closed);
            }
            bytes.truncate(received.bytes);
            return Ok(Receive::Message(Received { bytes, fds }));
        }
    }

    /// Closes the connection at both ends, also where a process that was just forked has a copy of the descriptor for a moment.
    pub fn hang_up(self) {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A socket that others connect to. Its name is free again when it is dropped.
#[derive(Debug)]
pub(in crate::job) struct Listener(ManuallyDrop<OwnedFd>);

/// The listeners that this process has open. Held while one is made or closed, and while a thread forks: so a child knows
/// all of those that it has inherited.
static LISTENING: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

thread_local! {
    /// What a thread that forks holds. The child's only thread is a copy of that thread.
    static HELD: RefCell<Option<MutexGuard<'static, Vec<RawFd>>>> = const { RefCell::new(None) };
}

fn listening() -> MutexGuard<'static, Vec<RawFd>> {
    // Never poisoned for us: a panic ends the process.
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Before this thread forks.
pub(in crate::job) fn before_fork() {
    let _ = HELD.try_with(|held| {
        // Called twice, it must not wait for itself.
        held.borrow_mut().get_or_insert_with(listening);
    });
}

/// After the fork, in the parent.
pub(in crate::job) fn after_fork() {
    let _ = HELD.try_with(RefCell::take);
}

/// After the fork, in the child: closes what it has inherited of listeners. Their names would stay taken for as long as it
/// lives.
pub(in crate::job) fn close_in_child() {
    if let Ok(Some(mut listening)) = HELD.try_with(RefCell::take) {
        for descriptor in listening.drain(..) {
            // SAFETY: a listener's descriptor, whose owner is a thread that this process does not have.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
    }
}

impl Listener {
    /// Listens under that name; `None` when somebody holds it.
    pub(in crate::job) fn bind(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let mut all = listening();
        let socket = socket()?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        rustix::net::listen(&socket, 4096)?;
        all.push(socket.as_raw_fd());
        Ok(Some(Self(ManuallyDrop::new(socket))))
    }

    /// The next connection, if there is one now.
    pub(in crate::job) fn accept(&self) -> io::Result<Option<Channel>> {
        loop {
            match rustix::net::accept_with(&*self.0, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => return Ok(Some(Channel(socket))),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Listener {
    /// A process that was started at the wrong moment may hold a copy of the descriptor until it runs its program:
    /// shutting the socket down makes sure that nobody connects to that copy.
    fn drop(&mut self) {
        let mut all = listening();
        let _ = rustix::net::shutdown(&*self.0, Shutdown::Both);
        all.retain(|&descriptor| descriptor != self.0.as_raw_fd());
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// Waits until one of the descriptors is ready or the deadline has passed; says of each whether it is ready.
pub(in crate::job) fn wait(fds: &[(BorrowedFd<'_>, PollFlags)], deadline: Deadline) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|(fd, events)| PollFd::from_borrowed_fd(*fd, *events)).collect();
    loop {
        let left = deadline.left();
        let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match poll(&mut polled, Some(&left)) {
            Ok(_) => return Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

//! Sockets with an abstract name that carry whole messages with file descriptors, and never block.

use crate::base::descriptor::{Descriptor, FileId, identity};
use crate::base::sync::{Mutex, MutexGuard};
use crate::wire::hello::LONGEST;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};

/// The most descriptors of one message.
const FDS_PER_MESSAGE: usize = 4;

/// The process at the other end, as the kernel saw it when the connection was made.
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

/// The result of an attempt to receive.
#[derive(Debug)]
pub(in crate::job) enum Receive {
    Message(Received),
    /// Nothing yet.
    Nothing,
    /// The other end is closed; nothing more will arrive.
    Closed,
}

/// A connection.
#[derive(Debug)]
pub(in crate::job) struct Channel(Socket);

impl Channel {
    /// Connects to the listener of that name; `None` when there is none, or it is too
    /// busy just now.
    pub(in crate::job) fn connect(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let socket = Socket::open(&mut sockets())?;
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
        let peer = getsockopt(&self.0, PeerCredentials)?;
        Ok(Peer { pid: peer.pid(), uid: peer.uid() })
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
        let mut bytes = vec![0; LONGEST];
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
                    // Reported once, ahead of what was sent before the other end closed with
                    // something unread.
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
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A socket that others connect to. Its name is free again when it is dropped.
#[derive(Debug)]
pub(in crate::job) struct Listener(Socket);

/// The sockets that this process has open. Held while one is made or closed, and while a thread
/// forks: so a child knows all of those that it has inherited.
static SOCKETS: Mutex<Numbers> = Mutex::new(Numbers::new());

/// What each number was when the socket was made.
type Numbers = BTreeMap<RawFd, Option<FileId>>;

type Sockets = MutexGuard<'static, Numbers>;

thread_local! {
    /// What a thread that forks holds. The child's only thread is a copy of that thread. It is
    /// taken out before the thread ends: a destructor would be registered under the loader's lock.
    static HELD: RefCell<ManuallyDrop<Option<Sockets>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

fn sockets() -> Sockets {
    SOCKETS.lock()
}

/// Before this thread forks.
pub(in crate::job) fn before_fork() {
    let _ = HELD.try_with(|held| {
        // Called twice, it must not wait for itself.
        held.borrow_mut().get_or_insert_with(sockets);
    });
}

/// After the fork, in the parent.
pub(in crate::job) fn after_fork() {
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}

/// After the fork, in the child: closes the sockets that it has inherited. The names of listeners
/// would stay taken for as long as it lives, and peers would take the parent for alive.
pub(in crate::job) fn close_in_child() {
    if let Ok(Some(mut sockets)) = HELD.try_with(|held| held.borrow_mut().take()) {
        close(std::mem::take(&mut *sockets));
    }
}

/// Closes those of these sockets that are still open: the program may have closed some, and opened
/// something of its own.
fn close(sockets: Numbers) {
    for (number, known) in sockets {
        // SAFETY: looked at, to see whether it is what it was.
        let found = identity(unsafe { BorrowedFd::borrow_raw(number) });
        if known.is_some() && found == known {
            // SAFETY: a socket's descriptor, whose owner is a context that this
            // process does not use.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

impl Listener {
    /// Listens under that name; `None` when another socket has it.
    pub(in crate::job) fn bind(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let mut all = sockets();
        let socket = Socket::open(&mut all)?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                socket.close(&mut all);
                return Ok(None);
            }
            Err(error) => {
                socket.close(&mut all);
                return Err(error.into());
            }
        }
        let listens = rustix::net::listen(&socket, 4096);
        drop(all);
        listens?;
        Ok(Some(Self(socket)))
    }

    /// The next connection, if there is one now.
    pub(in crate::job) fn accept(&self) -> io::Result<Option<Channel>> {
        let mut all = sockets();
        loop {
            match rustix::net::accept_with(&self.0, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => return Ok(Some(Channel(Socket::new(socket, &mut all)))),
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
    /// A process that was started at the wrong moment may hold a copy of the descriptor until it
    /// runs its program: shutting the socket down makes sure that no process connects to that copy.
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl Drop for Channel {
    /// Closes both ends, also where a process that was just forked has a copy of the
    /// descriptor for a moment.
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

/// What owns one descriptor, that of a socket, which is in [`SOCKETS`] as long as it lives.
pub(in crate::job) struct Inherited<T> {
    owner: ManuallyDrop<T>,
    descriptor: RawFd,
}

impl<T> Inherited<T> {
    /// What `made` returns; `descriptor` names its socket.
    pub(in crate::job) fn open(
        made: impl FnOnce() -> io::Result<T>,
        descriptor: impl FnOnce(&T) -> RawFd,
    ) -> io::Result<Self> {
        let mut all = sockets();
        let owner = made()?;
        let descriptor = descriptor(&owner);
        // SAFETY: open, as the owner has just made it.
        all.insert(descriptor, identity(unsafe { BorrowedFd::borrow_raw(descriptor) }));
        Ok(Self { owner: ManuallyDrop::new(owner), descriptor })
    }

    pub(in crate::job) fn get(&self) -> &T {
        &self.owner
    }

    pub(in crate::job) fn get_mut(&mut self) -> &mut T {
        &mut self.owner
    }
}

impl<T> Drop for Inherited<T> {
    fn drop(&mut self) {
        let mut all = sockets();
        all.remove(&self.descriptor);
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.owner) };
    }
}

/// A socket that is in [`SOCKETS`].
#[derive(Debug)]
struct Socket(ManuallyDrop<Descriptor>);

impl Socket {
    fn open(all: &mut Sockets) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok(Self::new(socket, all))
    }

    fn new(socket: OwnedFd, all: &mut Sockets) -> Self {
        let number = socket.as_raw_fd();
        let socket = Descriptor::new(socket);
        all.insert(number, socket.identity());
        Self(ManuallyDrop::new(socket))
    }

    /// What dropping does, for one that holds the lock.
    fn close(self, all: &mut Sockets) {
        let mut socket = ManuallyDrop::new(self);
        socket.forget(all);
    }

    fn forget(&mut self, all: &mut Sockets) {
        let number = self.0.as_fd().as_raw_fd();
        // Another one may have the number, when the program has closed this one.
        if all.get(&number) == Some(&self.0.identity()) {
            all.remove(&number);
        }
        // SAFETY: it is not used again, nor dropped.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }

    fn shut_down(&self) {
        if let Some(socket) = self.0.get() {
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut all = sockets();
        self.forget(&mut all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_child_closes_what_it_has_inherited_and_nothing_else() {
        let pair = || UnixStream::pair().expect("sockets");
        let ((inherited, mut there), (own, mut kept)) = (pair(), pair());
        let inherited = OwnedFd::from(inherited);
        // The program has closed the library's socket, and opened this one.
        let numbers = [(inherited.as_raw_fd(), identity(&inherited)), (own.as_raw_fd(), Some([0, 0]))];
        std::mem::forget(inherited);
        close(numbers.into_iter().collect());
        assert_eq!(there.read(&mut [0]).expect("an end"), 0);
        (&own).write_all(b"x").expect("it is open");
        kept.read_exact(&mut [0]).expect("it is open");
    }
}

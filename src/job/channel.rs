//! Sockets with an abstract name that carry whole messages with file descriptors, and never block.

use crate::base::descriptor::Descriptor;
use crate::wire::hello::LONGEST;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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
pub(in crate::job) struct Channel(Descriptor);

impl Channel {
    /// Connects to the listener of that name; `None` when there is none, or it is too
    /// busy just now.
    pub(in crate::job) fn connect(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let socket = open()?;
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
pub(in crate::job) struct Listener(Descriptor);

impl Listener {
    /// Listens under that name; `None` when another socket has it.
    pub(in crate::job) fn bind(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let socket = open()?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        rustix::net::listen(&socket, 4096)?;
        Ok(Some(Self(socket)))
    }

    /// The next connection, if there is one now.
    pub(in crate::job) fn accept(&self) -> io::Result<Option<Channel>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            match Descriptor::socket(|| rustix::net::accept_with(&self.0, flags)) {
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
    /// A process that was started at the wrong moment may hold a copy of the descriptor until it
    /// runs its program: shutting the socket down makes sure that no process connects to that copy.
    fn drop(&mut self) {
        shut_down(&self.0);
    }
}

impl Drop for Channel {
    /// Closes both ends, also where a process that was just forked has a copy of the
    /// descriptor for a moment.
    fn drop(&mut self) {
        shut_down(&self.0);
    }
}

fn open() -> rustix::io::Result<Descriptor> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Descriptor::socket(|| rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None))
}

fn shut_down(socket: &Descriptor) {
    if let Some(socket) = socket.get() {
        let _ = rustix::net::shutdown(socket, Shutdown::Both);
    }
}

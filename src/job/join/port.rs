//! The socket of this task at a port that the other tasks know. A forked child closes its copy: the
//! port would stay taken as long as the child lives, for this process when it opens LAPI again, and
//! for another one that takes its place.

use crate::job::channel::Inherited;
use crate::transport::udp::device::{Datagram, Device};
use crate::transport::udp::socket::{Options, Socket};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A socket at the port, which stays taken until this is dropped.
pub(super) struct Port(Inherited<Socket>);

impl Port {
    /// Opens the socket ([`Socket::open`]).
    pub(super) fn open(at: SocketAddr) -> io::Result<Self> {
        let made = || Socket::open(at, Options::default());
        Inherited::open(made, |socket| socket.event_fd().as_raw_fd()).map(Self)
    }

    /// Where it receives.
    pub(super) fn local(&self) -> SocketAddr {
        self.0.get().local()
    }
}

impl Device for Port {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        self.0.get_mut().send(datagrams)
    }

    #[inline]
    fn send_train(&mut self, to: SocketAddr, bytes: &[u8], segment: usize) -> usize {
        self.0.get_mut().send_train(to, bytes, segment)
    }

    fn send_in_parts(&mut self, datagram: &Datagram<'_>) -> bool {
        self.0.get_mut().send_in_parts(datagram)
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        self.0.get_mut().receive(take)
    }

    fn is_lost(&self) -> bool {
        self.0.get().is_lost()
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.0.get().event_fd()
    }
}

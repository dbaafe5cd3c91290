//! The device on a socket of UDP.
//!
//! * One call of the kernel sends or receives many datagrams (sendmmsg, recvmmsg), and where the
//!   kernel cuts and joins trains of datagrams of one length (UDP_SEGMENT, UDP_GRO), one message of
//!   such a call is a train. Whether it does is found by trying.
//! * Datagrams are not fragmented on the way (IP_PMTUDISC_PROBE): one that is too long for an
//!   interface is lost here, one that is too long for a link further away is lost there. Messages
//!   of routers change nothing, because any host can make them.
//! * The socket is not connected: it receives from every address, and no error of one destination
//!   ends it.

mod messages;

use super::device::{self, Datagram, Device, TRAIN};
use crate::base::descriptor::Descriptor;
use messages::{Incoming, OUTGOING, Outgoing, Train, cuts_trains, join_trains};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The longest datagram over IPv4, in bytes: what its headers leave of 65,535.
pub const LONGEST: usize = 65_535 - HEADERS_V4;

/// The bytes of the headers of IPv4 without options, and UDP.
const HEADERS_V4: usize = 20 + 8;

/// Errors in a row that have waited in the socket, after which a call gives up until the next one.
const PATIENCE: usize = 16;

/// How a socket is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of received datagrams that the kernel should keep. Less is granted where the
    /// system allows less.
    pub receive_buffer: usize,
    /// Bytes that the kernel should keep of datagrams that were sent and have not left the host.
    pub send_buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { receive_buffer: 8 << 20, send_buffer: 2 << 20 }
    }
}

/// A socket of UDP.
pub struct Socket {
    fd: Descriptor,
    local: SocketAddr,
    /// The kernel cuts trains (UDP_SEGMENT), and no interface has refused one yet.
    cuts: bool,
    /// What the next call sends.
    trains: Vec<Train>,
    outgoing: Outgoing,
    incoming: Incoming,
}

/// What to do after a message was not taken.
enum Refusal {
    /// Offer it again later.
    NoRoom,
    /// Offer it again at once.
    Again,
    /// Offer its datagrams one by one.
    Singly,
    /// Offer its datagrams one by one: if the first of them is taken, the interface refuses trains.
    Doubtful,
    /// The message's datagrams are lost.
    Lost,
}

impl Socket {
    /// Opens a socket that is bound to `local`; its port may be 0, for any that is free. One of
    /// IPv6 does not carry IPv4. No other socket can be bound to the port once this has returned,
    /// while it is open; a forked child closes its copy.
    ///
    /// # Errors
    /// The system's: there is no such address on this host, the port is in use, or no
    /// descriptor is left.
    pub fn open(local: SocketAddr, options: Options) -> io::Result<Self> {
        let fd = Descriptor::socket(|| unbound(local))?;
        let cuts = prepare(&fd, local, options)?;
        rustix::net::bind(&fd, &local)?;
        let local = rustix::net::getsockname(&fd)?.try_into()?;
        Ok(Self {
            fd,
            local,
            cuts,
            trains: Vec::with_capacity(OUTGOING),
            outgoing: Outgoing::new(),
            incoming: Incoming::new(),
        })
    }

    /// The address that it is bound to.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Makes trains of the first datagrams. The first `singly` datagrams are trains of one.
    fn couple(&mut self, datagrams: &[Datagram<'_>], singly: usize) {
        let datagrams = &datagrams[..datagrams.len().min(OUTGOING)];
        self.trains.clear();
        if datagrams.len() == 1 {
            self.trains.push(Train { datagrams: 1, segment: 0 });
            return;
        }
        let mut at = 0;
        while at < datagrams.len() {
            let most = if self.cuts && at >= singly { TRAIN } else { 1 };
            let train = train(&datagrams[at..], most);
            at += train.datagrams;
            self.trains.push(train);
        }
    }

    /// What an error means for a message of `datagrams`, which was offered `tries` times before.
    #[cold]
    fn judge(&mut self, error: Errno, datagrams: usize, tries: usize) -> Refusal {
        match error {
            Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => Refusal::NoRoom,
            Errno::INTR => Refusal::Again,
            // An interface that cannot cut trains.
            Errno::IO | Errno::OPNOTSUPP if datagrams > 1 => {
                self.cuts = false;
                Refusal::Singly
            }
            // Such an interface, or datagrams that are refused singly, too: they are too long for
            // it, or go to port 0.
            Errno::INVAL if datagrams > 1 => Refusal::Doubtful,
            // A train must fit an interface uncut on some kernels, and its datagrams always.
            Errno::MSGSIZE if datagrams > 1 => Refusal::Singly,
            // An error of a datagram that was sent before, such as the report of an unreachable
            // port, may have waited in the socket, and is gone now.
            _ if is_delayed(error) && tries == 0 => Refusal::Again,
            // Too long for the interface, or without a route.
            _ => Refusal::Lost,
        }
    }
}

impl Device for Socket {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        let (mut taken, mut singly, mut tries, mut doubtful) = (0, 0, 0, false);
        while taken < datagrams.len() {
            let left = &datagrams[taken..];
            self.couple(left, singly);
            let first = self.trains[0].datagrams;
            let gone = match self.outgoing.send(self.fd.as_fd(), &self.trains, left) {
                Ok(sent) => {
                    self.cuts &= !doubtful;
                    self.trains[..sent].iter().map(|train| train.datagrams).sum()
                }
                Err(error) => match self.judge(error, first, tries) {
                    Refusal::NoRoom => break,
                    Refusal::Again => {
                        // A signal that comes again and again is no error of the datagram.
                        tries += usize::from(error != Errno::INTR);
                        continue;
                    }
                    Refusal::Singly => {
                        singly = first;
                        continue;
                    }
                    Refusal::Doubtful => {
                        (singly, doubtful) = (first, true);
                        continue;
                    }
                    Refusal::Lost => first,
                },
            };
            taken += gone;
            singly = singly.saturating_sub(gone);
            (tries, doubtful) = (0, false);
        }
        taken
    }

    #[inline]
    fn send_train(&mut self, to: SocketAddr, bytes: &[u8], segment: usize) -> usize {
        if self.cuts && bytes.len() <= LONGEST {
            match self.outgoing.send_train(self.fd.as_fd(), to, bytes, segment as u16) {
                Ok(()) => return bytes.len().div_ceil(segment),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return 0,
                // It may have waited in the socket, and is gone then.
                Err(_) => {}
            }
        }
        device::with_datagrams(to, bytes, segment, |datagrams| self.send(datagrams))
    }

    fn send_in_parts(&mut self, datagram: &Datagram<'_>) -> bool {
        // Without it the datagram is lost, as any may be.
        let _ = allow_parts(self.fd.as_fd(), self.local, true);
        let taken = self.send(std::slice::from_ref(datagram));
        let _ = allow_parts(self.fd.as_fd(), self.local, false);
        taken != 0
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        let messages = 'received: {
            for _ in 0..PATIENCE {
                match self.incoming.receive(self.fd.as_fd()) {
                    Ok(messages) => break 'received messages,
                    Err(Errno::AGAIN) => break,
                    // An error that had waited is gone now.
                    Err(_) => {}
                }
            }
            return 0;
        };
        let mut taken = 0;
        for at in 0..messages {
            // One that cannot be used is lost, as any may be.
            let Some(message) = self.incoming.message(at) else { continue };
            if message.segment == 0 || message.segment >= message.bytes.len() {
                take(message.from, message.bytes);
                taken += 1;
                continue;
            }
            for datagram in message.bytes.chunks_mut(message.segment) {
                take(message.from, datagram);
                taken += 1;
            }
        }
        taken
    }

    fn is_lost(&self) -> bool {
        self.fd.get().is_none()
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sets up a socket that is not bound yet; whether the kernel cuts trains.
fn prepare(fd: &Descriptor, local: SocketAddr, options: Options) -> io::Result<bool> {
    if local.is_ipv6() {
        sockopt::set_ipv6_v6only(fd, true)?;
    }
    allow_parts(fd.as_fd(), local, false)?;
    ask_for_buffers(fd, options)?;
    join_trains(fd.as_fd());
    Ok(cuts_trains(fd.as_fd()))
}

/// Lets the next datagrams be sent in parts, or not any more. IPv6 cuts them where they are sent
/// only, and no link takes less than 1,280 bytes there.
fn allow_parts(fd: BorrowedFd<'_>, local: SocketAddr, allow: bool) -> rustix::io::Result<()> {
    use sockopt::{Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6};
    if local.is_ipv6() {
        messages::limit_parts(fd, if allow { 1280 } else { 0 });
        sockopt::set_ipv6_mtu_discover(fd, if allow { V6::DONT } else { V6::PROBE })
    } else {
        sockopt::set_ip_mtu_discover(fd, if allow { V4::DONT } else { V4::PROBE })
    }
}

/// The longest train that the datagrams begin with, of at most `most`.
fn train(datagrams: &[Datagram<'_>], most: usize) -> Train {
    let (to, segment) = (datagrams[0].to, datagrams[0].bytes.len());
    let single = Train { datagrams: 1, segment: 0 };
    if most == 1 || segment == 0 || segment * 2 > LONGEST {
        return single;
    }
    let mut count = 1;
    while count < datagrams.len().min(most).min(LONGEST / segment) && datagrams[count].to == to {
        let len = datagrams[count].bytes.len();
        if len == 0 || len > segment {
            break;
        }
        count += 1;
        if len < segment {
            break;
        }
    }
    if count == 1 { single } else { Train { datagrams: count, segment: segment as u16 } }
}

/// Whether the kernel reports this error of a datagram after it was sent.
fn is_delayed(error: Errno) -> bool {
    let delayed = [
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::NOPROTOOPT,
        Errno::PROTO,
    ];
    delayed.contains(&error)
}

fn unbound(family: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if family.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))
}

/// Asks for buffers; the limits of the system hold for processes that may not exceed them.
fn ask_for_buffers(fd: &Descriptor, options: Options) -> rustix::io::Result<()> {
    let Options { receive_buffer, send_buffer } = options;
    sockopt::set_socket_recv_buffer_size_force(fd, receive_buffer)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(fd, receive_buffer))?;
    sockopt::set_socket_send_buffer_size_force(fd, send_buffer)
        .or_else(|_| sockopt::set_socket_send_buffer_size(fd, send_buffer))
}

#[cfg(test)]
mod tests;

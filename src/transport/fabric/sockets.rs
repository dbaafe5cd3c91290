//! The sockets of the provider `tcp`, which libfabric has no calls for. Those of connections are found by their addresses, those of this task's
//! endpoint and of its peer: no socket of the program has these.
//!
//! - [`disconnect`] ends the connections with one peer. An endpoint for reliable datagrams keeps its connections when an address
//!   is removed, and bytes in the kernel's buffers are sent when a lost link has come up again. A socket that is disconnected drops
//!   what it has not sent; the provider notices, and ends what was under way on it.
//! - [`LostSockets`] closes those that libfabric loses when an endpoint is closed.

use rustix::net::sockopt::socket_domain;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrAny, connect_unspec, getpeername, getsockname, shutdown,
};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An address as the kernel has it in memory: a `sockaddr_in` or `sockaddr_in6`.
fn address_of(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((ip, port).into())
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((ip, port).into())
        }
        _ => None,
    }
}

/// Disconnects the sockets between the endpoint with the address `own` and the one with the address `peer`. A connection that the
/// peer has made has another port there: those of all endpoints on the peer's host are disconnected.
pub(super) fn disconnect(own: &[u8], peer: &[u8]) -> usize {
    let (Some(own), Some(peer)) = (address_of(own), address_of(peer)) else { return 0 };
    let mut count = 0;
    for number in descriptors() {
        // SAFETY: only used for calls that fail for what is not a socket, or not open any more. A socket with these addresses is
        // the provider's, which does not close it during this call.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        let Ok(there) = getpeername(socket) else { continue };
        let Some(there) = there.and_then(ip) else { continue };
        let Some(here) = getsockname(socket).ok().and_then(ip) else { continue };
        let made_here = there == peer && here.ip() == own.ip();
        let made_there = here == own && there.ip() == peer.ip();
        if made_here || made_there {
            count += usize::from(connect_unspec(socket).is_ok());
            // A disconnected socket is not readable, and the provider would not notice. This makes it readable, although it fails.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
    count
}

/// The sockets that libfabric 1.17 loses when an endpoint is closed while peers connect to it: it has accepted them, and never closes
/// them. To be dropped after the endpoint's fabric, which may still have others.
#[derive(Debug, Default)]
pub(super) struct LostSockets(Option<SocketAddr>);

impl LostSockets {
    /// Those of the endpoint with this address, which is being closed.
    pub(super) fn of(own: &[u8]) -> Self {
        Self(address_of(own))
    }
}

impl Drop for LostSockets {
    fn drop(&mut self) {
        let Some(own) = self.0 else { return };
        for number in descriptors() {
            // SAFETY: only used for calls that fail for what is not a socket, or not open any more.
            let socket = unsafe { BorrowedFd::borrow_raw(number) };
            let here = getsockname(socket).ok().and_then(ip);
            if here == Some(own) && getpeername(socket).is_ok() {
                // SAFETY: a connected socket with the address of a listener that libfabric has closed was accepted by libfabric, which
                // has closed all that it knows of.
                drop(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
    }
}

/// Whether this is a socket that reaches this machine only, such as one of a pair.
pub(super) fn is_local(socket: BorrowedFd<'_>) -> bool {
    socket_domain(socket) == Ok(AddressFamily::UNIX)
}

fn descriptors() -> Vec<RawFd> {
    let Ok(folder) = std::fs::read_dir("/proc/thread-self/fd") else { return Vec::new() };
    folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn ip(address: SocketAddrAny) -> Option<SocketAddr> {
    address.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn bytes(address: SocketAddr) -> Vec<u8> {
        let SocketAddr::V4(address) = address else { panic!("no address of IPv4") };
        let family = (libc::AF_INET as u16).to_ne_bytes();
        [&family[..], &address.port().to_be_bytes(), &address.ip().octets(), &[0; 8]].concat()
    }

    #[test]
    fn sockets_that_were_accepted_for_a_closed_listener_are_closed() {
        let (own, other) = (TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0"));
        let (own, other) = (own.expect("a socket"), other.expect("a socket"));
        let accept = |listener: &TcpListener| {
            let from = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
            (from, listener.accept().expect("a connection").0)
        };
        let ((mut lost, accepted), (mut kept, mut at_other)) = (accept(&own), accept(&other));
        let lost_sockets = LostSockets::of(&bytes(own.local_addr().expect("an address")));
        std::mem::forget(accepted);
        drop(own);
        drop(lost_sockets);
        lost.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a deadline");
        assert_eq!(lost.read(&mut [0]).expect("the other end is closed"), 0);
        at_other.write_all(b"x").expect("another connection");
        kept.read_exact(&mut [0]).expect("another connection");
    }

    #[test]
    fn only_the_connections_of_the_two_endpoints_end() {
        let listener = || TcpListener::bind("127.0.0.1:0").expect("a socket");
        let (own, peer, third) = (listener(), listener(), listener());
        let connect = |to: &TcpListener| {
            let from = TcpStream::connect(to.local_addr().expect("an address")).expect("a connection");
            (from, to.accept().expect("a connection").0)
        };
        let (mut to_peer, _at_peer) = connect(&peer);
        let (_from_peer, mut at_own) = connect(&own);
        let (mut to_third, mut at_third) = connect(&third);
        let address = |listener: &TcpListener| bytes(listener.local_addr().expect("an address"));
        assert!(disconnect(&address(&own), &address(&peer)) >= 2);
        assert!(to_peer.write_all(b"x").is_err());
        assert!(at_own.write_all(b"x").is_err());
        for end in [&mut to_peer, &mut at_own] {
            end.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a deadline");
            assert_eq!(end.read(&mut [0]).expect("readable"), 0);
        }
        to_third.write_all(b"x").expect("another connection");
        let mut one = [0];
        at_third.read_exact(&mut one).expect("another connection");
        assert_eq!(disconnect(&[], &address(&peer)), 0);
    }
}

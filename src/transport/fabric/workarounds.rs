//! What is done for the faults of single providers: without it data is wrong, or a task
//! crashes. Nothing else in this folder depends on a provider's version, or does what libfabric
//! has no call for.
//!
//! | what | provider, versions | the test that fails without it |
//! |---|---|---|
//! | [`disconnect`] | `tcp;ofi_rxm`, `tcp`: 1.17, and no later version is known to be without the fault | `fabric::tests::nothing_is_placed_after_both_sides_have_left_a_rail` |
//! | [`sets_least_before_enabling`] | `shm` and `efa`: crash up to 1.20 when it is set before, `shm` ignores it from 1.21 on when it is set after | `fabric::tests::conforms_on_shm`, with the one and the other version |

use crate::wire::bytes::socket_address;
use libfabric_sys::version;
use rustix::net::{Shutdown, SocketAddrAny, connect_unspec, getpeername, getsockname, shutdown};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};

/// Disconnects the sockets of the provider `tcp` between the endpoint with the address `own` and
/// the one with the address `peer`, for a rail that is left. An endpoint for reliable datagrams
/// keeps its connections when an address is removed, libfabric has no call that ends them, and
/// bytes in the kernel's buffers are stored when a lost link has come up again, although what they
/// belong to was done by another rail. A socket that is disconnected drops what it has not sent;
/// the provider notices, and ends what was under way on it.
///
/// The sockets are found by their addresses: no socket of the program has these. A connection
/// that the peer has made has another port there: those of all endpoints on the peer's host
/// are disconnected.
pub(super) fn disconnect(own: &[u8], peer: &[u8]) -> usize {
    let (Some(own), Some(peer)) = (socket_address(own), socket_address(peer)) else { return 0 };
    let mut count = 0;
    for number in descriptors() {
        // SAFETY: only used for calls that fail for what is not a socket, or not open any more. A
        // socket with these addresses is the provider's, which does not close it during this call.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        let Ok(there) = getpeername(socket) else { continue };
        let Some(there) = there.and_then(ip) else { continue };
        let Some(here) = getsockname(socket).ok().and_then(ip) else { continue };
        let made_here = there == peer && here.ip() == own.ip();
        let made_there = here == own && there.ip() == peer.ip();
        if made_here || made_there {
            count += usize::from(connect_unspec(socket).is_ok());
            // A disconnected socket is not readable, and the provider would not notice. This makes
            // it readable, although it fails.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
    count
}

/// Whether FI_OPT_MIN_MULTI_RECV is set before the endpoint is enabled. `shm` ignores it later from
/// 1.21 on. `shm` and `efa` of 1.17 to 1.20 have no place for it before, and crash.
pub(super) fn sets_least_before_enabling(library: u32) -> bool {
    library >= version(1, 21)
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

//! Programs that close the descriptors of the library (closefrom(3)), and have sockets of their own
//! under their numbers.

use super::super::BELIEF;
use super::{send, serve_until, take, two};
use crate::base::clock;
use crate::transport::udp::UdpTransport;
use crate::transport::{PeerState, Peers, SendOutcome};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Closes the socket of an end, and puts one of the program in its place, which is returned with
/// its other end. The end has not looked at it lately.
fn replace(end: &UdpTransport) -> (UnixStream, UnixStream) {
    let (own, other) = UnixStream::pair().expect("sockets");
    let number = end.outlet.descriptor().expect("a device").as_raw_fd();
    // SAFETY: the library is to see that the number is not its own any more.
    let replaced = unsafe { libc::dup2(own.as_raw_fd(), number) };
    assert_eq!(replaced, number);
    clock::sleep(Duration::from_nanos(2 * BELIEF));
    // SAFETY: from now on the number is the program's.
    (unsafe { UnixStream::from_raw_fd(number) }, other)
}

#[test]
fn a_socket_of_the_program_is_neither_read_nor_written_nor_closed() {
    for sends in [false, true] {
        let mut ends = two();
        assert_eq!(send(&mut ends[0], 1, 7), SendOutcome::Sent);
        serve_until(&mut ends, "a packet", |ends| take(&mut ends[1]) == Some((0, 7)));
        let (mut program, mut other) = replace(&ends[0]);
        other.write_all(b"data").expect("room");
        other.set_nonblocking(true).expect("an option");
        if sends {
            // That it is lost is found while the packet is sent.
            send(&mut ends[0], 1, 8);
        }
        assert_eq!(take(&mut ends[0]), None);
        assert_eq!(send(&mut ends[0], 1, 9), SendOutcome::Gone);
        let standing = ends[0].standing(1);
        assert_eq!(standing.state, PeerState::Dead);
        assert!(standing.absence.is_some_and(|why| why.contains("has closed the socket")));
        assert!(ends[0].rejoin(1, 5).is_err());
        drop(ends);
        let mut found = [0; 4];
        program.read_exact(&mut found).expect("what was written");
        assert_eq!((&found, sends), (b"data", sends));
        assert_eq!(other.read(&mut found).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        program.write_all(b"more").expect("it is open");
        other.read_exact(&mut found).expect("what was written");
        assert_eq!(&found, b"more");
    }
}

//! sendmmsg and recvmmsg behind safe functions. Nothing outside of this file sends or receives on a
//! socket of UDP.
//!
//! A message is one datagram, or a *train*: datagrams of one length to one address, of which the
//! last one may be shorter. The kernel takes a train as one message with UDP_SEGMENT, and hands one
//! over with UDP_GRO.

use super::super::device::Datagram;
use super::super::sockaddr;
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Datagrams that one call sends at most, and so messages, too.
pub(super) const OUTGOING: usize = 128;

/// Messages that one call receives at most.
const INCOMING: usize = 16;

/// No message is longer: the lengths in the headers of UDP and IP have 16 bits.
const LONGEST: usize = 1 << 16;

/// The bytes of a message beside its data: a head and a number.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Consecutive datagrams that are sent as one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Train {
    /// How many: at least one.
    pub(super) datagrams: usize,
    /// The length of all but the last one.
    pub(super) segment: u16,
}

/// What sendmmsg needs of memory.
pub(super) struct Outgoing {
    headers: Box<[libc::mmsghdr; OUTGOING]>,
    names: Box<[libc::sockaddr_storage; OUTGOING]>,
    controls: Box<[Control; OUTGOING]>,
    pieces: Box<[libc::iovec; OUTGOING]>,
}

// SAFETY: the pointers in it are made and used during one call of `send`.
unsafe impl Send for Outgoing {}

impl Outgoing {
    pub(super) fn new() -> Self {
        // SAFETY: numbers and pointers, for which zeros are a value.
        let (headers, names, pieces) =
            unsafe { (Box::new(zeroed()), Box::new(zeroed()), Box::new(zeroed())) };
        Self { headers, names, controls: Box::new([Control([0; 64]); OUTGOING]), pieces }
    }

    /// Sends the trains, which consist of the first of these datagrams; returns how many trains the
    /// kernel has taken, at least one. Does not block.
    ///
    /// # Errors
    /// That of the first train, or one that has waited in the socket: none was taken.
    ///
    /// # Panics
    /// The trains have more datagrams than `datagrams`, or than [`OUTGOING`].
    pub(super) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        trains: &[Train],
        datagrams: &[Datagram<'_>],
    ) -> Result<usize, Errno> {
        if let [Train { datagrams: 1, .. }] = trains {
            // What most small messages are: it takes less time than a message with a header.
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            return rustix::net::sendto(socket, datagrams[0].bytes, flags, &datagrams[0].to).map(|_| 1);
        }
        let (mut rest, mut piece) = (datagrams, 0);
        for (at, train) in trains.iter().enumerate() {
            let (own, others) = rest.split_at(train.datagrams);
            rest = others;
            let first = piece;
            for bytes in own.iter().map(|datagram| datagram.bytes) {
                let start = bytes.as_ptr().cast_mut();
                match self.pieces[first..piece].last_mut() {
                    // The kernel copies few long pieces faster than many short ones.
                    Some(last) if last.iov_base.wrapping_byte_add(last.iov_len) == start.cast() => {
                        last.iov_len += bytes.len();
                    }
                    _ => {
                        self.pieces[piece] = libc::iovec { iov_base: start.cast(), iov_len: bytes.len() };
                        piece += 1;
                    }
                }
            }
            let header = &mut self.headers[at].msg_hdr;
            header.msg_namelen = sockaddr::write(&mut self.names[at], own[0].to);
            header.msg_name = (&raw mut self.names[at]).cast();
            header.msg_iov = self.pieces[first..].as_mut_ptr();
            header.msg_iovlen = (piece - first) as _;
            (header.msg_control, header.msg_controllen) = (ptr::null_mut(), 0);
            if own.len() > 1 {
                header.msg_controllen = set_segment(&mut self.controls[at], train.segment) as _;
                header.msg_control = (&raw mut self.controls[at]).cast();
            }
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the headers point to names, pieces and controls of this object, and the pieces to
        // bytes of datagrams, which are borrowed; the calls only read what they point to. There are
        // as many headers as trains: more would have panicked.
        let sent = unsafe {
            if trains.len() == 1 {
                // It takes less time for one message.
                let len = libc::sendmsg(socket.as_raw_fd(), &raw const self.headers[0].msg_hdr, flags);
                if len < 0 { -1 } else { 1 }
            } else {
                libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), trains.len() as u32, flags as _)
            }
        };
        usize::try_from(sent).map_err(|_| last_error())
    }

    /// Sends the datagrams that follow each other in `bytes`, of `segment` bytes each, as one
    /// train. Does not block.
    ///
    /// # Errors
    /// The errors of [`Self::send`].
    #[inline]
    pub(super) fn send_train(
        &mut self,
        socket: BorrowedFd<'_>,
        to: SocketAddr,
        bytes: &[u8],
        segment: u16,
    ) -> Result<(), Errno> {
        self.pieces[0] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let header = &mut self.headers[0].msg_hdr;
        header.msg_namelen = sockaddr::write(&mut self.names[0], to);
        header.msg_name = (&raw mut self.names[0]).cast();
        (header.msg_iov, header.msg_iovlen) = (&raw mut self.pieces[0], 1);
        header.msg_controllen = set_segment(&mut self.controls[0], segment) as _;
        header.msg_control = (&raw mut self.controls[0]).cast();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the header points to a name, a piece and a control of this object, and the piece
        // to bytes that are borrowed; the call only reads them.
        let len = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const self.headers[0].msg_hdr, flags) };
        if len < 0 { Err(last_error()) } else { Ok(()) }
    }
}

/// A message that has arrived.
#[derive(Debug)]
pub(super) struct Message<'a> {
    /// The address that it names as its origin.
    pub(super) from: SocketAddr,
    /// The message's bytes.
    pub(super) bytes: &'a mut [u8],
    /// The length of its datagrams, except the last one: 0 for a single datagram.
    pub(super) segment: usize,
}

/// How many messages a call asks for: where one comes at a time, to ask for more costs
/// half as much again.
#[derive(Debug, Default)]
struct Demand {
    several: bool,
    /// The last call has received something.
    found: bool,
}

impl Demand {
    fn messages(&self) -> usize {
        if self.several { INCOMING } else { 1 }
    }

    /// A call has received this number of messages. Two calls that find something, one after the
    /// other, show that there are several.
    fn note(&mut self, received: usize) {
        let again = self.found && !self.several;
        self.found = received != 0;
        self.several = received > 1 || self.found && again;
    }
}

/// What recvmmsg needs of memory: about a megabyte, which takes pages only as far as
/// messages fill it.
pub(super) struct Incoming {
    headers: Box<[libc::mmsghdr; INCOMING]>,
    names: Box<[libc::sockaddr_storage; INCOMING]>,
    controls: Box<[Control; INCOMING]>,
    pieces: Box<[libc::iovec; INCOMING]>,
    /// [`LONGEST`] bytes for each message.
    bytes: Vec<u8>,
    demand: Demand,
}

// SAFETY: the pointers in it are made and used during one call of `receive`.
unsafe impl Send for Incoming {}

impl Incoming {
    pub(super) fn new() -> Self {
        // SAFETY: numbers and pointers, for which zeros are a value.
        let (headers, names, pieces) =
            unsafe { (Box::new(zeroed()), Box::new(zeroed()), Box::new(zeroed())) };
        let controls = Box::new([Control([0; 64]); INCOMING]);
        let bytes = vec![0; INCOMING * LONGEST];
        Self { headers, names, controls, pieces, bytes, demand: Demand::default() }
    }

    /// Receives messages that are there and have room; returns how many, at least one. Does not
    /// block. [`Self::message`] has them until the next call. There may be more when it returns as
    /// many as it has asked for: one, or [`INCOMING`] where there were several lately.
    ///
    /// # Errors
    /// EAGAIN: none is there. Others have waited in the socket: the next call goes on.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let asked = self.demand.messages();
        for (at, buffer) in self.bytes.chunks_exact_mut(LONGEST).take(asked).enumerate() {
            self.pieces[at] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: LONGEST };
            let header = &mut self.headers[at].msg_hdr;
            header.msg_name = (&raw mut self.names[at]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_iov = &raw mut self.pieces[at];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[at]).cast();
            header.msg_controllen = size_of::<Control>() as _;
            header.msg_flags = 0;
        }
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: each header points to a name, a piece, and a control of this object, and each
        // piece to its own part of `bytes`.
        let received = unsafe {
            if asked == 1 {
                let message = &mut self.headers[0];
                // The C library's function is a point at which a thread may be cancelled, and looks
                // for that on each side of the call.
                let header = &raw mut message.msg_hdr;
                let len = libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), header, flags);
                message.msg_len = len as _;
                if len < 0 { -1 } else { 1 }
            } else {
                let headers = self.headers.as_mut_ptr();
                libc::recvmmsg(socket.as_raw_fd(), headers, asked as u32, flags as _, ptr::null_mut())
            }
        };
        let received = usize::try_from(received).map_err(|_| last_error());
        self.demand.note(received.unwrap_or_default());
        received
    }

    /// One of the messages of the last call; `None` when it was cut, or names no address.
    ///
    /// # Panics
    /// There is no such message.
    pub(super) fn message(&mut self, at: usize) -> Option<Message<'_>> {
        let message = &self.headers[at];
        if message.msg_hdr.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
            return None;
        }
        let from = sockaddr::read(&self.names[at], message.msg_hdr.msg_namelen)?;
        let bytes = &mut self.bytes[at * LONGEST..][..message.msg_len as usize];
        let control = &self.controls[at].0[..message.msg_hdr.msg_controllen];
        Some(Message { from, bytes, segment: segment(control) })
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Where the number of a control message starts.
// SAFETY: computes a number.
const DATA: usize = unsafe { libc::CMSG_LEN(0) } as usize;

/// Writes how the kernel cuts a train; returns the length of the control message.
fn set_segment(control: &mut Control, segment: u16) -> usize {
    let head = libc::cmsghdr {
        cmsg_len: (DATA + size_of::<u16>()) as _,
        cmsg_level: libc::SOL_UDP,
        cmsg_type: libc::UDP_SEGMENT,
    };
    // SAFETY: a control has room for a head, and is aligned for it.
    unsafe { (&raw mut control.0).cast::<libc::cmsghdr>().write(head) };
    control.0[DATA..DATA + 2].copy_from_slice(&segment.to_ne_bytes());
    // SAFETY: computes a number.
    unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) as usize }
}

/// How the kernel has joined a train; 0 when it says nothing of it. The socket asks for no other
/// control messages.
fn segment(control: &[u8]) -> usize {
    if control.len() < DATA + size_of::<i32>() {
        return 0;
    }
    // SAFETY: there are as many bytes, and the kernel has written a head.
    let head = unsafe { control.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
    if (head.cmsg_level, head.cmsg_type) != (libc::SOL_UDP, libc::UDP_GRO) {
        return 0;
    }
    let length = control[DATA..].first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    usize::try_from(length).unwrap_or(0)
}

/// Makes the kernel join the datagrams of a train that arrive (UDP_GRO). Returns whether it can.
pub(super) fn join_trains(socket: BorrowedFd<'_>) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Whether the kernel cuts trains (UDP_SEGMENT): one that does not know the option would send a
/// train as one long datagram.
pub(super) fn cuts_trains(socket: BorrowedFd<'_>) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0)
}

/// Makes the parts into which IPv6 cuts datagrams no longer than this, with its own header; 0: as
/// long as the link takes.
pub(super) fn limit_parts(socket: BorrowedFd<'_>, bytes: i32) {
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU, bytes);
}

fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> bool {
    // SAFETY: the value is read during the call, and has the length given.
    let code = unsafe {
        let len = size_of::<i32>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len)
    };
    code == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the calls ask for that receive these numbers of messages, and the one after them.
    fn asked(received: &[usize]) -> Vec<usize> {
        let mut demand = Demand::default();
        let mut asked = vec![demand.messages()];
        for &count in received {
            demand.note(count);
            asked.push(demand.messages());
        }
        asked
    }

    #[test]
    fn one_message_is_asked_for_where_one_comes_at_a_time() {
        assert_eq!(asked(&[1, 0, 1, 0, 0, 1, 0]), [1; 8]);
    }

    #[test]
    fn many_are_asked_for_while_several_come() {
        let many = INCOMING;
        assert_eq!(
            asked(&[1, 1, 9, many, 2, 1, 0, 1, 1, 0]),
            [1, 1, many, many, many, many, 1, 1, 1, many, 1]
        );
    }
}

//! The connections to a port: those whose other side proves that it knows the secret are passed on,
//! the others are closed. Any process that reaches the machine can connect. So all of them are
//! served together, none is waited for, and a bounded number is kept.

use super::greeting::{Called, Heard, Proofs, Subject};
use super::reach::watch_over;
use crate::job::derive::Secret;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long a connection may take to prove itself.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that have not proved themselves yet, at a time, beside those that are expected.
/// Where there are more, the oldest one is closed that has said nothing: a task greets at once.
pub const UNPROVED: usize = 128;
/// Connections that are accepted before the others are served again.
const AT_A_TIME: usize = 32;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Listens on a port of all addresses of this machine; 0: the system chooses it. What listens on
/// IPv6 takes connections over IPv4 too, also where the system's default is otherwise
/// (net.ipv6.bindv6only).
///
/// # Errors
/// The system's.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let bound = |ip: IpAddr| bound(SocketAddr::new(ip, port), false);
    bound(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| bound(Ipv4Addr::UNSPECIFIED.into()))
}

/// A listener at this address, which does not block. With `six_only`, one of IPv6 leaves the same
/// port of IPv4 to another.
///
/// # Errors
/// The system's.
pub(in crate::job) fn bound(at: SocketAddr, six_only: bool) -> io::Result<TcpListener> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    if at.is_ipv6() {
        set_ipv6_v6only(&socket, six_only)?;
    }
    bind(&socket, &at)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// The connections to a port.
pub struct Arrivals {
    listener: TcpListener,
    secret: Secret,
    most: usize,
    unproved: VecDeque<Unproved>,
    /// What has gone wrong so far.
    pub seen: Seen,
}

/// What may be the reason that a task has not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// A connection was of a process that speaks the protocol, and has another secret.
    pub wrong_secret: bool,
    /// No descriptor was free.
    pub full: bool,
}

/// A connection whose other side has proved itself. It does not block.
pub struct Arrived {
    /// The connection.
    pub stream: TcpStream,
    /// What it is for.
    pub subject: Subject,
    /// What can be proved on it.
    pub proofs: Proofs,
}

/// A connection whose greeting is not complete.
struct Unproved {
    stream: TcpStream,
    greeting: Called,
    until: Instant,
}

impl Arrivals {
    /// The connections to this port, of which this number is expected.
    ///
    /// # Errors
    /// The system's.
    pub fn new(listener: TcpListener, secret: Secret, expected: usize) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (most, unproved) = (UNPROVED + expected, VecDeque::new());
        Ok(Self { listener, secret, most, unproved, seen: Seen::default() })
    }

    /// What is readable when there is something to serve.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let unproved = self.unproved.iter().map(|one| one.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(unproved)
    }

    /// Serves what is there, and returns the connections that have proved themselves. `admits` says
    /// what one may be for.
    pub fn serve(&mut self, admits: impl Fn(&Subject) -> bool) -> Vec<Arrived> {
        self.accept();
        let (mut arrived, now) = (Vec::new(), Instant::now());
        for mut one in std::mem::take(&mut self.unproved) {
            match one.look(&admits) {
                Heard::Proved(subject, proofs) => {
                    arrived.push(Arrived { stream: one.stream, subject, proofs });
                }
                Heard::WrongSecret => self.seen.wrong_secret = true,
                Heard::More if now < one.until => self.unproved.push_back(one),
                Heard::More | Heard::Reply(_) | Heard::Stranger => {}
            }
        }
        while self.unproved.len() > self.most {
            self.close_one();
        }
        arrived
    }

    /// Closes the oldest connection that has not even said what it wants, or else the oldest.
    fn close_one(&mut self) {
        let silent = self.unproved.iter().position(|one| !one.greeting.has_begun());
        self.unproved.remove(silent.unwrap_or(0));
    }

    /// Takes some of the connections that wait.
    fn accept(&mut self) {
        for _ in 0..AT_A_TIME {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    watch_over(&stream);
                    if stream.set_nonblocking(true).is_ok() {
                        let (greeting, until) = (Called::new(self.secret), Instant::now() + TIMEOUT);
                        self.unproved.push_back(Unproved { stream, greeting, until });
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if [ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
                Err(error) => {
                    // No descriptor is free: one gives its own back. Not at once again, or this
                    // would be a busy loop.
                    if [libc::EMFILE, libc::ENFILE].map(Some).contains(&error.raw_os_error()) {
                        self.seen.full = true;
                        self.close_one();
                    }
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            }
        }
    }
}

impl Unproved {
    /// Reads what is there, and replies to it.
    fn look(&mut self, admits: &impl Fn(&Subject) -> bool) -> Heard {
        loop {
            let mut bytes = [0; 64];
            let wanted = self.greeting.wanted().min(bytes.len());
            let read = match self.stream.read(&mut bytes[..wanted]) {
                Ok(0) => return Heard::Stranger,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::More,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Heard::Stranger,
            };
            match self.greeting.read(&bytes[..read], admits) {
                Heard::More => {}
                // A connection that is new has room for it.
                Heard::Reply(reply) if self.stream.write_all(&reply).is_ok() => {}
                Heard::Reply(_) => return Heard::Stranger,
                last => return last,
            }
        }
    }
}

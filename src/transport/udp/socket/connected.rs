//! A second socket at the address and port of the first, which is connected to one peer: the kernel
//! keeps the route of what is sent there, and finds the socket of what comes from there with less
//! work. It passes datagrams of the peer to this one, and all others to the first.
//!
//! Both are bound when the first is opened, before anybody knows its port: for that moment, and
//! never again, another socket of the same user could be bound to the port too. Afterwards this one
//! is only connected: to a peer or, while there is none that has most of the traffic, to itself, so
//! that nothing arrives. While it is being connected to another peer, datagrams of any peer may
//! arrive here. So the source of a datagram is always read, and both sockets are received from.

use super::messages::Demand;
use rustix::net::sockopt::set_socket_reuseport;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// The socket on which less arrives is polled once in this many polls of the other one, at most.
const SELDOM: u8 = 8;
/// How seldom the socket is polled on which less arrives while this one is connected to itself.
const HARDLY_EVER: u8 = 64;

/// Calls in a row that the connected socket refuses, after which it is used no more until another
/// peer is preferred.
const PATIENCE: u8 = 16;

/// The second socket.
pub(super) struct Connected {
    pub(super) fd: OwnedFd,
    /// What calls on it ask for.
    pub(super) demand: Demand,
    /// When the other of the two sockets is polled than that on which most arrives.
    pub(super) turns: Turns,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    refused: u8,
}

impl Connected {
    /// Binds `second`, a socket like `first`, to the address of that one, and connects it to
    /// itself. `None`: this system does not take it.
    pub(super) fn bind(first: &OwnedFd, second: OwnedFd, local: SocketAddr) -> Option<Self> {
        let shared = |value| set_socket_reuseport(first, value).and(set_socket_reuseport(&second, value));
        let bound = shared(true).and_then(|()| rustix::net::bind(&second, &local));
        // From now on no other socket can be bound to the port, whichever of the two it
        // would be beside.
        let closed = [first, &second].map(|socket| set_socket_reuseport(socket, false));
        let (true, [Ok(()), Ok(())]) = (bound.is_ok(), closed) else { return None };
        let turns = Turns::default();
        let own = Self { fd: second, demand: Demand::default(), turns, local, peer: None, refused: 0 };
        own.connect(own.itself()).then_some(own)
    }

    /// The peer that it is connected to.
    #[inline]
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Connects it to a peer, or to itself.
    #[cold]
    pub(super) fn prefer(&mut self, peer: Option<SocketAddr>) {
        (self.peer, self.refused) = (None, 0);
        self.turns = Turns::default();
        match peer {
            Some(peer) if self.connect(peer) => self.peer = Some(peer),
            // Connected to nothing it receives a part of what is meant for the first socket, and is
            // received from as well.
            _ => _ = self.connect(self.itself()),
        }
    }

    /// A call has sent something.
    #[inline]
    pub(super) fn note_sent(&mut self) {
        self.refused = 0;
    }

    /// A call was refused: there was an error that has waited in the socket, as any host can cause
    /// one by ICMP, or one of this datagram. The first socket takes what it was to send.
    #[cold]
    pub(super) fn note_refused(&mut self) {
        self.refused += 1;
        if self.refused == PATIENCE {
            self.prefer(None);
        }
    }

    /// How seldom the socket is polled on which less arrives: once in this many polls.
    #[inline]
    pub(super) fn seldom(&self) -> u8 {
        if self.peer.is_some() { SELDOM } else { HARDLY_EVER }
    }

    fn connect(&self, to: SocketAddr) -> bool {
        if self.local.ip().is_unspecified() {
            // The address by which the peer before was reached is not that for the next one.
            let _ = rustix::net::connect_unspec(&self.fd);
        }
        rustix::net::connect(&self.fd, &to).is_ok()
    }

    fn itself(&self) -> SocketAddr {
        let ip = match self.local.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.local.port())
    }
}

/// Which polls also look at the socket on which less arrives. After one that has found something
/// these are all, and then fewer and fewer of them.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Polls that have left it out, one after another.
    left_out: u8,
    /// The socket is looked at once in this many polls.
    interval: u8,
}

impl Turns {
    /// Whether this poll looks at it.
    #[inline]
    pub(super) fn is_next(&mut self) -> bool {
        self.left_out += 1;
        let next = self.left_out >= self.interval;
        if next {
            self.left_out = 0;
        }
        next
    }

    /// The socket was looked at, and something was there or not. It is looked at once in `seldom`
    /// polls at least.
    #[inline]
    pub(super) fn note(&mut self, found: bool, seldom: u8) {
        self.interval = if found { 1 } else { (2 * self.interval).clamp(1, seldom) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the polls look at it that finds something in these.
    fn looks(polls: usize, found: &[usize], seldom: u8) -> Vec<usize> {
        let mut turns = Turns::default();
        let looks = |poll: &usize| {
            let next = turns.is_next();
            if next {
                turns.note(found.contains(poll), seldom);
            }
            next
        };
        (0..polls).filter(looks).collect()
    }

    #[test]
    fn the_other_socket_is_looked_at_less_often_while_nothing_is_there_and_never_seldomer_than_its_bound() {
        assert_eq!(looks(40, &[], 8), [0, 1, 3, 7, 15, 23, 31, 39]);
        assert_eq!(looks(24, &[15, 16], 8), [0, 1, 3, 7, 15, 16, 17, 19, 23]);
        let seldom = looks(1000, &[], 64);
        assert!(seldom.windows(2).all(|two| two[1] - two[0] <= 64) && 1000 - seldom.last().unwrap() <= 64);
    }
}

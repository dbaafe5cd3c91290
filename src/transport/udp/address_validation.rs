//! Where a peer receives. The directory lists it, and that is authentic: what the tasks publish at
//! start-up is. A datagram's own source address is not: a stranger who resends a datagram before
//! the genuine one arrives is where that one seems to come from.
//!
//! So a peer's datagrams go to the listed address. Where a datagram of the connection comes from
//! elsewhere (the peer has several addresses, or is a process with another one that the directory
//! does not list yet), that address is asked: it gets a number that follows from it, and counts
//! once the number has come back from there. It gives way when the listed address shows that it is
//! one of the connection's.

use super::reliable::Nanos;
use std::net::SocketAddr;

/// The least time between two questions.
const BETWEEN_QUESTIONS: Nanos = 20_000_000;

/// Where one peer receives, in one incarnation of the connection.
#[derive(Debug, Default)]
pub(super) struct AddressValidation {
    /// Where the directory lists it.
    listed: Option<SocketAddr>,
    /// Another address of it, which is used: it has replied to its question.
    proven: Option<SocketAddr>,
    /// A datagram of the connection has come from the listed address: nothing changes any more.
    settled: bool,
    /// When the next question may be sent.
    ask_at: Nanos,
}

impl AddressValidation {
    /// The connection is made; the directory lists this address.
    pub(super) fn made(listed: Option<SocketAddr>) -> Self {
        Self { listed, ..Self::default() }
    }

    /// Where datagrams go.
    #[inline]
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.proven.or(self.listed)
    }

    /// Whether nothing is to be learnt from where the next datagrams come from.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// A datagram of the connection, which was accepted, has come from this address: whether it
    /// is to be asked.
    #[cold]
    pub(super) fn heard(&mut self, now: Nanos, from: SocketAddr) -> bool {
        if self.listed == Some(from) {
            (self.proven, self.settled) = (None, true);
        }
        if self.settled || self.proven.is_some() || now < self.ask_at {
            return false;
        }
        self.ask_at = now + BETWEEN_QUESTIONS;
        true
    }

    /// This address has replied to its question: whether it is used from now on.
    pub(super) fn replied(&mut self, from: SocketAddr) -> bool {
        let counts = !self.settled && self.proven.is_none();
        if counts {
            self.proven = Some(from);
        }
        counts
    }
}

//! Small packets of a stream to one peer that are sent as one packet: on networks where each packet is a system call, and so takes longer
//! than everything else that is done for it.
//!
//! The first packets of a stream ([`stream`]) are sent at once, and each packet that is not part of one. A packet that follows others to the same
//! peer at once is put into a *bundle* ([`outgoing`]), and so are those after it. The bundle is sent when it is full, when the task looks for
//! packets and does not send between two looks, when it sends something else, before it sleeps, and at the latest when
//! [`Endpoint::due`](super::Endpoint::due) says: at once, so that the library's own thread sends what a program leaves that computes.
//! The receiver copies a bundle, and hands its packets out one by one ([`incoming`]).
//!
//! [`docs/design/0025-coalescing.md`](../../../docs/design/0025-coalescing.md) has the reasons and the figures.

mod endpoint;
mod incoming;
mod outgoing;
mod remote;
mod stream;
mod wakeup;

use self::incoming::Incoming;
use self::outgoing::Outbound;
use super::Transport;

/// A transport over another one, which sends small packets of a stream together.
pub struct Coalescing<T> {
    inner: T,
    outgoing: Outbound,
    incoming: Incoming,
}

impl<T: Transport> Coalescing<T> {
    /// With `coalesces`, this task sends packets together; bundles of its peers are always understood.
    pub fn new(inner: T, coalesces: bool) -> Self {
        let rule = if coalesces { stream::STREAMS } else { stream::NEVER };
        Self { inner, outgoing: Outbound::new(rule), incoming: Incoming::default() }
    }

    /// Each packet after the first one to a peer waits for others that may follow, however much later.
    #[cfg(test)]
    pub(crate) fn always(inner: T) -> Self {
        Self { outgoing: Outbound::new(stream::ALWAYS), ..Self::new(inner, true) }
    }

    fn inner(&self) -> &T {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

#[cfg(test)]
mod tests;

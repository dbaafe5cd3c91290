//! Small packets to one peer that are sent as one packet: on networks where each packet is a system
//! call, and so takes longer than everything else that is done for it.
//!
//! A packet that follows another one to the same peer within 10 microseconds is put into a *bundle*
//! ([`outgoing`]), and so are those after it. The bundle is sent when it is full or old, when
//! something else is sent, before the task sleeps, and when the engine says so
//! ([`Want::Flush`](super::Want::Flush)). The receiver copies a bundle, and hands its
//! packets out one by one ([`incoming`]).
//!
//! [`docs/design/0025-coalescing.md`](../../../docs/design/0025-coalescing.md) has the reasons
//! and the figures.

mod endpoint;
mod incoming;
mod outgoing;
mod remote;
mod wakeup;

use self::incoming::Incoming;
use self::outgoing::Outbound;
use super::Transport;
use super::poll_pause::PollPause;

/// A transport over another one, which sends small packets together.
pub struct Coalescing<T> {
    inner: T,
    outgoing: Outbound,
    incoming: Incoming,
    /// Since when the network was not served, while packets of a bundle are handed out.
    rest: PollPause,
    longest_body: usize,
}

impl<T: Transport> Coalescing<T> {
    /// With `coalesces`, this task sends packets together; bundles of its peers are
    /// always understood. Between some tasks of the job packets have bodies of at most
    /// `longest_body` bytes.
    pub fn new(inner: T, coalesces: bool, longest_body: usize) -> Self {
        let rule = if coalesces { outgoing::STREAMS } else { outgoing::NEVER };
        let (outgoing, incoming) = (Outbound::new(rule), Incoming::default());
        Self { inner, outgoing, incoming, rest: PollPause::default(), longest_body }
    }

    /// Each packet that follows another one to the same peer waits, however much later.
    #[cfg(test)]
    pub(crate) fn always(inner: T) -> Self {
        Self { outgoing: Outbound::new(outgoing::ALWAYS), ..Self::new(inner, true, usize::MAX) }
    }
}

#[cfg(test)]
mod tests;

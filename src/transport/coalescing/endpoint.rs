//! Packets.

use super::Coalescing;
use super::incoming::Incoming;
use crate::base::clock::{now, ticks, yield_now};
use crate::transport::forward::forward;
use crate::transport::{Endpoint, Inbound, Outgoing, Properties, SendOutcome, Tally, Task, Transport};
use std::time::{Duration, Instant};

/// How long the end waits for room for what was not sent.
const LINGER: Duration = Duration::from_millis(200);

impl<T: Transport> Endpoint for Coalescing<T> {
    forward!(limits, completed, acknowledge_every);

    fn properties(&self) -> Properties {
        let inner = self.inner.properties();
        Properties { keeps_time: self.outgoing.coalesces() || inner.keeps_time, ..inner }
    }

    #[inline]
    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        let Self { inner, outgoing, .. } = self;
        if !outgoing.coalesces() {
            // SAFETY: the caller's promise.
            return unsafe { inner.try_send(peer, packet) };
        }
        let now = ticks();
        let follows = outgoing.follows(peer, now);
        // SAFETY: the caller's promise.
        if follows && unsafe { outgoing.add(inner, peer, packet, now) } {
            if outgoing.is_full(now) && outgoing.send(inner) {
                outgoing.note_sent(peer, ticks());
                return SendOutcome::Sent;
            }
            return SendOutcome::Held;
        }
        if outgoing.is_before(peer) {
            outgoing.send(inner);
            // SAFETY: the caller's promise.
            if follows && !outgoing.some_wait() && unsafe { outgoing.add(inner, peer, packet, ticks()) } {
                return SendOutcome::Held;
            }
            if outgoing.waits_for(peer) {
                return SendOutcome::NoRoom;
            }
        }
        // SAFETY: the caller's promise.
        let outcome = unsafe { inner.try_send(peer, packet) };
        if outcome.accepted().is_ok() {
            outgoing.note_sent(peer, ticks());
        }
        outcome
    }

    fn flush(&mut self) {
        self.outgoing.send(&mut self.inner);
    }

    /// What waits leaves before: to recall may take long, and what was sent to the peer before has
    /// left. Without room it is given up: it would block what waits for others.
    fn recall(&mut self, peer: Task) {
        self.outgoing.send(&mut self.inner);
        self.outgoing.forget(peer);
        self.inner.recall(peer);
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        loop {
            if self.incoming.has_some() {
                return self.incoming.next();
            }
            let Some(packet) = self.inner.recv() else {
                self.outgoing.try_again(&mut self.inner);
                return None;
            };
            if !Incoming::is_bundle(&packet) {
                return Some(packet);
            }
            self.incoming.take(&packet);
            self.inner.release(packet);
        }
    }

    fn hold(&mut self, peer: Task, held: bool) {
        self.incoming.hold(peer, held);
        self.inner.hold(peer, held);
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        if !self.incoming.release() {
            self.inner.release(packet);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.outgoing.due().into_iter().chain(self.inner.due()).min()
    }

    fn serve(&mut self) {
        self.outgoing.send(&mut self.inner);
        self.inner.serve();
    }

    fn settled(&self) -> bool {
        !self.outgoing.some_wait() && self.inner.settled()
    }

    fn tally(&self) -> Tally {
        let mut tally = self.inner.tally();
        tally.refused += self.incoming.malformed;
        tally
    }

    fn close(&mut self) {
        let deadline = now() + LINGER;
        while !self.outgoing.send(&mut self.inner) && now() < deadline {
            self.inner.serve();
            yield_now();
        }
        self.outgoing.end();
        self.inner.close();
    }
}

//! Packets.

use super::Coalescing;
use super::incoming::Incoming;
use crate::base::clock::{now, ticks, yield_now};
use crate::transport::forward::forward;
use crate::transport::{Endpoint, Inbound, Outgoing, RemoteAccess, SendOutcome, Tally, Task, Transport};
use std::time::{Duration, Instant};

/// How long the end waits for room for what was not sent.
const LINGER: Duration = Duration::from_millis(200);

impl<T: Transport> Endpoint for Coalescing<T> {
    forward!(name, limits, completed, acknowledge_every);

    #[inline]
    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        let Self { inner, outgoing, .. } = self;
        if !outgoing.coalesces() {
            // SAFETY: the caller's promise.
            return unsafe { inner.try_send(peer, packet) };
        }
        let now = ticks();
        let streams = outgoing.streams_to(peer, now);
        // SAFETY: the caller's promise.
        if streams && unsafe { outgoing.add(inner, peer, packet, now) } {
            if outgoing.is_full(now) {
                outgoing.send_between(inner);
            }
            return SendOutcome::Sent;
        }
        if outgoing.is_before(peer) {
            let none_waits = outgoing.send_between(inner);
            // SAFETY: the caller's promise.
            if none_waits && streams && unsafe { outgoing.add(inner, peer, packet, ticks()) } {
                return SendOutcome::Sent;
            }
            if outgoing.waits_for(peer) {
                return SendOutcome::NoRoom;
            }
        }
        // SAFETY: the caller's promise.
        let outcome = unsafe { inner.try_send(peer, packet) };
        outgoing.note_sent(outcome.accepted().is_ok());
        outcome
    }

    /// What waits leaves before: to recall may take long, and what was sent to the peer before has left. Without room it is given up: it would
    /// block what waits for others.
    fn recall(&mut self, peer: Task) {
        self.outgoing.send(&mut self.inner);
        self.outgoing.forget(peer);
        self.inner.recall(peer);
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        loop {
            let is_at_hand = self.incoming.has_some();
            if self.outgoing.look(is_at_hand) {
                self.outgoing.send(&mut self.inner);
            }
            if is_at_hand {
                return self.incoming.next();
            }
            let packet = self.inner.recv();
            self.outgoing.note_look(packet.is_some());
            let packet = packet?;
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

    fn coalesces(&self) -> bool {
        self.outgoing.coalesces()
    }

    #[inline]
    fn holds_back_since(&self) -> Option<u64> {
        self.outgoing.waits_since()
    }

    fn send_held_back(&mut self) {
        self.outgoing.judge();
        self.outgoing.send(&mut self.inner);
    }

    fn hold_back_no_more(&mut self) {
        if self.outgoing.send(&mut self.inner) {
            self.outgoing.end();
        }
    }

    fn keeps_time(&self) -> bool {
        self.outgoing.coalesces() || self.inner.keeps_time()
    }

    fn due(&self) -> Option<Instant> {
        self.outgoing.due().into_iter().chain(self.inner.due()).min()
    }

    fn serve(&mut self) {
        self.outgoing.judge();
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

    fn remote(&mut self) -> Option<&mut dyn RemoteAccess> {
        if self.inner.remote().is_some() { Some(self) } else { None }
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

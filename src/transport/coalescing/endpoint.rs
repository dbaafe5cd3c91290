//! Packets.

use super::Coalescing;
use super::incoming::Incoming;
use crate::base::clock::{now, ticks, yield_now};
use crate::transport::{
    Door, Endpoint, Inbound, Limits, Look, Outgoing, Report, Seen, SendOutcome, Tally, Task, Transport, Want,
};
use std::time::{Duration, Instant};

/// How long the end waits for room for what was not sent.
const LINGER: Duration = Duration::from_millis(200);

impl<T: Transport> Endpoint for Coalescing<T> {
    fn limits(&self, peer: Task) -> Limits {
        let inner = self.inner.limits(peer);
        Limits {
            keeps_time: self.outgoing.coalesces() || inner.keeps_time,
            job_body: inner.job_body.min(self.longest_body),
            ..inner
        }
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

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        self.outgoing.try_in_between(&mut self.inner);
        loop {
            if self.incoming.has_some() {
                self.serve_in_between();
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
            self.rest.note_poll();
        }
    }

    fn look(&mut self, look: Look) -> Seen<'_> {
        let own = self.incoming.has_some() || self.outgoing.some_wait();
        let inner = self.inner.look(look);
        if own { Seen::Something } else { inner }
    }

    fn want(&mut self, what: Want) {
        match what {
            Want::Flush | Want::Serve => {
                self.outgoing.send(&mut self.inner);
            }
            Want::Hold(peer, held) => self.incoming.hold(peer, held),
            _ => {}
        }
        self.inner.want(what);
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        if !self.incoming.release() {
            self.inner.release(packet);
        }
    }

    fn report(&mut self) -> Option<Report> {
        self.inner.report()
    }

    fn due(&self) -> Option<Instant> {
        self.outgoing.due().into_iter().chain(self.inner.due()).min()
    }

    fn tally(&self) -> Tally {
        let mut tally = self.inner.tally();
        tally.refused += self.incoming.malformed;
        tally.outstanding += u64::from(self.outgoing.some_wait());
        tally
    }

    fn close(&mut self) {
        let deadline = now() + LINGER;
        while !self.outgoing.send(&mut self.inner) && now() < deadline {
            self.inner.want(Want::Serve);
            yield_now();
        }
        self.outgoing.end();
        self.inner.close();
    }
}

impl<T: Transport> Coalescing<T> {
    /// Before a packet of a bundle is handed out: the handlers of those before may have been slow,
    /// and peers wait for acknowledgements.
    #[inline]
    fn serve_in_between(&mut self) {
        if !self.rest.is_recent() {
            self.inner.want(Want::Serve);
            self.rest.note_poll();
        }
    }
}

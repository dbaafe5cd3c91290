//! The door to a peer: what each packet that goes to it needs, in one place.
//!
//! A small packet is written through it in place, without a copy of its head and without a call
//! through a table of functions ([`Endpoint::door`]); every other packet goes through it, too. It
//! is there while this task is connected with the peer. That the peer takes packets is looked at
//! each time.
//!
//! [`Endpoint::door`]: crate::transport::Endpoint::door

use super::segment::Segment;
use super::wakeup::ring_bell;
use crate::base::asymmetric_barrier::Light;
use crate::base::ring::{Consumer, Filling, Full, Producer, Shortage};
use crate::transport::{Outgoing, SendOutcome, Task};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// See the module's documentation.
pub struct Door {
    /// Dropped before the memory that they lie in: fields are dropped in order.
    pub(super) out: Producer,
    pub(super) inward: Consumer,
    pub(super) segment: Segment,
    pub(super) event: OwnedFd,
    /// The last packet found no room there.
    pub(super) stuck_at: Option<Shortage>,
    /// What the caller calls each packet that is to be reported, in order, after the number of
    /// packets that are given back when it is.
    pub(super) awaited: VecDeque<(u64, u64)>,
    /// The barrier between a packet and the look whether the peer sleeps.
    pub(super) light: Light,
    /// This task, as the peer knows it.
    pub(super) me: Task,
}

impl Door {
    /// Begins a packet, which [`Self::published`] ends.
    ///
    /// # Errors
    /// [`Full`]: there is no room, or the peer takes no packets, or something waits for it.
    #[inline(always)]
    pub fn begin(&mut self) -> Result<Filling<'_>, Full> {
        if !self.segment.running() || self.stuck_at.is_some() {
            return Err(Full);
        }
        self.out.begin()
    }

    /// Wakes the peer if it sleeps: to be called when the packet is published, which
    /// [`crate::base::ring::Filled::publish`] does.
    #[inline(always)]
    pub fn published(&self) {
        if self.segment.doorbell().needs_more(self.light) {
            self.announce();
        }
    }

    /// The packet that was just published is to be reported when its peer has taken it: `count` as
    /// [`crate::base::ring::Filled::publish_reported`] has returned it. Returns whether no other
    /// one is awaited.
    #[inline]
    pub fn await_report(&mut self, count: u64, cookie: u64) -> bool {
        self.awaited.push_back((count, cookie));
        self.awaited.len() == 1
    }

    /// The next of those packets that the peer has taken, and done with what that brings; each is
    /// named once, in order. A peer that falls silent names none.
    #[inline]
    pub fn report(&mut self) -> Option<u64> {
        if self.has_report() { self.awaited.pop_front().map(|(_, cookie)| cookie) } else { None }
    }

    /// Whether [`Self::report`] would name one.
    #[inline]
    pub fn has_report(&self) -> bool {
        self.awaited.front().is_some_and(|&(count, _)| self.out.has_back(count))
    }

    /// Whether packets are to be reported that were not yet.
    pub fn awaits_reports(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// What the peer still sends is dropped: it gets no report of it.
    pub fn fall_silent(&mut self) {
        self.inward.fall_silent();
    }

    /// Whether a packet of the peer has arrived, which may not be taken for now.
    #[inline(always)]
    pub fn has_packet(&self) -> bool {
        self.inward.ready()
    }

    /// [`crate::transport::Endpoint::try_send`] to a peer of which nothing is known to be stuck.
    ///
    /// # Safety
    /// The pieces of the packet must be readable.
    #[inline]
    pub(super) unsafe fn send(&mut self, packet: &Outgoing<'_>) -> SendOutcome {
        if !self.segment.running() {
            return SendOutcome::Gone;
        }
        // SAFETY: the caller's promise.
        if unsafe { self.out.push(packet.head, packet.first, packet.second) }.is_err() {
            return SendOutcome::NoRoom;
        }
        self.published();
        SendOutcome::Sent
    }

    /// After a packet for a peer that sleeps, or does not poll every ring: announces the packet, if
    /// the peer does not poll the ring that holds it, and wakes the peer, if it sleeps.
    #[cold]
    fn announce(&self) {
        let bell = self.segment.doorbell();
        if bell.selective() && self.out.must_announce() {
            self.segment.announcements().announce(self.me);
        }
        // Again, with its barrier: the peer may have looked for announcements just before,
        // and sleep now.
        if bell.needs_wake(self.light) {
            ring_bell(&self.event);
        }
    }
}

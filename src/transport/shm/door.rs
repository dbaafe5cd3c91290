//! The door to a peer: what each packet that goes to it needs, in one place.
//!
//! A small packet is written through it in place, without a copy of its head and without a call
//! through a table of functions ([`Endpoint::door`]); every other packet goes through it, too. It
//! is there while this task is connected with the peer. That the peer takes packets is looked at
//! each time.
//!
//! [`Endpoint::door`]: crate::transport::Endpoint::door

use super::segment::{RECENT, RingMemory, Segment};
use crate::base::asymmetric_barrier::Light;
use crate::base::descriptor::Descriptor;
use crate::base::ring::{Consumer, Filling, Full, Packet, Producer, Room, Shortage};
use crate::transport::{Inbound, Outgoing, SendOutcome, Task};
use std::collections::VecDeque;

/// See the module's documentation.
pub struct Door {
    pub(super) out: Producer,
    pub(super) inward: Consumer,
    pub(super) segment: Segment,
    pub(super) event: Descriptor,
    /// The last packet found no room there.
    pub(super) stuck_at: Option<Shortage>,
    /// What the caller calls each packet that is to be reported, in order, after the number of
    /// packets that are given back when it is.
    pub(super) awaited: VecDeque<(u64, u64)>,
    /// The barrier between a packet and the look whether the peer sleeps.
    pub(super) light: Light,
    /// The rank of this task, by which it announces itself.
    pub(super) rank: u32,
    /// When the peer has last been found to look for packets, in ticks.
    pub(super) heard: u64,
    /// When it was last asked for something, in ticks.
    pub(super) asked: u64,
    /// Dropped after what lies in it: fields are dropped in order.
    pub(super) memory: Memory,
}

/// The memory of the two rings: into which this task writes, and into which the peer writes.
pub(super) struct Memory {
    pub(super) send: RingMemory,
    pub(super) receive: RingMemory,
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

    /// Gives the peer a number without a packet, in place of the last one that was even or odd as
    /// this one is, and wakes the peer as a packet would. `false`: it takes none; nothing has
    /// changed. What was written before is seen by a peer that has found the number. It may pass
    /// packets.
    #[inline]
    pub fn signal(&mut self, number: u32) -> bool {
        if !self.segment.running() {
            return false;
        }
        self.memory.send.signals().give(number);
        if self.segment.doorbell().needs_wake(self.light) {
            self.event.signal();
        }
        true
    }

    /// Whether the peer has given this task the number since they were connected, and no later one
    /// has its place. It stays until then, so that it keeps no thread awake: one that waits for a
    /// number looks for it between [`crate::transport::Wakeup::arm`] and its sleep.
    #[inline]
    pub fn signalled(&self, number: u32) -> bool {
        self.memory.receive.signals().given(number)
    }

    /// Whether the peer looks for packets, or did so a moment before `now`, in ticks. Its own word
    /// of that is read only when nothing is known: the peer writes it again and again.
    #[inline]
    pub fn peer_polls(&self, now: u64) -> bool {
        now.wrapping_sub(self.heard) < RECENT || self.segment.polls()
    }

    /// The peer is asked for something `now`, in ticks. Returns whether it was asked for something
    /// a moment before.
    #[inline]
    pub fn note_asked(&mut self, now: u64) -> bool {
        now.wrapping_sub(std::mem::replace(&mut self.asked, now)) < RECENT
    }

    /// The peer's reply is found `now`, in ticks. If it was asked a moment before, it has looked
    /// for packets since; the reply may be old otherwise.
    #[inline]
    pub fn note_reply(&mut self, now: u64) {
        if now.wrapping_sub(self.asked) < RECENT {
            self.heard = now;
        }
    }

    /// Whether a packet of the peer has arrived, which may not be taken for now.
    #[inline(always)]
    pub fn has_packet(&self) -> bool {
        self.inward.ready()
    }

    /// The first packet that has arrived of the peer, which is `src`. `None` where there is none,
    /// and where the ring holds what no peer writes.
    #[inline(always)]
    pub fn arrived(&self, src: Task) -> Option<Inbound> {
        Some(inbound(src, &self.inward.peek().ok()??))
    }

    /// Gives the packet back that [`Self::arrived`] or [`crate::transport::Endpoint::recv`] has
    /// returned.
    #[inline(always)]
    pub fn give_back(&mut self, packet: &Inbound) {
        let light = self.light;
        if self.inward.release(packet.body_len, packet.token != 0, light) == Room::Wanted
            && self.segment.doorbell().needs_wake(light)
        {
            self.event.signal();
        }
    }

    /// Whether a packet that found no room may find some now, or the peer takes none any more.
    pub(super) fn has_changed(&self) -> bool {
        self.stuck_at.is_some_and(|then| self.out.room_since(then)) || !self.segment.running()
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
            self.segment.announcements().announce(self.rank);
        }
        // Again, with its barrier: the peer may have looked for announcements just before,
        // and sleep now.
        if bell.needs_wake(self.light) {
            self.event.signal();
        }
    }
}

/// A packet of `src`, as the engine takes it.
#[inline(always)]
pub(super) fn inbound(src: Task, packet: &Packet) -> Inbound {
    Inbound {
        src,
        head: packet.head.as_ptr(),
        head_len: packet.head_len,
        body: packet.body.as_ptr(),
        body_len: packet.body_len,
        token: u64::from(packet.reported),
    }
}

//! Packets through the rings.

use super::door::{Door, inbound};
use super::{Absent, ShmTransport, segment};
use crate::base::ring::Corrupt;
use crate::transport::{
    Endpoint, Inbound, Limits, Look, Outgoing, Report, Seen, SendOutcome, Tally, Task, Want,
};
use std::time::Instant;

/// Packets taken before this task looks at what it does not poll, and from one peer before the
/// next one's turn.
const STREAK: u32 = 8;

impl Endpoint for ShmTransport {
    fn limits(&self, _peer: Task) -> Limits {
        let max_body = segment::longest_body(self.geometry);
        Limits {
            name: "shm",
            keeps_time: false,
            standing_keys: false,
            max_body,
            job_body: max_body,
            ordered: true,
            window: self.geometry.slots,
            receive_buffer: self.geometry.bytes(),
        }
    }

    #[inline]
    unsafe fn try_send(&mut self, task: Task, packet: &Outgoing<'_>) -> SendOutcome {
        let Some(peer) = self.peers.get_mut(task) else {
            // SAFETY: the caller's promise.
            return unsafe { self.send_first(task, packet) };
        };
        // SAFETY: the caller's promise.
        let sent = unsafe { peer.door.send(packet) };
        if sent == SendOutcome::NoRoom {
            self.no_room(task);
        } else if peer.door.stuck_at.take().is_some() {
            self.stuck.retain(|&stuck| stuck != task);
        }
        sent
    }

    #[inline(always)]
    fn door(&mut self, task: Task) -> Option<&mut Door> {
        Some(&mut self.peers.get_mut(task)?.door)
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        if self.polled.streak >= STREAK {
            self.end_streak();
            self.polled.advance();
        }
        // The same peer as before, mostly.
        let src = self.polled.current();
        if let Some(peer) = self.peers.get(src)
            && let Ok(Some(packet)) = peer.door.inward.peek()
        {
            self.polled.streak += 1;
            return Some(inbound(src, &packet));
        }
        self.recv_in_turn()
    }

    #[inline(always)]
    fn look(&mut self, look: Look) -> Seen<'_> {
        match look {
            Look::One => return self.look_at_one(),
            Look::All => {}
            Look::Polled(now) => self.segment.set_polling(false, now),
            Look::InVain => {
                if let Some(peer) = self.peers.get(self.polled.current()) {
                    peer.door.inward.fetch_body();
                }
            }
        }
        // The same peer as before, mostly.
        let mut src = self.polled.current();
        let ready = |this: &Self, src| this.peers.get(src).is_some_and(|peer| peer.door.inward.ready());
        if ready(self, src) {
            if self.polled.streak >= STREAK {
                if self.polled.selective() || self.is_left_or_met() {
                    return Seen::Something;
                }
                // The next one's turn: the same one's if it is the only one.
                self.polled.streak = 0;
                self.polled.advance();
                src = self.polled.current();
                if !ready(self, src) {
                    return Seen::Something;
                }
            }
            self.polled.streak += 1;
            return self.peers.get_mut(src).map_or(Seen::Nothing, |peer| Seen::Packet(src, &mut peer.door));
        }
        // The end of a streak says nothing about the peer.
        let others = !self.polled.alone() && (self.polled.selective() || self.has_packet());
        if others || self.is_left_or_met() {
            return Seen::Something;
        }
        self.polled.streak = 0;
        Seen::Nothing
    }

    #[inline(always)]
    fn want(&mut self, what: Want) {
        match what {
            Want::Polling(polling, now) => self.segment.set_polling(polling, now),
            Want::Attention(task) => {
                if let Some(peer) = self.peer(task) {
                    peer.door.event.signal();
                }
            }
            Want::Connection(task) => {
                let absent = self.peer(task).is_none() && !self.absent.contains_key(&task);
                if absent && task != self.me && !self.closed {
                    self.ask_to_connect(task);
                }
            }
            Want::Settle(task) => {
                if self.peer(task).is_none() {
                    self.connector.settle(task);
                }
            }
            Want::Hold(task, held) => self.hold(task, held),
            Want::Fetched(task, bytes) => {
                if let Some(peer) = self.peer(task) {
                    peer.door.segment.count_fetched(bytes);
                }
            }
            Want::Wake => self.event.signal(),
            Want::Flush | Want::Serve | Want::AcknowledgeEvery(_) => {}
        }
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        if let Some(peer) = self.peers.get_mut(packet.src) {
            peer.door.give_back(&packet);
        }
    }

    fn report(&mut self) -> Option<Report> {
        if self.absent.values().any(|absent| *absent == Absent::Rejoining) {
            self.fetch_rejoined();
        }
        self.back.pop_front().map(|(task, epoch)| Report::Joined(task, epoch))
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tally(&self) -> Tally {
        Tally { fetched: self.segment.fetched(), ..Tally::default() }
    }

    fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.segment.close();
        for peer in self.peers.iter() {
            peer.door.event.signal();
        }
        self.connector.close();
        // Those that were connected at the last moment see the segment closed.
        self.arrivals.fetch(|_| true);
    }
}

impl ShmTransport {
    /// Whether the memory of a peer is to be unmapped, or a peer has connected.
    #[inline(always)]
    fn is_left_or_met(&self) -> bool {
        !self.left.is_empty() || self.arrivals.has_first_contacts()
    }

    /// Whether a packet is in one of the rings that are polled.
    #[inline]
    fn has_packet(&self) -> bool {
        let ready = |&task: &Task| self.peers.get(task).is_some_and(|peer| peer.door.inward.ready());
        self.polled.tasks().iter().any(ready)
    }

    /// Whether the peer whose turn it is has sent something, or one that is not polled.
    #[inline]
    fn look_at_one(&mut self) -> Seen<'_> {
        self.polled.advance();
        let something = self.peers.get(self.polled.current()).is_some_and(|peer| peer.door.inward.ready())
            || self.arrivals.has_first_contacts()
            || self.has_announcements();
        if something { Seen::Something } else { Seen::Nothing }
    }

    fn hold(&mut self, peer: Task, held: bool) {
        if held {
            let Some(found) = self.peers.get_mut(peer) else { return };
            if self.polled.remove(peer, std::mem::take(&mut found.quiet)) {
                self.held.push(peer);
            }
            self.hear_all();
        } else if let Some(at) = self.held.iter().position(|&task| task == peer) {
            self.polled.add(self.held.remove(at));
        }
    }

    /// The next packet of any peer.
    #[inline(never)]
    fn recv_in_turn(&mut self) -> Option<Inbound> {
        if let Some(packet) = self.take() {
            return Some(packet);
        }
        self.polled.streak = 0;
        self.forget_left();
        if self.arrivals.has_first_contacts() {
            self.fetch_first_contacts();
            return self.take();
        }
        if self.polled.selective() && self.select() {
            return self.take();
        }
        None
    }

    #[inline]
    fn take(&mut self) -> Option<Inbound> {
        let mut looks = self.polled.tasks().len();
        while looks != 0 {
            looks -= 1;
            let src = self.polled.current();
            if self.polled.streak < STREAK {
                match self.peers.get(src).map_or(Ok(None), |peer| peer.door.inward.peek()) {
                    Ok(Some(packet)) => {
                        self.polled.streak += 1;
                        return Some(inbound(src, &packet));
                    }
                    Ok(None) => {}
                    Err(Corrupt) => {
                        self.part(src);
                        return None;
                    }
                }
            } else {
                self.end_streak();
                // All others have their turn now, and then this one again.
                looks = self.polled.tasks().len();
            }
            self.polled.advance();
        }
        None
    }

    /// What is done between packets under constant load too: no packet is in use here.
    fn end_streak(&mut self) {
        self.polled.streak = 0;
        self.forget_left();
        if self.arrivals.has_first_contacts() {
            self.fetch_first_contacts();
        }
        if self.polled.selective() {
            self.select();
        }
    }

    /// Unmaps what this task has parted from. To be called while no packet is in use.
    #[inline]
    fn forget_left(&mut self) {
        if !self.left.is_empty() {
            self.left.clear();
        }
    }

    /// Sends to a peer that this task is not connected with: it connects, and the packet finds no
    /// room until then.
    ///
    /// # Safety
    /// The conditions of [`Endpoint::try_send`] hold.
    #[cold]
    unsafe fn send_first(&mut self, task: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if self.arrivals.has_first_contacts() {
            self.fetch_first_contacts();
        }
        if self.peer(task).is_some() {
            // SAFETY: the caller's promise.
            return unsafe { self.try_send(task, packet) };
        }
        if self.closed || self.absent.get(&task) == Some(&Absent::Parted) {
            return SendOutcome::Gone;
        }
        self.ask_to_connect(task);
        SendOutcome::NoRoom
    }

    fn no_room(&mut self, task: Task) {
        let Some(peer) = self.peers.get_mut(task) else { return };
        if peer.door.stuck_at.replace(peer.door.out.shortage()).is_none() {
            self.stuck.push(task);
        }
    }
}

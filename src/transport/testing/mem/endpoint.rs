//! Packets through the inboxes of a network.

use super::Letter;
use super::network::Inbox;
use super::{MemOptions, MemTransport, RESEND};
use crate::transport::{
    Door, Endpoint, Inbound, Limits, Look, Outgoing, PeerState, Report, Seen, SendOutcome, Tally, Task,
    Ticket, Want,
};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Endpoint for MemTransport {
    fn limits(&self, _peer: Task) -> Limits {
        let MemOptions { max_body, capacity, lose, standing, .. } = self.network.options;
        Limits {
            name: "mem",
            keeps_time: lose != 0,
            standing_keys: standing,
            max_body,
            job_body: max_body,
            ordered: true,
            window: capacity,
            receive_buffer: capacity * max_body,
        }
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        assert_ne!(peer, self.task, "a transport carries nothing from a task to itself");
        assert!(packet.body_len() <= self.network.options.max_body, "a body beyond the limit");
        if let Some(&awaited) = self.absent.get(&peer) {
            return if awaited { SendOutcome::NoRoom } else { SendOutcome::Gone };
        }
        let MemOptions { capacity, take, lose, .. } = self.network.options;
        let end = self.network.end(peer);
        let mut inbox = end.inbox.lock();
        if !self.knows(peer)
            || end.state() != PeerState::Up
            || self.network.end(self.task).state() != PeerState::Up
        {
            return SendOutcome::Gone;
        }
        if self.network.rejoins.lock().contains_key(&(self.task, peer)) {
            // It has not taken note yet that this task has rejoined.
            return SendOutcome::NoRoom;
        }
        let Inbox { lanes, spare, .. } = &mut *inbox;
        let lane = lanes.entry(self.task).or_default();
        if lane.taken == capacity {
            lane.wanted = true;
            return SendOutcome::NoRoom;
        }
        lane.wanted = false;
        lane.taken += 1;
        self.offered = self.offered.wrapping_add(1);
        let ticket = (take && packet.lendable().is_some()).then_some(Ticket(self.network.next_ticket()));
        // SAFETY: the pieces are readable during the call, and a lent one until it is reported, as
        // the caller promised.
        let letter = unsafe { Letter::new(self.task, packet, spare.pop().unwrap_or_default(), ticket) };
        self.lent.extend(ticket.map(|ticket| (ticket, peer)));
        if lose != 0
            && (self.offered.is_multiple_of(lose) || self.unsent.iter().any(|(_, to, _)| *to == peer))
        {
            drop(inbox);
            self.unsent.push_back((Instant::now() + RESEND, peer, letter));
        } else {
            end.deliver(&mut inbox, letter);
        }
        ticket.map_or(SendOutcome::Sent, SendOutcome::Taken)
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    fn report(&mut self) -> Option<Report> {
        if !self.lent.is_empty() {
            let ticket = self.network.end(self.task).inbox.lock().completed.pop_front();
            if let Some(ticket) = ticket {
                self.lent.remove(&ticket);
                return Some(Report::Free(ticket));
            }
        }
        let made = self.next_made();
        made.or_else(|| self.rejoined().map(|(task, epoch)| Report::Joined(task, epoch)))
    }

    fn due(&self) -> Option<Instant> {
        self.unsent.front().map(|(due, ..)| *due)
    }

    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        self.serve();
        let mut inbox = self.network.end(self.task).inbox.lock();
        if !inbox.ready.iter().any(|src| !self.held.contains(src)) {
            drop(inbox);
            self.make_accesses();
            inbox = self.network.end(self.task).inbox.lock();
        }
        let (letter, ticket) = loop {
            let at = inbox.ready.iter().position(|src| !self.held.contains(src))?;
            let src = inbox.ready.remove(at)?;
            if self.absent.contains_key(&src) {
                // It does not know that this task has parted from it.
                drop(inbox);
                self.network.empty(src, self.task);
                inbox = self.network.end(self.task).inbox.lock();
                continue;
            }
            let lane = inbox.lanes.get_mut(&src).expect("a ready lane exists");
            let mut letter = lane.queue.pop_front().expect("a ready lane has a packet");
            let ticket = letter.fetch();
            if !lane.queue.is_empty() {
                inbox.ready.push_back(src);
            }
            break (letter, ticket);
        };
        drop(inbox);
        self.network.report(letter.parcel.src, ticket.into_iter());
        self.serial += 1;
        Some(self.out.insert(letter.parcel).inbound(self.serial))
    }

    fn look(&mut self, look: Look) -> Seen<'_> {
        if let Look::Polled(now) = look {
            self.want(Want::Polling(false, now));
        }
        Seen::Something
    }

    fn want(&mut self, what: Want) {
        match what {
            Want::Attention(peer) => self.network.end(peer).signal(),
            Want::Serve => self.serve(),
            Want::Wake => self.network.end(self.task).signal(),
            Want::Hold(peer, true) => {
                self.held.insert(peer);
            }
            Want::Hold(peer, false) => {
                self.held.remove(&peer);
            }
            Want::Polling(polling, _) => {
                self.network.end(self.task).polling.store(polling, Ordering::Relaxed);
            }
            Want::AcknowledgeEvery(packets) => {
                self.network.end(self.task).acknowledges_every.store(packets, Ordering::Relaxed);
            }
            Want::Connection(_) | Want::Settle(_) | Want::Fetched(..) | Want::Flush => {}
        }
    }

    fn release(&mut self, packet: Inbound) {
        let parcel = self.out.take().expect("a packet is released once");
        assert_eq!(packet.token, self.serial, "the packet released is the one handed out last");
        let mut inbox = self.network.end(self.task).inbox.lock();
        // A task that was killed meanwhile has no lanes any more.
        let Some(lane) = inbox.lanes.get_mut(&parcel.src) else { return };
        // The lane of a peer that was parted from, and has rejoined, is a new one.
        lane.taken = lane.taken.saturating_sub(1);
        lane.released += 1;
        let wanted = std::mem::take(&mut lane.wanted);
        let src = parcel.src;
        inbox.spare.push(parcel.into_words());
        drop(inbox);
        if wanted {
            self.network.note_room(src);
        }
    }

    fn tally(&self) -> Tally {
        let outstanding = (self.unsent.len() + self.lent.len()) as u64;
        Tally { outstanding, ..Tally::default() }
    }

    fn close(&mut self) {
        while !self.unsent.is_empty() {
            self.send_first();
        }
        self.network.free_memory_of(self.task);
        self.lent.clear();
        self.network.depart(self.task, PeerState::Closed);
    }
}

impl MemTransport {
    /// Gives up what was taken for the peer, and the accesses under way with it.
    pub(super) fn recall(&mut self, peer: Task) {
        for (_, _, letter) in self.unsent.iter_mut().filter(|(_, to, _)| *to == peer) {
            letter.fetch();
        }
        self.network.recall(self.task, peer);
        self.lent.retain(|_, to| *to != peer);
        let completed = &mut self.network.end(self.task).inbox.lock().completed;
        completed.retain(|ticket| self.lent.contains_key(ticket));
        self.accesses.retain(|access| access.peer != peer);
        self.made.retain(|access| access.peer != peer);
        let me = self.task;
        self.network.withdraw(|registration| (registration.owner, registration.peer) == (me, peer));
        self.network.close_memory(me, Some(peer));
    }

    /// Sends again what was lost.
    fn serve(&mut self) {
        while self.due().is_some_and(|due| due <= Instant::now()) {
            self.send_first();
        }
    }

    /// Sends the first of the packets that were lost.
    fn send_first(&mut self) {
        let Some((_, peer, letter)) = self.unsent.pop_front() else { return };
        let end = self.network.end(peer);
        let mut inbox = end.inbox.lock();
        let here = self.network.end(self.task).state() == PeerState::Up;
        if here && end.state() == PeerState::Up && self.knows(peer) && !self.absent.contains_key(&peer) {
            end.deliver(&mut inbox, letter);
        }
    }
}

//! Packets through the endpoint.

use super::contact::Peer;
use super::ofi::{Device, Errno};
use super::own::Wants;
use super::remote::Accesses;
use super::send::{SENDS, write};
use super::{COPY, FabricTransport, INJECT, PUBLISHED_BEFORE, WINDOW};
use crate::base::bytes::pad8;
use crate::transport::parcel::bytes_of;
use crate::transport::presence::Presence;
use crate::transport::{
    Door, Endpoint, Inbound, Limits, Look, Outgoing, Report, SendOutcome, Tally, Task, Ticket, Want,
};
use crate::wire::network::{FRAME, Frame, FrameKind};
use std::time::{Duration, Instant};

/// When something that had no room in the endpoint is tried again.
const RETRY: Duration = Duration::from_millis(1);

/// How long a recall waits for the endpoint to end what it has begun. A peer that takes nothing for
/// longer is silent.
const RECALL: Duration = Duration::from_millis(200);

impl Endpoint for FabricTransport {
    fn limits(&self, _peer: Task) -> Limits {
        self.limits
    }

    #[inline]
    unsafe fn try_send(&mut self, task: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if let Some(refusal) = self.refusal(task) {
            return refusal;
        }
        let len = FRAME + packet.head.len() + pad8(packet.body_len());
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return SendOutcome::Gone };
        let Some(address) = peer.address else { return SendOutcome::Gone };
        let frame = Frame {
            kind: FrameKind::Packet,
            src: self.me,
            tag: peer.theirs,
            credits: peer.owed.get(),
            head_len: packet.head.len(),
            body_len: packet.body_len() as u32,
        };
        if len <= self.inject && peer.queued == 0 {
            // SAFETY: the caller's promise.
            let words = unsafe { write(&mut self.scratch, &frame, packet, false) } / 8;
            let bytes = bytes_of(&self.scratch[..words]);
            match self.device.inject(bytes, address) {
                Ok(()) => {
                    peer.note_sent();
                    self.rest.note_packet();
                    return SendOutcome::Sent;
                }
                Err(errno) => return self.send_injected_later(task, words, errno),
            }
        }
        if !self.sends.has_free() {
            self.advance();
            if let Some(refusal) = self.refusal_without_buffer(task) {
                return refusal;
            }
        }
        let ticket = (self.lends && len > COPY && packet.lendable().is_some()).then(|| self.ticket());
        // SAFETY: the caller's promise.
        let Some(slot) = (unsafe { self.sends.make(task, &frame, packet, ticket) }) else {
            return SendOutcome::NoRoom;
        };
        self.post_or_queue(task, slot).unwrap_or(ticket.map_or(SendOutcome::Sent, SendOutcome::Taken))
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    #[inline]
    fn report(&mut self) -> Option<Report> {
        if let Some((_, ticket)) = self.completed.pop_front() {
            return Some(Report::Free(ticket));
        }
        let accesses = self.accesses.next_report();
        accesses.or_else(|| {
            let (task, epoch) = self.back.pop_front()?;
            self.note_named(task);
            Some(Report::Joined(task, epoch))
        })
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        if self.ready.is_empty() && !self.rests() {
            self.advance();
        }
        let arrived = self.ready.pop_front()?;
        self.rest.note_packet();
        if let Some(peer) = self.peers[arrived.src as usize].as_deref_mut() {
            peer.waiting = peer.waiting.saturating_sub(1);
            peer.progress += 1;
        }
        Some(self.out.insert(arrived).inbound())
    }

    fn may_receive(&mut self, _look: Look) -> bool {
        true
    }

    fn want(&mut self, what: Want) {
        match what {
            Want::Connection(task) => self.want_connection(task),
            Want::Attention(task) => self.kick(task),
            Want::Hold(task, held) => self.hold(task, held),
            Want::Serve => self.serve(),
            Want::Wake => self.sleeper.signal(),
            Want::Flush | Want::Polling(..) | Want::Fetched(..) | Want::AcknowledgeEvery(_) => {}
        }
    }

    #[inline]
    fn release(&mut self, _packet: Inbound) {
        let Some(arrived) = self.out.take() else { return };
        let (src, tag) = (arrived.src, arrived.tag);
        if self.buffers.release(&self.device, arrived) {
            self.notify();
        }
        let Some(peer) = self.peers[src as usize].as_deref_mut() else { return };
        if tag != peer.mine || !peer.is_up() {
            return;
        }
        peer.owed.set(peer.owed.get() + 1);
        if u32::from(peer.owed.get()) >= WINDOW / 2 {
            self.owe(src, Wants::CREDITS);
            self.send_own(src);
        }
    }

    fn due(&self) -> Option<Instant> {
        let waits =
            !self.queued.is_empty() || self.has_pending() || self.sends.copies() != 0 || self.accesses.wait();
        let unwatched = self.armed && self.device.descriptor().is_none();
        if self.closed {
            return None;
        }
        let retry = (waits || unwatched).then(|| Instant::now() + RETRY);
        retry.or_else(|| self.watch.as_ref()?.due())
    }

    fn tally(&self) -> Tally {
        let waiting = self.queued.len() + self.completed.len() + self.pending.borrow().len();
        let outstanding = if self.closed { 0 } else { (self.sends.under_way() + waiting) as u64 };
        Tally { outstanding, refused: self.foreign, ..Tally::default() }
    }

    fn close(&mut self) {
        self.end();
    }
}

impl FabricTransport {
    /// Gives up what was taken for the peer, and the accesses under way with it.
    pub(super) fn recall(&mut self, task: Task) {
        self.end_with(task, Accesses::recall);
        // Others may have left meanwhile.
        self.settle();
    }

    /// Does what is due.
    pub(super) fn serve(&mut self) {
        self.look_at_others();
        self.advance();
    }

    fn hold(&mut self, task: Task, held: bool) {
        let Self { peers, ready, .. } = self;
        let Some(peer) = peers[task as usize].as_deref_mut() else { return };
        let waits = peer.standing == Presence::Rejoining || peer.unnamed;
        if std::mem::replace(&mut peer.held, held) == held || waits {
            return;
        }
        if held {
            for arrived in std::mem::take(ready) {
                if arrived.src == task { peer.aside.push_back(arrived) } else { ready.push_back(arrived) }
            }
        } else {
            ready.append(&mut peer.aside);
        }
    }

    /// Whether a poll can be left out ([`PollPause`](crate::transport::poll_pause::PollPause)):
    /// nothing waits for room, and the last poll has left nothing.
    #[inline]
    fn rests(&mut self) -> bool {
        self.rest.take()
            && self.queued.is_empty()
            && !self.has_pending()
            && !self.accesses.wait()
            && self.sends.under_way() < SENDS / 2
    }

    /// Why a packet to the peer is not accepted; at first contact its address is entered.
    #[inline]
    fn refusal(&mut self, task: Task) -> Option<SendOutcome> {
        match self.peer(task) {
            Some(peer) if peer.is_up() && peer.in_flight < WINDOW && !self.closed => None,
            _ => self.refusal_unless_room(task),
        }
    }

    #[cold]
    fn refusal_unless_room(&mut self, task: Task) -> Option<SendOutcome> {
        if self.closed || !self.meet(task) {
            return Some(SendOutcome::Gone);
        }
        // Credits may have arrived.
        self.advance();
        let peer = self.peer_mut(task)?;
        match peer.standing {
            Presence::Up if peer.in_flight < WINDOW => None,
            Presence::Up => {
                peer.no_room = true;
                Some(SendOutcome::NoRoom)
            }
            Presence::Meeting | Presence::Rejoining => Some(SendOutcome::NoRoom),
            Presence::Closed | Presence::Dead(_) | Presence::HasParted | Presence::Parted => {
                Some(SendOutcome::Gone)
            }
        }
    }

    #[cold]
    fn refusal_without_buffer(&mut self, task: Task) -> Option<SendOutcome> {
        if !self.peer(task).is_some_and(Peer::is_up) {
            return Some(SendOutcome::Gone);
        }
        self.refused = !self.sends.has_free();
        self.refused.then_some(SendOutcome::NoRoom)
    }

    /// The endpoint has no room for a message that is complete, or the peer is lost.
    #[cold]
    fn send_injected_later(&mut self, task: Task, words: usize, errno: Errno) -> SendOutcome {
        if !errno.is_again() {
            self.lose_by(task, errno, &errno.text());
            self.settle();
            self.notify();
            return SendOutcome::Gone;
        }
        self.notify();
        if !self.sends.has_free() {
            self.refused = true;
            return SendOutcome::NoRoom;
        }
        let Some(slot) = self.sends.make_of(task, &self.scratch[..words]) else { return SendOutcome::NoRoom };
        self.post_or_queue(task, slot).unwrap_or(SendOutcome::Sent)
    }

    /// Sends a message, now or as soon as the endpoint has room: an outcome when the peer is lost.
    fn post_or_queue(&mut self, task: Task, slot: usize) -> Option<SendOutcome> {
        if let Err(errno) = self.post(task, slot) {
            self.lose_by(task, errno, &errno.text());
            self.settle();
            self.notify();
            return Some(SendOutcome::Gone);
        }
        self.inject = INJECT.min(self.device.info().inject_size());
        self.rest.note_packet();
        self.peer_mut(task)?.note_sent();
        None
    }

    /// Posts a message, or queues it until the endpoint has room.
    ///
    /// # Errors
    /// The peer cannot be reached: the message is dropped.
    fn post(&mut self, task: Task, slot: usize) -> Result<(), Errno> {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return Ok(()) };
        let posted = match peer.address {
            Some(address) if peer.queued == 0 => self.sends.post(&self.device, address, slot),
            _ => Err(Errno::AGAIN),
        };
        match posted {
            Err(errno) if errno.is_again() => {
                peer.queued += 1;
                self.queued.push_back(slot);
            }
            Err(errno) => {
                self.sends.end(slot);
                return Err(errno);
            }
            Ok(()) => {}
        }
        self.notify();
        Ok(())
    }

    /// Ends what is under way with a peer: what was taken for it is not reported, and `end` says
    /// what becomes of the accesses. It returns whether some are still under way.
    #[cold]
    pub(super) fn end_with(&mut self, task: Task, end: impl Fn(&mut Accesses, &mut Device, Task) -> bool) {
        if std::mem::replace(&mut self.recalling, true) {
            return;
        }
        let deadline = Instant::now() + RECALL;
        let mut cut = false;
        while !self.device.is_closed() {
            let reads = self.sends.recall(task);
            if !end(&mut self.accesses, &mut self.device, task) && !reads {
                break;
            }
            self.advance();
            if !cut && Instant::now() > deadline {
                // It is silent: what is under way ends with the connection.
                cut = true;
                self.cut(task);
            }
            if Instant::now() > deadline + RECALL {
                self.accesses.give_up(task);
                break;
            }
            std::thread::yield_now();
        }
        self.completed.retain(|(to, _)| *to != task);
        self.recalling = false;
    }

    /// Ends what is under way with a peer that is silent, and the provider's connection with it.
    #[cold]
    pub(super) fn cut(&mut self, task: Task) {
        let accesses = self.accesses.of(task);
        self.sends.of(task).chain(accesses).for_each(|slot| self.device.cancel(slot));
        let Self { peers, device, .. } = self;
        if let Some(peer) = peers[task as usize].as_deref_mut() {
            peer.address = peer.address.take().and_then(|address| {
                device.remove(address);
                device.insert(peer.published.get(PUBLISHED_BEFORE..)?).ok()
            });
        }
    }

    /// Sends a message of the transport's own, now or as soon as the endpoint has room. A peer that
    /// cannot be reached is awaited.
    pub(super) fn post_own(&mut self, task: Task, slot: usize) {
        // One that is lost is noticed by the next packet.
        let _ = self.post(task, slot);
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }
}

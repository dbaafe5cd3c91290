//! Packets through the endpoint.

use super::ofi::{Device, Errno};
use super::own::Wants;
use super::posting::{Posted, SENDS};
use super::remote::Accesses;
use super::{FabricTransport, PUBLISHED_BEFORE, WINDOW};
use crate::memory::bytes::pad8;
use crate::transport::presence::Presence;
use crate::transport::{
    Door, Endpoint, Inbound, Limits, Look, Outgoing, Report, Seen, SendOutcome, Tally, Task, Want,
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
        let mut frame = Frame {
            kind: FrameKind::Packet,
            src: self.credentials.me,
            tag: peer.theirs,
            credits: peer.owed.get(),
            head_len: packet.head.len(),
            body_len: packet.body_len() as u32,
        };
        if self.posting.injects(len) && peer.queued == 0 {
            // SAFETY: the caller's promise.
            match unsafe { self.posting.inject(&self.device, address, &frame, packet) } {
                Ok(()) => {
                    peer.note_sent();
                    self.rest.note_packet();
                    return SendOutcome::Sent;
                }
                Err((words, errno)) => return self.send_injected_later(task, words, errno),
            }
        }
        if !self.posting.has_room(task) {
            self.advance();
            if let Some(refusal) = self.refusal_without_buffer(task) {
                return refusal;
            }
            // Credits may have been returned meanwhile, and the peer may have rejoined.
            let Some(peer) = self.peer(task) else { return SendOutcome::Gone };
            (frame.tag, frame.credits) = (peer.theirs, peer.owed.get());
        }
        // SAFETY: the caller's promise.
        let Some((slot, ticket)) = (unsafe { self.posting.make(&self.device, task, &frame, packet, len) })
        else {
            return SendOutcome::NoRoom;
        };
        self.post_or_queue(task, slot).unwrap_or(ticket.map_or(SendOutcome::Sent, SendOutcome::Taken))
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    #[inline]
    fn report(&mut self) -> Option<Report> {
        if let Some(ticket) = self.posting.next_report() {
            return Some(Report::Free(ticket));
        }
        let accesses = self.accesses.next_report();
        accesses.or_else(|| {
            let (task, epoch) = self.rejoining.back.pop_front()?;
            self.note_named(task);
            Some(Report::Joined(task, epoch))
        })
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        assert!(!self.receiving.is_out(), "the packet before has not been released");
        if !self.receiving.has_packets() && !self.rests() {
            self.advance();
        }
        let packet = self.receiving.next()?;
        self.rest.note_packet();
        if let Some(peer) = self.peers[packet.src as usize].as_deref_mut() {
            peer.waiting = peer.waiting.saturating_sub(1);
            peer.progress += 1;
        }
        Some(packet)
    }

    fn look(&mut self, _look: Look) -> Seen<'_> {
        Seen::Something
    }

    fn want(&mut self, what: Want) {
        match what {
            Want::Connection(task) => self.want_connection(task),
            Want::Attention(task) => self.kick(task),
            Want::Hold(task, held) => self.hold(task, held),
            Want::Serve => self.serve(),
            Want::Wake => self.sleeper.signal(),
            Want::Settle(_)
            | Want::Flush
            | Want::Polling(..)
            | Want::Fetched(..)
            | Want::AcknowledgeEvery(_) => {}
        }
    }

    #[inline]
    fn release(&mut self, _packet: Inbound) {
        let Some((src, tag, gave)) = self.receiving.take_back_packet(&self.device) else { return };
        if gave {
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
        let posting = self.posting.waiting() != 0 || self.posting.has_copies();
        let waits = posting || self.has_pending() || self.accesses.wait();
        let unwatched = self.sleeper.armed && self.device.descriptor().is_none();
        if self.closed {
            return None;
        }
        let retry = (waits || unwatched).then(|| Instant::now() + RETRY);
        retry.or_else(|| self.watch.as_ref()?.shared.due())
    }

    fn tally(&self) -> Tally {
        let outstanding = self.posting.outstanding() + self.pending.borrow().len();
        let outstanding = if self.closed { 0 } else { outstanding as u64 };
        Tally { outstanding, refused: self.foreign, ..Tally::default() }
    }

    fn close(&mut self) {
        self.end();
    }
}

impl FabricTransport {
    /// Gives up what was taken for the peer, and the accesses under way with it.
    pub(super) fn recall(&mut self, task: Task) {
        self.end_with(&[task], Accesses::recall);
        // Others may have left meanwhile.
        self.settle();
    }

    /// Does what is due.
    pub(super) fn serve(&mut self) {
        self.look_at_others();
        self.advance();
    }

    fn hold(&mut self, task: Task, held: bool) {
        let Self { peers, receiving, .. } = self;
        let Some(peer) = peers[task as usize].as_deref_mut() else { return };
        let waits = peer.standing == Presence::Rejoining || peer.unnamed;
        if std::mem::replace(&mut peer.held, held) == held || waits {
            return;
        }
        if held {
            receiving.set_aside(task, &mut peer.aside);
        } else {
            receiving.add_packets(&mut peer.aside);
        }
    }

    /// Whether a poll can be left out ([`PollPause`](crate::transport::poll_pause::PollPause)):
    /// nothing waits for room, and the last poll has left nothing.
    #[inline]
    fn rests(&mut self) -> bool {
        self.rest.take()
            && self.posting.waiting() == 0
            && !self.has_pending()
            && !self.accesses.wait()
            && self.posting.under_way() < SENDS / 2
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
        // It has had no room since the last poll, which was just before: one poll for each of many
        // such peers would take long.
        if self.peer(task).is_some_and(|peer| peer.is_up() && peer.no_room) && self.rest.is_recent() {
            return Some(SendOutcome::NoRoom);
        }
        // Credits may have arrived.
        self.advance();
        let peer = self.peer_mut(task)?;
        if peer.is_up() && peer.in_flight < WINDOW {
            return None;
        }
        peer.no_room |= peer.is_up();
        Some(peer.standing.refusal())
    }

    #[cold]
    pub(super) fn refusal_without_buffer(&mut self, task: Task) -> Option<SendOutcome> {
        let peer = self.peer(task)?;
        let (is_up, refusal) = (peer.is_up(), peer.standing.refusal());
        (!is_up || self.posting.refuses(task)).then_some(refusal)
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
        let Some(slot) = self.posting.keep_injected(task, words) else { return SendOutcome::NoRoom };
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
        self.posting.note_posted(&self.device);
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
        let address = peer.address.filter(|_| peer.queued == 0);
        match self.posting.post(&self.device, address, slot) {
            Posted::Sent => {}
            Posted::Queued => peer.queued += 1,
            Posted::Failed(errno) => return Err(errno),
        }
        self.notify();
        Ok(())
    }

    /// Ends what is under way with some peers: what was taken for them is not reported, and `end`
    /// says what becomes of the accesses. It returns whether some are still under way. All of the
    /// peers have the same time, so that the end of a whole host takes no longer than that of a
    /// task.
    #[cold]
    pub(super) fn end_with(
        &mut self,
        tasks: &[Task],
        end: impl Fn(&mut Accesses, &mut Device, Task) -> bool,
    ) {
        if std::mem::replace(&mut self.recalling, true) {
            return;
        }
        let deadline = Instant::now() + RECALL;
        #[cfg(test)]
        {
            self.deadlines += 1;
        }
        let (mut busy, mut cut) = (tasks.to_vec(), false);
        while !self.device.is_closed() {
            busy.retain(|&task| {
                let reads = self.posting.recall(task);
                end(&mut self.accesses, &mut self.device, task) || reads
            });
            if busy.is_empty() {
                break;
            }
            self.advance();
            if !cut && Instant::now() > deadline {
                // They are silent: what is under way ends with the connections.
                cut = true;
                busy.iter().for_each(|task| self.cut(*task));
            }
            if Instant::now() > deadline + RECALL {
                busy.iter().for_each(|task| self.accesses.give_up(*task));
                break;
            }
            std::thread::yield_now();
        }
        tasks.iter().for_each(|task| self.posting.forget_reports(*task));
        self.recalling = false;
    }

    /// Ends what is under way with a peer that is silent, and the provider's connection with it.
    #[cold]
    pub(super) fn cut(&mut self, task: Task) {
        let accesses = self.accesses.of(task);
        self.posting.of(task).chain(accesses).for_each(|slot| self.device.cancel(slot));
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
}

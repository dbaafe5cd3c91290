//! What has happened: operations that have ended, messages that have arrived.

use super::FabricTransport;
use super::contact::Peer;
use super::ofi::{BATCH, Completion, Failed, Failure, Slot};
use super::posting::Posted;
use super::remote::Accesses;
use crate::transport::Task;
use crate::transport::presence::Presence;
use crate::transport::rails::RailEvent;
use crate::wire::network::{FRAME, Frame, FrameKind, TAG};
use std::time::Duration;

/// How often in turn, and for how long at least, the completion queue fails before all peers count
/// as lost: a shortage of memory may pass.
pub(super) const FAILURES: u32 = 16;
pub(super) const FAILS_FOR: Duration = Duration::from_millis(100);

/// Batches that are taken out of the completion queue at a time.
const ROUNDS: u32 = 16;

impl FabricTransport {
    /// Takes note of everything that has happened, and sends what waits for room in the endpoint.
    /// With nothing to do it is one call of libfabric.
    #[inline]
    pub(super) fn advance(&mut self) {
        if self.device.is_closed() {
            return;
        }
        match self.device.poll() {
            Ok(0) => self.notify(),
            found => self.note_all(found),
        }
        self.rest.note_poll();
        if self.posting.waiting() != 0 || self.has_pending() || self.accesses.may_start() {
            self.send_waiting();
        }
    }

    #[inline(never)]
    pub(super) fn note_all(&mut self, mut found: Result<usize, Failure>) {
        // Bounded, so that a flood does not keep the caller here. All that a poll has
        // found is noted.
        for round in 1.. {
            // Fewer than there is room for: the queue was empty then, and a call that finds nothing
            // costs half a microsecond.
            let all = match found {
                Ok(count) => {
                    (0..count).for_each(|at| self.note(self.device.completion(at)));
                    count < BATCH
                }
                Err(failure) => {
                    let is_last = matches!(failure.of, Failed::Queue(..));
                    self.note_failure(failure);
                    is_last
                }
            };
            if all || round == ROUNDS {
                break;
            }
            found = self.device.poll();
        }
        if self.receiving.are_few() {
            self.provide_buffers();
        }
        self.note_notices();
        self.settle();
        if self.has_news_of_others() {
            self.follow_ring();
        }
        self.notify();
    }

    fn note(&mut self, completion: Completion) {
        let Some(slot) = completion.slot else { return };
        if !self.receiving.has(slot) {
            self.note_end(slot);
            return;
        }
        let (at, len) = completion.message;
        let message = completion.received && len != 0;
        if message {
            self.note_message(slot, at, len);
        }
        if completion.used_up {
            self.receiving.note_end(&self.device, slot, message.then_some((at, len)));
        }
    }

    fn note_end(&mut self, slot: Slot) {
        if self.accesses.has(slot) {
            let peer = self.accesses.end(&mut self.device, slot, None);
            if let Some(peer) = peer.and_then(|peer| self.peer_mut(peer)) {
                peer.progress += 1;
            }
            return;
        }
        let ended = self.posting.end(slot);
        self.sleeper.note(ended);
    }

    fn note_message(&mut self, slot: Slot, at: *const u8, len: usize) {
        let Some(message) = self.receiving.note(slot, at, len) else { return };
        let Some(frame) = Frame::decode(message) else {
            self.foreign += 1;
            return;
        };
        let src = frame.src;
        let is_own = !frame.kind.has_tag() || self.credentials.admits(message);
        if src == self.credentials.me || src as usize >= self.peers.len() || !is_own {
            self.foreign += 1;
            return;
        }
        if matches!(frame.kind, FrameKind::Rejoin | FrameKind::Notice | FrameKind::RailNote) {
            if frame.tag == self.credentials.first_tag {
                let after = message[FRAME..message.len() - TAG].to_vec();
                self.note_outside(&frame, &after);
            }
            return;
        }
        if self.peers[src as usize].is_none() && (frame.tag != self.credentials.first_tag || !self.meet(src))
        {
            return;
        }
        let Some(peer) = self.peers[src as usize].as_deref_mut() else { return };
        let early = peer.standing == Presence::Rejoining;
        if frame.tag != peer.mine || !(peer.is_up() || early) {
            if frame.kind == FrameKind::Departure {
                self.tell_watch(|watch| watch.closed(src));
                self.owe(src, super::own::Wants::SEEN);
                self.send_own(src);
            }
            if frame.kind == FrameKind::DepartureSeen {
                self.note_departure_seen(src, frame.tag);
            }
            return;
        }
        (peer.met, peer.heard) = (true, true);
        if frame.credits != 0 {
            peer.in_flight = peer.in_flight.saturating_sub(frame.credits.into());
            peer.progress += u64::from(frame.credits);
            self.sleeper.note(std::mem::take(&mut peer.no_room));
        }
        match frame.kind {
            FrameKind::Packet => {
                peer.received = peer.received.wrapping_add(1);
                peer.waiting += 1;
                let arrived = self.receiving.keep(slot, at, &frame);
                if peer.held || early || peer.unnamed {
                    peer.aside.push_back(arrived);
                } else {
                    self.receiving.add_packet(arrived);
                }
                self.look_at_departure(src);
            }
            FrameKind::Departure => self.note_departure(src, frame.body_len),
            FrameKind::DepartureSeen => self.note_departure_seen(src, frame.tag),
            FrameKind::Kick => self.sleeper.signal(),
            FrameKind::Credits
            | FrameKind::Hello
            | FrameKind::Rejoin
            | FrameKind::Notice
            | FrameKind::RailNote => {}
        }
    }

    /// A message outside of any connection has arrived. Nothing here may poll: the rest of the
    /// batch is still in the device.
    #[cold]
    fn note_outside(&mut self, frame: &Frame, after: &[u8]) {
        match frame.kind {
            FrameKind::Rejoin => self.note_hello(frame.src, after, frame.body_len as usize),
            FrameKind::Notice => self.keep_notice(frame.src, after),
            FrameKind::RailNote => {
                if let Some(note) = after.first_chunk() {
                    self.note_event(RailEvent::Note(frame.src, *note));
                }
            }
            _ => {}
        }
    }

    fn note_departure_seen(&mut self, src: Task, tag: u32) {
        if let Some(peer) = self.peer_mut(src).filter(|peer| peer.mine == tag) {
            peer.knows_departure = true;
        }
    }

    #[cold]
    pub(super) fn note_failure(&mut self, failure: Failure) {
        let slot = match failure.of {
            Failed::Operation(Some(slot)) => slot,
            Failed::Operation(None) => return,
            Failed::Queue(times, lasts) => {
                if times >= FAILURES && lasts >= FAILS_FOR {
                    self.lose_all(&failure);
                }
                return;
            }
        };
        if self.receiving.has(slot) {
            self.receiving.note_failure(&self.device, slot);
            return;
        }
        if self.accesses.has(slot) {
            // The peer may have withdrawn the memory: that says nothing about the connection.
            let peer = self.accesses.end(&mut self.device, slot, Some(failure.text));
            if let Some(peer) = peer {
                self.note_refusal(peer);
            }
            return;
        }
        let Some(send) = self.posting.remove(slot) else { return };
        if send.former {
            return;
        }
        if let Some(peer) = self.peer_mut(send.peer).filter(|peer| peer.is_up()) {
            peer.broken = true;
        }
        self.lose_by(send.peer, failure.errno, &failure.text);
    }

    /// Nothing can be sent or received any more, as with a card that has failed.
    fn lose_all(&mut self, why: &Failure) {
        for task in 0..self.peers.len() as Task {
            if self.peer(task).is_some_and(Peer::is_up) {
                self.lose_by(task, why.errno, &why.text);
            }
        }
    }

    #[cold]
    fn provide_buffers(&mut self) {
        let Self { receiving, device, peers, .. } = self;
        let aside = peers.iter_mut().flatten().flat_map(|peer| peer.aside.iter_mut());
        receiving.provide(device, aside);
    }

    /// Sends what had no room in the endpoint.
    #[cold]
    fn send_waiting(&mut self) {
        if self.has_pending() {
            self.send_pending();
        }
        let mut blocked: Vec<Task> = Vec::new();
        for _ in 0..self.posting.waiting() {
            let Some((task, slot)) = self.posting.next_waiting() else { continue };
            if blocked.contains(&task) {
                self.posting.wait_again(slot);
                continue;
            }
            let wanted = |peer: &&Peer| peer.is_up() || peer.standing == Presence::Rejoining;
            let address = self.peer(task).filter(wanted).and_then(|peer| peer.address);
            if address.is_none() {
                self.posting.remove(slot);
                self.note_unqueued(task);
                continue;
            }
            match self.posting.post(&self.device, address, slot) {
                Posted::Sent => self.note_unqueued(task),
                Posted::Queued => blocked.push(task),
                Posted::Failed(errno) => {
                    // One that is awaited is not lost by this: what follows is not to be queued.
                    self.note_unqueued(task);
                    self.lose_by(task, errno, &errno.text());
                }
            }
        }
        if self.accesses.may_start() {
            self.start_chunks();
        }
        self.settle();
        self.notify();
    }

    /// A message to the peer has left the queue.
    fn note_unqueued(&mut self, task: Task) {
        if let Some(peer) = self.peer_mut(task) {
            peer.queued = peer.queued.saturating_sub(1);
        }
    }

    /// Nothing is under way any more for peers that have left. What their departure has
    /// ended is reported.
    pub(super) fn settle(&mut self) {
        while !self.recalling && !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            self.end_with(&left, Accesses::abandon);
            left.into_iter().for_each(|task| self.drop_queued(task));
        }
    }

    /// Whether something is to be taken from this endpoint.
    pub(super) fn has_reports(&self) -> bool {
        self.receiving.has_packets()
            || self.posting.has_reports()
            || self.accesses.has_reports()
            || self.has_events()
    }

    /// Wakes a thread that sleeps, if it waits for something that has happened, or that has
    /// ended and was not noted yet. To be called after each call of libfabric in which an
    /// operation may end.
    #[inline]
    pub(super) fn notify(&mut self) {
        if self.sleeper.must_signal()
            || self.sleeper.armed && (self.has_reports() || !self.device.may_sleep())
        {
            self.sleeper.signal();
        }
    }
}

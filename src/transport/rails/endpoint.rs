//! Packets over the rails.

use super::flow::{Arrival, WINDOW};
use super::peer::Peer;
use super::{Kept, Out, Rail, Rails};
use crate::transport::parcel::Parcel;
use crate::transport::presence::{Presence, reply_to_those_that_rejoin};
use crate::transport::{
    Door, Endpoint, HEAD_MAX, Inbound, Limits, Look, Outgoing, Piece, Report, Seen, SendOutcome, Tally, Task,
    Want,
};
use crate::wire::rails::{HEAD, Head, RailFrameKind};
use std::time::{Duration, Instant};

/// A packet is acknowledged after this time at the latest, or with the next packet to its sender.
pub(super) const ACKNOWLEDGE: Duration = Duration::from_millis(5);

/// How long the end waits for acknowledgements, at most.
const LINGER: Duration = Duration::from_secs(1);

/// Memory of packets that is kept for later ones.
const SPARE: usize = WINDOW as usize;

impl<T: Rail> Endpoint for Rails<T> {
    fn limits(&self, _peer: Task) -> Limits {
        self.limits
    }

    unsafe fn try_send(&mut self, task: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if let Some(refusal) = self.refusal(task) {
            return refusal;
        }
        // SAFETY: the caller's promise.
        let parcel = unsafe { Parcel::gather(self.me, packet, self.spare.pop().unwrap_or_default()) };
        let kept = Kept { kind: RailFrameKind::Packet, parcel };
        loop {
            let home = self.home(task);
            let Some(peer) = self.peers[task as usize].as_deref_mut() else { return SendOutcome::Gone };
            if !peer.is_up() {
                self.recycle(kept.parcel);
                return SendOutcome::Gone;
            }
            let rail = peer.agreement.live_from(home).filter(|_| !peer.flow.has_unsent());
            let number = peer.flow.next_number();
            match rail.map(|rail| (rail, self.transmit(rail, task, number, &kept))) {
                Some((rail, SendOutcome::Sent | SendOutcome::Held | SendOutcome::Taken(_))) => {
                    if let Some(peer) = self.peers[task as usize].as_deref_mut() {
                        peer.flow.push(kept, Some(rail));
                        if !peer.touched {
                            self.note_contact(task);
                        }
                    }
                    self.expect_acknowledgement(task);
                    return SendOutcome::Sent;
                }
                Some((rail, SendOutcome::Gone)) => self.note_refused(rail, task),
                Some((_, SendOutcome::NoRoom)) | None => {
                    if let Some(peer) = self.peers[task as usize].as_deref_mut() {
                        peer.no_room = true;
                    }
                    self.recycle(kept.parcel);
                    self.look_after(task);
                    return SendOutcome::NoRoom;
                }
            }
        }
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    fn report(&mut self) -> Option<Report> {
        if self.back.is_empty() && !self.striping.has_reports() {
            if self.striping.is_busy() {
                // The keys may be on their way.
                self.take_in();
            }
            self.advance();
        }
        if let Some((id, outcome)) = self.striping.next_report() {
            return Some(Report::Accessed(id, outcome));
        }
        let (task, epoch) = self.back.pop_front()?;
        if let Some(peer) = self.peer_mut(task) {
            peer.unnamed = false;
        }
        self.take_aside(task);
        Some(Report::Joined(task, epoch))
    }

    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        self.advance();
        loop {
            if let Some(parcel) = self.ready.pop_front() {
                self.note_progress(parcel.src);
                let inbound = parcel.inbound(0);
                self.out = Some(Out::Kept(parcel));
                return Some(inbound);
            }
            let (rail, inbound) = self.next_inbound()?;
            if let Some(packet) = self.take(rail, inbound) {
                self.deliver_early(packet.src);
                return Some(packet);
            }
        }
    }

    fn look(&mut self, _look: Look) -> Seen<'_> {
        Seen::Something
    }

    fn want(&mut self, what: Want) {
        match what {
            Want::Connection(task) => {
                if task != self.me && !self.closed && self.meet(task).is_up() {
                    self.rails.iter_mut().for_each(|rail| rail.want(what));
                    self.note_contact(task);
                    self.advance();
                }
            }
            Want::Attention(task) => {
                let home = self.home(task);
                let rail = self.peer(task).and_then(|peer| peer.agreement.live_from(home));
                self.rails[rail.unwrap_or(home)].want(what);
            }
            Want::Hold(task, held) => self.hold(task, held),
            Want::Wake => self.sleeper.signal(),
            Want::Serve => self.serve(),
            // Nothing of this means anything to a rail.
            Want::Settle(_)
            | Want::Flush
            | Want::Polling(..)
            | Want::Fetched(..)
            | Want::AcknowledgeEvery(_) => {}
        }
    }

    fn release(&mut self, _packet: Inbound) {
        match self.out.take() {
            Some(Out::Rail(rail, inbound)) => self.rails[rail].release(inbound),
            Some(Out::Kept(parcel)) => self.recycle(parcel),
            None => {}
        }
    }

    fn due(&self) -> Option<Instant> {
        if self.closed {
            return None;
        }
        self.rails.iter().filter_map(Endpoint::due).chain(self.pressing).min()
    }

    fn tally(&self) -> Tally {
        if self.closed {
            return self.tally;
        }
        let waits = |task: &&Task| {
            let peer = self.peer(**task).filter(|peer| peer.is_up());
            peer.is_some_and(|peer| peer.flow.has_unsent() || !peer.backlog.is_empty())
        };
        let outstanding = self.active.iter().filter(waits).count() as u64;
        let mut sum = Tally { outstanding, ..self.tally };
        self.rails.iter().for_each(|rail| sum += rail.tally());
        sum
    }

    fn close(&mut self) {
        if self.closed {
            return;
        }
        let start = Instant::now();
        let all = (0..self.peers.len() as Task).collect();
        let awaiting = reply_to_those_that_rejoin(self, all);
        let awaited = |end: &Self, task: &Task| {
            end.peer(*task).is_some_and(|peer| peer.standing == Presence::Rejoining)
        };
        while (self.tally().outstanding != 0
            || !self.is_acknowledged()
            || awaiting.iter().any(|task| awaited(self, task)))
            && start.elapsed() < LINGER
        {
            self.next_tick = Some(start);
            self.serve();
            std::thread::sleep(Duration::from_micros(100));
        }
        self.closed = true;
        self.rails.iter_mut().for_each(|rail| rail.close());
        self.striping.withdraw_all();
    }
}

impl<T: Rail> Rails<T> {
    /// Packets are accepted, so that they are acknowledged while the program computes.
    fn serve(&mut self) {
        self.rails.iter_mut().for_each(|rail| rail.want(Want::Serve));
        self.rest.note_poll();
        self.advance();
        self.take_in();
        self.flush_all();
        self.notify();
    }

    fn hold(&mut self, task: Task, held: bool) {
        let Self { peers, ready, .. } = self;
        let Some(peer) = peers[task as usize].as_deref_mut() else { return };
        if std::mem::replace(&mut peer.held, held) == held {
            return;
        }
        if held {
            for parcel in std::mem::take(ready) {
                if parcel.src == task { peer.aside.push_back(parcel) } else { ready.push_back(parcel) }
            }
        } else {
            self.take_aside(task);
        }
    }

    /// Why a packet to the peer is not accepted.
    #[inline]
    fn refusal(&mut self, task: Task) -> Option<SendOutcome> {
        match self.peer(task) {
            Some(peer) if peer.is_up() && peer.flow.has_room() && !peer.flow.has_unsent() && !self.closed => {
                None
            }
            _ => self.refusal_unless_room(task),
        }
    }

    #[cold]
    fn refusal_unless_room(&mut self, task: Task) -> Option<SendOutcome> {
        if self.closed {
            return Some(SendOutcome::Gone);
        }
        self.meet(task);
        if self.still_refuses(task) {
            return Some(SendOutcome::NoRoom);
        }
        self.rails.iter_mut().for_each(|rail| rail.want(Want::Serve));
        self.rest.note_poll();
        self.advance();
        self.flush(task);
        let peer = self.peer_mut(task)?;
        let refusal = peer.standing.refusal();
        if peer.is_up() {
            if peer.flow.has_room() && !peer.flow.has_unsent() {
                return None;
            }
            peer.no_room = true;
            self.look_after(task);
        }
        Some(refusal)
    }

    /// Offers a packet to one rail. One that is accepted acknowledges what has come, too.
    fn transmit(&mut self, rail: usize, task: Task, number: u32, kept: &Kept) -> SendOutcome {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return SendOutcome::Gone };
        let accepted = peer.acknowledgement();
        let inbound = kept.parcel.inbound(0);
        let session = peer.session;
        let head = Head { kind: kept.kind, number, accepted, session, head_len: inbound.head_len as u8 };
        let packet = Outgoing {
            head: &head.encode(),
            first: Piece { ptr: inbound.head, len: inbound.head_len + inbound.body_len },
            second: Piece::EMPTY.into(),
            copy_limit: usize::MAX,
        };
        // SAFETY: the parcel has its head and body one behind the other; the packet is
        // copied by the call.
        let outcome = unsafe { self.rails[rail].try_send(task, &packet) };
        if outcome.accepted().is_ok()
            && let Some(peer) = self.peer_mut(task)
        {
            peer.acknowledge();
        }
        outcome
    }

    /// Sends what is to be sent to a peer: first what was lost with a rail, then the
    /// transport's own packets.
    pub(super) fn flush(&mut self, task: Task) {
        loop {
            let home = self.home(task);
            let Some(peer) = self.peers[task as usize].as_deref_mut().filter(|peer| peer.is_up()) else {
                return;
            };
            if !peer.flow.has_unsent() {
                if !peer.flow.has_room() {
                    return;
                }
                let Some(kept) = peer.backlog.pop_front() else { return };
                peer.flow.push(kept, None);
            }
            let Some(rail) = peer.agreement.live_from(home) else { return };
            let Some((number, kept)) = peer.flow.take_unsent() else { return };
            let sent = self.transmit(rail, task, number, &kept);
            if let Some(peer) = self.peers[task as usize].as_deref_mut() {
                peer.flow.put_back(number, kept, (sent == SendOutcome::Sent).then_some(rail));
            }
            match sent {
                SendOutcome::Sent | SendOutcome::Held | SendOutcome::Taken(_) => {
                    self.expect_acknowledgement(task)
                }
                SendOutcome::NoRoom => return,
                SendOutcome::Gone => self.note_refused(rail, task),
            }
        }
    }

    /// Sends a packet of the transport's own, as soon as there is room.
    pub(super) fn send_control(&mut self, task: Task, kind: RailFrameKind, body: &[u8]) {
        let first = Piece { ptr: body.as_ptr(), len: body.len() };
        let packet = Outgoing { head: &[], first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
        // SAFETY: the body is readable.
        let parcel = unsafe { Parcel::gather(self.me, &packet, self.spare.pop().unwrap_or_default()) };
        let peer = self.meet(task);
        if peer.is_up() {
            peer.backlog.push_back(Kept { kind, parcel });
            self.flush(task);
            self.look_after(task);
        }
    }

    /// The next packet of any rail.
    fn next_inbound(&mut self) -> Option<(usize, Inbound)> {
        let count = self.rails.len();
        for _ in 0..count {
            let rail = self.turn;
            self.turn = if rail + 1 == count { 0 } else { rail + 1 };
            if let Some(inbound) = self.rails[rail].recv() {
                return Some((rail, inbound));
            }
        }
        None
    }

    /// A packet has arrived on a rail: it is handed out, or it was for the transport itself, is
    /// kept or dropped. After one that is handed out, those that had arrived before their turn are
    /// to be delivered.
    fn take(&mut self, rail: usize, inbound: Inbound) -> Option<Inbound> {
        // SAFETY: the head is readable until the packet is released.
        let head = Head::decode(unsafe { std::slice::from_raw_parts(inbound.head, inbound.head_len) });
        let src = inbound.src;
        let valid = head.filter(|head| {
            usize::from(head.head_len) <= inbound.body_len
                && usize::from(head.head_len) <= HEAD_MAX
                && head.head_len % 8 == 0
                && inbound.head_len == HEAD
        });
        let Some(head) = valid.filter(|_| (src as usize) < self.peers.len()) else {
            self.rails[rail].release(inbound);
            return None;
        };
        let peer = self.meet(src);
        // What a peer has sent before it has closed or died arrives.
        if matches!(peer.standing, Presence::Parted | Presence::Rejoining) {
            self.rails[rail].release(inbound);
            return None;
        }
        peer.theirs = head.session;
        if !peer.touched {
            self.note_contact(src);
        }
        self.note_accepted(src, head.accepted);
        let own_head = usize::from(head.head_len);
        let own = Inbound {
            src,
            head: inbound.body,
            head_len: own_head,
            body: inbound.body.wrapping_add(own_head),
            body_len: inbound.body_len - own_head,
            token: 0,
        };
        let peer = self.peers[src as usize].as_deref_mut()?;
        let arrival = peer.flow.arrived(head.number);
        self.owe_acknowledgement(src);
        match arrival {
            Arrival::Next => {}
            Arrival::Duplicate => {
                self.tally.duplicates += 1;
                // Its sender may have missed the acknowledgement.
                self.look_after(src);
                self.rails[rail].release(inbound);
                return None;
            }
            Arrival::Early => {
                let kept = self.keep(head.kind, &own);
                if let Some(peer) = self.peer_mut(src) {
                    peer.flow.keep(head.number, kept);
                }
                self.rails[rail].release(inbound);
                return None;
            }
        }
        let held = self.peer(src).is_some_and(Peer::is_held);
        if head.kind != RailFrameKind::Packet || held {
            let kept = self.keep(head.kind, &own);
            self.rails[rail].release(inbound);
            self.deliver(src, kept);
            self.deliver_early(src);
            return None;
        }
        self.note_progress(src);
        self.out = Some(Out::Rail(rail, inbound));
        Some(own)
    }

    /// Copies a packet that is not handed out in place.
    fn keep(&mut self, kind: RailFrameKind, packet: &Inbound) -> Kept {
        let words = self.spare.pop().unwrap_or_default();
        // SAFETY: the packet was not released yet.
        let parcel = unsafe {
            let head = std::slice::from_raw_parts(packet.head, packet.head_len);
            let first = Piece { ptr: packet.body, len: packet.body_len };
            let packet_out = Outgoing { head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
            Parcel::gather(packet.src, &packet_out, words)
        };
        Kept { kind, parcel }
    }

    /// A packet that was kept has been accepted.
    fn deliver(&mut self, src: Task, kept: Kept) {
        if kept.kind != RailFrameKind::Packet {
            let body = kept.parcel.inbound(0);
            // SAFETY: the parcel lives.
            let body = unsafe { std::slice::from_raw_parts(body.body, body.body_len) };
            self.note_control(src, kept.kind, body);
            self.recycle(kept.parcel);
            return;
        }
        let Self { peers, ready, .. } = self;
        match peers[src as usize].as_deref_mut() {
            Some(peer) if peer.is_held() => peer.aside.push_back(kept.parcel),
            _ => ready.push_back(kept.parcel),
        }
    }

    /// The packets that were kept while the peer was held are to be taken, unless it still is.
    pub(super) fn take_aside(&mut self, task: Task) {
        let Self { peers, ready, .. } = self;
        let Some(peer) = peers[task as usize].as_deref_mut().filter(|peer| !peer.is_held()) else { return };
        ready.append(&mut peer.aside);
        if peer.flow.owed() != 0 {
            self.look_after(task);
        }
    }

    /// The packets that had arrived before their turn.
    fn deliver_early(&mut self, src: Task) {
        while let Some(kept) = self.peer_mut(src).and_then(|peer| peer.flow.take_early()) {
            self.deliver(src, kept);
        }
    }

    /// Takes note of what has arrived, also while a packet is handed out: data is kept for later.
    pub(super) fn take_in(&mut self) {
        if self.out.is_some() {
            return;
        }
        while self.ready.len() < SPARE
            && let Some((rail, inbound)) = self.next_inbound()
        {
            if let Some(packet) = self.take(rail, inbound) {
                let (src, kept) = (packet.src, self.keep(RailFrameKind::Packet, &packet));
                self.release(packet);
                self.ready.push_back(kept.parcel);
                self.deliver_early(src);
            }
        }
    }

    #[inline]
    fn note_progress(&mut self, task: Task) {
        if let Some(peer) = self.peer_mut(task) {
            peer.progress += 1;
        }
    }

    pub(super) fn recycle(&mut self, parcel: Parcel) {
        if self.spare.len() < SPARE {
            self.spare.push(parcel.into_words());
        }
    }
}

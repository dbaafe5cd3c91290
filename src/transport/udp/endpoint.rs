//! Packets through the endpoint.

use super::contact::Peer;
use super::reliable::Arrived;
use super::{Refusals, UdpTransport};
use crate::base::clock::now;
use crate::transport::presence::Presence;
use crate::transport::{
    Door, Endpoint, Exposure, Inbound, Key, Limits, Look, Outgoing, Piece, Reach, RemoteAccess, Report, Seen,
    SendOutcome, Started, Tally, Task, Transfer, Want, parcel,
};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// When something that had no room in the device is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(1);

/// A packet that was handed out and not released.
struct Out {
    from: Task,
    /// The number of this side of the connection.
    connection: u128,
    packet: Arrived,
}

/// What has arrived, and is to be taken.
#[derive(Default)]
pub(super) struct Arrivals {
    /// For each packet that has arrived its sender, in the order of arrival, but those of peers
    /// that are held.
    ready: VecDeque<Task>,
    out: Option<Out>,
    /// Peers that have rejoined and were not named yet.
    back: VecDeque<(Task, u64)>,
}

impl Arrivals {
    /// A packet of the peer can be taken.
    pub(super) fn add(&mut self, task: Task) {
        self.ready.push_back(task);
    }

    /// No packet of the peer can be taken for now.
    pub(super) fn withhold(&mut self, task: Task) {
        self.ready.retain(|from| *from != task);
    }

    /// The peer has rejoined: its packets wait until that was reported.
    pub(super) fn note_back(&mut self, task: Task, epoch: u64) {
        self.back.push_back((task, epoch));
        self.withhold(task);
    }

    /// This task has parted from the peer.
    pub(super) fn forget(&mut self, task: Task) {
        self.back.retain(|(back, _)| *back != task);
        self.withhold(task);
    }

    /// No packet can be taken any more.
    pub(super) fn clear(&mut self) {
        self.ready.clear();
    }

    /// Whether a packet can be taken. A peer that waits to be named is noted once, and keeps no
    /// thread from sleeping: the engine may ask for it only then.
    #[inline]
    pub(super) fn has_packets(&self) -> bool {
        !self.ready.is_empty()
    }
}

impl Endpoint for UdpTransport {
    fn limits(&self, _peer: Task) -> Limits {
        self.limits
    }

    #[inline]
    unsafe fn try_send(&mut self, task: Task, packet: &Outgoing<'_>) -> SendOutcome {
        let len = packet.head.len() + packet.body_len();
        if let Some(refusal) = self.refusal(task, len) {
            return refusal;
        }
        let now = self.now();
        let session = self.table.get_mut(task).and_then(|peer| peer.session.as_mut());
        let (Some(session), Some(mut buffer)) = (session, self.buffers.take(len)) else {
            return SendOutcome::Gone;
        };
        // SAFETY: the caller's promise.
        unsafe { parcel::write(&mut buffer, packet, false) };
        session.connection.push(now, buffer, packet.head.len(), len);
        self.rest.note_packet();
        self.transmit(task, now);
        SendOutcome::Sent
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.arrivals.out.is_none(), "the packet before has not been released");
        if self.must_poll() {
            self.advance();
        }
        while let Some(from) = self.arrivals.ready.pop_front() {
            let Some(peer) = self.table.get_mut(from) else { continue };
            let Some(session) = &mut peer.session else { continue };
            let Some(packet) = session.connection.take() else { continue };
            peer.taken += 1;
            self.rest.note_taken();
            let out = self.arrivals.out.insert(Out { from, connection: session.connection.mine(), packet });
            return Some(out.inbound());
        }
        None
    }

    fn look(&mut self, _look: Look) -> Seen<'_> {
        Seen::Something
    }

    fn want(&mut self, what: Want) {
        match what {
            // A peer from which something is awaited must know of this task, so that it reports
            // its end.
            Want::Connection(task) => {
                if self.peer(task).is_none() && !self.closed && self.meet(task) {
                    let now = self.now();
                    self.transmit(task, now);
                }
            }
            Want::Attention(task) => {
                if self.peer(task).is_some_and(|peer| peer.standing == Presence::Up) {
                    self.schedule.kick(task);
                }
            }
            Want::Hold(task, held) => self.hold(task, held),
            Want::AcknowledgeEvery(datagrams) => self.acknowledge_every(datagrams),
            Want::Serve => self.serve(),
            Want::Wake => self.sleeper.signal(),
            Want::Settle(_) | Want::Flush | Want::Polling(..) | Want::Fetched(..) => {}
        }
    }

    #[inline]
    fn release(&mut self, _packet: Inbound) {
        let Some(Out { from, connection, packet }) = self.arrivals.out.take() else { return };
        let session = self.table.get_mut(from).and_then(Peer::live);
        let session = session.filter(|session| session.connection.mine() == connection);
        let tells = session.is_some_and(|session| session.connection.release(packet.fragments));
        self.buffers.give(packet.buffer);
        if tells {
            // The peer may be waiting for that room, and many packets be left to be taken before
            // the next poll.
            let now = self.now();
            self.transmit(from, now);
        }
    }

    fn report(&mut self) -> Option<Report> {
        let (task, epoch) = self.arrivals.back.pop_front()?;
        if let Some(peer) = self.peer_mut(task) {
            peer.unnamed = false;
        }
        self.hand_out(task);
        Some(Report::Joined(task, epoch))
    }

    fn due(&self) -> Option<Instant> {
        if !self.outlet.is_open() {
            return None;
        }
        if self.schedule.is_pressing() {
            return Some(now());
        }
        let retry = self.outlet.is_blocked().then(|| now() + RETRY);
        let alarm = self.schedule.next().map(|at| self.start + Duration::from_nanos(at));
        let news = self.deaths.due(self.start);
        retry.into_iter().chain(alarm).chain(news).min()
    }

    /// A datagram that was accepted before is a duplicate, whether the network or a stranger has
    /// sent it again.
    fn tally(&self) -> Tally {
        let Refusals { forged, replayed } = self.outlet.refusals;
        let unsettled = self.table.met().iter().filter(|&&task| !self.has_everything(task)).count();
        let outstanding = if self.outlet.is_open() { unsettled as u64 } else { 0 };
        let mut sum = Tally { outstanding, refused: forged, duplicates: replayed, ..Tally::default() };
        sum += self.table.tally();
        sum
    }

    fn close(&mut self) {
        self.end();
    }
}

/// The memory of peers is not reached.
impl RemoteAccess for UdpTransport {
    fn reach(&mut self, _peer: Task) -> Reach {
        Reach::None
    }

    unsafe fn expose(&mut self, _peer: Task, _memory: Piece, _exposure: Exposure) -> io::Result<Key> {
        Err(io::ErrorKind::Unsupported.into())
    }

    unsafe fn access(&mut self, _peer: Task, _transfer: Transfer<'_>) -> io::Result<Started> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl UdpTransport {
    /// Does what is due.
    pub(super) fn serve(&mut self) {
        self.look_for_deaths();
        self.advance();
        self.look_at_others(self.now());
    }

    fn hold(&mut self, task: Task, held: bool) {
        let Some(peer) = self.peer_mut(task) else { return };
        if std::mem::replace(&mut peer.held, held) == held || peer.unnamed {
            return;
        }
        if held {
            self.arrivals.withhold(task);
        } else {
            self.hand_out(task);
        }
    }

    /// Goes through all peers that were met: no call that moves data does this.
    fn acknowledge_every(&mut self, datagrams: u16) {
        self.parameters.acknowledge_every = datagrams.max(1);
        for session in self.table.sessions_mut() {
            session.connection.acknowledge_every(datagrams.max(1));
        }
    }

    /// Whether the network is to be polled before the next packet is taken. Also while packets are
    /// there: the peers wait for acknowledgements, and timers end.
    #[inline]
    fn must_poll(&mut self) -> bool {
        if self.arrivals.has_packets() { self.rest.is_due() } else { !self.rests() }
    }

    /// Whether a poll can be left out ([`PollPause`](crate::transport::poll_pause::PollPause)):
    /// nothing waits for room.
    #[inline]
    fn rests(&mut self) -> bool {
        self.rest.take() && !self.outlet.is_blocked()
    }

    /// Why a packet of this length is not accepted.
    #[inline]
    fn refusal(&mut self, task: Task, len: usize) -> Option<SendOutcome> {
        if self.has_room(task, len) && !self.closed { None } else { self.refusal_unless_room(task, len) }
    }

    #[inline]
    fn has_room(&self, task: Task, len: usize) -> bool {
        self.peer(task).is_some_and(|peer| {
            let connection = peer.session.as_ref().map(|session| &session.connection);
            // What is accepted before the connection is made is sent as soon as it is.
            peer.standing == Presence::Up && connection.is_some_and(|own| own.has_room(len))
        })
    }

    #[cold]
    fn refusal_unless_room(&mut self, task: Task, len: usize) -> Option<SendOutcome> {
        if self.closed || !self.meet(task) {
            return Some(SendOutcome::Gone);
        }
        if self.still_refuses(task) {
            return Some(SendOutcome::NoRoom);
        }
        // An acknowledgement may have arrived.
        self.advance();
        let (room, now) = (self.has_room(task, len), self.now());
        let peer = self.peer_mut(task).filter(|_| !room)?;
        let refusal = peer.standing.refusal();
        if refusal == SendOutcome::NoRoom {
            peer.no_room = true;
            if let Some(session) = &mut peer.session {
                session.connection.await_room(now);
            }
            self.touch(task);
        }
        Some(refusal)
    }

    /// Whether nothing can have changed since the peer had no room: nothing has happened since, and
    /// the last poll was just before. One poll for each of many peers without room would take long.
    fn still_refuses(&self, task: Task) -> bool {
        let waits = |peer: &Peer| {
            let comes = matches!(peer.standing, Presence::Up | Presence::Meeting | Presence::Rejoining);
            peer.no_room && comes
        };
        self.peer(task).is_some_and(waits) && self.rest.is_recent()
    }

    /// Whether the peer has everything that was sent to it, and knows of this task's end
    /// when there is one.
    pub(super) fn has_everything(&self, task: Task) -> bool {
        self.peer(task).is_none_or(|peer| match (&peer.standing, &peer.session) {
            (Presence::Up | Presence::Meeting | Presence::Rejoining, Some(session)) => {
                session.connection.is_settled()
            }
            _ => true,
        })
    }

    /// The packets of a peer that have arrived can be taken from now on.
    pub(super) fn hand_out(&mut self, task: Task) {
        let Some(peer) = self.peer(task).filter(|peer| peer.hands_out()) else { return };
        let waiting = peer.session.as_ref().map_or(0, |session| session.connection.waiting());
        self.arrivals.ready.extend(std::iter::repeat_n(task, waiting));
    }
}

impl Out {
    fn inbound(&self) -> Inbound {
        let (head, body) = self.packet.buffer.split_at(self.packet.head_len / 8);
        Inbound {
            src: self.from,
            head: head.as_ptr().cast(),
            head_len: self.packet.head_len,
            body: body.as_ptr().cast(),
            body_len: self.packet.len - self.packet.head_len,
            token: 0,
        }
    }
}

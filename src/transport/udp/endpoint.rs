//! Packets through the endpoint.

use super::{Out, Refusals, UdpTransport};
use crate::base::clock::now;
use crate::transport::presence::Presence;
use crate::transport::{
    Door, Endpoint, Exposure, Inbound, Key, Limits, Look, Outgoing, Piece, Reach, RemoteAccess, Report,
    SendOutcome, Started, Tally, Task, Transfer, Want, parcel,
};
use std::io;
use std::time::{Duration, Instant};

/// When something that had no room in the device is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(1);

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
        let Self { peers, buffers, .. } = self;
        let session = peers[task as usize].as_deref_mut().and_then(|peer| peer.session.as_mut());
        let (Some(session), Some(mut buffer)) = (session, buffers.take(len)) else {
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
        assert!(self.out.is_none(), "the packet before has not been released");
        if self.ready.is_empty() && !self.rests() {
            self.advance();
        }
        while let Some(from) = self.ready.pop_front() {
            let Some(peer) = self.peers[from as usize].as_deref_mut() else { continue };
            let Some(session) = &mut peer.session else { continue };
            let Some(packet) = session.connection.take() else { continue };
            peer.taken += 1;
            self.rest.note_packet();
            let out = self.out.insert(Out { from, connection: session.connection.mine(), packet });
            return Some(out.inbound());
        }
        None
    }

    fn may_receive(&mut self, _look: Look) -> bool {
        true
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
                let is_up = self.peer(task).is_some_and(|peer| peer.standing == Presence::Up);
                if is_up && !self.kicks.contains(&task) {
                    self.kicks.push(task);
                }
            }
            Want::Hold(task, held) => self.hold(task, held),
            Want::AcknowledgeEvery(datagrams) => self.acknowledge_every(datagrams),
            Want::Serve => self.serve(),
            Want::Wake => self.sleeper.signal(),
            Want::Flush | Want::Polling(..) | Want::Fetched(..) => {}
        }
    }

    #[inline]
    fn release(&mut self, _packet: Inbound) {
        let Some(Out { from, connection, packet }) = self.out.take() else { return };
        let session = self.peers[from as usize].as_deref_mut().and_then(|peer| peer.live());
        let session = session.filter(|session| session.connection.mine() == connection);
        if session.is_some_and(|session| session.connection.release(packet.fragments)) {
            self.touch(from);
        }
        self.buffers.give(packet.buffer);
    }

    fn report(&mut self) -> Option<Report> {
        let (task, epoch) = self.back.pop_front()?;
        if let Some(peer) = self.peer_mut(task) {
            peer.unnamed = false;
        }
        self.hand_out(task);
        Some(Report::Joined(task, epoch))
    }

    fn due(&self) -> Option<Instant> {
        self.device.as_ref()?;
        if !self.kicks.is_empty() || !self.touched.is_empty() {
            return Some(now());
        }
        let retry = self.batch.is_blocked().then(|| now() + RETRY);
        let alarm = self.alarms.next().map(|at| self.start + Duration::from_nanos(at));
        let news = self.watch.as_ref().and_then(|watch| watch.due());
        let news = news.map(|at| self.start + Duration::from_nanos(at));
        retry.into_iter().chain(alarm).chain(news).min()
    }

    /// A datagram that was accepted before is a duplicate, whether the network or a stranger has
    /// sent it again.
    fn tally(&self) -> Tally {
        let Refusals { forged, replayed } = self.refusals;
        let unsettled = self.met.iter().filter(|&&task| !self.has_everything(task)).count();
        let outstanding = if self.device.is_none() { 0 } else { unsettled as u64 };
        let mut sum = Tally { outstanding, refused: forged, duplicates: replayed, ..Tally::default() };
        sum += self.past;
        let sessions = self.met.iter().filter_map(|&task| self.peer(task)?.session.as_ref());
        sessions.for_each(|session| sum += session.tally());
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
            self.ready.retain(|from| *from != task);
        } else {
            self.hand_out(task);
        }
    }

    /// Goes through all peers that were met: no call that moves data does this.
    fn acknowledge_every(&mut self, datagrams: u16) {
        self.parameters.acknowledge_every = datagrams.max(1);
        for peer in self.peers.iter_mut().flatten() {
            if let Some(session) = &mut peer.session {
                session.connection.acknowledge_every(datagrams.max(1));
            }
        }
    }

    /// Whether a poll can be left out ([`PollPause`](crate::transport::poll_pause::PollPause)):
    /// nothing waits for room.
    #[inline]
    fn rests(&mut self) -> bool {
        self.rest.take() && !self.batch.is_blocked()
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
        // An acknowledgement may have arrived.
        self.advance();
        let (room, now) = (self.has_room(task, len), self.now());
        let peer = self.peer_mut(task)?;
        match peer.standing {
            Presence::Up if room => None,
            Presence::Up | Presence::Meeting | Presence::Rejoining => {
                peer.no_room = true;
                if let Some(session) = &mut peer.session {
                    session.connection.await_room(now);
                }
                self.touch(task);
                Some(SendOutcome::NoRoom)
            }
            Presence::Closed | Presence::Dead(_) | Presence::HasParted | Presence::Parted => {
                Some(SendOutcome::Gone)
            }
        }
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
        let Some(peer) = self.peers[task as usize].as_deref().filter(|peer| peer.hands_out()) else { return };
        let waiting = peer.session.as_ref().map_or(0, |session| session.connection.waiting());
        self.ready.extend(std::iter::repeat_n(task, waiting));
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

//! The peers: first contact, state, parting and rejoining.
//!
//! Tasks that have parted connect again by two messages. Each side chooses a tag, and sends it until it knows that the other has it:
//! a message with the receiver's own tag as echo proves that. What the other side has sent before this one lets it rejoin is
//! kept. A message from a process that has ended meanwhile does no harm: its successor gets an echo that is not its own, and
//! sends its tag again.

use super::ofi::Address;
use super::receive::Arrived;
use super::{FabricTransport, MAX_BODY, PUBLISHED_BEFORE, WINDOW};
use crate::error::Result;
use crate::transport::{ConnectionView, Endpoint, NO_EPOCH, PeerState, Peers, Task};
use crate::wire::network::{Frame, Kind, REJOIN, Rejoin};
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// What this task has of one peer, from first contact on.
pub(super) struct Peer {
    /// What the peer has published, and where that is in the address vector.
    pub(super) published: Box<[u8]>,
    pub(super) address: Option<Address>,
    pub(super) standing: Standing,
    /// The tags of frames from the peer and to it.
    pub(super) mine: u32,
    pub(super) theirs: u32,
    /// Packets sent in this connection and received in it, modulo 2^32.
    pub(super) sent: u32,
    pub(super) received: u32,
    /// Packets that were sent and whose credits were not returned.
    pub(super) in_flight: u32,
    /// Packets that were released and whose credits were not returned.
    pub(super) owed: Cell<u16>,
    /// Messages to it that wait for room in the endpoint.
    pub(super) queued: u32,
    /// A packet found no room.
    pub(super) no_room: bool,
    /// A message was sent to it or came from it in this connection: it is told when this task ends LAPI.
    pub(super) met: bool,
    /// Nothing is taken from it now.
    pub(super) held: bool,
    /// Its packets that are not to be taken yet: it is held, or this task does not know yet that it has rejoined.
    pub(super) aside: VecDeque<Arrived>,
    /// Its packets that have arrived and were not taken.
    pub(super) waiting: u32,
    pub(super) progress: u64,
    /// The transport's own messages that are to be sent: bits of [`Wants`].
    wants: Cell<u8>,
    /// It was sent a greeting in this connection.
    greeted: Cell<bool>,
    /// It departs when this number of packets has been received.
    departs_after: Option<u32>,
    /// It has everything that this task sent, and knows that this task has ended LAPI.
    pub(super) knows_departure: bool,
    /// The epoch that it is sent.
    epoch: u64,
    /// It wants to rejoin.
    hello: Option<Rejoin>,
}

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Up,
    /// It has ended LAPI.
    Closed,
    /// It cannot be reached: why.
    Dead(String),
    /// This task has parted from it.
    Parted,
    /// It may rejoin.
    Awaited,
}

/// Bits of the messages that a peer is to be sent.
pub(super) struct Wants;

impl Wants {
    pub(super) const CREDITS: u8 = 1;
    pub(super) const GREETING: u8 = 2;
    pub(super) const REJOIN: u8 = 4;
    pub(super) const DEPARTURE: u8 = 8;
    pub(super) const SEEN: u8 = 16;
    pub(super) const KICK: u8 = 32;
    /// The notices that have no room.
    pub(super) const NOTICE: u8 = 64;

    /// Those that are a frame alone.
    const FRAMES: [(u8, Kind); 5] = [
        (Self::CREDITS, Kind::Credits),
        (Self::GREETING, Kind::Greeting),
        (Self::KICK, Kind::Kick),
        (Self::DEPARTURE, Kind::Departure),
        (Self::SEEN, Kind::DepartureSeen),
    ];
}

impl Peer {
    fn new(first_tag: u32) -> Self {
        Self {
            published: Box::default(),
            address: None,
            standing: Standing::Up,
            mine: first_tag,
            theirs: first_tag,
            sent: 0,
            received: 0,
            in_flight: 0,
            owed: Cell::new(0),
            queued: 0,
            no_room: false,
            met: false,
            held: false,
            aside: VecDeque::new(),
            waiting: 0,
            progress: 0,
            wants: Cell::new(0),
            greeted: Cell::new(false),
            departs_after: None,
            knows_departure: false,
            epoch: 0,
            hello: None,
        }
    }

    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.standing == Standing::Up
    }

    /// Nothing is known to be on its way.
    fn reset(&mut self) {
        (self.sent, self.received, self.in_flight) = (0, 0, 0);
        self.owed.set(0);
        (self.no_room, self.met, self.held, self.knows_departure) = (false, false, false, false);
        self.departs_after = None;
        self.wants.set(0);
        self.greeted.set(false);
    }

    /// It has ended LAPI or died.
    pub(super) fn has_left(&self) -> bool {
        matches!(self.standing, Standing::Closed | Standing::Dead(_))
    }

    /// Whether it knows of this task, or this task of it: they report their ends to each other.
    pub(super) fn has_met(&self) -> bool {
        self.met || self.greeted.get()
    }
}

impl Peers for FabricTransport {
    fn state(&self, peer: Task) -> PeerState {
        self.state_of(peer)
    }

    fn absence(&self, task: Task) -> Option<String> {
        match &self.peer(task)?.standing {
            Standing::Up => None,
            Standing::Closed => Some("has ended LAPI".to_owned()),
            Standing::Dead(why) => Some(why.clone()),
            Standing::Parted => Some("has left the job".to_owned()),
            Standing::Awaited => Some("has not rejoined yet".to_owned()),
        }
    }

    /// A peer from which something is awaited must know of this task, so that it reports its end.
    fn connect(&mut self, task: Task) {
        if task != self.me && !self.closed && self.meet(task) {
            let Some(peer) = self.peer(task) else { return };
            if !peer.has_met() && peer.is_up() {
                self.want(task, Wants::GREETING);
                self.send_own(task);
                self.settle();
            }
        }
    }

    fn progress(&self, task: Task) -> u64 {
        self.peer(task).map_or(0, |peer| peer.progress)
    }

    fn kick(&self, task: Task) {
        if self.peer(task).is_some_and(Peer::is_up) && !self.closed {
            self.want(task, Wants::KICK);
            self.try_send_own(task);
        }
    }

    fn view(&self, task: Task) -> Option<ConnectionView> {
        let peer = self.peer(task)?;
        Some(ConnectionView {
            in_flight: peer.in_flight.into(),
            window: WINDOW.into(),
            no_room: peer.no_room,
            asleep: false,
            arrived: peer.waiting != 0,
        })
    }

    fn part(&mut self, task: Task) {
        if task == self.me {
            return;
        }
        self.recall(task);
        self.drop_arrived(task);
        let fresh = self.fresh_tag();
        self.back.retain(|(back, _)| *back != task);
        let first = self.first_tag;
        let peer = self.peers[task as usize].get_or_insert_with(|| Box::new(Peer::new(first)));
        peer.reset();
        (peer.mine, peer.theirs) = (fresh, 0);
        peer.standing = Standing::Parted;
        self.drop_queued(task);
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        if task == self.me {
            return Ok(());
        }
        self.part(task);
        // The peer may be another process now. Without its address it is awaited: it sends that itself.
        if let Ok(published) = self.directory.address_of(task) {
            let _ = self.enter(task, &published);
        }
        if let Some(process) = self.directory.process_of(task) {
            self.note_process(task, process);
        }
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return Ok(()) };
        peer.standing = Standing::Awaited;
        peer.epoch = epoch;
        self.want(task, Wants::REJOIN);
        if let Some(hello) = self.peers[task as usize].as_ref().and_then(|peer| peer.hello) {
            self.accept(task, hello);
        }
        self.send_own(task);
        Ok(())
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        self.back.pop_front()
    }
}

impl FabricTransport {
    #[inline]
    pub(super) fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers.get(task as usize)?.as_deref()
    }

    #[inline]
    pub(super) fn peer_mut(&mut self, task: Task) -> Option<&mut Peer> {
        self.peers.get_mut(task as usize)?.as_deref_mut()
    }

    pub(super) fn state_of(&self, task: Task) -> PeerState {
        match self.peer(task).map(|peer| &peer.standing) {
            None | Some(Standing::Up | Standing::Awaited) => PeerState::Up,
            Some(Standing::Closed) => PeerState::Closed,
            Some(Standing::Dead(_) | Standing::Parted) => PeerState::Dead,
        }
    }

    /// First contact: enters the peer's address. Whether the peer is known now; one without an address is dead.
    pub(super) fn meet(&mut self, task: Task) -> bool {
        if self.peer(task).is_some() {
            return true;
        }
        let Some(place) = self.peers.get_mut(task as usize) else { return false };
        *place = Some(Box::new(Peer::new(self.first_tag)));
        let entered = match self.directory.address_of(task) {
            Ok(published) => self.enter(task, &published),
            Err(error) => Err(error.detail),
        };
        if let Err(why) = entered {
            self.lose(task, why);
        }
        true
    }

    /// Enters what the peer has published.
    fn enter(&mut self, task: Task, published: &[u8]) -> std::result::Result<(), String> {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return Ok(()) };
        if peer.address.is_some() && *peer.published == *published {
            return Ok(());
        }
        let Some((numbers, address)) = published.split_at_checked(PUBLISHED_BEFORE) else {
            return Err("has published no address of libfabric".to_owned());
        };
        if numbers != &self.published[..PUBLISHED_BEFORE] {
            return Err("uses another provider of libfabric, or another version".to_owned());
        }
        let entered = self.device.insert(address);
        peer.address =
            Some(entered.map_err(|errno| format!("has an address that is refused: {}", errno.text()))?);
        peer.published = published.into();
        Ok(())
    }

    /// The peer cannot be reached any more.
    pub(super) fn lose(&mut self, task: Task, why: String) {
        self.leave(task, Standing::Dead(why));
    }

    fn leave(&mut self, task: Task, how: Standing) {
        if how == Standing::Closed {
            self.note_closed(task);
        }
        let Some(peer) = self.peer_mut(task) else { return };
        if !peer.is_up() {
            return;
        }
        peer.standing = how;
        peer.no_room = false;
        self.left.push(task);
        self.noted = true;
    }

    /// Messages to it that wait for room are not sent.
    pub(super) fn drop_queued(&mut self, task: Task) {
        let Self { queued, sends, .. } = self;
        queued.retain(|slot| {
            let drop = sends.get(*slot).is_none_or(|send| send.peer == task);
            if drop {
                sends.end(*slot);
            }
            !drop
        });
        if let Some(peer) = self.peer_mut(task) {
            peer.queued = 0;
        }
    }

    /// What has arrived from the peer and was not taken is gone.
    fn drop_arrived(&mut self, task: Task) {
        let Self { ready, buffers, device, peers, .. } = self;
        let mut kept = VecDeque::with_capacity(ready.len());
        for arrived in ready.drain(..) {
            if arrived.src == task { buffers.release(device, arrived) } else { kept.push_back(arrived) }
        }
        *ready = kept;
        if let Some(peer) = peers[task as usize].as_deref_mut() {
            peer.waiting = 0;
            peer.aside.drain(..).for_each(|arrived| buffers.release(device, arrived));
        }
    }

    /// A tag that this task has not used for any peer, and that no former process with its number has used lately.
    fn fresh_tag(&mut self) -> u32 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() >> 16);
        let ahead = (now as u32).wrapping_sub(self.last_tag) < 1 << 31;
        let tag = if ahead { now as u32 | 1 } else { self.last_tag };
        self.last_tag = if tag == self.last_tag { tag.wrapping_add(2) } else { tag };
        self.last_tag
    }

    /// The peer is to be sent one of the transport's own messages.
    pub(super) fn want(&self, task: Task, what: u8) {
        let Some(peer) = self.peer(task) else { return };
        let before = peer.wants.replace(peer.wants.get() | what);
        if before == 0 {
            self.pending.borrow_mut().push(task);
        }
    }

    /// That was sent, or is not to be sent after all.
    pub(super) fn want_no_more(&self, task: Task, what: u8) {
        if let Some(peer) = self.peer(task) {
            peer.wants.set(peer.wants.get() & !what);
        }
    }

    /// Sends the transport's own messages for which there is room; an error means that the peer is lost.
    pub(super) fn send_own(&mut self, task: Task) {
        self.send_rejoin(task);
        if self.peer(task).is_some_and(|peer| peer.wants.get() & Wants::NOTICE != 0) {
            self.send_notices(task);
        }
        if let Some(why) = self.try_send_own(task) {
            self.lose(task, why);
        }
    }

    /// The same; returns why the peer is lost, if it is.
    pub(super) fn try_send_own(&self, task: Task) -> Option<String> {
        let peer = self.peer(task)?;
        for (bit, kind) in Wants::FRAMES {
            if peer.wants.get() & bit == 0 {
                continue;
            }
            match self.send_frame(peer, kind) {
                Ok(()) => {
                    peer.wants.set(peer.wants.get() & !bit);
                    peer.greeted.set(peer.greeted.get() || bit == Wants::GREETING);
                }
                Err(errno) if errno.is_again() => return None,
                Err(errno) => {
                    peer.wants.set(0);
                    return Some(errno.text());
                }
            }
        }
        None
    }

    /// Sends this task's tag, epoch and address to a peer that may rejoin.
    fn send_rejoin(&mut self, task: Task) {
        let (me, tag) = (self.me, self.first_tag);
        let Some(peer) = self.peer(task).filter(|peer| peer.wants.get() & Wants::REJOIN != 0) else { return };
        if peer.address.is_some() && !self.sends.has_free() {
            return;
        }
        peer.wants.set(peer.wants.get() & !Wants::REJOIN);
        if peer.address.is_none() {
            return;
        }
        let rejoin = Rejoin { tag: peer.mine, echo: peer.theirs, epoch: peer.epoch };
        let body_len = (REJOIN + self.published.len()) as u32;
        let frame = Frame { kind: Kind::Rejoin, src: me, tag, credits: 0, head_len: 0, body_len };
        let mut message = frame.encode().to_vec();
        message.extend(rejoin.encode());
        message.extend(&self.published);
        message.resize(message.len().next_multiple_of(8), 0);
        let words: Vec<u64> = message
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(std::array::from_fn(|at| word[at])))
            .collect();
        if let Some(slot) = self.sends.make_of(task, &words) {
            self.post_own(task, slot);
        }
    }

    fn send_frame(&self, peer: &Peer, kind: Kind) -> std::result::Result<(), super::ofi::Errno> {
        let Some(address) = peer.address else { return Ok(()) };
        let mut frame = Frame { kind, src: self.me, tag: peer.theirs, credits: 0, head_len: 0, body_len: 0 };
        match kind {
            Kind::Credits => frame.credits = peer.owed.get(),
            Kind::Departure => frame.body_len = peer.sent,
            _ => {}
        }
        self.device.inject(&frame.encode(), address)?;
        if kind == Kind::Credits {
            peer.owed.set(0);
        }
        Ok(())
    }

    /// Whether messages of the transport's own wait for room.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Sends the transport's own messages that had no room.
    #[cold]
    pub(super) fn send_pending(&mut self) {
        let tasks = std::mem::take(&mut *self.pending.borrow_mut());
        for task in tasks {
            if self.peer(task).is_some_and(|peer| peer.wants.get() != 0) {
                self.send_own(task);
                if self.peer(task).is_some_and(|peer| peer.wants.get() != 0) {
                    self.pending.borrow_mut().push(task);
                }
            }
        }
    }

    /// The peer has said that it departs.
    pub(super) fn note_departure(&mut self, task: Task, after: u32) {
        if let Some(peer) = self.peer_mut(task) {
            peer.departs_after = Some(after);
            self.look_at_departure(task);
        }
    }

    /// A peer that departs has left when all its packets have arrived.
    #[inline]
    pub(super) fn look_at_departure(&mut self, task: Task) {
        let Some(peer) = self.peer_mut(task) else { return };
        if peer.departs_after == Some(peer.received) {
            self.want(task, Wants::SEEN);
            let _ = self.try_send_own(task);
            self.leave(task, Standing::Closed);
        }
    }

    /// A peer wants to rejoin.
    #[cold]
    pub(super) fn note_hello(&mut self, task: Task, after: &[u8], body_len: usize) {
        let Some((hello, address)) = after.get(..body_len).and_then(Rejoin::decode) else { return };
        let first = self.first_tag;
        let peer = self.peers[task as usize].get_or_insert_with(|| Box::new(Peer::new(first)));
        if peer.is_up() && hello.tag == peer.theirs {
            // It is connected already: this is the proof that the other side waited for.
            return;
        }
        peer.hello = Some(hello);
        if peer.is_up() && !peer.has_met() {
            // A task that rejoins the job, and this one has not had contact with it before.
            let fresh = self.fresh_tag();
            let Some(peer) = self.peer_mut(task) else { return };
            (peer.mine, peer.standing, peer.epoch) = (fresh, Standing::Awaited, NO_EPOCH);
        }
        if self.enter(task, address).is_ok()
            && self.peer(task).is_some_and(|peer| peer.standing == Standing::Awaited)
        {
            self.accept(task, hello);
        }
    }

    /// A peer that this task lets rejoin has sent its tag.
    fn accept(&mut self, task: Task, hello: Rejoin) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        peer.theirs = hello.tag;
        if hello.echo == peer.mine {
            peer.standing = Standing::Up;
            peer.met = true;
            peer.hello = None;
            let early = std::mem::take(&mut peer.aside);
            self.ready.extend(early);
            self.back.push_back((task, hello.epoch));
            self.noted = true;
        }
        // The peer waits for the proof that this task has its tag.
        self.want(task, Wants::REJOIN);
        self.send_own(task);
    }
}

const _: () = assert!(MAX_BODY <= u32::MAX as usize && WINDOW <= u16::MAX as u32);

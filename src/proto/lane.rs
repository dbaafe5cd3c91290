//! What is on its way to one peer: packets that wait for room, and streams.

use super::Link;
use super::content::{Content, whole_atoms};
use super::lent::{Key, Lent};
use super::outbox::{Continuation, SendDone};
use crate::base::bytes::{Piece, Source, pad8};
use crate::wire::frame::{Outgoing, SendError, Task, Ticket};
use crate::wire::packet::{Encoded, Head};
use std::collections::VecDeque;

pub(super) enum Kept {
    /// A copy; `header` bytes of it are the first piece.
    Owned { bytes: Box<[u8]>, header: usize },
    /// The header copied, the data where it is.
    Borrowed { header: Box<[u8]>, data: Content },
}

pub(super) struct Parked {
    pub(super) head: Encoded,
    pub(super) body: Kept,
    pub(super) done: Option<SendDone>,
}

pub(super) struct Stream {
    /// The first packet's head and user header, until it is out.
    pub(super) first: Option<(Encoded, Box<[u8]>)>,
    pub(super) next: Continuation,
    pub(super) data: Content,
    /// What `data` refers to, when it is a copy.
    pub(super) _copy: Option<Box<[u8]>>,
    /// Packets hold whole multiples of so many bytes; 0: any number.
    pub(super) atom: usize,
    pub(super) sent: usize,
    /// Packets of it were taken.
    pub(super) lent: Option<Key>,
    pub(super) done: Option<SendDone>,
}

#[derive(Default)]
pub(super) struct Lane {
    /// How many messages were numbered; a packet carries the lower half of its message's number.
    pub(super) next: u64,
    /// Messages below this number are known to be delivered, as far as fences have asked.
    pub(super) acknowledged: u64,
    /// The number that the last fence packet asked about.
    pub(super) asked: u64,
    pub(super) parked: VecDeque<Parked>,
    pub(super) streams: VecDeque<Stream>,
    pub(super) busy: bool,
    pub(super) gone: bool,
    /// See [`Traffic::seen`].
    pub(super) seen: u32,
}

/// What is on its way to one peer, for one who asks why nothing moves.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// The peer.
    pub peer: Task,
    /// Packets that wait for room.
    pub parked: usize,
    /// Their bytes, user headers and data.
    pub parked_bytes: usize,
    /// Streams: bytes sent, and bytes in all.
    pub streams: Vec<(usize, usize)>,
    /// How many messages were numbered.
    pub messages: u64,
    /// Of how many of them a fence has asked whether they are delivered, when that is not answered yet.
    pub asked: Option<u64>,
    /// The moment at which [`super::outbox::Outbox::mark`] first saw that something waits for room; 0: not yet.
    pub seen: u32,
    /// The peer has left.
    pub gone: bool,
}

impl Lane {
    pub(super) fn traffic(&self, peer: Task) -> Traffic {
        let bytes = |parked: &Parked| match &parked.body {
            Kept::Owned { bytes, .. } => bytes.len(),
            Kept::Borrowed { header, data } => header.len() + data.len(),
        };
        Traffic {
            peer,
            parked: self.parked.len(),
            parked_bytes: self.parked.iter().map(bytes).sum(),
            streams: self.streams.iter().map(|stream| (stream.sent, stream.data.len())).collect(),
            messages: self.next,
            asked: (self.acknowledged < self.asked).then_some(self.asked),
            seen: self.seen,
            gone: self.gone,
        }
    }

    /// Whether something that waits here raises this counter when it is out.
    pub(super) fn raises(&self, counter: usize) -> bool {
        let parked = self.parked.iter().filter_map(|parked| parked.done);
        parked
            .chain(self.streams.iter().filter_map(|stream| stream.done))
            .any(|done| done.org_cntr == counter)
    }
}

/// How many packets of streams one call of [`super::outbox::Outbox::pump`] sends to one peer: then others have their turn.
pub(super) const PUMP_BUDGET: usize = 32;

impl Lane {
    pub(super) fn pump(
        &mut self,
        link: &mut impl Link,
        peer: Task,
        max_body: usize,
        lent: &mut Lent,
        finished: &mut Vec<SendDone>,
        moved: &mut bool,
    ) -> Result<(), SendError> {
        while let Some(parked) = self.parked.front() {
            let (first, second, copy_limit) = match &parked.body {
                Kept::Owned { bytes, header } => {
                    let (first, second) = bytes.split_at(*header);
                    (Piece::of(first), Piece::of(second).into(), usize::MAX)
                }
                Kept::Borrowed { header, data } => (Piece::of(header), data.part(0, data.len()), 0),
            };
            let packet = Outgoing { head: parked.head.as_bytes(), first, second, copy_limit };
            // SAFETY: copies are ours; borrowed data is promised by the caller of `post` until it is reported.
            let ticket = unsafe { link.send(peer, &packet) }.accepted()?;
            *moved = true;
            let mut message = None;
            ticket.into_iter().for_each(|ticket| lent.take(&mut message, peer, ticket));
            let done = self.parked.pop_front().and_then(|parked| parked.done);
            finished.extend(done.and_then(|done| follow(lent, message, done)));
        }
        for _ in 0..PUMP_BUDGET {
            let Some(stream) = self.streams.front_mut() else { break };
            // SAFETY: the data is promised by the caller of `send_stream` until it is reported.
            let ticket = unsafe { stream.send_one(link, peer, max_body) }?;
            *moved = true;
            ticket.into_iter().for_each(|ticket| lent.take(&mut stream.lent, peer, ticket));
            if stream.sent == stream.data.len() {
                let (message, done) = (stream.lent, stream.done);
                self.streams.pop_front();
                finished.extend(done.and_then(|done| follow(lent, message, done)));
            }
        }
        Ok(())
    }

    pub(super) fn abandon(&mut self, error: i32, finished: &mut Vec<SendDone>) {
        self.gone = true;
        let from = finished.len();
        finished.extend(self.parked.drain(..).filter_map(|parked| parked.done));
        finished.extend(self.streams.drain(..).filter_map(|stream| stream.done));
        finished[from..].iter_mut().for_each(|done| done.error = error);
    }
}

/// All packets of a message were accepted, and those of `message`, if any, were taken: what follows now.
fn follow(lent: &mut Lent, message: Option<Key>, done: SendDone) -> Option<SendDone> {
    match message {
        Some(key) => lent.accepted(key, done),
        None => Some(done),
    }
}

impl Stream {
    /// Sends the next packet: its ticket, if it was taken.
    ///
    /// # Safety
    /// The stream's data must be readable, and until it is reported when it is taken.
    unsafe fn send_one(
        &mut self,
        link: &mut impl Link,
        peer: Task,
        max_body: usize,
    ) -> Result<Option<Ticket>, SendError> {
        let left = self.data.len() - self.sent;
        let copy_limit = if self._copy.is_some() { usize::MAX } else { 0 };
        if let Some((head, header)) = &self.first {
            let room = max_body - pad8(header.len());
            let chunk = left.min(whole_atoms(room, self.atom));
            let data = self.data.part(0, chunk);
            let packet =
                Outgoing { head: head.as_bytes(), first: Piece::of(header), second: data, copy_limit };
            // SAFETY: the caller's promise.
            let ticket = unsafe { link.send(peer, &packet) }.accepted()?;
            self.first = None;
            self.sent = chunk;
            return Ok(ticket);
        }
        let chunk = left.min(whole_atoms(max_body, self.atom));
        let offset = self.sent as u64;
        let head = match self.next {
            Continuation::Message(id) => Head::Data { id, offset },
            Continuation::Reply(cookie) => Head::Reply { cookie, offset },
        }
        .encode();
        let second = self.data.part(self.sent, chunk);
        let packet = Outgoing { head: head.as_bytes(), first: Piece::EMPTY, second, copy_limit };
        // SAFETY: the caller's promise.
        let ticket = unsafe { link.send(peer, &packet) }.accepted()?;
        self.sent += chunk;
        Ok(ticket)
    }
}

/// # Safety
/// The bytes must be readable.
pub(super) unsafe fn append(to: &mut Vec<u8>, bytes: Source<'_>) {
    to.reserve(bytes.len());
    // SAFETY: the room was just reserved, and the caller vouches for the bytes.
    unsafe {
        bytes.copy_to(to.as_mut_ptr().add(to.len()));
        to.set_len(to.len() + bytes.len());
    }
}

//! What is on its way to one peer: packets that wait for room, and streams.

use super::Transmit;
use super::content::{Content, whole_atoms};
use super::lent::{Key, Lent};
use super::send::{Continuation, SendDone, Traffic};
use crate::memory::bytes::{Piece, Source, pad8};
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
    /// The copy takes one of the buffers.
    pub(super) buffered: bool,
    /// A header handler has sent it.
    pub(super) forwarded: bool,
}

/// What is taken by what waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// This task's memory, in bytes. The program's own does not count.
    pub(super) bytes: usize,
    /// Those of them that header handlers have sent.
    pub(super) forwarded: usize,
    /// Copies that take a buffer.
    pub(super) buffers: usize,
}

impl Taken {
    /// A part of this has changed.
    pub(super) fn change(&mut self, before: Self, after: Self) {
        self.bytes = self.bytes - before.bytes + after.bytes;
        self.forwarded = self.forwarded - before.forwarded + after.forwarded;
        self.buffers = self.buffers - before.buffers + after.buffers;
    }
}

impl Parked {
    fn taken(&self) -> Taken {
        let body = match &self.body {
            Kept::Owned { bytes, .. } => bytes.len(),
            Kept::Borrowed { header, .. } => header.len(),
        };
        let bytes = size_of::<Self>() + body;
        Taken {
            bytes,
            forwarded: if self.forwarded { bytes } else { 0 },
            buffers: usize::from(self.buffered),
        }
    }
}

pub(super) struct Stream {
    /// The first packet's head and user header, until it is out.
    pub(super) first: Option<(Encoded, Box<[u8]>)>,
    pub(super) next: Continuation,
    pub(super) data: Content,
    /// What `data` refers to, when it is a copy, which takes one of the buffers.
    pub(super) copy: Option<Box<[u8]>>,
    /// Packets hold whole multiples of this many bytes; 0: any number.
    pub(super) atom: usize,
    pub(super) sent: usize,
    /// Packets of it were taken.
    pub(super) lent: Option<Key>,
    pub(super) done: Option<SendDone>,
    /// A header handler has sent it.
    pub(super) forwarded: bool,
}

impl Stream {
    /// The first packet's user header counts as long as the stream lives.
    fn taken(&self) -> Taken {
        let bytes = size_of::<Self>() + self.copy.as_ref().map_or(0, |copy| copy.len());
        Taken {
            bytes,
            forwarded: if self.forwarded { bytes } else { 0 },
            buffers: usize::from(self.copy.is_some()),
        }
    }
}

/// How many parked packets go out before it is the turn of a packet of a stream.
const PARKED_PER_STREAM: u32 = 4;

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
    /// By what is parked and by streams.
    pub(super) taken: Taken,
    /// How many small packets have gone out since the last one of a stream, up to
    /// [`PARKED_PER_STREAM`].
    since_stream: u32,
    /// A fence packet about `asked` has found no room. It takes no memory, and cannot be lost.
    pub(super) fence_waits: bool,
    /// Something is parked, a fence packet waits, or a stream is under way.
    pub(super) busy: bool,
    pub(super) gone: bool,
    /// See [`Traffic::seen`].
    pub(super) seen: u32,
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

/// How many packets of streams one call of [`super::outbox::Outbox::pump`] sends to one peer: then
/// others have their turn.
pub(super) const PUMP_BUDGET: usize = 32;

impl Lane {
    pub(super) fn pump(
        &mut self,
        link: &mut impl Transmit,
        peer: Task,
        max_body: usize,
        lent: &mut Lent,
        finished: &mut Vec<SendDone>,
        moved: &mut bool,
    ) -> Result<(), SendError> {
        if self.fence_waits {
            self.send_fence(link, peer)?;
            *moved = true;
        }
        let mut budget = PUMP_BUDGET;
        loop {
            if self.is_streams_turn() && budget != 0 {
                budget -= 1;
                // Without room for it nothing else goes out: what is smaller would take the
                // room for ever.
                self.pump_stream(link, peer, max_body, lent, finished)?;
                *moved = true;
                continue;
            }
            let Some(parked) = self.parked.front() else { return Ok(()) };
            let (first, second, copy_limit) = match &parked.body {
                Kept::Owned { bytes, header } => {
                    let (first, second) = bytes.split_at(*header);
                    (Piece::of(first), Piece::of(second).into(), usize::MAX)
                }
                Kept::Borrowed { header, data } => (Piece::of(header), data.part(0, data.len()), 0),
            };
            let packet = Outgoing { head: parked.head.as_bytes(), first, second, copy_limit };
            // SAFETY: copies are ours; borrowed data is promised by the caller of `send` until
            // it is reported.
            let ticket = unsafe { link.send(peer, &packet) }.accepted()?;
            *moved = true;
            self.since_stream = (self.since_stream + 1).min(PARKED_PER_STREAM);
            let mut message = None;
            ticket.into_iter().for_each(|ticket| lent.take(&mut message, peer, ticket));
            if let Some(parked) = self.parked.pop_front() {
                self.taken.change(parked.taken(), Taken::default());
                finished.extend(parked.done.and_then(|done| follow(lent, message, done)));
            }
        }
    }

    /// Asks the peer to confirm the messages before `asked`. If the link has no room the packet
    /// waits.
    pub(super) fn send_fence(&mut self, link: &mut impl Transmit, peer: Task) -> Result<(), SendError> {
        self.fence_waits = true;
        let head = Head::Fence { count: self.asked as u32 }.encode();
        let (first, second) = (Piece::EMPTY, Piece::EMPTY.into());
        let packet = Outgoing { head: head.as_bytes(), first, second, copy_limit: usize::MAX };
        // SAFETY: the packet has no body.
        unsafe { link.send(peer, &packet) }.accepted()?;
        self.fence_waits = false;
        Ok(())
    }

    fn pump_stream(
        &mut self,
        link: &mut impl Transmit,
        peer: Task,
        max_body: usize,
        lent: &mut Lent,
        finished: &mut Vec<SendDone>,
    ) -> Result<(), SendError> {
        let Some(stream) = self.streams.front_mut() else { return Ok(()) };
        // SAFETY: the data is promised by the caller of `send_stream` until it is reported.
        let ticket = unsafe { stream.send_one(link, peer, max_body) }?;
        self.since_stream = 0;
        ticket.into_iter().for_each(|ticket| lent.take(&mut stream.lent, peer, ticket));
        if stream.sent == stream.data.len()
            && let Some(stream) = self.streams.pop_front()
        {
            self.taken.change(stream.taken(), Taken::default());
            finished.extend(stream.done.and_then(|done| follow(lent, stream.lent, done)));
        }
        Ok(())
    }

    /// Whether the next packet is one of a stream.
    fn is_streams_turn(&self) -> bool {
        !self.streams.is_empty() && (self.parked.is_empty() || self.since_stream >= PARKED_PER_STREAM)
    }

    /// Whether a small packet may go out before what waits: nothing small waits, and streams have
    /// had their turn.
    #[cold]
    pub(super) fn lets_pass(&mut self) -> bool {
        let nothing_small = self.parked.is_empty() && !self.fence_waits;
        let lets = nothing_small && self.since_stream < PARKED_PER_STREAM;
        self.since_stream += u32::from(lets);
        lets
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty() && !self.fence_waits && self.streams.is_empty()
    }

    pub(super) fn park(&mut self, parked: Parked) {
        self.taken.change(Taken::default(), parked.taken());
        self.parked.push_back(parked);
    }

    pub(super) fn add_stream(&mut self, stream: Stream) {
        self.taken.change(Taken::default(), stream.taken());
        self.streams.push_back(stream);
    }

    pub(super) fn abandon(&mut self, error: i32, finished: &mut Vec<SendDone>) {
        self.gone = true;
        self.fence_waits = false;
        self.taken = Taken::default();
        let from = finished.len();
        finished.extend(self.parked.drain(..).filter_map(|parked| parked.done));
        finished.extend(self.streams.drain(..).filter_map(|stream| stream.done));
        finished[from..].iter_mut().for_each(|done| done.error = error);
    }
}

/// All packets of a message were accepted, and those of `message`, if any, were taken:
/// what follows now.
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
        link: &mut impl Transmit,
        peer: Task,
        max_body: usize,
    ) -> Result<Option<Ticket>, SendError> {
        let left = self.data.len() - self.sent;
        let copy_limit = if self.copy.is_some() { usize::MAX } else { 0 };
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

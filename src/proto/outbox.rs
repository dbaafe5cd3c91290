//! Messages on their way out.
//!
//! Each peer has a *lane*. A packet goes out at once when the link takes it; otherwise it is *parked* in its lane,
//! and the call that sent it returns all the same: no call ever waits for room. A message longer than one packet is a
//! *stream*, cut as room comes. Parked packets go before streams, so that small messages pass large ones.
//!
//! A parked packet keeps its user header, and its data up to the caller's copy limit; above that it refers to the
//! program's memory, which the program leaves alone until its [`SendDone`] is reported. So it is with a packet that the
//! link has taken: the message is done when the link reports it.

use super::Link;
use super::content::Content;
pub use super::lane::Traffic;
use super::lane::{Kept, Lane, Parked, Stream, append};
use super::lent::Lent;
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::base::bytes::Piece;
use crate::wire::frame::{Outgoing, SendError, SendOutcome, Task, Ticket};
use crate::wire::packet::{Encoded, Head};

/// What follows when the memory that a message was sent from is free again. The protocol only carries it.
#[derive(Clone, Copy, Debug)]
pub struct SendDone {
    /// Address of the origin counter, or 0.
    pub org_cntr: usize,
    /// Address of the send completion handler, or 0.
    pub handler: usize,
    /// The handler's parameter.
    pub info: usize,
    /// The peer of the message.
    pub peer: Task,
    /// 0, or the error that ended the message.
    pub error: i32,
    /// Bytes of the program's data.
    pub bytes: u64,
    /// Bytes of one piece, for data that lies in many; 0 for data in a row.
    pub piece: u32,
    /// When it was posted, if the caller wants to know how long it took; 0 otherwise.
    pub posted: u64,
    /// False for what the library sends on its own account: it is not a send operation of the program.
    pub user: bool,
}

impl SendDone {
    /// Nothing to be told.
    pub const fn nothing(peer: Task) -> Self {
        Self { org_cntr: 0, handler: 0, info: 0, peer, error: 0, bytes: 0, piece: 0, posted: 0, user: false }
    }
}

/// What became of a message that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is out, or copied: the program's memory is free.
    Free,
    /// It refers to the program's memory; its [`SendDone`] will be reported.
    Queued,
    /// The peer has left.
    Gone,
}

/// The two pieces of a packet's body.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The user header.
    pub header: Piece,
    /// The data.
    pub data: &'a Content,
}

impl<'a> Body<'a> {
    /// No body.
    pub const EMPTY: Self = Self { header: Piece::EMPTY, data: &Content::EMPTY };

    /// Data without a user header.
    pub fn data(data: &'a Content) -> Self {
        Self { header: Piece::EMPTY, data }
    }

    fn len(&self) -> usize {
        self.header.len + self.data.len()
    }
}

/// How the packets of a stream after the first are headed.
#[derive(Clone, Copy, Debug)]
pub enum Continuation {
    /// As data of a message of ours.
    Message(u32),
    /// As data that the peer's operation asked for.
    Reply(u64),
}

/// How a stream is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streaming {
    /// The data is copied at once.
    pub copied: bool,
    /// Packets hold whole multiples of so many bytes; 0: any number.
    pub atom: usize,
}

/// All lanes of a task.
pub struct Outbox {
    lanes: Vec<Option<Box<Lane>>>,
    /// Lanes in which something waits.
    busy: Vec<Task>,
    /// Messages whose memory the link still reads.
    lent: Lent,
    /// How many entries `busy` and `lent` have, in one number for the hot path.
    waiting: usize,
    /// Lanes with messages that no fence has confirmed.
    unfenced: Vec<Task>,
    max_body: usize,
}

impl Outbox {
    /// For a job of `tasks` tasks and packets with bodies of at most `max_body` bytes.
    pub fn new(tasks: u32, max_body: usize) -> Self {
        let lanes = std::iter::repeat_with(|| None).take(tasks as usize).collect();
        let (lent, waiting) = (Lent::default(), 0);
        Self { lanes, busy: Vec::new(), lent, waiting, unfenced: Vec::new(), max_body }
    }

    /// The longest body of a packet.
    pub fn max_body(&self) -> usize {
        self.max_body
    }

    /// How much user header and data a packet holds, however long each of them is: MAX_PKT_SZ.
    #[inline]
    pub fn packet_size(&self) -> usize {
        // The header is padded to 8 bytes.
        self.max_body - 8
    }

    /// Whether something waits for room, or for the link to report it.
    #[inline]
    pub fn waiting(&self) -> bool {
        debug_assert_eq!(self.waiting, self.busy.len() + self.lent.len());
        self.waiting != 0
    }

    /// Whether the link still reads memory of a message to `peer`.
    pub fn lends(&self, peer: Task) -> bool {
        self.lent.peers().any(|lent| lent == peer)
    }

    /// How many packets are parked for `peer`.
    pub fn parked(&self, peer: Task) -> usize {
        self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.parked.len())
    }

    /// How many long messages to `peer` are not out yet.
    pub fn streams(&self, peer: Task) -> usize {
        self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.streams.len())
    }

    /// Whether a fence has asked `peer` for what it has not confirmed yet.
    pub fn asks(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_some_and(|lane| lane.acknowledged < lane.asked)
    }

    /// Whether `peer` has left, as far as was noticed.
    pub fn is_gone(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_some_and(|lane| lane.gone)
    }

    /// Whether something waits for room at `peer`, or for the link to report it.
    pub fn waits(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_some_and(|lane| lane.busy) || self.lends(peer)
    }

    /// The peers for which something waits; a peer may be named several times.
    pub fn waiting_for(&self) -> impl Iterator<Item = Task> + '_ {
        self.busy.iter().copied().chain(self.lent.peers())
    }

    /// The number of the next message to `peer`, which is thereby taken.
    #[inline]
    pub fn number(&mut self, peer: Task) -> u32 {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        let number = lane.next;
        if lane.acknowledged == number {
            self.unfenced.push(peer);
        }
        lane.next = number + 1;
        number as u32
    }

    /// Takes the last number back: its message was not sent.
    pub fn take_back(&mut self, peer: Task) {
        let Some(lane) = self.lanes[peer as usize].as_deref_mut() else { return };
        lane.next -= 1;
        if lane.next == lane.acknowledged {
            self.unfenced.retain(|&task| task != peer);
        }
    }

    /// Sends one packet, or parks it. With data of at most `copy_limit` bytes (header included) a parked packet keeps
    /// a copy, and `done` is dropped since the caller sees [`Sent::Free`].
    ///
    /// # Safety
    /// Both pieces must be readable now, and `data`, if it is longer than `copy_limit`, until the message is done when this
    /// returns `Queued`.
    #[inline]
    pub unsafe fn send(
        &mut self,
        link: &mut impl Link,
        peer: Task,
        head: &Head,
        body: Body<'_>,
        copy_limit: usize,
        done: SendDone,
    ) -> Sent {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        let head = head.encode();
        if lane.gone {
            return Sent::Gone;
        }
        if lane.parked.is_empty() {
            let packet = Outgoing {
                head: head.as_bytes(),
                first: body.header,
                second: body.data.part(0, body.data.len()),
                copy_limit,
            };
            // SAFETY: the caller's promise.
            match unsafe { link.send(peer, &packet) } {
                SendOutcome::Sent => return Sent::Free,
                SendOutcome::NoRoom => {}
                SendOutcome::Gone => {
                    lane.gone = true;
                    return Sent::Gone;
                }
                SendOutcome::Taken(ticket) => return self.lend(peer, ticket, done),
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.park(peer, head, body, copy_limit, done) }
    }

    /// The link has taken the only packet of a message.
    #[cold]
    fn lend(&mut self, peer: Task, ticket: Ticket, done: SendDone) -> Sent {
        let mut message = None;
        self.lent.take(&mut message, peer, ticket);
        if let Some(key) = message {
            // Its only packet has not been reported.
            let _ = self.lent.accepted(key, done);
        }
        self.count_waiting();
        Sent::Queued
    }

    fn count_waiting(&mut self) {
        self.waiting = self.busy.len() + self.lent.len();
    }

    #[cold]
    unsafe fn park(
        &mut self,
        peer: Task,
        head: Encoded,
        body: Body<'_>,
        copy_limit: usize,
        done: SendDone,
    ) -> Sent {
        let copied = body.len() <= copy_limit;
        let mut bytes = Vec::with_capacity(if copied { body.len() } else { body.header.len });
        // SAFETY: the caller of `post` vouches for both pieces.
        unsafe {
            append(&mut bytes, body.header.into());
            if copied {
                append(&mut bytes, body.data.part(0, body.data.len()));
            }
        }
        let (body, done) = if copied {
            (Kept::Owned { bytes: bytes.into(), header: body.header.len }, None)
        } else {
            (Kept::Borrowed { header: bytes.into(), data: body.data.clone() }, Some(done))
        };
        let posted = if done.is_some() { Sent::Queued } else { Sent::Free };
        self.lane_waits(peer).parked.push_back(Parked { head, body, done });
        posted
    }

    /// Sends a message that is longer than one packet: its first packet, if it has one of its own kind, then data.
    /// What does not go out now goes out by [`Self::pump`], which also reports `done`. When `how.copied`, the data is
    /// copied at once, and `done` is dropped since the caller sees [`Sent::Free`].
    ///
    /// # Safety
    /// `header` must be readable now, `data` too, and until the message is done when the answer is `Queued`.
    pub unsafe fn send_stream(
        &mut self,
        peer: Task,
        first: Option<(&Head, Piece)>,
        next: Continuation,
        data: &Content,
        how: Streaming,
        done: SendDone,
    ) -> Sent {
        let first = first.map(|(head, header)| {
            let mut copy = Vec::with_capacity(header.len);
            // SAFETY: the caller's promise.
            unsafe { append(&mut copy, header.into()) };
            (head.encode(), copy.into())
        });
        if self.lanes[peer as usize].get_or_insert_default().gone {
            return Sent::Gone;
        }
        let copy = how.copied.then(|| {
            let mut bytes = Vec::with_capacity(data.len());
            // SAFETY: the caller's promise.
            unsafe { append(&mut bytes, data.part(0, data.len())) };
            bytes.into_boxed_slice()
        });
        let data = copy.as_deref().map_or_else(|| data.clone(), |copy| Content::Piece(Piece::of(copy)));
        let done = (!how.copied).then_some(done);
        let stream = Stream { first, next, data, _copy: copy, atom: how.atom, sent: 0, lent: None, done };
        self.lane_waits(peer).streams.push_back(stream);
        if how.copied { Sent::Free } else { Sent::Queued }
    }

    /// Sends what waits, as far as there is room. Pushes onto `finished` what is done with the program's memory.
    /// Answers whether anything moved.
    pub fn pump(&mut self, link: &mut impl Link, finished: &mut Vec<SendDone>) -> bool {
        let mut moved = self.take_reports(link, finished);
        let mut at = 0;
        while at < self.busy.len() {
            let peer = self.busy[at];
            let max_body = self.max_body;
            let Some(lane) = self.lanes[peer as usize].as_deref_mut() else {
                unreachable!("a busy lane exists")
            };
            let outcome = lane.pump(link, peer, max_body, &mut self.lent, finished, &mut moved);
            if outcome == Err(SendError::PeerGone) {
                lane.abandon(LAPI_ERR_NO_CONNECTIVITY, finished);
                let lent = self.lent.abandon(peer);
                finished.extend(lent.map(|done| SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done }));
            }
            if lane.parked.is_empty() && lane.streams.is_empty() {
                lane.busy = false;
                self.busy.swap_remove(at);
            } else {
                at += 1;
            }
        }
        self.count_waiting();
        moved
    }

    /// Takes from the link which of the taken packets are done.
    fn take_reports(&mut self, link: &mut impl Link, finished: &mut Vec<SendDone>) -> bool {
        let mut moved = false;
        while self.lent.len() != 0 {
            let Some(ticket) = link.completed() else { break };
            finished.extend(self.lent.report(ticket));
            moved = true;
        }
        moved
    }

    /// Ends everything that waits for `peer`, which has left: `finished` gets what was under way, with `error`. The link
    /// reads nothing of it any more.
    pub fn abandon(&mut self, peer: Task, error: i32, finished: &mut Vec<SendDone>) {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        lane.abandon(error, finished);
        finished.extend(self.lent.abandon(peer).map(|done| SendDone { error, ..done }));
        lane.acknowledged = lane.next;
        if lane.busy {
            lane.busy = false;
            self.busy.retain(|&busy| busy != peer);
        }
        self.unfenced.retain(|&task| task != peer);
        self.count_waiting();
    }

    /// Forgets everything about `peer`, which will begin anew. What it was sent must have been abandoned before.
    pub fn renew(&mut self, peer: Task) {
        self.lanes[peer as usize] = None;
        self.busy.retain(|&busy| busy != peer);
        self.unfenced.retain(|&task| task != peer);
        self.count_waiting();
    }

    /// Asks every peer that was sent something since the last fence to confirm it, and calls `note` with each peer
    /// and the number of messages that it must confirm.
    pub fn ask(&mut self, link: &mut impl Link, mut note: impl FnMut(Task, u64)) {
        for at in 0..self.unfenced.len() {
            let peer = self.unfenced[at];
            let Some(lane) = self.lanes[peer as usize].as_deref_mut() else { continue };
            let count = lane.next;
            note(peer, count);
            if lane.asked == count {
                continue;
            }
            lane.asked = count;
            let head = Head::Fence { count: count as u32 };
            // SAFETY: the packet has no body.
            unsafe {
                self.send(link, peer, &head, Body::EMPTY, usize::MAX, SendDone::nothing(peer));
            }
        }
    }

    /// Notes that `peer` has confirmed all messages before the one whose number ends in `count`.
    pub fn acknowledge(&mut self, peer: Task, count: u32) {
        let Some(lane) = self.lanes[peer as usize].as_deref_mut() else { return };
        // The question was asked less than 2^32 messages ago, or it is not ours.
        let count = lane.next.wrapping_sub(u64::from((lane.next as u32).wrapping_sub(count)));
        if count > lane.acknowledged && count <= lane.asked {
            lane.acknowledged = count;
            if count == lane.next {
                self.unfenced.retain(|&task| task != peer);
            }
        }
    }

    /// Whether `peer` has confirmed all messages before `count`, or was given up.
    pub fn confirmed(&self, peer: Task, count: u64) -> bool {
        self.lanes[peer as usize].as_deref().is_none_or(|lane| lane.acknowledged >= count)
    }

    /// The peers that a fence has asked and that have not answered.
    pub fn unconfirmed(&self) -> impl Iterator<Item = Task> + '_ {
        let asked = |lane: &Lane| lane.acknowledged < lane.asked;
        self.unfenced
            .iter()
            .copied()
            .filter(move |&peer| self.lanes[peer as usize].as_deref().is_some_and(asked))
    }

    /// Whether something waits for room at `peer`, or for its confirmation.
    pub fn owes(&self, peer: Task) -> bool {
        let waits = |lane: &Lane| lane.busy || lane.acknowledged < lane.asked;
        self.lanes[peer as usize].as_deref().is_some_and(waits) || self.lends(peer)
    }

    /// What is on its way to each peer that was ever sent something.
    pub fn traffic(&self) -> impl Iterator<Item = Traffic> + '_ {
        (0..).zip(&self.lanes).filter_map(|(peer, lane)| Some(lane.as_deref()?.traffic(peer)))
    }

    /// The peers to which something waits for room that raises this counter when it is out.
    pub fn raising(&self, counter: usize) -> impl Iterator<Item = Task> + '_ {
        let raises =
            move |peer: &Task| self.lanes[*peer as usize].as_deref().is_some_and(|lane| lane.raises(counter));
        self.busy.iter().copied().filter(raises).chain(self.lent.raising(counter))
    }

    /// Notes that what waits for room did so at this moment.
    pub fn mark(&mut self, moment: u32) {
        for &peer in &self.busy {
            if let Some(lane) = self.lanes[peer as usize].as_deref_mut().filter(|lane| lane.seen == 0) {
                lane.seen = moment;
            }
        }
    }

    fn lane_waits(&mut self, peer: Task) -> &mut Lane {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        if !lane.busy {
            lane.busy = true;
            lane.seen = 0;
            self.busy.push(peer);
            self.waiting += 1;
        }
        lane
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;

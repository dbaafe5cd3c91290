//! Messages on their way out.
//!
//! Each peer has a *lane*. A packet goes out at once when the link takes it; otherwise it is
//! *parked* in its lane, and the call that sent it returns nevertheless: no call ever waits for
//! room. A message longer than one packet is a *stream*, cut as room comes. Small messages may
//! pass large ones; of what waits, parked packets and packets of streams take turns, so that
//! neither starves.
//!
//! A parked packet keeps its user header, and its data up to the caller's copy limit; above that it
//! refers to the program's memory, which the program leaves alone until its [`SendDone`] is
//! reported. The same holds for a packet that the link has taken: the message is done when the link
//! reports it. Copies within the copy limit take one *buffer* each, of which there may be a limited
//! number (see [`Outbox::limit_buffers`]): without a buffer a message is not copied, and its origin
//! counter waits.
//!
//! What a lane keeps is counted in bytes ([`Outbox::bytes`]). Memory for it is asked for fallibly:
//! a message for which there is none is not sent ([`Sent::NoMemory`]).

mod fences;
mod waiting;

use super::Transmit;
use super::content::Content;
use super::lane::{Kept, Lane, Parked, Stream, Taken, append};
use super::lent::Lent;
pub use super::send::{Body, Continuation, SendDone, Sent, Streaming, Traffic};
use super::tasks::TaskSet;
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::memory::bytes::Piece;
use crate::wire::frame::{Outgoing, SendError, SendOutcome, Task, Ticket};
use crate::wire::packet::{Encoded, Head};
use bytemuck::allocation::zeroed_slice_box;

/// All lanes of a task.
pub struct Outbox {
    /// A page of this table takes no memory until a lane in it is made.
    lanes: Box<[Option<Box<Lane>>]>,
    /// Lanes in which something waits.
    busy: TaskSet,
    /// Messages whose memory the link still reads.
    lent: Lent,
    /// How many entries `busy` and `lent` have, in one number for the hot path.
    waiting: usize,
    /// Lanes with messages that no fence has confirmed.
    unfenced: TaskSet,
    /// Lanes whose peer was asked by a fence and has not confirmed.
    asked: TaskSet,
    max_body: usize,
    /// The longest body of a packet to each peer, where they differ.
    bodies: Option<Box<[u32]>>,
    /// How many buffers there are for copies.
    buffers: usize,
    /// By all lanes.
    taken: Taken,
    /// A header handler runs: what is sent now is forwarded.
    forwards: bool,
    /// How often something that had waited went out.
    pumped: u64,
    /// See [`Self::note_starved`].
    starved: Option<Task>,
    /// There is no memory for what must wait.
    #[cfg(test)]
    pub(crate) exhausted: bool,
}

impl Outbox {
    /// For a job of `tasks` tasks and packets with bodies of at most `max_body` bytes,
    /// to every peer.
    pub fn new(tasks: u32, max_body: usize) -> Self {
        let none = TaskSet::default;
        Self {
            lanes: zeroed_slice_box(tasks as usize),
            busy: none(),
            lent: Lent::default(),
            waiting: 0,
            unfenced: none(),
            asked: none(),
            max_body,
            bodies: None,
            buffers: usize::MAX,
            taken: Taken::default(),
            forwards: false,
            pumped: 0,
            starved: None,
            #[cfg(test)]
            exhausted: false,
        }
    }

    /// From now on at most this many messages that wait are copies within the copy limit
    /// (MP_REXMIT_BUF_CNT).
    pub fn limit_buffers(&mut self, count: usize) {
        self.buffers = count;
    }

    /// From now on packets to a peer have bodies of at most the length given for it.
    pub fn set_bodies(&mut self, bodies: Box<[u32]>) {
        self.bodies = Some(bodies);
    }

    /// Whether a message within the copy limit would be copied if it had to wait now.
    #[inline]
    pub fn has_buffer(&self) -> bool {
        self.taken.buffers < self.buffers
    }

    /// The longest body of a packet, to whatever peer.
    pub fn max_body(&self) -> usize {
        self.max_body
    }

    /// The longest body of a packet to this peer, not shorter than [`Self::max_body`].
    pub fn max_body_to(&self, peer: Task) -> usize {
        self.bodies.as_ref().map_or(self.max_body, |bodies| bodies[peer as usize] as usize)
    }

    /// How much user header and data a packet holds, however long each of them is: MAX_PKT_SZ.
    #[inline]
    pub fn packet_size(&self) -> usize {
        // The header is padded to 8 bytes.
        self.max_body - 8
    }

    /// Whether what is sent from now on is sent by a header handler.
    pub fn set_forwarding(&mut self, forwards: bool) {
        self.forwards = forwards;
    }

    /// The number of the next message to `peer`, which is thereby taken.
    #[inline]
    pub fn number(&mut self, peer: Task) -> u32 {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        let number = lane.next;
        if lane.acknowledged == number {
            note_unfenced(&mut self.unfenced, peer);
        }
        lane.next = number + 1;
        number as u32
    }

    /// Takes the last number back: its message was not sent.
    pub fn take_back(&mut self, peer: Task) {
        let Some(lane) = self.lanes[peer as usize].as_deref_mut() else { return };
        lane.next -= 1;
        if lane.next == lane.acknowledged {
            self.unfenced.remove(peer);
        }
    }

    /// The number of the next message to `peer`, if a packet of it that goes out now changes no
    /// more than that: nothing waits for the peer, and a fence would have to ask it already. When
    /// it has gone out, the caller adds one.
    #[inline(always)]
    pub fn at_once(&mut self, peer: Task) -> Option<&mut u64> {
        let lane = self.lanes[peer as usize].as_deref_mut()?;
        let hindered = lane.busy || lane.gone || lane.acknowledged == lane.next;
        if hindered { None } else { Some(&mut lane.next) }
    }

    /// Sends one packet, or parks it. With data of at most `copy_limit` bytes (header included) a
    /// parked packet keeps a copy when there is a buffer for it, and `done` is dropped since the
    /// caller sees [`Sent::Free`]. A limit of `usize::MAX` says that it must be copied: then it
    /// takes no buffer.
    ///
    /// # Safety
    /// Both pieces must be readable now, and `data` until the message is done when this
    /// returns `Queued`.
    #[inline]
    pub unsafe fn send(
        &mut self,
        link: &mut impl Transmit,
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
        if !lane.busy || lane.lets_pass() {
            let packet = Outgoing {
                head: head.as_bytes(),
                first: body.header,
                second: body.data.part(0, body.data.len()),
                copy_limit,
            };
            // SAFETY: the caller's promise.
            match unsafe { link.send(peer, &packet) } {
                SendOutcome::Sent | SendOutcome::Held => return Sent::Free,
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
        self.waiting = self.busy.members().len() + self.lent.len();
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
        let must_copy = copy_limit == usize::MAX;
        let mut buffered = !must_copy && body.len() <= copy_limit && self.has_buffer();
        let mut bytes = Vec::new();
        let (forwarded, short) = (self.forwards, self.is_short(&done));
        let lane = self.lane_waits(peer);
        if !done.user && buffered && bytes.try_reserve_exact(body.len()).is_err() {
            // Data that was asked for can be sent from where it is.
            buffered = false;
        }
        let copied = must_copy || buffered;
        let kept = if copied { body.len() } else { body.header.len };
        if short || bytes.try_reserve_exact(kept).is_err() || lane.parked.try_reserve(1).is_err() {
            return self.no_memory(peer);
        }
        // SAFETY: the caller of `send` vouches for both pieces; there is room for them.
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
        let sent = if done.is_some() { Sent::Queued } else { Sent::Free };
        let before = lane.taken;
        lane.park(Parked { head, body, done, buffered, forwarded });
        let after = lane.taken;
        self.taken.change(before, after);
        sent
    }

    /// A message was not sent because memory is exhausted: its lane is left as if the message
    /// had not existed.
    #[cold]
    fn no_memory(&mut self, peer: Task) -> Sent {
        if let Some(lane) = self.lanes[peer as usize].as_deref_mut().filter(|lane| lane.is_empty()) {
            lane.busy = false;
            self.busy.remove(peer);
            self.count_waiting();
        }
        Sent::NoMemory
    }

    /// Sends a message that is longer than one packet: its first packet, if it has one of its own
    /// kind, then data. What does not go out now goes out by [`Self::pump`], which also reports
    /// `done`. When `how.copied`, the data is copied at once, and `done` is dropped since the
    /// caller sees [`Sent::Free`].
    ///
    /// # Safety
    /// `header` must be readable now, `data` too, and until the message is done when this
    /// returns `Queued`.
    pub unsafe fn send_stream(
        &mut self,
        peer: Task,
        first: Option<(&Head, Piece)>,
        next: Continuation,
        data: &Content,
        how: Streaming,
        done: SendDone,
    ) -> Sent {
        if self.lanes[peer as usize].get_or_insert_default().gone {
            return Sent::Gone;
        }
        let (mut header, mut bytes) = (Vec::new(), Vec::new());
        let (forwarded, short) = (self.forwards, first.is_some() && self.is_short(&done));
        let lane = self.lane_waits(peer);
        let lens = (first.map_or(0, |(_, header)| header.len), if how.copied { data.len() } else { 0 });
        if short
            || header.try_reserve_exact(lens.0).is_err()
            || bytes.try_reserve_exact(lens.1).is_err()
            || lane.streams.try_reserve(1).is_err()
        {
            return self.no_memory(peer);
        }
        let first = first.map(|(head, piece)| {
            // SAFETY: the caller's promise; there is room for the header.
            unsafe { append(&mut header, piece.into()) };
            (head.encode(), header.into_boxed_slice())
        });
        let copy = how.copied.then(|| {
            // SAFETY: the caller's promise; there is room for the data.
            unsafe { append(&mut bytes, data.part(0, data.len())) };
            bytes.into_boxed_slice()
        });
        let data = copy.as_deref().map_or_else(|| data.clone(), |copy| Content::Piece(Piece::of(copy)));
        let done = (!how.copied).then_some(done);
        let before = lane.taken;
        lane.add_stream(Stream {
            first,
            next,
            data,
            copy,
            atom: how.atom,
            sent: 0,
            lent: None,
            done,
            forwarded,
        });
        let after = lane.taken;
        self.taken.change(before, after);
        if how.copied { Sent::Free } else { Sent::Queued }
    }

    /// A packet of a collective operation that `peer` waits for was not sent because memory is
    /// exhausted.
    #[cold]
    pub(super) fn note_starved(&mut self, peer: Task) {
        self.starved = Some(peer);
    }

    /// A peer that waits for a packet of a collective operation, for which there was no memory.
    /// Nothing sends it again: the caller ends the session.
    #[inline]
    pub fn take_starved(&mut self) -> Option<Task> {
        self.starved.take()
    }

    /// Sends what waits, as far as there is room. Pushes onto `finished` what is done with the
    /// program's memory. Returns whether anything moved.
    pub fn pump(&mut self, link: &mut impl Transmit, finished: &mut Vec<SendDone>) -> bool {
        let mut moved = false;
        let mut at = 0;
        while let Some(&peer) = self.busy.members().get(at) {
            let max_body = self.max_body_to(peer);
            let Some(lane) = self.lanes[peer as usize].as_deref_mut() else {
                unreachable!("a busy lane exists")
            };
            let before = lane.taken;
            let outcome = lane.pump(link, peer, max_body, &mut self.lent, finished, &mut moved);
            if outcome == Err(SendError::PeerGone) {
                lane.abandon(LAPI_ERR_NO_CONNECTIVITY, finished);
                let lent = self.lent.abandon(peer);
                finished.extend(lent.map(|done| SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done }));
            }
            self.taken.change(before, lane.taken);
            if lane.is_empty() {
                lane.busy = false;
                self.busy.remove(peer);
            } else {
                at += 1;
            }
        }
        self.count_waiting();
        self.pumped += u64::from(moved);
        moved
    }

    /// The memory of a packet that the link has taken is free. Pushes onto `finished` what is done
    /// with the program's memory.
    pub fn free(&mut self, ticket: Ticket, finished: &mut Vec<SendDone>) {
        finished.extend(self.lent.report(ticket));
        self.pumped += 1;
        self.count_waiting();
    }

    /// Whether the link has packets whose memory it has not reported to be free.
    pub fn has_lent(&self) -> bool {
        self.lent.len() != 0
    }

    /// Ends everything that waits for `peer`, which has left: `finished` gets what was under way,
    /// with `error`. The link reads nothing of it any more.
    pub fn abandon(&mut self, peer: Task, error: i32, finished: &mut Vec<SendDone>) {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        self.taken.change(lane.taken, Taken::default());
        lane.abandon(error, finished);
        finished.extend(self.lent.abandon(peer).map(|done| SendDone { error, ..done }));
        lane.acknowledged = lane.next;
        lane.busy = false;
        self.asked.remove(peer);
        self.busy.remove(peer);
        self.unfenced.remove(peer);
        self.count_waiting();
    }

    /// Forgets everything about `peer`, which will rejoin. What was sent to it must have been
    /// abandoned before.
    pub fn renew(&mut self, peer: Task) {
        if let Some(lane) = self.lanes[peer as usize].take() {
            self.taken.change(lane.taken, Taken::default());
        }
        self.busy.remove(peer);
        self.asked.remove(peer);
        self.unfenced.remove(peer);
        self.count_waiting();
    }

    fn lane_waits(&mut self, peer: Task) -> &mut Lane {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        if !lane.busy {
            lane.busy = true;
            lane.seen = 0;
            self.busy.insert(peer);
            self.waiting += 1;
        }
        lane
    }

    /// Whether a test lets the memory for a message be exhausted. In a simulation not for data that
    /// the target waits for already: this task would end.
    #[inline(always)]
    fn is_short(&self, _done: &SendDone) -> bool {
        #[cfg(test)]
        if self.exhausted {
            return true;
        }
        #[cfg(all(test, not(loom)))]
        if _done.user && crate::base::simulation::is_short() {
            return true;
        }
        false
    }
}

#[cold]
fn note_unfenced(unfenced: &mut TaskSet, peer: Task) {
    unfenced.insert(peer);
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;

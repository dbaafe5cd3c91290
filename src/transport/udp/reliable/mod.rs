//! The reliable core: packets over a network that loses, duplicates, reorders and delays datagrams.
//! Each packet that was taken arrives exactly once, in any order.
//!
//! It has no socket, no clock and no thread. What arrives and the time go in
//! ([`Connection::receive`], [`Connection::transmit`]), and what is to be sent comes out, with the
//! moment at which it must be asked again ([`Connection::due`]). A [`Connection`] is one
//! incarnation: when a task parts from a peer and lets it rejoin, it makes another one, with
//! another number.
//!
//! The owner seals what is sent with keys that follow from the numbers of both sides, and opens
//! what arrives. It passes on only what was sealed for the number of this connection, together with
//! the number of the other side, and the number that the seal has given to the datagram.
//! docs/design/0017-udp.md has the reasons.

mod buffers;
mod congestion;
mod length;
mod pacer;
mod path;
mod receiver;
mod round_trip;
mod sender;
#[cfg(test)]
mod simulation;
mod transmit;

use crate::wire::datagram::{DatagramKind, HEADER, Header, Hello, MAP};
use receiver::{Accepted, Receiver};
use sender::{Report, Sender};
use std::collections::VecDeque;

pub use buffers::{Buffer, Buffers, bytes, bytes_mut};
pub use receiver::Arrived;

/// A moment or a time, in nanoseconds.
pub type Nanos = u64;

const SECOND: Nanos = 1_000_000_000;
const MILLISECOND: Nanos = 1_000_000;

/// Bytes of a datagram beside the payload: the header here, the seal, and those of UDP and IP.
const OVERHEAD: usize = HEADER + 32 + 28;

/// The first time between two hellos, and the longest.
const FIRST_HELLO: Nanos = 20 * MILLISECOND;
const LAST_HELLO: Nanos = 500 * MILLISECOND;
/// The longest interval between two messages of the end, and between repetitions of what was sent
/// before it: the end is not awaited for long.
const LAST_CLOSE: Nanos = 100 * MILLISECOND;

/// What both sides of a connection have in common, and how often they acknowledge.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Bytes of a packet in one datagram, at most.
    pub unit: usize,
    /// Bytes of a packet in one datagram that every link takes: `unit`, if that is less.
    pub base: usize,
    /// Fragments that the receiver has room for: at most 64 times [`MAP`], and at least as many as
    /// the longest packet has.
    pub window: u16,
    /// Fragments that are acknowledged together, at most.
    pub acknowledge_every: u16,
    /// An acknowledgement waits for this time, at most.
    pub acknowledge_after: Nanos,
    /// The longest time after which something is sent again.
    pub longest_interval: Nanos,
}

/// What a connection has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Fragments that were sent again.
    pub sent_again: u64,
    /// Fragments that had arrived before.
    pub duplicates: u64,
    /// Datagrams that are no sound part of the connection.
    pub refused: u64,
    /// Acknowledgements that were sent alone.
    pub acknowledgements: u64,
    /// Acknowledgements that have arrived alone.
    pub acknowledged: u64,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The incarnation of the peer that this one is connected with is not known yet.
    Opening,
    /// The incarnation of the peer is known.
    Up,
    /// The peer has ended LAPI, and all that it has sent has arrived.
    Closed,
}

/// A datagram that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The number that its seal must give to it. A hello has none: 0.
    pub transmission: u64,
    /// The datagram's content.
    pub content: Content,
    /// The datagram may be longer than a link on the way takes: the system is to send it in
    /// parts if it must.
    pub in_parts: bool,
}

/// The content of a datagram. What is seldom sent is not in it: it is moved for each fragment.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// How the connection is made ([`Connection::hello`]). It is not sealed with the
    /// connection's keys.
    Hello,
    /// A header alone.
    Header([u8; HEADER]),
    /// A header, and the fragment with this number ([`Connection::payload`]).
    Fragment([u8; HEADER], u64),
    /// A header, and this number of bytes of [`Connection::map`].
    Map([u8; HEADER], usize),
    /// A header, and this number of bytes with any content.
    Padded([u8; HEADER], usize),
}

/// What has happened by a datagram that has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// A packet can be taken.
    pub packet: bool,
    /// The peer wants this task to look for packets.
    pub kick: bool,
    /// There may be room that was missing before, or the connection has another state.
    pub progress: bool,
}

/// One incarnation of the connection with one peer.
#[derive(Debug)]
pub struct Connection {
    hello: Hello,
    state: State,
    /// What the peer has said about itself.
    peer: Option<Hello>,
    /// The peer is known to have this task's number.
    confirmed: bool,
    hello_at: Nanos,
    hello_after: Nanos,
    /// When the only hello so far was sent.
    first_hello: Option<Nanos>,
    hellos: u32,
    sender: Sender,
    receiver: Receiver,
    arrived: VecDeque<Arrived>,
    transmission: u64,
    closing: bool,
    close_at: Nanos,
    close_after: Nanos,
    /// The peer knows that this task has ended.
    close_seen: bool,
    /// The peer has ended, after this number of fragments.
    ends_at: Option<u64>,
    confirm_end: bool,
    /// The number of a probe that has arrived and has no reply yet.
    probed: Option<u64>,
    /// What the last acknowledgement has as its map.
    map: [u8; 8 * MAP],
    statistics: Statistics,
}

impl Connection {
    /// A connection that is to be made. `hello` is what this task says; [`Hello::yours`] is 0, or
    /// the number that the peer has claimed.
    pub fn new(hello: Hello, parameters: &Parameters, now: Nanos) -> Self {
        debug_assert!(usize::from(parameters.window) <= 64 * MAP && parameters.unit != 0);
        Self {
            hello,
            state: State::Opening,
            peer: None,
            confirmed: false,
            hello_at: now,
            hello_after: FIRST_HELLO,
            first_hello: None,
            hellos: 0,
            sender: Sender::new(parameters),
            receiver: Receiver::new(parameters),
            arrived: VecDeque::new(),
            transmission: 0,
            closing: false,
            close_at: 0,
            close_after: 0,
            close_seen: false,
            ends_at: None,
            confirm_end: false,
            probed: None,
            map: [0; 8 * MAP],
            statistics: Statistics::default(),
        }
    }

    /// Makes a connection of another incarnation of this, which is not up: what was taken is
    /// sent in that one.
    pub fn begin_again(&mut self, hello: Hello, parameters: &Parameters, now: Nanos) {
        debug_assert!(self.state == State::Opening);
        let again = Self::new(hello, parameters, now);
        let Self { sender, closing, statistics, .. } = std::mem::replace(self, again);
        (self.sender, self.closing, self.statistics) = (sender, closing, statistics);
    }

    /// Cuts what was taken as the two sides have agreed, and has room accordingly. Nothing but
    /// hellos has gone between them.
    pub fn agree(&mut self, parameters: &Parameters) {
        debug_assert!(self.state == State::Opening);
        self.sender.agree(parameters);
        self.receiver.agree(parameters);
    }

    /// From now on at most this number of fragments are acknowledged together.
    pub fn acknowledge_every(&mut self, fragments: u16) {
        self.receiver.acknowledge_every(fragments);
    }

    /// How many fragments are acknowledged together, at most.
    #[cfg(test)]
    pub fn acknowledges_every(&self) -> u16 {
        self.receiver.acknowledges_every()
    }

    /// Whether the other side is known to have this side's number: something sealed has arrived.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// The state.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// The number that this task has drawn for the connection.
    pub fn mine(&self) -> u128 {
        self.hello.mine
    }

    /// The number that the peer has drawn, or claims to have; 0: not known.
    pub fn theirs(&self) -> u128 {
        self.hello.yours
    }

    /// What the peer has said about itself, once the connection is up.
    pub fn peer(&self) -> Option<&Hello> {
        self.peer.as_ref().filter(|_| self.state != State::Opening)
    }

    /// Whether the same process has said something about a later incarnation before.
    pub fn has_heard_later(&self, hello: &Hello) -> bool {
        self.peer.is_some_and(|known| known.process == hello.process && hello.order() < known.order())
    }

    /// What was counted.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Whether a packet of this length can be taken now.
    #[inline]
    pub fn has_room(&self, len: usize) -> bool {
        !self.closing && self.state != State::Closed && self.sender.has_room(len)
    }

    /// A packet found no room ([`Self::has_room`]): it is noticed when there is some, also if what
    /// the peer says of it is lost.
    pub fn await_room(&mut self, now: Nanos) {
        if self.state == State::Up {
            self.sender.await_room(now);
        }
    }

    /// Takes a packet: the first `len` bytes of the buffer, of which `head_len` are the head. There
    /// must be room ([`Self::has_room`]).
    #[inline]
    pub fn push(&mut self, now: Nanos, buffer: Buffer, head_len: usize, len: usize) {
        debug_assert!(self.has_room(len) && head_len <= len && len != 0);
        self.sender.push(now, buffer, head_len, len);
    }

    /// Makes the peer look for packets. Without room it has packets to look for already.
    pub fn kick(&mut self, now: Nanos) {
        if self.has_room(0) {
            self.sender.push(now, Buffer::default(), 0, 0);
        }
    }

    /// The next packet that has arrived.
    #[inline]
    pub fn take(&mut self) -> Option<Arrived> {
        self.arrived.pop_front()
    }

    /// Packets that have arrived and were not taken.
    pub fn waiting(&self) -> usize {
        self.arrived.len()
    }

    /// A packet that was taken is not needed any more. Its buffer goes back to [`Buffers`]. Returns
    /// whether the peer must know of the room at once.
    #[inline]
    pub fn release(&mut self, fragments: u16) -> bool {
        self.receiver.release(fragments)
    }

    /// How many fragments the peer has, or has had, room for: this grows when the peer's program
    /// takes packets.
    pub fn granted(&self) -> u64 {
        self.sender.granted()
    }

    /// Fragments on their way to the peer.
    pub fn unacknowledged(&self) -> u64 {
        self.sender.unacknowledged()
    }

    /// Whether the peer has all that was sent, and knows of this task's end when there is one.
    pub fn is_settled(&self) -> bool {
        self.state == State::Closed || (self.sender.is_empty() && (!self.closing || self.close_seen))
    }

    /// Whether the peer has all that was sent.
    pub fn is_empty(&self) -> bool {
        self.sender.is_empty()
    }

    /// This task ends LAPI: what was taken still arrives.
    pub fn close(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.closing, true) {
            (self.close_at, self.close_after) = (now, 0);
            self.sender.limit_interval(LAST_CLOSE);
        }
    }

    /// No packet is going to be sent for a while that could carry an acknowledgement.
    pub fn flush(&mut self) {
        self.receiver.flush();
    }

    /// Gives all memory back.
    pub fn abandon(&mut self, buffers: &mut Buffers) {
        self.sender.abandon(buffers);
        self.receiver.abandon(buffers);
        self.arrived.drain(..).for_each(|packet| buffers.give(packet.buffer));
    }

    /// The bytes of a fragment that is to be sent; `None` when it has arrived meanwhile.
    #[inline]
    pub fn payload(&self, number: u64) -> Option<&[u8]> {
        self.sender.payload(number)
    }

    /// What this side says about itself now.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The map of the last acknowledgement, with as many bytes as that says.
    pub fn map(&self) -> &[u8] {
        &self.map
    }

    /// A hello of the peer has arrived.
    pub fn receive_hello(&mut self, now: Nanos, hello: &Hello) -> Happened {
        let ours = hello.yours == self.hello.mine;
        if self.state != State::Opening {
            if ours && hello.mine == self.hello.yours {
                // It does not know yet that this side is up. Any datagram says so.
                self.receiver.hurry();
            }
            return Happened::default();
        }
        if hello.mine == self.hello.mine {
            return Happened::default();
        }
        self.hello.yours = hello.mine;
        self.peer = Some(*hello);
        // The other side may wait for this one's number.
        self.hello_at = now;
        if !ours {
            return Happened::default();
        }
        let sample = self.first_hello.filter(|_| self.hellos == 1).map(|sent| now.saturating_sub(sent));
        self.sender.prove(now, sample);
        self.state = State::Up;
        Happened { progress: true, ..Happened::default() }
    }

    /// The content of a datagram has arrived that was sealed for this connection, by the side that
    /// has the number `theirs`, as its datagram `transmission`.
    #[inline]
    pub fn receive(
        &mut self,
        now: Nanos,
        theirs: u128,
        transmission: u64,
        content: &[u8],
        buffers: &mut Buffers,
    ) -> Happened {
        let Some((header, payload)) = Header::decode(content).filter(|_| theirs == self.hello.yours) else {
            self.statistics.refused += 1;
            return Happened::default();
        };
        let mut happened = Happened::default();
        if self.state == State::Opening {
            // Only the living peer has made a seal with this side's number.
            self.state = State::Up;
            self.sender.prove(now, None);
            happened.progress = true;
        }
        self.confirmed = true;
        self.receiver.note(now, transmission);
        let report = Report {
            acknowledged: header.acknowledged,
            echo: header.echo,
            room: header.room,
            delay: header.delay,
            map: if matches!(header.kind, DatagramKind::Acknowledgement(_)) { payload } else { &[] },
        };
        happened.progress |= self.sender.note(now, &report, self.transmission, buffers);
        match header.kind {
            DatagramKind::Data(fragment) => {
                let arrived = &mut self.arrived;
                let accepted =
                    self.receiver.accept(now, fragment, payload, buffers, |packet| arrived.push_back(packet));
                match accepted {
                    Accepted::Kept | Accepted::Complete | Accepted::Kick => {}
                    Accepted::Duplicate => self.statistics.duplicates += 1,
                    Accepted::Refused => self.statistics.refused += 1,
                }
                happened.packet = accepted == Accepted::Complete;
                happened.kick = accepted == Accepted::Kick;
            }
            DatagramKind::Ping => self.receiver.hurry(),
            DatagramKind::Close(number) => self.ends_at = Some(number),
            DatagramKind::Closed => self.close_seen = self.closing,
            DatagramKind::Acknowledgement(_) => self.statistics.acknowledged += 1,
            DatagramKind::Probe(number) => self.probed = Some(number),
            DatagramKind::Reply(number) => happened.progress |= self.sender.note_reply(now, number),
        }
        if self.ends_at == Some(self.receiver.next()) {
            self.confirm_end |= matches!(header.kind, DatagramKind::Close(_)) || self.state != State::Closed;
            if self.state != State::Closed {
                self.state = State::Closed;
                self.sender.abandon(buffers);
                happened.progress = true;
            }
        }
        happened
    }

    /// Panics unless its parts agree and its memory is within bounds.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn check(&self, parameters: &Parameters) {
        self.sender.check();
        let window = u64::from(parameters.window);
        let waiting: u64 = self.arrived.iter().map(|packet| u64::from(packet.fragments)).sum();
        assert!(self.receiver.kept() <= window && waiting <= window);
        assert!(self.receiver.incomplete() as u64 <= window);
    }
}

//! The content of a datagram of the transport `udp`, inside of its seal: a header of 40 bytes, and
//! what follows it. All numbers are little-endian.

use super::frame::HEAD_MAX;
use crate::base::process::Process;
use std::ops::Range;

/// The length of a header in bytes.
pub const HEADER: usize = 40;

/// Words of the map in an acknowledgement, at most.
pub const MAP: usize = 8;

/// The length of a [`Hello`] in bytes.
pub const HELLO: usize = 56;

/// Random bits in the number that a task draws for a connection.
const RANDOM: u32 = 80;

/// [`Header::delay`] of a datagram that says nothing about that time.
pub const NO_DELAY: u16 = u16::MAX;

/// What follows a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// A part of a packet.
    Data(Fragment),
    /// A map of what has arrived behind [`Header::acknowledged`]: this number of words of 64 bits.
    /// The lowest bit of the first word is that of the number after the acknowledged one, which
    /// itself has not arrived.
    Acknowledgement(u8),
    /// Nothing: the receiver is to acknowledge at once.
    Ping,
    /// Nothing: the sender ends LAPI, and has sent the fragments before this number.
    Close(u64),
    /// Nothing: the departure and all fragments before it have arrived.
    Closed,
    /// Any bytes: the receiver is to reply with this number.
    Probe(u64),
    /// Nothing: the probe with this number has arrived.
    Reply(u64),
}

/// Which part of which packet a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The fragment's number in the connection. Those of one packet are consecutive.
    pub number: u64,
    /// The fragment's index in the packet.
    pub index: u16,
    /// How many these are.
    pub count: u16,
    /// The length of the packet's head in bytes, a multiple of 8.
    pub head_len: u8,
    /// The length of head and body in bytes; 0: the packet is a kick, and has neither.
    pub packet_len: u32,
    /// The receiver is to acknowledge at once.
    pub urgent: bool,
}

impl Fragment {
    /// Which bytes of the packet a fragment of `len` bytes has; `None` when no packet is cut like
    /// that. All fragments of a packet are equally long, and as short as their count allows: behind
    /// the end of the packet the last one has some bytes without a meaning.
    #[inline]
    pub fn place(&self, len: usize) -> Option<Range<usize>> {
        let (packet, count, index) = (self.packet_len as usize, self.count as usize, self.index as usize);
        if count == 1 {
            return (index == 0 && len == packet).then_some(0..packet);
        }
        let even =
            index < count && len != 0 && len == packet.div_ceil(count) && packet.div_ceil(len) == count;
        even.then(|| index * len..packet.min((index + 1) * len))
    }
}

/// What each datagram says beside its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows.
    pub kind: DatagramKind,
    /// All fragments before this number have arrived at the sender of this datagram.
    pub acknowledged: u64,
    /// The highest number of a datagram that has arrived there.
    pub echo: u64,
    /// For how many fragments there is room, from the acknowledged number on.
    pub room: u16,
    /// The time between the arrival of `echo` and this datagram, in units of 8 microseconds;
    /// or [`NO_DELAY`].
    pub delay: u16,
}

const DATA: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;
const PING: u8 = 3;
const CLOSE: u8 = 4;
const CLOSED: u8 = 5;
const PROBE: u8 = 6;
const REPLY: u8 = 7;

impl Header {
    /// As bytes.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER] {
        let (number, packet_len, parts, kind) = match self.kind {
            DatagramKind::Data(fragment) => {
                let Fragment { number, index, count, head_len, packet_len, urgent } = fragment;
                let parts = u32::from(index) | u32::from(count) << 16;
                (number, packet_len, parts, [DATA, urgent.into(), head_len / 8, 0])
            }
            DatagramKind::Acknowledgement(words) => (0, 0, 0, [ACKNOWLEDGEMENT, 0, 0, words]),
            DatagramKind::Ping => (0, 0, 0, [PING, 0, 0, 0]),
            DatagramKind::Close(number) => (number, 0, 0, [CLOSE, 0, 0, 0]),
            DatagramKind::Closed => (0, 0, 0, [CLOSED, 0, 0, 0]),
            DatagramKind::Probe(number) => (number, 0, 0, [PROBE, 0, 0, 0]),
            DatagramKind::Reply(number) => (number, 0, 0, [REPLY, 0, 0, 0]),
        };
        let room = u64::from(self.room) << 32 | u64::from(self.delay) << 48;
        let kind = u64::from(u32::from_le_bytes(kind)) << 32;
        let words =
            [number, self.acknowledged, self.echo, u64::from(packet_len) | room, u64::from(parts) | kind];
        bytemuck::cast(words.map(u64::to_le))
    }

    /// The header of a content, and what follows it; `None` when they are not what a task sends.
    #[inline]
    pub fn decode(content: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, after) = content.split_first_chunk::<HEADER>()?;
        let words: [u64; HEADER / 8] = bytemuck::pod_read_unaligned(bytes);
        let [number, acknowledged, echo, lengths, parts] = words.map(u64::from_le);
        let [code, flags, head_words, map_words] = ((parts >> 32) as u32).to_le_bytes();
        let kind = match code {
            DATA => DatagramKind::Data(Fragment {
                number,
                index: parts as u16,
                count: (parts >> 16) as u16,
                head_len: head_words.checked_mul(8)?,
                packet_len: lengths as u32,
                urgent: flags == 1,
            }),
            ACKNOWLEDGEMENT => DatagramKind::Acknowledgement(map_words),
            PING => DatagramKind::Ping,
            CLOSE => DatagramKind::Close(number),
            CLOSED => DatagramKind::Closed,
            PROBE => DatagramKind::Probe(number),
            REPLY => DatagramKind::Reply(number),
            _ => return None,
        };
        let fits = match kind {
            DatagramKind::Data(fragment) => {
                flags <= 1
                    && map_words == 0
                    && usize::from(fragment.head_len) <= HEAD_MAX
                    && u32::from(fragment.head_len) <= fragment.packet_len
                    && fragment.number >= fragment.index.into()
                    && fragment.number < 1 << 63
                    && fragment.place(after.len()).is_some()
            }
            DatagramKind::Acknowledgement(words) => {
                usize::from(words) <= MAP && after.len() == 8 * usize::from(words)
            }
            DatagramKind::Probe(_) => true,
            DatagramKind::Ping | DatagramKind::Close(_) | DatagramKind::Closed | DatagramKind::Reply(_) => {
                after.is_empty()
            }
        };
        let (room, delay) = ((lengths >> 32) as u16, (lengths >> 48) as u16);
        let header = Self { kind, acknowledged, echo, room, delay };
        // No connection has as many fragments: sums of these numbers do not overflow.
        (fits && header.acknowledged < 1 << 63).then_some((header, after))
    }
}

/// How a task connects: what it says about this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The number that the sender has drawn for this connection ([`Hello::number`]); never 0.
    pub mine: u128,
    /// The one that the receiver has drawn, as far as the sender knows; 0 otherwise.
    pub yours: u128,
    /// The epoch that the transport's contract knows.
    pub epoch: u64,
    /// The sender's process.
    pub process: Process,
    /// The bytes of the longest datagram that the sender takes.
    pub longest: u16,
    /// Which opening of LAPI in its job the sender is in, modulo 65,536.
    pub opening: u16,
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO] {
        let Self { mine, yours, epoch, process, longest, opening } = *self;
        let sizes = u64::from(process.pid) | u64::from(longest) << 32 | u64::from(opening) << 48;
        let (mine, yours) = ([mine as u64, (mine >> 64) as u64], [yours as u64, (yours >> 64) as u64]);
        bytemuck::cast([mine[0], mine[1], yours[0], yours[1], epoch, sizes, process.started].map(u64::to_le))
    }

    /// A number that was drawn at a moment: `order`, in its upper 48 bits, and random
    /// bits. It is not 0.
    pub fn number(order: u64, random: u128) -> u128 {
        u128::from(order) << RANDOM | random >> (128 - RANDOM) | 1
    }

    /// When the sender has drawn its number, in units of its own: of two hellos of a process the
    /// one with the greater order is about the later incarnation. Not for numbers that answer
    /// something, which are only random.
    pub fn order(&self) -> u64 {
        (self.mine >> RANDOM) as u64
    }

    /// `None` when the bytes are not a hello.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HELLO] = bytes.try_into().ok()?;
        let number = |at: usize| u128::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let hello = Self {
            mine: number(0),
            yours: number(16),
            epoch: long(32),
            process: Process { pid: long(40) as u32, started: long(48) },
            longest: short(44),
            opening: short(46),
        };
        (hello.mine != 0).then_some(hello)
    }
}

#[cfg(test)]
#[path = "datagram_tests.rs"]
mod tests;

//! The header of every message between two ports.

/// The most bytes of a header.
pub const LENGTH: usize = WORD + MORE;
/// The bytes of every header.
const FIXED: usize = 20;
/// The bytes that follow where there is a word on delivered messages. A message of 8 bytes that has
/// one still fits a cache line of the core's rings, with what the core adds.
const WORD: usize = FIXED + 12;
/// The bytes that follow where an address and a length are needed.
const MORE: usize = 16;
/// In the first byte, beside the kind: high priority.
const HIGH: u8 = 1 << 4;
/// In the first byte, too: there is a word on delivered messages.
const HAS_WORD: u8 = 1 << 5;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message for a provided buffer.
    Send = 1,
    /// Data for an address of the target.
    Put = 2,
    /// A request for data at an address of the target.
    Get = 3,
    /// The data of a [`Kind::Get`].
    Data = 4,
    /// A message that is lost where it finds no buffer.
    Datagram = 5,
    /// Nothing but a word on delivered messages.
    Delivered = 6,
    /// A message was not taken: it waits for a buffer, or for the port (code 1).
    Wait = 7,
    /// A message that waits may be sent again.
    Go = 8,
    /// A message came out of order: all from this one on are to be sent again. The address is the
    /// number of the message that came.
    Again = 9,
    /// A message is refused; the code is a status.
    Refused = 10,
    /// What [`Kind::Go`] has allowed is not needed any more.
    Decline = 11,
    /// Does the task have this port?
    Where = 12,
    /// The answer to [`Kind::Where`]; the code is one of [`answer`].
    Answer = 13,
    /// The target is to say what is delivered; whether this arrives shows whether the target lives.
    Ping = 14,
    /// A get is refused; the code is a status.
    NoData = 15,
}

/// The codes of [`Kind::Answer`].
pub mod answer {
    /// The task has opened no such port yet. Another answer follows when it does.
    pub const NOT_YET: u8 = 0;
    /// The port is here.
    pub const HERE: u8 = 1;
    /// The port was here, and is closed.
    pub const CLOSED: u8 = 2;
}

/// The code of [`Kind::Wait`] where the port is not open yet.
pub const NOT_OPEN: u8 = 1;

/// The code of a [`Kind::Datagram`] to a node of several tasks: where the port is not open, the
/// task says so by [`Kind::Refused`], since another one may have it by now.
pub const MAY_MOVE: u8 = 1;

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Send,
            2 => Self::Put,
            3 => Self::Get,
            4 => Self::Data,
            5 => Self::Datagram,
            6 => Self::Delivered,
            7 => Self::Wait,
            8 => Self::Go,
            9 => Self::Again,
            10 => Self::Refused,
            11 => Self::Decline,
            12 => Self::Where,
            13 => Self::Answer,
            14 => Self::Ping,
            15 => Self::NoData,
            _ => return None,
        })
    }
}

/// A word on what the receiver of this message has sent before: all messages of a connection up to
/// one are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The life of the connection.
    pub epoch: u32,
    /// The number of the message.
    pub seq: u32,
    /// The connection's index at its sender.
    pub index: u32,
}

/// A header. Numbers are little-endian on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the message is.
    pub kind: Kind,
    /// 0 low, 1 high.
    pub priority: u8,
    /// The size of the buffer that a message needs.
    pub size: u8,
    /// By kind.
    pub code: u8,
    /// The sender's port.
    pub from_port: u8,
    /// The target's port.
    pub to_port: u8,
    /// Which life of the sender's connection this belongs to: numbers of a later life are higher.
    pub epoch: u32,
    /// How often the connection has begun again to send what was not taken.
    pub round: u32,
    /// The number of a message in its connection.
    pub seq: u32,
    /// The connection's, or for a get the request's, index at its sender; in replies as it came.
    pub index: u32,
    /// What is delivered, of what the receiver has sent.
    pub word: Option<Word>,
    /// An address of the target.
    pub address: u64,
    /// How many bytes: of a get those that it asks for, otherwise those that come with the header.
    pub length: u64,
}

/// A header as it travels.
pub struct Encoded {
    bytes: [u8; LENGTH],
    len: usize,
}

impl Encoded {
    /// The bytes, a multiple of four.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len.min(LENGTH)]
    }
}

impl Kind {
    /// Whether an address and a length are in the header.
    #[inline]
    fn has_more(self) -> bool {
        matches!(self, Self::Put | Self::Get | Self::Again)
    }
}

impl Header {
    /// A header of this kind with zeros.
    #[inline]
    pub fn of(kind: Kind, from_port: u8, to_port: u8) -> Self {
        Self {
            kind,
            priority: 0,
            size: 0,
            code: 0,
            from_port,
            to_port,
            epoch: 0,
            round: 0,
            seq: 0,
            index: 0,
            word: None,
            address: 0,
            length: 0,
        }
    }

    /// A reply to this message.
    pub fn reply(&self, kind: Kind, code: u8) -> Self {
        let (from_port, to_port) = (self.to_port, self.from_port);
        Self { kind, code, from_port, to_port, size: 0, word: None, address: 0, length: 0, ..*self }
    }

    /// As bytes.
    #[inline]
    pub fn encode(&self) -> Encoded {
        let mut bytes = [0; LENGTH];
        bytes[0] = self.kind as u8 | if self.priority == 0 { 0 } else { HIGH };
        bytes[1] = self.from_port | self.to_port << 3;
        bytes[2] = self.size;
        bytes[3] = self.code;
        put(&mut bytes, 4, [self.epoch, self.round, self.seq, self.index]);
        let mut len = FIXED;
        if let Some(Word { epoch, seq, index }) = self.word {
            bytes[0] |= HAS_WORD;
            put(&mut bytes, len, [epoch, seq, index]);
            len = WORD;
        }
        if self.kind.has_more() {
            let halves = |long: u64| [long as u32, (long >> 32) as u32];
            put(&mut bytes, len, halves(self.address));
            put(&mut bytes, len + 8, halves(self.length));
            len += MORE;
        }
        Encoded { bytes, len }
    }

    /// From the bytes of a message with this many bytes of data; `None`: a peer has sent something
    /// else.
    #[inline]
    pub fn decode(bytes: &[u8], data: u64) -> Option<Self> {
        let (fixed, mut rest) = bytes.split_first_chunk::<FIXED>()?;
        let long = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let kind = Kind::of(fixed[0] & (HIGH - 1))?;
        let mut word = None;
        if fixed[0] & HAS_WORD != 0 {
            let (first, others) = rest.split_first_chunk::<{ WORD - FIXED }>()?;
            let [epoch, seq, index] = numbers(first);
            (word, rest) = (Some(Word { epoch, seq, index }), others);
        }
        let (mut address, mut length) = (0, data);
        if kind.has_more() {
            let (first, others) = rest.split_first_chunk::<MORE>()?;
            let [low, high, short, longer] = numbers(first);
            (address, length, rest) = (long(low, high), long(short, longer), others);
        }
        let [epoch, round, seq, index] = numbers(&fixed[4..]);
        let header = Self {
            kind,
            priority: u8::from(fixed[0] & HIGH != 0),
            size: fixed[2],
            code: fixed[3],
            from_port: fixed[1] & 7,
            to_port: fixed[1] >> 3 & 7,
            epoch,
            round,
            seq,
            index,
            word,
            address,
            length,
        };
        let is_sound = rest.is_empty()
            && header.size < crate::abi::SIZES
            && fixed[0] < HAS_WORD << 1
            && fixed[1] < 1 << 6
            && (kind == Kind::Get || length == data);
        is_sound.then_some(header)
    }
}

/// Writes numbers from a place on.
#[inline]
fn put<const COUNT: usize>(bytes: &mut [u8; LENGTH], at: usize, numbers: [u32; COUNT]) {
    for (place, number) in bytes[at..at + 4 * COUNT].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

/// Reads numbers, for which there are bytes enough.
#[inline]
fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u32; COUNT] {
    std::array::from_fn(|at| {
        let place = bytes.get(4 * at..4 * at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(place.unwrap_or_default())
    })
}

const _: () = assert!(crate::abi::PORTS == 8, "a port's number has three bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_nothing_else_is_one() {
        let word = Word { epoch: u32::MAX, seq: 7, index: 1 << 30 };
        for (kind, word) in (1..=15).flat_map(|kind| [(kind, None), (kind, Some(word))]) {
            let kind = Kind::of(kind).expect("a kind");
            let mut header = Header::of(kind, 2, 7);
            (header.priority, header.size, header.code, header.word) = (1, 31, 9, word);
            (header.epoch, header.round, header.seq, header.index) = (u32::MAX, 2, 3, 1 << 31);
            let data = if kind == Kind::Get { 0 } else { 1 << 40 };
            header.length = 1 << 40;
            header.address = if kind.has_more() { u64::MAX - 1 } else { 0 };
            let encoded = header.encode();
            let bytes = encoded.as_bytes();
            assert!(bytes.len().is_multiple_of(4));
            assert_eq!(Header::decode(bytes, data), Some(header));
            for (at, wrong) in [(0, 0x40), (0, 0), (1, 0x40), (2, 32)] {
                let mut bytes = bytes.to_vec();
                bytes[at] = wrong;
                assert_eq!(Header::decode(&bytes, data), None, "{at}: {wrong}");
            }
            for len in 0..bytes.len() {
                assert_eq!(Header::decode(&bytes[..len], data), None, "{len} bytes");
            }
            assert_eq!(Header::decode(&[bytes, &[0; 4]].concat(), data), None, "too long");
            if kind == Kind::Put {
                assert_eq!(Header::decode(bytes, data - 1), None, "it says another length");
            }
        }
    }

    #[test]
    fn a_message_with_a_word_fits_a_line_of_the_rings() {
        let word = Some(Word { epoch: 1, seq: 2, index: 3 });
        let header = Header { word, ..Header::of(Kind::Send, 2, 2) };
        // The line has 64 bytes: 8 are the slot's, 16 the core's head, 8 the data.
        assert!(header.encode().as_bytes().len() <= 64 - 8 - 16 - 8);
    }
}

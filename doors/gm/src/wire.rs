//! The header of every message between two ports.

/// The length of a header in bytes.
pub const LENGTH: usize = 40;

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
    /// All messages up to this one are delivered.
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
    /// Nothing: whether it arrives shows whether the target lives.
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
    /// How often the connection has begun anew to send what was not taken.
    pub round: u32,
    /// The number of a message in its connection.
    pub seq: u32,
    /// The connection's, or for a get the request's, index at its sender; in replies as it came.
    pub index: u32,
    /// An address of the target.
    pub address: u64,
    /// How many bytes.
    pub length: u64,
}

impl Header {
    /// A header of this kind with zeros.
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
            address: 0,
            length: 0,
        }
    }

    /// A reply to this message.
    pub fn reply(&self, kind: Kind, code: u8) -> Self {
        let (from_port, to_port) = (self.to_port, self.from_port);
        Self { kind, code, from_port, to_port, size: 0, address: 0, length: 0, ..*self }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = self.kind as u8;
        bytes[1] = self.priority;
        bytes[2] = self.size;
        bytes[3] = self.code;
        bytes[4] = self.from_port;
        bytes[5] = self.to_port;
        bytes[8..12].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.round.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.seq.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.index.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.address.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// From bytes; `None`: a peer has sent something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let header = Self {
            kind: Kind::of(bytes[0])?,
            priority: bytes[1],
            size: bytes[2],
            code: bytes[3],
            from_port: bytes[4],
            to_port: bytes[5],
            epoch: word(8),
            round: word(12),
            seq: word(16),
            index: word(20),
            address: long(24),
            length: long(32),
        };
        let ports = crate::abi::PORTS as u8;
        let is_sound = header.priority < 2
            && header.size < crate::abi::SIZES
            && header.from_port < ports
            && header.to_port < ports
            && bytes[6..8] == [0, 0];
        is_sound.then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_nothing_else_is_one() {
        for kind in 1..=15 {
            let kind = Kind::of(kind).expect("a kind");
            let mut header = Header::of(kind, 2, 7);
            (header.priority, header.size, header.code) = (1, 31, 9);
            (header.epoch, header.round, header.seq, header.index) = (u32::MAX, 2, 3, 1 << 31);
            (header.address, header.length) = (u64::MAX - 1, 1 << 40);
            assert_eq!(Header::decode(&header.encode()), Some(header));
            let mut bytes = header.encode();
            for (at, wrong) in [(0, 0), (0, 16), (1, 2), (2, 32), (4, 8), (5, 8), (6, 1), (7, 1)] {
                let before = std::mem::replace(&mut bytes[at], wrong);
                assert_eq!(Header::decode(&bytes), None, "{at}: {wrong}");
                bytes[at] = before;
            }
        }
        assert_eq!(Header::decode(&[1; LENGTH - 1]), None);
        assert_eq!(Header::decode(&[]), None);
    }
}

//! The frame before each packet on a network, and the transport's own messages.
//!
//! A packet is a frame of 16 bytes, the head, and the body, padded to a multiple of 8 bytes, so that the next one in the same
//! buffer is aligned. All numbers are little-endian.

use super::frame::{HEAD_MAX, Task};
use crate::base::bytes::pad8;

/// The length of a frame in bytes.
pub const FRAME: usize = 16;

/// What follows a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A head and a body.
    Packet = 1,
    /// Nothing: the frame returns credits.
    Credits = 2,
    /// Nothing: the sender wants to know when the receiver departs.
    Greeting = 3,
    /// A [`Rejoin`] and the sender's address.
    Rejoin = 4,
    /// Nothing: the sender ends LAPI. `body_len` is the number of packets that it has sent, modulo 2^32.
    Departure = 5,
    /// Nothing: the departure and all packets before it have arrived.
    DepartureSeen = 6,
    /// Nothing: the receiver is to look for packets.
    Kick = 7,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        use Kind::{Credits, Departure, DepartureSeen, Greeting, Kick, Packet, Rejoin};
        [Packet, Credits, Greeting, Rejoin, Departure, DepartureSeen, Kick]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What follows.
    pub kind: Kind,
    /// The sender.
    pub src: Task,
    /// The receiver's number of this connection: what has another one belongs to a former connection.
    pub tag: u32,
    /// The number of packets that the sender has given back to its transport since it last said so.
    pub credits: u16,
    /// The length of the head in bytes.
    pub head_len: usize,
    /// The length of the body in bytes.
    pub body_len: u32,
}

impl Frame {
    /// As bytes.
    #[inline]
    pub fn encode(&self) -> [u8; FRAME] {
        let lens = u64::from(self.body_len)
            | u64::from(self.credits) << 32
            | (self.head_len as u64 / 8) << 48
            | (self.kind as u64) << 56;
        let from = u64::from(self.src) | u64::from(self.tag) << 32;
        let mut bytes = [0; FRAME];
        bytes[..8].copy_from_slice(&from.to_le_bytes());
        bytes[8..].copy_from_slice(&lens.to_le_bytes());
        bytes
    }

    /// The frame at the start of a message; `None` when it is not one, or when what follows has another length.
    #[inline]
    pub fn decode(message: &[u8]) -> Option<Self> {
        let (bytes, after) = message.split_first_chunk::<FRAME>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (from, lens) = (word(0), word(8));
        let frame = Self {
            kind: Kind::of((lens >> 56) as u8)?,
            src: from as u32,
            tag: (from >> 32) as u32,
            credits: (lens >> 32) as u16,
            head_len: (lens >> 48 & 0xff) as usize * 8,
            body_len: lens as u32,
        };
        let fits = match frame.kind {
            Kind::Packet => {
                frame.head_len <= HEAD_MAX && after.len() == frame.head_len + pad8(frame.body_len as usize)
            }
            Kind::Rejoin => after.len() >= REJOIN && after.len() == pad8(frame.body_len as usize),
            _ => after.is_empty(),
        };
        fits.then_some(frame)
    }
}

/// The length of a [`Rejoin`].
pub const REJOIN: usize = 16;

/// One side of a connection that is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejoin {
    /// What the sender wants as tag of all frames to it.
    pub tag: u32,
    /// The tag that the receiver has asked for, as far as the sender knows; 0 otherwise.
    pub echo: u32,
    /// The sender's epoch.
    pub epoch: u64,
}

impl Rejoin {
    /// As bytes.
    pub fn encode(&self) -> [u8; REJOIN] {
        let mut bytes = [0; REJOIN];
        bytes[..4].copy_from_slice(&self.tag.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.echo.to_le_bytes());
        bytes[8..].copy_from_slice(&self.epoch.to_le_bytes());
        bytes
    }

    /// What follows a frame of the kind [`Kind::Rejoin`], and the address after it.
    pub fn decode(after: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, address) = after.split_first_chunk::<REJOIN>()?;
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let epoch = u64::from(number(8)) | u64::from(number(12)) << 32;
        Some((Self { tag: number(0), echo: number(4), epoch }, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_as_encoded() {
        for (kind, head_len, body_len, after) in [
            (Kind::Packet, 48, 65_535, 48 + 65_536),
            (Kind::Packet, 8, 0, 8),
            (Kind::Credits, 0, 0, 0),
            (Kind::Departure, 0, u32::MAX, 0),
            (Kind::Rejoin, 0, 20, 24),
        ] {
            let frame =
                Frame { kind, src: 0x0102_0304, tag: 0xa1b2_c3d4, credits: 0xfffe, head_len, body_len };
            let mut bytes = frame.encode().to_vec();
            bytes.resize(FRAME + after, 7);
            assert_eq!(Frame::decode(&bytes), Some(frame));
            bytes.push(0);
            assert_eq!(Frame::decode(&bytes), None, "longer than its frame says");
            bytes.truncate(FRAME - 1);
            assert_eq!(Frame::decode(&bytes), None);
        }
        let bytes = Frame { kind: Kind::Kick, src: 1, tag: 2, credits: 3, head_len: 0, body_len: 0 }.encode();
        assert_eq!(bytes, [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 7]);
        assert_eq!(Frame::decode(&[0; FRAME]), None, "no kind");
    }

    #[test]
    fn a_rejoin_is_decoded_as_encoded() {
        let rejoin = Rejoin { tag: 1 << 31, echo: 7, epoch: u64::MAX - 1 };
        let mut bytes = rejoin.encode().to_vec();
        bytes.extend(b"address");
        assert_eq!(Rejoin::decode(&bytes), Some((rejoin, &b"address"[..])));
        assert_eq!(Rejoin::decode(&bytes[..15]), None);
    }
}

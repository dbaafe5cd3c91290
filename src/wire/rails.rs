//! What tasks with several rails send each other: the head of each packet, and notes
//! about the rails.
//!
//! A packet of such a task is, for the rail that carries it, a head of [`HEAD`] bytes and a body:
//! the packet's own head, followed by its own body. A [`Note`] is outside of any connection: it may
//! be lost, and may arrive twice. All numbers are little-endian.

use super::key::Key;

/// Rails of a task, at most.
pub const RAILS: usize = 8;

/// The length of a [`Head`] in bytes.
pub const HEAD: usize = 16;

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RailFrameKind {
    /// The head and the body of a packet.
    Packet = 1,
    /// [`Keys`]: memory was registered.
    Keys = 2,
    /// The number of a registration that was withdrawn.
    Withdrawn = 3,
}

/// The head of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What follows.
    pub kind: RailFrameKind,
    /// The number of the packet: packets of one sender to one receiver are numbered one
    /// after the other.
    pub number: u32,
    /// The sender has accepted all packets of the receiver before this number.
    pub accepted: u32,
    /// Names the sender's side of this connection.
    pub session: u32,
    /// The length of the packet's own head in bytes.
    pub head_len: u8,
}

impl Head {
    /// As bytes.
    #[inline]
    pub fn encode(&self) -> [u8; HEAD] {
        let last = self.kind as u32 | u32::from(self.head_len) << 8;
        bytemuck::cast([self.number, self.accepted, self.session, last].map(u32::to_le))
    }

    /// `None` when the bytes are not a head.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let words: [u32; HEAD / 4] = bytemuck::pod_read_unaligned(<&[u8; HEAD]>::try_from(bytes).ok()?);
        let [number, accepted, session, last] = words.map(u32::from_le);
        let kind = [RailFrameKind::Packet, RailFrameKind::Keys, RailFrameKind::Withdrawn];
        let kind = kind.into_iter().find(|kind| *kind as u8 == last as u8)?;
        Some(Self { kind, number, accepted, session, head_len: (last >> 8) as u8 })
    }
}

/// The length of a [`Note`] in bytes.
pub const NOTE: usize = 16 + 4 * RAILS;

/// The state of one rail between two tasks, as one of them sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RailState {
    /// Packets go over it.
    Live = 0,
    /// The rail was left: nothing from before arrives or is accessed any more.
    Left = 1,
    /// The rail was left, and may be joined again.
    Ready = 2,
    /// The rail is being joined.
    Joining = 3,
}

impl RailState {
    fn of(bits: u32) -> Self {
        [Self::Live, Self::Left, Self::Ready, Self::Joining][(bits & 3) as usize]
    }
}

/// What a task says of the rails to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Names the sender's side of this connection.
    pub session: u32,
    /// Names the receiver's side, as far as the sender knows; 0 otherwise.
    pub to: u32,
    /// The sender has accepted all packets of the receiver before this number.
    pub accepted: u32,
    /// The receiver is to send a note, too.
    pub wants_reply: bool,
    /// How often each rail was joined (modulo 2^30), and its state.
    pub rails: [(u32, RailState); RAILS],
}

impl Note {
    /// As bytes.
    pub fn encode(&self) -> [u8; NOTE] {
        let mut bytes = [0; NOTE];
        let first = [self.session, self.to, self.accepted, u32::from(self.wants_reply)];
        let rails = self.rails.iter().map(|(generation, standing)| generation << 2 | *standing as u32);
        for (place, word) in bytes.chunks_exact_mut(4).zip(first.into_iter().chain(rails)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The note of these bytes.
    pub fn decode(bytes: &[u8; NOTE]) -> Self {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * at + byte]));
        Self {
            session: word(0),
            to: word(1),
            accepted: word(2),
            wants_reply: word(3) != 0,
            rails: std::array::from_fn(|rail| {
                let word = word(4 + rail);
                (word >> 2, RailState::of(word))
            }),
        }
    }
}

/// The keys of one registration: on each rail another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The number of the registration.
    pub id: u64,
    /// The key on each rail that has one, and how often the rail had been joined when it was made.
    pub rails: [Option<(u32, Key)>; RAILS],
}

impl Keys {
    /// The longest bytes.
    pub const LONGEST: usize = 8 + RAILS * (8 + Key::LEN);

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.to_le_bytes().to_vec();
        for (rail, key) in self.rails.iter().enumerate() {
            if let Some((generation, key)) = key {
                bytes.extend((rail as u32).to_le_bytes());
                bytes.extend(generation.to_le_bytes());
                bytes.extend(key.encode());
            }
        }
        bytes
    }

    /// `None` when the bytes are not keys.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let mut keys = Self { id: u64::from_le_bytes(*id), rails: [None; RAILS] };
        let each = rest.chunks_exact(8 + Key::LEN);
        if !each.remainder().is_empty() {
            return None;
        }
        for one in each {
            let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| one[at + byte]));
            *keys.rails.get_mut(number(0) as usize)? = Some((number(4), Key::decode(&one[8..])?));
        }
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_decoded_as_encoded() {
        for kind in [RailFrameKind::Packet, RailFrameKind::Keys, RailFrameKind::Withdrawn] {
            let head = Head { kind, number: u32::MAX, accepted: 0x0102_0304, session: 7, head_len: 48 };
            assert_eq!(Head::decode(&head.encode()), Some(head));
            assert_eq!(Head::decode(&head.encode()[..15]), None);
        }
        assert_eq!(Head::decode(&[0; HEAD]), None, "no kind");
    }

    #[test]
    fn notes_are_decoded_as_encoded() {
        use RailState::{Joining, Left, Live, Ready};
        let mut rails = [(0, Live); RAILS];
        rails[1] = (5, Left);
        rails[2] = ((1 << 30) - 1, Ready);
        rails[7] = (6, Joining);
        let note = Note { session: 1, to: 2, accepted: u32::MAX, wants_reply: true, rails };
        assert_eq!(Note::decode(&note.encode()), note);
    }

    #[test]
    fn keys_are_decoded_as_encoded() {
        let mut keys = Keys { id: u64::MAX - 3, rails: [None; RAILS] };
        assert_eq!(Keys::decode(&keys.encode()), Some(keys));
        for rail in [0, 3, 7] {
            keys.rails[rail] = Some((rail as u32 + 9, Key { key: !0 - rail as u64, offset: 1 << rail }));
            let bytes = keys.encode();
            assert!(bytes.len() <= Keys::LONGEST);
            assert_eq!(Keys::decode(&bytes), Some(keys));
            assert_eq!(Keys::decode(&bytes[..bytes.len() - 1]), None);
        }
    }
}

//! The key by which a peer reaches registered memory. It travels in the body of the packet that
//! asks for an access.
//!
//! | word | field |
//! |---|---|
//! | 0 | `key`: names the registration |
//! | 1 | `offset`: what is added to an address of the owner (modulo 2^64) to get the address that the network wants |
//!
//! The words are little-endian. A request has a list of [`Part`]s.

/// What a peer needs for accesses to memory that was registered for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The registration's name, chosen by the transport of the owner.
    pub key: u64,
    /// Added to an address of the owner. 0 where the network takes addresses as they are.
    pub offset: u64,
}

impl Key {
    /// The length of a key in bytes.
    pub const LEN: usize = 16;

    /// The key as it travels.
    pub fn encode(self) -> [u8; Self::LEN] {
        bytemuck::cast([self.key, self.offset].map(u64::to_le))
    }

    /// Reads a key. `None` when the bytes are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let words: [u64; 2] = bytemuck::pod_read_unaligned(bytes.get(..Self::LEN)?);
        let [key, offset] = words.map(u64::from_le);
        Some(Self { key, offset })
    }

    /// What the network wants for this address of the owner.
    pub fn target(self, address: u64) -> u64 {
        address.wrapping_add(self.offset)
    }
}

/// Memory that a peer may access: what a request for an access says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The memory's address, as its owner knows it.
    pub addr: u64,
    /// The key of its registration.
    pub key: Key,
}

/// A part of a message whose bytes are contiguous at the task that asks for an access, which has
/// registered them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of its first byte in the message.
    pub from: u64,
    /// The part's length in bytes.
    pub len: u64,
    /// Where it is.
    pub exposed: Exposed,
}

impl Part {
    /// The length in words of 64 bits.
    pub const WORDS: usize = 5;

    /// Adds the words that travel.
    pub fn append_to(self, words: &mut Vec<u64>) {
        let Self { from, len, exposed: Exposed { addr, key } } = self;
        words.extend([from, len, addr, key.key, key.offset]);
    }

    /// Reads the parts of a message of `total` bytes. `None` unless there are some, each of some
    /// bytes, in the order of the message, apart from each other, and inside of it.
    pub fn list(words: &[u64], total: u64) -> Option<Box<[Self]>> {
        Self::list_from(words, 0, total)
    }

    /// The parts of a list that begin with byte `end` of the message or later: those
    /// before it are known.
    pub fn list_from(words: &[u64], mut end: u64, total: u64) -> Option<Box<[Self]>> {
        let part = |words: &[u64]| {
            let &[from, len, addr, key, offset] = words else { return None };
            let inside = from >= end && len != 0 && from.checked_add(len)? <= total;
            addr.checked_add(len)?;
            end = from.wrapping_add(len);
            inside.then_some(Self { from, len, exposed: Exposed { addr, key: Key { key, offset } } })
        };
        if words.is_empty() || !words.len().is_multiple_of(Self::WORDS) {
            return None;
        }
        words.chunks_exact(Self::WORDS).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposed, Key, Part};

    #[test]
    fn parts_travel_and_lie_inside_of_their_message_in_order() {
        let part = |from: u64, len| {
            let exposed = Exposed { addr: from.wrapping_add(0x1000), key: Key { key: 9, offset: from } };
            Part { from, len, exposed }
        };
        let list = |parts: &[Part], total| {
            let mut words = Vec::new();
            parts.iter().for_each(|part| part.append_to(&mut words));
            Part::list(&words, total)
        };
        let parts = [part(0, 10), part(10, 1), part(20, 30)];
        assert_eq!(list(&parts, 50).as_deref(), Some(&parts[..]));
        for (wrong, why) in [
            (&parts[..0], "none"),
            (&[part(0, 0)], "an empty one"),
            (&[part(41, 10)], "beyond the end"),
            (&[part(u64::MAX, 2)], "far beyond the end"),
            (&[part(10, 10), part(0, 5)], "not in order"),
            (&[part(0, 10), part(9, 5)], "not apart"),
        ] {
            assert_eq!(list(wrong, 50), None, "{why}");
        }
        assert_eq!(Part::list(&[0; 6], 50), None, "half of one");
        let mut last = Vec::new();
        parts[2].append_to(&mut last);
        assert_eq!(Part::list_from(&last, 20, 50).as_deref(), Some(&parts[2..]));
        assert_eq!(Part::list_from(&last, 21, 50), None, "it begins in what is known");
        let wrapping = Part { exposed: Exposed { addr: u64::MAX, ..parts[0].exposed }, ..parts[0] };
        assert_eq!(list(&[wrapping], 50), None, "beyond the end of memory");
    }

    #[test]
    fn a_key_travels() {
        let key = Key { key: 0x0102_0304_0506_0708, offset: 0_u64.wrapping_sub(0x7000) };
        let bytes = key.encode();
        assert_eq!(bytes[..8], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(bytes[8..], [0x00, 0x90, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Key::decode(&bytes), Some(key));
        assert_eq!(Key::decode(&bytes[..15]), None);
        assert_eq!(key.target(0x7010), 0x10);
    }
}

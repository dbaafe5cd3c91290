//! The key by which a peer reaches registered memory. It travels in the body of the packet that asks for an access.
//!
//! | word | field |
//! |---|---|
//! | 0 | `key`: names the registration |
//! | 1 | `offset`: what is added to an address of the owner (modulo 2^64) to get the address that the network wants |
//!
//! The words are little-endian. An active message's key is behind its user header. Other requests have an [`Exposed`] as their
//! body: the address of the memory, then the key.

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
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Reads a key. `None` when the bytes are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk::<8>()?;
        let offset = rest.first_chunk::<8>()?;
        Some(Self { key: u64::from_le_bytes(*key), offset: u64::from_le_bytes(*offset) })
    }

    /// What the network wants for this address of the owner.
    pub fn target(self, address: u64) -> u64 {
        address.wrapping_add(self.offset)
    }
}

/// Memory that a peer may access: what a request for an access says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Its address, as its owner knows it.
    pub addr: u64,
    /// The key of its registration.
    pub key: Key,
}

impl Exposed {
    /// The length in bytes.
    pub const LEN: usize = 8 + Key::LEN;

    /// The words as they travel.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.addr.to_le_bytes());
        bytes[8..].copy_from_slice(&self.key.encode());
        bytes
    }

    /// Reads them. `None` when the bytes are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (addr, rest) = bytes.split_first_chunk::<8>()?;
        Some(Self { addr: u64::from_le_bytes(*addr), key: Key::decode(rest)? })
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposed, Key};

    #[test]
    fn exposed_memory_travels() {
        let exposed = Exposed { addr: 0x1234_5678_9abc, key: Key { key: 7, offset: u64::MAX } };
        assert_eq!(Exposed::decode(&exposed.encode()), Some(exposed));
        assert_eq!(Exposed::decode(&exposed.encode()[..Exposed::LEN - 1]), None);
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

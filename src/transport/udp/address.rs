//! What a task that uses UDP publishes of one interface: where it receives, and how long a
//! datagram may be there.

use crate::wire::bytes::{ip, octets};
use std::net::SocketAddr;

/// One address of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpAddress {
    /// Where it receives.
    pub at: SocketAddr,
    /// The bytes of the longest datagram that the interface takes whole, without the headers
    /// of UDP and IP.
    pub longest: u16,
}

impl UdpAddress {
    /// The address's bytes: the port, the longest datagram (both little-endian), and 4 or 16 bytes
    /// of the address.
    pub fn encode(&self) -> Vec<u8> {
        [&self.at.port().to_le_bytes()[..], &self.longest.to_le_bytes(), &octets(self.at.ip())].concat()
    }

    /// `None` when the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (port, rest) = bytes.split_first_chunk()?;
        let (longest, octets) = rest.split_first_chunk()?;
        let at = SocketAddr::new(ip(octets)?, u16::from_le_bytes(*port));
        Some(Self { at, longest: u16::from_le_bytes(*longest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_decoded_as_encoded() {
        for at in ["192.0.2.7:4711", "[2001:db8::9]:65535"] {
            let address = UdpAddress { at: at.parse().expect("an address"), longest: 1472 };
            let bytes = address.encode();
            assert_eq!(UdpAddress::decode(&bytes), Some(address));
            for len in 0..bytes.len() {
                assert_eq!(UdpAddress::decode(&bytes[..len]).is_some(), len == 8, "{at}, {len} bytes");
            }
        }
    }
}

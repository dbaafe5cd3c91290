//! Bytes that are read one after the other, texts that are cut, and addresses as bytes.

use core::net::{IpAddr, SocketAddr};

/// Takes that number of bytes from the beginning.
pub fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*bytes)
}

/// Takes `len` bytes from the beginning.
pub fn take_some<'a>(from: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

/// As much of a text as fits into that many bytes.
pub fn cut(text: &str, longest: usize) -> &str {
    let mut ends = (0..=longest.min(text.len())).rev();
    &text[..ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0)]
}

/// The 4 or 16 bytes of an address.
pub fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// The address with these bytes; `None`: they are not 4 or 16.
pub fn ip(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

/// The address that the kernel has in memory like this: a `sockaddr_in` or `sockaddr_in6`.
pub fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let octets = match family {
        libc::AF_INET => bytes.get(4..8)?,
        libc::AF_INET6 => bytes.get(8..24)?,
        _ => return None,
    };
    Some(SocketAddr::new(ip(octets)?, port))
}

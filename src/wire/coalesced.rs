//! Several packets from one task to another, sent as one.
//!
//! The head of the one packet is [`HEAD`]. Its body is a sequence of 64-bit words: for each packet
//! one that says how long it is (the bytes of its head in the lower half, those of its body in the
//! upper half), its head, and its body, which is followed by the next packet from the next word on.

use super::frame::HEAD_MAX;

/// The head of a packet that contains others: its first byte is the kind of no packet of the
/// protocol, and as a whole it is no head of the transports' tests either.
pub const HEAD: [u8; 8] = *b"\xc0oalesce";

/// Where a packet is, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPlace {
    /// The first word of its head.
    pub head: usize,
    /// Bytes of its head.
    pub head_len: usize,
    /// The first word of its body.
    pub body: usize,
    /// Bytes of its body.
    pub body_len: usize,
    /// The first word after it.
    pub end: usize,
}

/// The word that says how long a packet is.
#[inline]
pub fn lengths(head_len: usize, body_len: usize) -> u64 {
    (head_len as u64 | (body_len as u64) << 32).to_le()
}

/// How many words a packet takes, with that word.
#[inline]
pub fn words(head_len: usize, body_len: usize) -> usize {
    1 + head_len / 8 + body_len.div_ceil(8)
}

/// The packet that begins at this word; `None` if there is none, or not all of it.
#[inline]
pub fn place(words: &[u64], at: usize) -> Option<PacketPlace> {
    let lengths = u64::from_le(*words.get(at)?);
    let (head_len, body_len) = (lengths as u32 as usize, (lengths >> 32) as usize);
    if head_len == 0 || head_len > HEAD_MAX || !head_len.is_multiple_of(8) {
        return None;
    }
    let head = at + 1;
    let body = head + head_len / 8;
    let end = body.checked_add(body_len.div_ceil(8))?;
    (end <= words.len()).then_some(PacketPlace { head, head_len, body, body_len, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::Head;

    #[test]
    fn no_packet_of_the_protocol_has_this_head() {
        assert_eq!(Head::decode(&HEAD), None);
    }

    #[test]
    fn packets_are_found_where_they_are() {
        let mut all = Vec::new();
        let mut places = Vec::new();
        for (head_len, body_len) in [(8, 0), (48, 1), (16, 8), (8, 4095), (40, 17)] {
            let at = all.len();
            all.push(lengths(head_len, body_len));
            all.resize(at + words(head_len, body_len), 7);
            places.push((at, head_len, body_len));
        }
        for (at, head_len, body_len) in places {
            let place = place(&all, at).expect("a packet");
            assert_eq!((place.head_len, place.body_len), (head_len, body_len));
            assert_eq!((place.head, place.body), (at + 1, at + 1 + head_len / 8));
            assert_eq!(place.end, at + words(head_len, body_len));
        }
        assert_eq!(place(&all, all.len()), None);
    }

    #[test]
    fn what_is_no_packet_is_none() {
        let bad = [(0, 8), (56, 0), (12, 0), (8, 17), (8, u32::MAX as usize)];
        for (head_len, body_len) in bad {
            assert_eq!(place(&[lengths(head_len, body_len), 1, 2, 3], 0), None, "{head_len}, {body_len}");
        }
        assert_eq!(place(&[], 0), None);
    }
}

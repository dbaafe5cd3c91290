//! What the two sides tell each other, and the order of messages.
//!
//! The receiving side begins with a hello: the version (2 bytes) and the bytes of the longest
//! message that it takes (8). Each message has 12 bytes before it: its number on the connection (8)
//! and the length of its header (4). Numbers are little-endian.

use std::collections::BTreeMap;

/// The version of these frames.
const VERSION: u16 = 1;
/// Bytes of a hello.
pub const HELLO: usize = 10;
/// Bytes before a message.
pub const BEFORE: usize = 12;
/// Messages that may be sent after one that has not ended, that one included.
pub const SLOTS: usize = 256;
/// Bytes of the longest header.
pub const LENGTH: usize = 512;

/// The hello of a side that takes messages of up to this many bytes.
pub fn hello(longest: u64) -> [u8; HELLO] {
    let mut bytes = [0; HELLO];
    bytes[..2].copy_from_slice(&VERSION.to_le_bytes());
    bytes[2..].copy_from_slice(&longest.to_le_bytes());
    bytes
}

/// The length in a hello.
///
/// # Errors
/// What is wrong with it.
pub fn read_hello(bytes: &[u8]) -> Result<u64, String> {
    let (version, longest) = bytes.split_first_chunk().ok_or("the other side does not say its version")?;
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return Err(format!("the other side has version {version} of the protocol, and this one {VERSION}"));
    }
    let longest = longest.try_into().map_err(|_| "the other side says no length")?;
    Ok(u64::from_le_bytes(longest))
}

/// What stands before the message with this number.
pub fn before(number: u64, header: usize) -> [u8; BEFORE] {
    let mut bytes = [0; BEFORE];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&(header as u32).to_le_bytes());
    bytes
}

/// A message as it was sent: its header, and its data behind it.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// Header and data.
    pub bytes: Vec<u8>,
    /// Bytes of the header.
    pub header: usize,
}

/// Messages that have arrived, in the order in which they were sent. A sender sends fewer than
/// [`SLOTS`] behind one that has not ended, so no more than these wait for an earlier one.
#[derive(Default)]
pub struct Order {
    next: u64,
    held: BTreeMap<u64, Whole>,
}

impl Order {
    /// Takes a message in any order.
    ///
    /// # Errors
    /// What no sender sends.
    pub fn push(&mut self, before: &[u8], bytes: Vec<u8>) -> Result<(), &'static str> {
        let before: &[u8; BEFORE] = before.try_into().map_err(|_| "a message without its number")?;
        let (number, header) = before.split_first_chunk().ok_or("a message without its number")?;
        let number = u64::from_le_bytes(*number);
        let header = header.try_into().map_or(u32::MAX, u32::from_le_bytes) as usize;
        if header > bytes.len() || header > LENGTH {
            return Err("a header that is longer than its message, or than a slot");
        }
        if number.checked_sub(self.next).is_none_or(|ahead| ahead >= SLOTS as u64) {
            return Err("a message out of its turn");
        }
        match self.held.insert(number, Whole { bytes, header }) {
            None => Ok(()),
            Some(_) => Err("two messages with one number"),
        }
    }

    /// Whether the next message is there.
    pub fn has_next(&self) -> bool {
        self.held.contains_key(&self.next)
    }

    /// The next message, if it is there.
    pub fn pop(&mut self) -> Option<Whole> {
        let whole = self.held.remove(&self.next)?;
        self.next += 1;
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_the_order_in_which_they_were_sent() {
        let mut order = Order::default();
        for number in [2, 1, 3] {
            order.push(&before(number, 1), vec![number as u8]).expect("a message");
            assert_eq!((order.has_next(), order.pop()), (false, None));
        }
        order.push(&before(0, 0), vec![0]).expect("a message");
        for number in 0..4 {
            assert!(order.has_next());
            let whole = Whole { bytes: vec![number], header: usize::from(number != 0) };
            assert_eq!(order.pop(), Some(whole));
        }
        assert_eq!(order.pop(), None);
    }

    #[test]
    fn what_no_sender_sends_is_refused() {
        let mut order = Order::default();
        order.push(&before(0, 0), Vec::new()).expect("a message");
        order.pop().expect("the message");
        let far = 1 + SLOTS as u64;
        for (bytes, length) in [
            (&before(0, 0)[..], 0),
            (&before(far, 0), 0),
            (&before(u64::MAX, 0), 0),
            (&before(1, 5), 4),
            (&before(1, LENGTH + 1), LENGTH + 1),
            (&before(1, 0)[1..], 0),
            (&[], 0),
        ] {
            assert!(order.push(bytes, vec![0; length]).is_err(), "{bytes:?}");
        }
        order.push(&before(far - 1, LENGTH), vec![0; LENGTH]).expect("the last one that may be under way");
        assert!(order.push(&before(far - 1, 0), Vec::new()).is_err(), "twice");
    }

    #[test]
    fn a_hello_says_version_and_length() {
        assert_eq!(read_hello(&hello(77)), Ok(77));
        let mut other = hello(77);
        other[0] = 9;
        assert!(read_hello(&other).is_err_and(|why| why.contains("version 9")));
        for length in [0, 1, 2, 9] {
            assert!(read_hello(&hello(77)[..length]).is_err(), "{length} bytes");
        }
    }
}

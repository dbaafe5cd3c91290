//! What protects the datagrams of one direction of a connection: AEGIS-128X2, or a constant tag.
//!
//! AEGIS has no key schedule: a datagram begins with the key and its nonce. The nonce is the number
//! of the datagram, added by exclusive or to bytes that only the two tasks know, as in TLS 1.3:
//! equal numbers of two connections have different nonces, too.

use super::{Security, TAG};
use aegis::aegis128x2::{Aegis128X2, Key, Nonce};

/// The bytes that a cipher is made from.
pub(super) const MATERIAL: usize = 32;

/// What protects one direction of a connection.
pub(super) enum Cipher {
    /// The tag of every datagram.
    Constant([u8; TAG]),
    Keyed {
        key: Key,
        /// The nonce of number 0, which no datagram has.
        nonce: Nonce,
    },
}

impl Cipher {
    /// From bytes that nothing else is made from.
    pub(super) fn new(security: Security, material: &[u8; MATERIAL]) -> Self {
        let (first, second) = material.split_at(MATERIAL / 2);
        let half = |bytes: &[u8]| bytes.try_into().expect("one half");
        match security {
            Security::None => Self::Constant(half(first)),
            Security::Auth | Security::Encrypt => Self::Keyed { key: half(first), nonce: half(second) },
        }
    }

    /// Protects the content of the datagram with this number, which is used once, and the bytes
    /// before it; returns the tag.
    #[inline]
    pub(super) fn seal(&self, number: u64, before: &[u8], content: &mut [u8]) -> [u8; TAG] {
        match self {
            Self::Constant(tag) => *tag,
            Self::Keyed { key, nonce } => keyed(key, nonce, number).encrypt_in_place(content, before),
        }
    }

    /// Whether the tag is right, in a time that does not depend on where it differs; the content is
    /// decrypted then, and erased or left as it is otherwise.
    #[inline]
    pub(super) fn open(&self, number: u64, before: &[u8], content: &mut [u8], tag: &[u8; TAG]) -> bool {
        match self {
            // One comparison of all bytes.
            Self::Constant(own) => u128::from_ne_bytes(*own) == u128::from_ne_bytes(*tag),
            Self::Keyed { key, nonce } => {
                keyed(key, nonce, number).decrypt_in_place(content, tag, before).is_ok()
            }
        }
    }
}

#[inline]
fn keyed(key: &Key, nonce: &Nonce, number: u64) -> Aegis128X2<TAG> {
    let nonce = u128::from_le_bytes(*nonce) ^ u128::from(number);
    Aegis128X2::new(key, &nonce.to_le_bytes())
}

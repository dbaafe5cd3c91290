//! Proofs that a secret is known, and keys that follow from others: HMAC with SHA-256.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// A secret as a key: what is made with it cannot be made without it.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// The key that is this secret.
    pub fn new(secret: &[u8]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("a key of any length is one"))
    }

    /// The key that follows from this one and the parts.
    pub fn derive(&self, parts: &[&[u8]]) -> Self {
        Self::new(&self.tag::<32>(parts))
    }

    /// The tag of the parts, one after another; of its 32 bytes the first `N`.
    pub fn tag<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        *self.taking(parts).finalize().into_bytes().first_chunk().expect("up to 32 bytes")
    }

    /// Whether these are the first bytes of the parts' tag, in a time that does not depend on where
    /// they differ.
    pub fn is_tag(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.taking(parts).verify_truncated_left(tag).is_ok()
    }

    fn taking(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

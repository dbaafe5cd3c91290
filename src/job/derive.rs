//! Secrets that follow from others, and proofs that a secret is known.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::hint::black_box;

/// A secret of the job.
pub type Secret = [u8; 16];

/// A secret of tasks that agree upon these parts, made from another one.
pub fn derive(from: &Secret, parts: &[&[u8]]) -> Secret {
    // HMAC accepts keys of every length.
    let Ok(mut hmac) = <Hmac<Sha256> as Mac>::new_from_slice(from) else { unreachable!("a key of 16 bytes") };
    hmac.update(b"OpenLAPI secret\0");
    for part in parts {
        hmac.update(&(part.len() as u64).to_le_bytes());
        hmac.update(part);
    }
    let whole: [u8; 32] = hmac.finalize().into_bytes().into();
    std::array::from_fn(|at| whole[at])
}

/// Whether the bytes are equal; compared as a whole, so that the time does not depend on where they
/// differ.
pub(in crate::job) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |bits, (a, b)| bits | black_box(a ^ b));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_counts() {
        let one = derive(&[7; 16], &[b"ab", b"c"]);
        assert_eq!(one, derive(&[7; 16], &[b"ab", b"c"]));
        for (from, parts) in
            [([8; 16], [&b"ab"[..], b"c"]), ([7; 16], [b"a", b"bc"]), ([7; 16], [b"ab", b"d"])]
        {
            assert_ne!(one, derive(&from, &parts));
        }
    }
}

//! Secrets that follow from others, and proofs that a secret is known.

use crate::base::mac::MacKey;
use std::hint::black_box;

/// A secret of the job.
pub type Secret = [u8; 16];

/// A secret of tasks that agree upon these parts, made from another one.
pub fn derive(from: &Secret, parts: &[&[u8]]) -> Secret {
    let mut whole = b"OpenLAPI secret\0".to_vec();
    for part in parts {
        whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
        whole.extend_from_slice(part);
    }
    MacKey::new(from).tag(&[&whole])
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

    /// Another build of the same version makes the same.
    #[test]
    fn a_secret_stays_as_it_is() {
        let secret = derive(&[7; 16], &[b"ab", b"c"]);
        assert_eq!(u128::from_be_bytes(secret), 0xfcc7_4c2e_f698_736f_34fe_5989_70d7_0919);
    }

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

//! Random bytes from the kernel, for secrets, nonces and names.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes that cannot be guessed.
pub fn random<const N: usize>() -> [u8; N] {
    #[cfg(test)]
    if super::simulation::active() {
        return std::array::from_fn(|_| super::simulation::random().unwrap_or_default() as u8);
    }
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(got) => filled += got,
            // An interrupted call is repeated. Every kernel since 3.17 has this call.
            Err(reason) => assert_eq!(reason, Errno::INTR, "the kernel has no random numbers"),
        }
    }
    bytes
}

//! Connections by what they connect.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash of numbers that no peer chooses freely: a multiplication.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// The place of a connection, by its key.
pub type Index = HashMap<u64, u32, BuildHasherDefault<Mix>>;

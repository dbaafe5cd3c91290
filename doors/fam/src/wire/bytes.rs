//! Fields of a header, one after the other, little-endian.

/// The longest header, in bytes: that of an atomic operation.
pub const LONGEST: usize = 56;

/// A header as bytes, without memory of its own.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Header {
    /// One that begins with what the message is.
    pub(super) fn of(kind: u8) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[0] = kind;
        Self { bytes, length: 1 }
    }

    pub(super) fn with<const N: usize>(mut self, field: [u8; N]) -> Self {
        self.bytes[self.length..self.length + N].copy_from_slice(&field);
        self.length += N;
        self
    }

    pub(super) fn u64(self, field: u64) -> Self {
        self.with(field.to_le_bytes())
    }

    pub(super) fn u32(self, field: u32) -> Self {
        self.with(field.to_le_bytes())
    }
}

impl std::ops::Deref for Header {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Fields that are taken from bytes.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// The next bytes; `None`: too few are left.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next number of 128 bits.
    pub fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }
}

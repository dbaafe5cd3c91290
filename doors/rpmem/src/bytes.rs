//! Fields as bytes, one after the other, numbers as little endian.

/// Bytes that grow by fields.
#[derive(Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a number of 32 bits.
    pub fn u32(&mut self, number: u32) {
        self.raw(&number.to_le_bytes());
    }

    /// Appends numbers of 32 bits.
    pub fn u32s<const N: usize>(&mut self, numbers: [u32; N]) {
        numbers.into_iter().for_each(|number| self.u32(number));
    }

    /// Appends numbers of 64 bits.
    pub fn u64s<const N: usize>(&mut self, numbers: [u64; N]) {
        numbers.into_iter().for_each(|number| self.u64(number));
    }

    /// Appends a number of 64 bits.
    pub fn u64(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }
}

/// Fields that are taken from bytes, one after the other.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// The next bytes; `None`: too few are left.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The value, if all bytes are taken.
    pub fn ended<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

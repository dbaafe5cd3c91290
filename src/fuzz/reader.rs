//! How an input becomes numbers, for targets that need more than its bytes.

/// Takes values off the front of an input. Behind its end everything is 0 or empty.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// A number of two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// A number of eight bytes.
    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// At most this many bytes.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// All words of 64 bits; bytes behind the last one are left out.
    pub fn longs(self) -> Vec<u64> {
        self.0.chunks_exact(8).map(|word| Reader(word).long()).collect()
    }

    /// Ints, of which small ones are frequent in programs: 255 announces four bytes of an int, any
    /// other byte is a small number.
    pub fn ints(mut self) -> Vec<i32> {
        let mut ints = Vec::new();
        while !self.is_empty() {
            match self.byte() {
                255 => ints.push(i32::from_le_bytes(self.array())),
                byte => ints.push(i32::from(byte as i8)),
            }
        }
        ints
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.bytes(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }
}

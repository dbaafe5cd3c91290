//! Bytes that are read one after the other, and texts that are cut.

/// Takes that number of bytes from the beginning.
pub fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*bytes)
}

/// Takes `len` bytes from the beginning.
pub fn take_some<'a>(from: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

/// As much of a text as fits into that many bytes.
pub fn cut(text: &str, longest: usize) -> &str {
    let mut ends = (0..=longest.min(text.len())).rev();
    &text[..ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0)]
}

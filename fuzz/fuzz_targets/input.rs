//! How bytes become a program. Small numbers are frequent in programs, so one byte is enough for most of them.

/// The ints that the bytes encode: 255 announces four bytes of an int, any other byte is a small number.
pub fn ints(bytes: &[u8]) -> Vec<i32> {
    let mut ints = Vec::new();
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != 255 {
            ints.push(i32::from(byte as i8));
        } else if let Some((four, after)) = rest.split_first_chunk() {
            ints.push(i32::from_le_bytes(*four));
            rest = after;
        }
    }
    ints
}

/// Takes a long of two bytes off the front; 0 when there is none.
pub fn short(bytes: &mut &[u8]) -> i64 {
    match bytes.split_first_chunk() {
        Some((two, after)) => {
            *bytes = after;
            i64::from(i16::from_le_bytes(*two))
        }
        None => 0,
    }
}

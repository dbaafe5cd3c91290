//! A user header of any length in one of LAPI's, which are whole words: its length in bytes, of 32
//! bits, little-endian, the header, and zeros. Interfaces whose own headers have any length use it.

/// Bytes in front of the header.
pub const PREFIX: usize = 4;

/// Writes a header at the beginning of `into`, and returns it with what is around it, a multiple of
/// 4 bytes; `None`: `into` is too short.
pub fn pack<'a>(header: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let end = PREFIX + header.len();
    let packed = into.get_mut(..end.next_multiple_of(4))?;
    packed[..PREFIX].copy_from_slice(&(header.len() as u32).to_le_bytes());
    packed[PREFIX..end].copy_from_slice(header);
    packed[end..].fill(0);
    Some(packed)
}

/// The header that [`pack`] has packed; `None`: a peer has packed something else.
pub fn unpack(packed: &[u8]) -> Option<&[u8]> {
    let (length, rest) = packed.split_first_chunk()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64;

    #[test]
    fn headers_of_every_length_come_back() {
        let all: Vec<u8> = (0..ROOM).map(|at| at as u8).collect();
        for length in 0..=ROOM - PREFIX {
            let mut room = [0xff; ROOM];
            let packed = pack(&all[..length], &mut room).expect("it fits");
            assert!(packed.len().is_multiple_of(4) && packed.len() <= ROOM);
            assert_eq!(unpack(packed), Some(&all[..length]));
        }
        assert!(pack(&all, &mut [0; ROOM]).is_none());
        for wrong in [&[][..], &[1, 0, 0], &[1, 0, 0, 0], &[0xff; 8]] {
            assert_eq!(unpack(wrong), None, "{wrong:?}");
        }
    }
}

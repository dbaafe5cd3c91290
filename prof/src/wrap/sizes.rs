//! The number of bytes of a vector.

use openlapi::abi::{LAPI_GEN_GENERIC, LAPI_GEN_IOVECTOR, LAPI_GEN_STRIDED_XFER, lapi_vec_t};

/// The bytes of a vector; 0 for an invalid one, which the call refuses. Reads no array that the
/// call would not read.
///
/// # Safety
///
/// `vector` is null or what the man pages of the vector calls ask for.
pub unsafe fn of(vector: *const lapi_vec_t) -> u64 {
    // SAFETY: as the caller says.
    let Some(vector) = (unsafe { vector.as_ref() }) else { return 0 };
    let (count, info, len) = (vector.num_vecs as usize, vector.info, vector.len);
    // Without pieces the arrays may be missing.
    if count == 0 || info.is_null() {
        return 0;
    }
    match vector.vec_type {
        LAPI_GEN_STRIDED_XFER => {
            // SAFETY: a strided vector that has blocks has base, block size and stride.
            let block = unsafe { info.add(1).read_unaligned() } as u64;
            block.saturating_mul(count as u64)
        }
        LAPI_GEN_IOVECTOR | LAPI_GEN_GENERIC if !len.is_null() => {
            // SAFETY: these vectors have `count` lengths.
            let lengths = (0..count).map(|piece| unsafe { len.add(piece).read_unaligned() });
            lengths.fold(0, u64::saturating_add)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{c_ulong, c_void};
    use std::ptr;

    /// Where nothing is mapped: reading there ends the process.
    fn nowhere<T>() -> *mut T {
        ptr::without_provenance_mut(0x11)
    }

    #[test]
    fn vectors_have_their_bytes_and_no_other_array_is_read() {
        let mut lengths: [c_ulong; 3] = [1, 20, 300];
        let mut template = [8, 16, 24].map(ptr::without_provenance_mut::<c_void>);
        let size = |vec_type, num_vecs, info, len| {
            // SAFETY: the arrays are those that the type asks for, or may not be read.
            unsafe { of(&lapi_vec_t { vec_type, num_vecs, info, len }) }
        };
        for list in [LAPI_GEN_IOVECTOR, LAPI_GEN_GENERIC] {
            assert_eq!(size(list, 3, nowhere(), lengths.as_mut_ptr()), 321);
            assert_eq!(size(list, 3, nowhere(), ptr::null_mut()), 0);
            assert_eq!(size(list, 3, ptr::null_mut(), nowhere()), 0);
            assert_eq!(size(list, 0, nowhere(), nowhere()), 0);
        }
        assert_eq!(size(LAPI_GEN_STRIDED_XFER, 5, template.as_mut_ptr(), nowhere()), 80);
        assert_eq!(size(LAPI_GEN_STRIDED_XFER, 0, nowhere(), nowhere()), 0);
        assert_eq!(size(LAPI_GEN_STRIDED_XFER, 5, ptr::null_mut(), nowhere()), 0);
        assert_eq!(size(3, 5, nowhere(), nowhere()), 0);
        // SAFETY: null has no arrays.
        assert_eq!(unsafe { of(ptr::null()) }, 0);
    }
}

//! The number of bytes of a vector.

use openlapi::abi::{LAPI_GEN_STRIDED_XFER, lapi_vec_t};
use std::slice;

/// The bytes of a vector; 0 for an invalid one, which the call refuses.
///
/// # Safety
///
/// `vector` is null or what the man pages of the vector calls ask for.
pub unsafe fn of(vector: *const lapi_vec_t) -> u64 {
    // SAFETY: as the caller says.
    let Some(vector) = (unsafe { vector.as_ref() }) else { return 0 };
    let count = vector.num_vecs as usize;
    if vector.vec_type == LAPI_GEN_STRIDED_XFER {
        if vector.info.is_null() {
            return 0;
        }
        // SAFETY: a strided vector has base, block size and stride.
        let block = unsafe { *vector.info.add(1) } as u64;
        return block.saturating_mul(count as u64);
    }
    if vector.len.is_null() || count == 0 {
        return 0;
    }
    // SAFETY: the other vectors have `count` lengths.
    unsafe { slice::from_raw_parts(vector.len, count) }.iter().fold(0, |sum, len| sum.saturating_add(*len))
}

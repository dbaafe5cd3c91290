//! The description of a vector: how the target's places travel in packets.
//!
//! A description is a list of 64-bit words in the byte order of the machine; all tasks of a job
//! have the same one. The first word is its kind:
//!
//! | kind | words that follow |
//! |---|---|
//! | 0: pieces | for each piece its address and its length in bytes |
//! | 1: strided | base, block, stride (all three in bytes), number of blocks |

use super::layout::Layout;
use super::vector::Vector;

const PIECES: u64 = 0;
const STRIDED: u64 = 1;

/// The words that describe a vector.
pub fn describe(vector: &Vector) -> Vec<u64> {
    if let Some(template) = vector.template() {
        return vec![STRIDED, template.base as u64, template.block, template.stride, vector.count() as u64];
    }
    let pieces = vector.pieces().flat_map(|(at, len)| [at as u64, len]);
    std::iter::once(PIECES).chain(pieces).collect()
}

/// The words that describe a layout, run by run.
pub fn describe_layout(layout: &Layout) -> Vec<u64> {
    let mut words = vec![PIECES];
    layout.runs(0, layout.len(), |at, len| words.extend([at as u64, len as u64]));
    words
}

/// The layout that words describe; `None` for words that are not a description, or that describe
/// places beyond the end of memory. It takes no more memory than the words, whatever they say.
pub fn layout_of(words: &[u64]) -> Option<Layout> {
    match *words {
        [STRIDED, base, block, stride, count] => has_places(base, block, stride, count)
            .then(|| Layout::strided(base as *mut u8, block, stride, count)),
        [PIECES, ref pieces @ ..] if pieces.len() % 2 == 0 => {
            let pieces = pieces.chunks_exact(2);
            let fits = |total: u64, piece: &[u64]| {
                let (at, len) = (piece[0], piece[1]);
                (len == 0 || is_memory(at, len)).then(|| total.checked_add(len))?
            };
            pieces.clone().try_fold(0, fits)?;
            Some(Layout::pieces(pieces.map(|piece| (piece[0] as *mut u8, piece[1]))))
        }
        _ => None,
    }
}

/// Whether this task can have `len` bytes from an address on.
pub fn is_memory(at: u64, len: u64) -> bool {
    at.checked_add(len).is_some_and(|end| usize::try_from(end).is_ok())
}

/// Whether all blocks of a strided vector lie in what can be memory. A stride may be negative.
fn has_places(base: u64, block: u64, stride: u64, count: u64) -> bool {
    let Some(len) = block.checked_mul(count) else { return false };
    if len == 0 {
        return true;
    }
    let last = i128::from(base) + i128::from(stride as i64) * i128::from(count - 1);
    u64::try_from(last).is_ok_and(|last| is_memory(base.max(last), block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{LAPI_GEN_STRIDED_XFER, lapi_vec_t};
    use std::ptr;

    fn runs(layout: &Layout) -> Vec<(usize, usize)> {
        let mut runs = Vec::new();
        layout.runs(0, layout.len(), |at, len| runs.push((at.addr(), len)));
        runs
    }

    #[test]
    fn a_layout_survives_its_description() {
        let pieces = [(0x1000, 8), (0x2000, 0), (0x3000, 5), (0x3005, 3)];
        let layout = Layout::pieces(pieces.map(|(at, len)| (ptr::without_provenance_mut(at), len)));
        let words = describe_layout(&layout);
        assert_eq!(words, [PIECES, 0x1000, 8, 0x3000, 8]);
        assert_eq!(layout_of(&words).map(|layout| runs(&layout)), Some(runs(&layout)));
    }

    #[test]
    fn a_strided_vector_is_five_words() {
        let mut info = [0x1000, 8, 24].map(ptr::without_provenance_mut);
        let vector = lapi_vec_t {
            vec_type: LAPI_GEN_STRIDED_XFER,
            num_vecs: 3,
            info: info.as_mut_ptr(),
            len: ptr::null_mut(),
        };
        // SAFETY: a whole vector, which lives until the end of the test.
        let words = unsafe { Vector::of(&vector) }.map(|vector| describe(&vector)).unwrap_or_default();
        assert_eq!(words, [STRIDED, 0x1000, 8, 24, 3]);
        let layout = layout_of(&words).map(|layout| runs(&layout));
        assert_eq!(layout, Some(vec![(0x1000, 8), (0x1018, 8), (0x1030, 8)]));
    }

    #[test]
    fn what_is_no_description_is_refused() {
        for words in [&[][..], &[2, 0], &[PIECES, 1], &[STRIDED, 1, 2, 3], &[STRIDED, 1, 2, 3, 4, 5]] {
            assert!(layout_of(words).is_none(), "{words:?}");
        }
    }

    #[test]
    fn places_beyond_the_end_of_memory_are_refused() {
        const END: u64 = u64::MAX;
        let negative = (-24_i64) as u64;
        for words in [
            &[STRIDED, 0x1000, 1 << 40, 1 << 41, 1 << 40][..],
            &[STRIDED, 0x1000, 8, 1 << 62, 5],
            &[STRIDED, 0x1000, 8, i64::MAX as u64, END],
            &[STRIDED, END - 7, 8, 24, 1],
            &[STRIDED, END - 40, 8, 24, 3],
            &[STRIDED, 40, 8, negative, 3],
            &[STRIDED, END, 1, i64::MIN as u64, END],
            &[PIECES, END - 7, 8],
            &[PIECES, 0x1000, 8, END - 7, 9],
            &[PIECES, 0, END, 0, END],
        ] {
            assert!(layout_of(words).is_none(), "{words:?}");
        }
        // An empty piece may have any address, and a vector without bytes as well.
        for (words, len) in [
            (&[PIECES, END, 0, 0x1000, 8][..], 8),
            (&[STRIDED, END, 0, END, END], 0),
            (&[STRIDED, END, END, END, 0], 0),
            (&[STRIDED, 48, 8, negative, 3], 24),
        ] {
            assert_eq!(layout_of(words).map(|layout| layout.len()), Some(len), "{words:?}");
        }
    }
}
